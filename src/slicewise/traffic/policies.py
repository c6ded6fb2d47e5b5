"""The policies of servers: which requests join the batch, and when."""

from __future__ import annotations

from math import inf

from slicewise.traffic.batch import Books, LiveServer
from slicewise.traffic.server import CHUNKED, DECODE, STATIC, Server


def live_server(books: Books, server: Server) -> LiveServer:
    """A server at work by its policy."""
    kinds = {CHUNKED: ChunkedServer, STATIC: StaticServer}
    return kinds.get(server.policy.kind, PrefillFirstServer)(books, server)


class PrefillFirstServer(LiveServer):
    """A prompt that has room is computed at once, alone; else the batch takes a step."""

    def advance(self, until_s: float) -> None:
        """Run the iterations that begin before a time."""
        most, arrival_s = self.policy.max_num_seqs, self.books.arrival_s
        while self.now_s < until_s:
            self._let_in()
            if self.waiting and self.batch < most and self._admit():
                continue
            if self.batch:
                self._make_room()
                # A queue stays as it is until a sequence ends; with none the next arrival may join.
                is_open = self.incoming and not self.waiting and self.batch < most
                next_s = arrival_s[self.incoming[0]] if is_open else inf
                self._decode(min(until_s, next_s))
            elif self.incoming:
                self.now_s = max(self.now_s, arrival_s[self.incoming[0]])
            else:
                self.now_s = self.now_s if until_s == inf else until_s
                return

    def _admit(self) -> bool:
        request = self.waiting[0]
        tokens = self.to_compute(request)
        blocks = self.blocks(tokens)
        if self.used + blocks > self.n_blocks:
            return False
        self.waiting.popleft()
        self.used += blocks
        self.order[request] = None
        cached = self._find(request, tokens)
        self._begin(request, cached)
        # A decode server is sent the cache with the prompt; only after a preemption it computes the prompt itself.
        if self.policy.kind != DECODE or request in self.generated:
            self.now_s += self._prefill_s(tokens, cached)
        self._join(request, tokens)
        return True


class ChunkedServer(LiveServer):
    """Prompts are computed in chunks beside the batch's steps, as many tokens an iteration as are allowed."""

    def __init__(self, books: Books, server: Server) -> None:
        super().__init__(books, server)
        self.partly: dict[int, tuple[int, int]] = {}
        """Tokens that are computed, and to compute, of prompts that are in the batch."""

    def advance(self, until_s: float) -> None:
        """Run the iterations that begin before a time."""
        arrival_s, policy = self.books.arrival_s, self.policy
        while self.now_s < until_s:
            self._let_in()
            if not self.batch and not self.partly and not self.waiting:
                if not self.incoming:
                    self.now_s = self.now_s if until_s == inf else until_s
                    return
                self.now_s = max(self.now_s, arrival_s[self.incoming[0]])
                continue
            preempted = self._make_room()
            chunks = self._chunks(is_open=not preempted)
            if chunks:
                self._mixed(chunks)
                continue
            has_slot = self.batch < min(policy.max_num_seqs, policy.max_num_batched_tokens)
            # After a preemption the queue is looked at again after one step.
            next_s = arrival_s[self.incoming[0]] if self.incoming and not self.waiting and has_slot else inf
            self._decode(self.now_s if preempted else min(until_s, next_s))

    def _is_busy_beside(self) -> bool:
        return bool(self.partly)

    def _chunks(self, *, is_open: bool) -> list[tuple[int, int]]:
        """Prompts with the tokens of them that the next iteration computes; new ones are let in where it may."""
        policy, budget = self.policy, self.policy.max_num_batched_tokens - self.batch
        chunks = []
        for request, (done, tokens) in self.partly.items():
            chunk = min(budget, tokens - done)
            if chunk > 0:
                chunks.append((request, chunk))
                budget -= chunk
        growth = self._growth()
        while is_open and budget > 0 and self.waiting and self.batch + len(self.partly) < policy.max_num_seqs:
            request = self.waiting[0]
            tokens = self.to_compute(request)
            blocks = self.blocks(tokens)
            if self.used + growth + blocks > self.n_blocks:
                break
            self.waiting.popleft()
            self.used += blocks
            self.order[request] = None
            cached = self._find(request, tokens)
            self._begin(request, cached)
            self.partly[request] = (cached, tokens)
            chunk = min(budget, tokens - cached)
            chunks.append((request, chunk))
            budget -= chunk
        return chunks

    def _mixed(self, chunks: list[tuple[int, int]]) -> None:
        works_s, added_s, n_tokens = self.works_s, 0.0, 0
        for request, chunk in chunks:
            done = self.partly[request][0]
            added_s += works_s[done + chunk] - works_s[done]
            n_tokens += chunk
        if self.batch:
            self._run(1, self.batch, self.offsets + self.batch * self.n_steps, self.batch, inf, added_s)
            self._add_steps(1)
        else:
            self.now_s += self.rests_s[min(n_tokens, len(self.rests_s) - 1)] + added_s
            self.token_s = self.now_s
        self._let_out()
        for request, chunk in chunks:
            done, tokens = self.partly[request]
            if done + chunk == tokens:
                del self.partly[request]
                self._join(request, tokens)
            else:
                self.partly[request] = (done + chunk, tokens)

    def _preempt(self, request: int) -> None:
        if request not in self.partly:
            super()._preempt(request)
            return
        _, tokens = self.partly.pop(request)
        self.used -= self.blocks(tokens)
        del self.order[request]
        self.waiting.appendleft(request)
        self.books.preemptions[request] += 1


