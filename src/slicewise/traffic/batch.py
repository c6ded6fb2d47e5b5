"""A server's batch: who runs, how much cache they hold, and many steps at once while nobody joins or leaves.

A step adds a token to each sequence, so that its time rises along a line of the table, and the sum of n steps is an
arithmetic series. Tokens held are kept as an offset to the count of steps, which no step has to touch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, floor, inf, sqrt

import numpy as np

from slicewise.traffic.prefix_cache import PrefixCache
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import DECODE, Outcome, Server

_SURELY = 0.999999999
"""Of a sum of steps, what rounding leaves of it at least."""


@dataclass(kw_only=True)
class Books:
    """The requests, and what became of them so far. Lists of one entry a request.

    Attributes:
        prefixes: hashes of blocks of each prompt; empty where none are known.
        prefix_block_tokens: tokens of such a block.
        gaps: of each server, those between tokens: five numbers a run of steps, as in `Outcome`.
    """

    arrival_s: list[float]
    prompt: list[int]
    output: list[int]
    prefixes: tuple[tuple[int, ...], ...]
    prefix_block_tokens: int
    server: list[int]
    start_s: list[float]
    first_token_s: list[float]
    finish_s: list[float]
    preemptions: list[int]
    cached: list[int]
    gaps: list[array[float]] = field(default_factory=list)

    @classmethod
    def of(cls, requests: Requests, server: Server) -> Books:
        """Empty books of some requests."""
        n = len(requests)
        return cls(
            arrival_s=requests.arrival_s.tolist(),
            prompt=requests.prompt_tokens.tolist(),
            output=requests.output_tokens.tolist(),
            prefixes=requests.prefixes if server.policy.caches_prefixes else (),
            prefix_block_tokens=requests.prefix_block_tokens,
            server=[-1] * n,
            start_s=[np.nan] * n,
            first_token_s=[np.nan] * n,
            finish_s=[np.nan] * n,
            preemptions=[0] * n,
            cached=[0] * n,
        )

    def outcome(self, n: int, *, is_whole: bool) -> Outcome:
        """The first n as columns."""
        return Outcome(
            server=np.array(self.server[:n], dtype=np.int64),
            start_s=np.array(self.start_s[:n]),
            first_token_s=np.array(self.first_token_s[:n]),
            finish_s=np.array(self.finish_s[:n]),
            preemptions=np.array(self.preemptions[:n], dtype=np.int64),
            cached_tokens=np.array(self.cached[:n], dtype=np.int64),
            gaps=np.concatenate([np.zeros(0), *map(np.array, self.gaps)]).reshape(-1, 5),
            is_whole=is_whole,
        )


class LiveServer:
    """One server at work: what all policies have in common.

    Attributes:
        now_s: when the next iteration may begin.
        n_unfinished: requests that were sent here and are not finished.
        waiting: requests that are not in the batch, the next one first.
        n_steps: decode steps so far.
        token_s: when the batch had its last token; those that joined since had it then, and those that lost their cache
            have to wait for the next.
    """

    def __init__(self, books: Books, server: Server) -> None:
        self.books, self.policy, self.n_blocks = books, server.policy, server.n_blocks
        self.block = server.policy.block_tokens
        self.knots, self.rows, self.works_s, self.rests_s = server.times.lists
        self.least_step_s = server.times.least_step_s * _SURELY
        self.now_s = 0.0
        self.n_unfinished = 0
        self.incoming: deque[int] = deque()
        self.waiting: deque[int] = deque()
        self.n_steps = 0
        self.batch = 0
        self.offsets = 0
        self.used = 0
        self.offset: dict[int, int] = {}
        self.ends_at: dict[int, int] = {}
        self.ends: list[tuple[int, int]] = []
        self.order: dict[int, None] = {}
        self.phases = [0] * self.block
        self.generated: dict[int, int] = {}
        self.cache = PrefixCache(books.prefix_block_tokens) if books.prefixes else None
        self.last_ends = (-inf, 0)
        self.gaps = array("d")
        books.gaps.append(self.gaps)
        self.token_s = 0.0
        self.joined: dict[int, float] = {}
        self.lost: dict[int, float] = {}

    # --- requests ---------------------------------------------------------------------------------------------------

    def take(self, request: int) -> None:
        """Send a request here, at its arrival."""
        self.incoming.append(request)
        self.n_unfinished += 1

    def advance(self, until_s: float) -> None:
        """Run the iterations that begin before a time."""
        raise NotImplementedError

    def _let_in(self) -> None:
        """Requests that have arrived join the queue."""
        incoming, arrival_s = self.incoming, self.books.arrival_s
        while incoming and arrival_s[incoming[0]] <= self.now_s:
            self.waiting.append(incoming.popleft())

    def to_compute(self, request: int) -> int:
        """Tokens to compute before the next one comes: the prompt, and what was generated before a preemption."""
        return self.books.prompt[request] + self.generated.get(request, 0)

    def blocks(self, tokens: int) -> int:
        """Blocks of the cache that so many tokens take."""
        return -(-tokens // self.block)

    def _prefill_s(self, tokens: int, cached: int) -> float:
        """A prompt alone, of which some tokens are cached. [s]"""
        return self.works_s[tokens] - self.works_s[cached] + self.rests_s[tokens - cached]

    # --- the prefix cache -------------------------------------------------------------------------------------------

    def prefix_hits(self, request: int) -> int:
        """Leading blocks of a prompt that are cached."""
        return self.cache.hits(self.books.prefixes[request]) if self.cache else 0

    def _find(self, request: int, tokens: int) -> int:
        """Tokens that need not be computed, of so many; the prompt's blocks stay in the cache from here on."""
        if not self.cache:
            return 0
        prefix = self.books.prefixes[request]
        cached = self.cache.cached_tokens(prefix, tokens)
        self.cache.remember(prefix, self.books.prompt[request], (self.n_blocks - self.used) * self.block)
        return cached

    # --- the batch --------------------------------------------------------------------------------------------------

    def _begin(self, request: int, cached: int) -> None:
        """Note the first time that a request is worked on."""
        books = self.books
        if books.start_s[request] != books.start_s[request]:  # nan: it was not worked on before
            books.start_s[request] = self.now_s
            books.cached[request] = cached

    def _join(self, request: int, held: int) -> None:
        """A prompt is computed and gives a token: its sequence joins the batch, or is finished."""
        books, generated = self.books, self.generated.pop(request, 0) + 1
        if generated == 1:
            books.first_token_s[request] = self.now_s
        else:
            self.gaps.extend((self.now_s, self.now_s - self.lost.pop(request), 0.0, 1.0, 1.0))
        left = books.output[request] - generated
        if left == 0:
            self.used -= self.blocks(held)
            self._finish(request)
            return
        offset, ends_at = held - self.n_steps, self.n_steps + left
        self.offset[request], self.ends_at[request] = offset, ends_at
        heappush(self.ends, (ends_at, request))
        self.offsets += offset
        self.phases[offset % self.block] += 1
        self.batch += 1
        # A decode server's user has had the first token since the cache came.
        since_s = self.books.arrival_s[request] if generated == 1 and self.policy.kind == DECODE else self.now_s
        if since_s != self.token_s:
            self.joined[request] = since_s

    def _finish(self, request: int) -> None:
        self._note_end(request)
        del self.order[request]

    def _note_end(self, request: int) -> None:
        self.books.finish_s[request] = self.now_s
        self.n_unfinished -= 1
        self.last_ends = (self.now_s, self.last_ends[1] + 1 if self.last_ends[0] == self.now_s else 1)

    def unfinished_at(self, time_s: float) -> int:
        """Requests that are not finished at a time, up to which the server was advanced."""
        # The last iteration began before that time, and may end after it.
        end_s, count = self.last_ends
        return self.n_unfinished + (count if end_s > time_s else 0)

    def same_until_s(self, time_s: float) -> float:
        """Before then no request finishes and no prefix is cached, where none is sent here; told at a time. [s]"""
        end_s, _ = self.last_ends
        if end_s > time_s:
            return end_s
        if self.incoming or self.waiting or self._is_busy_beside():
            return self.now_s
        steps = self._steps_until_change()
        return self.now_s + steps * self.least_step_s if steps else inf

    def _is_busy_beside(self) -> bool:
        """Whether there is work beside the batch."""
        return False

    def _steps_until_change(self) -> int:
        """Steps before a sequence may end or lose its cache, at least; 0 where nothing runs."""
        if not self.batch:
            return 0
        most = max(self.ends[0][0] - self.n_steps, 1)
        return max(self._steps_with_room(most), 1) if self.cache else most

    def _leave(self, request: int) -> None:
        """A sequence leaves the batch and frees its blocks."""
        offset = self.offset.pop(request)
        del self.ends_at[request]
        self.offsets -= offset
        self.phases[offset % self.block] -= 1
        self.used -= self.blocks(offset + self.n_steps)
        self.batch -= 1

    def _let_out(self) -> None:
        """Sequences that have all their tokens are finished."""
        ends, steps = self.ends, self.n_steps
        while ends and ends[0][0] <= steps:
            at, request = heappop(ends)
            # A preempted sequence left an end behind that is none.
            if self.ends_at.get(request) == at:
                self._leave(request)
                self._finish(request)

    def _growth(self) -> int:
        """Blocks that the next step takes."""
        return self.phases[-self.n_steps % self.block]

    def _make_room(self) -> bool:
        """Preempt the latest until the next step's tokens have room; whether any was."""
        preempted = False
        while self.used + self._growth() > self.n_blocks:
            self._preempt(next(reversed(self.order)))
            preempted = True
        return preempted

    def _preempt(self, request: int) -> None:
        """Take a sequence out of the batch; it is computed anew when it is its turn."""
        self.generated[request] = self.books.output[request] - (self.ends_at[request] - self.n_steps)
        self.lost[request] = self.joined.pop(request, self.token_s)
        self._leave(request)
        del self.order[request]
        self.waiting.appendleft(request)
        self.books.preemptions[request] += 1

    def _steps_with_room(self, most: int) -> int:
        """Of so many steps, those whose tokens have room."""
        free = self.n_blocks - self.used
        if (most // self.block + 1) * self.batch <= free:
            return most
        rounds = free // self.batch if self.batch else 0
        # A round of as many steps as a block has tokens takes a block of each sequence.
        done, free = rounds * self.block, free - rounds * self.batch
        if done >= most:
            return most
        for ahead in range(self.block):
            free -= self.phases[-(self.n_steps + ahead) % self.block]
            if free < 0 or done + ahead >= most:
                return min(done + ahead, most)
        return min(done + self.block, most)

    def _decode(self, until_s: float) -> None:
        """Decode until a sequence ends, memory runs out, or a time comes; at least one step. Room was made before."""
        while self.ends and self.ends_at.get(self.ends[0][1]) != self.ends[0][0]:
            heappop(self.ends)
        most = self._steps_with_room(self.ends[0][0] - self.n_steps)
        self._add_steps(self._run(most, self.batch, self.offsets + self.batch * self.n_steps, self.batch, until_s))
        self._let_out()

    def _add_steps(self, n: int) -> None:
        rounds, rest = divmod(n, self.block)
        taken = rounds * self.batch
        for ahead in range(rest):
            taken += self.phases[-(self.n_steps + ahead) % self.block]
        self.used += taken
        self.n_steps += n

    def _run(self, most: int, batch: int, held: int, rising: int, until_s: float, added_s: float = 0.0) -> int:
        """Advance time by up to so many steps, the last one begins before a time; how many were done.

        Args:
            most: steps at most.
            batch: sequences of the step.
            held: tokens that they hold.
            rising: sequences of them that gain a token in each step.
            until_s: no step but the first begins at or after this time.
            added_s: what the first step takes beside. [s]
        """
        knots, row = self.knots, self.rows[batch]
        rise, done, now_s, last = rising / batch, 0, self.now_s, len(knots) - 2
        while done < most:
            here = (held + done * rising) / batch
            at = min(max(bisect_right(knots, here) - 1, 0), last)
            slope = (row[at + 1] - row[at]) / (knots[at + 1] - knots[at])
            first_s = row[at] + slope * (here - knots[at])
            n = most - done
            if at < last and rise:
                n = min(n, floor((knots[at + 1] - here) / rise) + 1)
            by_time = _steps_until(until_s - now_s, first_s, slope * rise, n + 1)
            is_over = by_time <= n
            n = max(min(n, by_time), 1)
            if not done:
                self._note_gaps(now_s, first_s + added_s, rising)
                if n > 1:
                    self.gaps.extend((now_s, first_s + slope * rise, slope * rise, n - 1, rising))
            else:
                self.gaps.extend((now_s, first_s, slope * rise, n, rising))
            done += n
            now_s += n * first_s + slope * rise * (n * (n - 1) // 2)
            if is_over:
                break
        self.now_s = self.token_s = now_s + added_s
        return done

    def _note_gaps(self, now_s: float, step_s: float, rising: int) -> None:
        """Gaps that a step ends: of those that waited for prompts, and of those that joined since."""
        end_s, others = now_s + step_s, rising - len(self.joined)
        if others:
            self.gaps.extend((now_s, end_s - self.token_s, 0.0, 1.0, others))
        for since_s in self.joined.values():
            self.gaps.extend((now_s, end_s - since_s, 0.0, 1.0, 1.0))
        self.joined.clear()


def _steps_until(seconds: float, first_s: float, growth_s: float, most: int) -> int:
    """The fewest steps that take at least so long, or so many at most; steps grow by the same each time."""
    if seconds <= 0:
        return 0
    if most * first_s + growth_s * (most * (most - 1) // 2) < seconds:
        return most
    if growth_s > 0:
        b = first_s - growth_s / 2
        n = min(ceil((sqrt(b * b + 2 * growth_s * seconds) - b) / growth_s), most)
    else:
        n = min(ceil(seconds / first_s), most)
    # Rounding may be a step off either way.
    while n > 1 and (n - 1) * first_s + growth_s * ((n - 1) * (n - 2) // 2) >= seconds:
        n -= 1
    while n < most and n * first_s + growth_s * (n * (n - 1) // 2) < seconds:
        n += 1
    return n
