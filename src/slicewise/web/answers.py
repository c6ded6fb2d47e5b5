"""Answers under load: the same question is computed once, few at a time, and kept while there is room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

import anyio.to_thread
from anyio import CapacityLimiter

from slicewise.units import MILLION

AT_ONCE = 3
"""Questions computed side by side: Python computes one at a time, and a long one must not hold up the short."""
MOST_WAITING = 100
MOST_KEPT_BYTES = 32 * int(MILLION)


class BusyError(Exception):
    """More questions wait than will be answered soon."""


class Answers:
    """Answers by question. An answer depends on its question alone, so that a kept one stays true."""

    def __init__(self, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING, most_bytes: int = MOST_KEPT_BYTES):
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._kept_bytes, self._most_bytes = 0, most_bytes
        self._running: dict[str, asyncio.Task[bytes]] = {}
        self._most_waiting, self._at_once = most_waiting, at_once
        self._limiter: CapacityLimiter | None = None

    async def get(self, key: str, compute: Callable[[], bytes]) -> bytes:
        """The answer of a question, kept, on its way, or computed now.

        Args:
            key: the question.
            compute: what answers it; runs in a thread.

        Raises:
            BusyError: too many others wait.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        task = self._running.get(key)
        if task is None:
            if len(self._running) >= self._most_waiting:
                raise BusyError
            task = asyncio.create_task(self._compute(key, compute))
            self._running[key] = task
            task.add_done_callback(lambda done: self._done(key, done))
        # One who asked and went away leaves the others their answer.
        return await asyncio.shield(task)

    async def _compute(self, key: str, compute: Callable[[], bytes]) -> bytes:
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._at_once)
        answer = await anyio.to_thread.run_sync(compute, limiter=self._limiter)
        self._keep(key, answer)
        return answer

    def _done(self, key: str, task: asyncio.Task[bytes]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # whoever waits is told; where nobody does, nothing is to be logged

    def _keep(self, key: str, answer: bytes) -> None:
        size = len(key) + len(answer)
        if size > self._most_bytes:
            return
        self._kept[key] = answer
        self._kept_bytes += size
        while self._kept_bytes > self._most_bytes:
            oldest, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest) + len(dropped)