class StaticServer(LiveServer):
    """A batch is taken whole, and nobody joins it or leaves its slot before its longest request is done."""

    def __init__(self, books: Books, server: Server) -> None:
        super().__init__(books, server)
        self.slots: list[tuple[int, int]] = []
        """Requests of the batch with the steps that they need, the fewest first."""
        self.held = 0
        self.size = 0
        self.steps_done = 0

    def advance(self, until_s: float) -> None:
        """Run the iterations that begin before a time."""
        while self.now_s < until_s:
            self._let_in()
            if self.slots:
                self._step(until_s)
            elif self.waiting:
                self._fill()
            elif self.incoming:
                self.now_s = max(self.now_s, self.books.arrival_s[self.incoming[0]])
            else:
                self.now_s = self.now_s if until_s == inf else until_s
                return

    def _steps_until_change(self) -> int:
        return max(self.slots[0][1] - self.steps_done, 1) if self.slots else 0

    def _fill(self) -> None:
        books, blocks = self.books, 0
        taken: list[tuple[int, float]] = []
        while self.waiting and len(taken) < self.policy.max_num_seqs:
            request = self.waiting[0]
            whole = self.blocks(books.prompt[request] + books.output[request] - 1)
            if blocks + whole > self.n_blocks:
                break
            blocks += whole
            self.used = blocks
            self.waiting.popleft()
            tokens = books.prompt[request]
            cached = self._find(request, tokens)
            self._begin(request, cached)
            taken.append((request, self._prefill_s(tokens, cached)))
        self.now_s += sum(seconds for _, seconds in taken)
        self.token_s = self.now_s
        self.held, self.size, self.steps_done = sum(books.prompt[request] for request, _ in taken), len(taken), 0
        left = sorted((books.output[request] - 1, request) for request, _ in taken)
        for _, request in left:
            books.first_token_s[request] = self.now_s
        self.slots = [(request, steps) for steps, request in left]
        self._let_done()

    def _let_done(self) -> None:
        while self.slots and self.slots[0][1] == self.steps_done:
            self._note_end(self.slots.pop(0)[0])
        if not self.slots:
            self.used = 0

    def _step(self, until_s: float) -> None:
        most = self.slots[0][1] - self.steps_done
        n = self._run(most, self.size, self.held, len(self.slots), until_s)
        self.held += n * len(self.slots)
        self.steps_done += n
        self._let_done()
