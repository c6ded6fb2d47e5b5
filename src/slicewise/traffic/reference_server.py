"""One server of the reference engine: one iteration after the other, a loop a step. Slow: an oracle for tests."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from slicewise.traffic.server import CHUNKED, DECODE, PREFILL_FIRST, STATIC, Server


@dataclass(kw_only=True)
class Job:
    """A request on its way through a server.

    Attributes:
        index: its row among the requests.
        arrival_s: when it arrives.
        prompt_tokens: T.
        output_tokens: G, how many it is to generate.
        prefix: hashes of its prompt's blocks.
        generated: g, tokens generated so far; a preemption keeps them.
        held: h, tokens in the cache, once it is prefilled.
        to_compute: P, prompt and generated tokens at its latest admission.
        done: of P, those that are computed or were cached.
        blocks: that it holds while it is running.
        start_s: when it was first admitted.
        first_token_s: when its first token was there.
        token_s: when its latest token was there.
        finish_s: when its last token was there; nan until then.
        preemptions: how often it was preempted.
        cached_tokens: found in the prefix cache at its first admission.
    """

    index: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: tuple[int, ...]
    generated: int = 0
    held: int = 0
    to_compute: int = 0
    done: int = 0
    blocks: int = 0
    start_s: float = math.nan
    first_token_s: float = math.nan
    token_s: float = math.nan
    finish_s: float = math.nan
    preemptions: int = 0
    cached_tokens: int = 0

    @property
    def is_prefilled(self) -> bool:
        """Whether it decodes; else its prompt is still computed."""
        return self.done == self.to_compute

    @property
    def is_finished(self) -> bool:
        """Whether its last token is there."""
        return self.generated == self.output_tokens


class ReferenceServer:
    """One server: what waits, what runs, its clock and its prefix cache."""

    def __init__(self, server: Server, prefix_block_tokens: int) -> None:
        self.times = server.times
        self.policy = server.policy
        self.n_blocks = server.n_blocks
        self.prefix_block_tokens = prefix_block_tokens
        self.caches = server.policy.caches_prefixes and prefix_block_tokens > 0
        self.now = 0.0
        self.sent: list[Job] = []
        self.waiting: list[Job] = []  # the head is the first
        self.running: list[Job] = []  # in the order of admission
        self.lru: OrderedDict[int, None] = OrderedDict()  # the least recent is the first
        self.gaps_s: list[float] = []  # between the tokens of each request

    # What the router calls and asks.

    def advance(self, until_s: float) -> None:
        """Run the iterations that begin before this time; one of them may end after it."""
        while self.now < until_s and (self.waiting or self.running):
            self.iterate()

    def send(self, job: Job) -> None:
        """Let a request arrive. All iterations that begin before its arrival have been run by then."""
        self.now = max(self.now, job.arrival_s)  # behind the arrival only where the server was idle
        self.sent.append(job)
        self.waiting.append(job)

    def n_unfinished(self, at_s: float) -> int:
        """Requests that were sent here and have no finish_s <= at_s."""
        return sum(1 for job in self.sent if not job.finish_s <= at_s)

    def n_hits(self, prefix: tuple[int, ...]) -> int:
        """Leading hashes that are in the prefix cache, until the first that is not."""
        hits = 0
        for block in prefix:
            if block not in self.lru:
                break
            hits += 1
        return hits

    # Blocks.

    def blocks_of(self, tokens: int) -> int:
        """Blocks of so many tokens."""
        return -(-tokens // self.policy.block_tokens)

    def free_blocks(self) -> int:
        """Blocks that no running request holds."""
        return self.n_blocks - sum(job.blocks for job in self.running)

    def needed_blocks(self) -> int:
        """Blocks of those that run, with room for a further token of each that decodes."""
        return sum(self.blocks_of(job.held + 1) if job.is_prefilled else job.blocks for job in self.running)

    # Iterations.

    def iterate(self) -> None:
        """Run the iteration that begins now; the clock is at its end afterwards."""
        if self.policy.kind in (PREFILL_FIRST, DECODE):
            self._iterate_prefill_first()
        elif self.policy.kind == CHUNKED:
            self._iterate_chunked()
        else:
            self._iterate_static()

    def _iterate_prefill_first(self) -> None:
        if (
            self.waiting
            and len(self.running) < self.policy.max_num_seqs
            and self.blocks_of(_tokens(self.waiting[0])) <= self.free_blocks()
        ):
            job = self._admit_head()
            if self.policy.kind != DECODE or job.generated:  # a decode server is sent the cache with the prompt
                self.now += self.times.prefill_s(job.to_compute, job.done)
            self._end_prompt(job)
        else:  # something runs: on an empty server the head always has room
            self._make_room()
            self.now += self.times.step_s(len(self.running), sum(job.held for job in self.running))
            for job in self.running:
                self._end_step(job)
        self._let_finished_leave()

    def _iterate_chunked(self) -> None:
        has_preempted = self._make_room()
        decoders = [job for job in self.running if job.is_prefilled]
        budget = self.policy.max_num_batched_tokens - len(decoders)
        chunks: list[tuple[Job, int]] = []
        for job in self.running:
            if not job.is_prefilled:
                chunk = min(budget, job.to_compute - job.done)
                chunks.append((job, chunk))
                budget -= chunk
        while (
            not has_preempted
            and budget > 0
            and self.waiting
            and len(self.running) < self.policy.max_num_seqs
            and self.blocks_of(_tokens(self.waiting[0])) + self.needed_blocks() <= self.n_blocks
        ):
            job = self._admit_head()
            chunk = min(budget, job.to_compute - job.done)
            chunks.append((job, chunk))
            budget -= chunk

        if decoders:
            duration_s = self.times.step_s(len(decoders), sum(job.held for job in decoders))
        else:
            duration_s = self.times.rest_s(sum(chunk for _, chunk in chunks))
        for job, chunk in chunks:
            duration_s += self.times.chunk_s(job.done, chunk)
        self.now += duration_s

        for job in decoders:
            self._end_step(job)
        for job, chunk in chunks:
            job.done += chunk
            if job.is_prefilled:
                self._end_prompt(job)
        self._let_finished_leave()

    def _iterate_static(self) -> None:
        if not self.running:
            duration_s = 0.0
            while (
                self.waiting
                and len(self.running) < self.policy.max_num_seqs
                and self.blocks_of(_most_tokens(self.waiting[0])) <= self.free_blocks()
            ):
                job = self._admit_head()
                duration_s += self.times.prefill_s(job.to_compute, job.done)
            self.now += duration_s
            for job in self.running:
                self._end_prompt(job)
        else:
            self.now += self.times.step_s(len(self.running), sum(job.held for job in self.running))
            for job in self.running:
                if not job.is_finished:
                    self._end_step(job)
        if all(job.is_finished for job in self.running):
            self.running = []

    # Parts of iterations.

    def _admit_head(self) -> Job:
        """Move the head of waiting to running: it takes its blocks and finds its cached tokens."""
        job = self.waiting.pop(0)
        job.to_compute = _tokens(job)
        if self.policy.kind != STATIC:
            job.blocks = self.blocks_of(job.to_compute)
        else:
            job.blocks = self.blocks_of(_most_tokens(job))
        self.running.append(job)
        cached_tokens = self._use_prefix_cache(job) if self.caches else 0
        job.done = cached_tokens
        if math.isnan(job.start_s):
            job.start_s = self.now
            job.cached_tokens = cached_tokens
        return job

    def _use_prefix_cache(self, job: Job) -> int:
        """Cached tokens of a request that has just taken its blocks; then put its prompt in, and throw out others."""
        size = self.prefix_block_tokens
        cached_tokens = min(self.n_hits(job.prefix), (job.to_compute - 1) // size) * size
        for block in job.prefix[: job.prompt_tokens // size]:
            self.lru[block] = None
            self.lru.move_to_end(block)
        while len(self.lru) > self.free_blocks() * self.policy.block_tokens // size:
            self.lru.popitem(last=False)
        return cached_tokens

    def _make_room(self) -> bool:
        """Preempt the latest admitted until each that decodes has room for a further token; whether any was."""
        has_preempted = False
        while self.needed_blocks() > self.n_blocks:
            job = self.running.pop()
            job.held = job.done = job.to_compute = job.blocks = 0
            job.preemptions += 1
            self.waiting.insert(0, job)
            has_preempted = True
        return has_preempted

    def _end_prompt(self, job: Job) -> None:
        job.done = job.held = job.to_compute
        self._end_token(job)

    def _end_step(self, job: Job) -> None:
        job.held += 1
        if self.policy.kind != STATIC:  # a static batch has reserved all
            job.blocks = self.blocks_of(job.held)
        self._end_token(job)

    def _end_token(self, job: Job) -> None:
        job.generated += 1
        if job.generated == 1:
            job.first_token_s = self.now
            # A decode server's user has had the first token since the cache came.
            job.token_s = job.arrival_s if self.policy.kind == DECODE else self.now
        else:
            self.gaps_s.append(self.now - job.token_s)
            job.token_s = self.now
        if job.is_finished:
            job.finish_s = self.now

    def _let_finished_leave(self) -> None:
        self.running = [job for job in self.running if not job.is_finished]


def _tokens(job: Job) -> int:
    """P: tokens to compute if it were admitted now."""
    return job.prompt_tokens + job.generated


def _most_tokens(job: Job) -> int:
    """Tokens that it holds before its last one is generated."""
    return job.prompt_tokens + job.output_tokens - 1
