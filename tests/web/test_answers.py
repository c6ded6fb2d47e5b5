"""Answers under load: computed once for all who ask the same, few at a time, and kept within bounds."""

import asyncio
import threading
import time

import pytest

from slicewise.web.answers import Answers, BusyError


def test_the_same_question_is_computed_once() -> None:
    calls: list[str] = []

    def compute() -> bytes:
        calls.append("")
        time.sleep(0.05)
        return b"answer"

    async def ask() -> list[bytes]:
        answers = Answers()
        first = await asyncio.gather(*(answers.get("q", compute) for _ in range(50)))
        return [*first, await answers.get("q", compute)]

    assert asyncio.run(ask()) == [b"answer"] * 51
    assert len(calls) == 1


def test_few_are_computed_side_by_side() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def compute() -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return b""

    async def ask() -> None:
        answers = Answers(at_once=2)
        await asyncio.gather(*(answers.get(str(i), compute) for i in range(10)))

    asyncio.run(ask())
    assert most == 2


def test_too_many_are_turned_away() -> None:
    async def ask() -> list[bytes | BaseException]:
        answers = Answers(at_once=1, most_waiting=3)
        slow = (answers.get(str(i), lambda: time.sleep(0.02) or b"") for i in range(5))
        return await asyncio.gather(*slow, return_exceptions=True)

    found = asyncio.run(ask())
    assert [type(each) for each in found] == [bytes, bytes, bytes, BusyError, BusyError]


def test_what_is_kept_is_bounded() -> None:
    calls: list[str] = []

    async def ask() -> None:
        answers = Answers(most_bytes=250)
        for name in ["a", "b", "c", "a", "c"]:
            await answers.get(name, lambda name=name: calls.append(name) or b"x" * 100)  # type: ignore[misc]
        await answers.get("large", lambda: b"x" * 1000)
        await answers.get("large", lambda: calls.append("large") or b"x" * 1000)

    asyncio.run(ask())
    assert calls == ["a", "b", "c", "a", "large"]  # a was dropped for c, and what is too large is never kept


def test_refusals_reach_all_and_are_not_kept() -> None:
    calls: list[str] = []

    def compute() -> bytes:
        calls.append("")
        raise ValueError("off")

    async def ask() -> list[bytes | BaseException]:
        answers = Answers()
        first = await asyncio.gather(*(answers.get("q", compute) for _ in range(3)), return_exceptions=True)
        with pytest.raises(ValueError, match="off"):
            await answers.get("q", compute)
        return first

    assert all(isinstance(each, ValueError) for each in asyncio.run(ask()))
    assert len(calls) == 2
