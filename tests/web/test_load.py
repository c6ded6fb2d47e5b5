"""The server under load, on this machine alone and for a bounded time."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import pytest

from helpers.browsers import serving

httpx = pytest.importorskip("httpx2", reason="needs httpx2: pip install --group test")
pytest.importorskip("fastapi", reason="needs fastapi: pip install 'slicewise[web]'")

pytestmark = pytest.mark.slow

CLIENTS, FOR_S, WARM_S = 50, 20.0, 4.0
MOST_GROWTH_BYTES = 64 * 1024 * 1024


def questions(client: int) -> list[str]:
    """Questions that differ from client to client, so that no answer is a kept one alone."""
    contexts = [1024 * (1 + client), 2048, 8192, 1024 * (60 - client)]
    return [
        f"/api/frontier?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&context={context}" for context in contexts
    ]


async def ask(address: str, client: int, until: float) -> tuple[list[float], list[str]]:
    spans, errors, asked = [], [], questions(client)
    async with httpx.AsyncClient(base_url=address, timeout=30) as session:
        while time.monotonic() < until:
            started = time.monotonic()
            try:
                answer = await session.get(asked[len(spans) % len(asked)])
            except httpx.HTTPError as error:
                errors.append(repr(error))
                continue
            spans.append(time.monotonic() - started)
            if answer.status_code != httpx.codes.OK or answer.json()["fits"] is not True:
                errors.append(f"{answer.status_code} {answer.text[:200]}")
    return spans, errors


async def crowd(address: str, seconds: float) -> tuple[list[float], list[str]]:
    until = time.monotonic() + seconds
    found = await asyncio.gather(*(ask(address, client, until) for client in range(CLIENTS)))
    return [span for spans, _ in found for span in spans], [error for _, errors in found for error in errors]


def memory_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    kibibytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return kibibytes * 1024


def test_fifty_clients_of_the_frontier(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as (address, process):
        asyncio.run(crowd(address, WARM_S))
        before = memory_bytes(process)
        spans, errors = asyncio.run(crowd(address, FOR_S))
        after = memory_bytes(process)
    ordered = sorted(spans)
    with capsys.disabled():
        print(
            f"\n{CLIENTS} clients, {FOR_S:.0f} s: {len(spans)} answers, {len(spans) / FOR_S:.0f}/s,"
            f" median {statistics.median(spans) * 1e3:.0f} ms, p99 {ordered[int(0.99 * len(ordered))] * 1e3:.0f} ms,"
            f" memory {before / 1e6:.0f} -> {after / 1e6:.0f} MB"
        )
    assert errors == []
    assert len(spans) >= CLIENTS
    assert after - before < MOST_GROWTH_BYTES
