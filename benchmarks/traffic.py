"""A million requests through the event engine: time and memory by policy and load, and against the step-by-step engine.

Lengths are those of a published conversation trace where it is beside the checkout, in ../shared; else lognormal ones
of the same mean. Arrivals are a Poisson process, on one replica of LLaMA 3-70B in int8 on a v5e 4x4. Saturation is the
rate that the replica serves when all have arrived. Each row is a process of its own. The aims: a million requests at
saturation in at most 60 s and 2 GB, and at least 20 times as fast as the step-by-step engine on a part of them.

Run: python benchmarks/traffic.py [REQUESTS]
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from slicewise.planner.question import ask
from slicewise.planner.slices import default_deployment
from slicewise.traffic import reference
from slicewise.traffic.engine import simulate
from slicewise.traffic.fleets import Fleet, outcome_of
from slicewise.traffic.planned import pool_of, server_of
from slicewise.traffic.read import read_trace
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import POLICIES, Outcome, Policy
from slicewise.traffic.synthetic import lognormal, repeated
from slicewise.units import GB, MILLION

TRACE = Path(__file__).resolve().parents[2] / "shared/data/traces/azure_llm_2023_conv.csv"
MEANS, SIGMAS = (1154.6974, 211.1259), (1.0, 0.8)
"""Mean prompt and output of that trace, and widths that are near to its own."""
SPLIT = "split, 4 prefill servers"
KINDS = (*POLICIES, SPLIT)
LOADS = (0.5, 0.8, 1.0)
PROBE, PART = 50_000, 2_000
"""Requests to find the saturated rate with, and that the step-by-step engine is given, too."""
FLOOD = 1e6
"""Requests a second that no replica keeps up with."""


def lengths() -> Requests:
    """Requests to draw lengths from."""
    if TRACE.is_file():
        return read_trace(TRACE)
    (prompt, output), (prompt_sigma, output_sigma) = MEANS, SIGMAS
    return Requests(
        arrival_s=np.arange(float(PROBE)),
        prompt_tokens=lognormal(PROBE, prompt, prompt_sigma, 0),
        output_tokens=lognormal(PROBE, output, output_sigma, 1),
        source="lognormal lengths of the conversation trace's means (the trace itself is not beside the checkout)",
    )


def fleet_of(kind: str, requests: Requests) -> Fleet:
    """One replica; where phases are split, a decode server and the prefill servers before it."""
    deployment = default_deployment(ask("llama-3-70b", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8"}))
    is_split = kind == SPLIT
    server = server_of(deployment, Policy(kind=POLICIES[0] if is_split else kind), requests)
    longest = int((requests.prompt_tokens + requests.output_tokens).max())
    pool = pool_of(deployment, deployment, int(SPLIT.split()[1]), longest) if is_split else None
    return Fleet(server=server, n_servers=1, route="round-robin", prefill=pool)


def told(words: str) -> Callable[[int, int], None]:
    """Progress on a line of stderr."""

    def tell(done: int, of: int) -> None:
        print(f"\r{words}: {done / of:4.0%}", end="" if done < of else "\n", file=sys.stderr, flush=True)

    return tell


def rate_of(outcome: Outcome) -> float:
    """Requests that finish a second between a tenth and nine tenths of them. [1/s]"""
    finish_s = np.sort(outcome.finish_s[np.isfinite(outcome.finish_s)])
    first, last = len(finish_s) // 10, len(finish_s) * 9 // 10
    return float((last - first) / (finish_s[last] - finish_s[first]))


def one(kind: str, rate: float, n: int) -> dict[str, float]:
    """A run of this process: seconds of the run alone, and the most memory that the process ever held."""
    requests = repeated(lengths(), n, rate, seed=7)
    fleet = fleet_of(kind, requests)
    start, start_cpu = time.perf_counter(), time.process_time()
    outcome = outcome_of(requests, fleet, told(f"{kind}, {n:,} requests at {rate:.3g} a second"))
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - start_cpu,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        "finished": float(np.isfinite(outcome.finish_s).sum()),
        "preemptions": float(outcome.preemptions.sum()),
        "rate": rate_of(outcome),
    }


def in_process(kind: str, rate: float, n: int) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, str(rate), str(n)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def ratio(kind: str) -> tuple[float, float]:
    """Seconds that the event engine computes, and the step-by-step one, on the same requests at saturation."""
    requests = repeated(lengths(), PART, FLOOD, seed=7)
    server = fleet_of(kind, requests).server
    start = time.process_time()
    found = simulate(requests, server)
    middle = time.process_time()
    right = reference.simulate(requests, server)
    end = time.process_time()
    np.testing.assert_allclose(found.finish_s, right.finish_s, rtol=1e-9)
    return middle - start, end - middle


def run(n: int) -> None:
    """Print the tables."""
    print(f"Lengths: {lengths().source}.\n")
    print(f"| {n:,} requests | load | requests/s | time | of it computing | peak memory | preemptions |")
    print("| :-- | --: | --: | --: | --: | --: | --: |")
    for kind in KINDS:
        most = in_process(kind, FLOOD, PROBE)["rate"]
        for load in LOADS:
            found = in_process(kind, most * load, n)
            cells = (
                *(kind, f"{load:.1f}", f"{most * load:.2f}", f"{found['seconds']:.1f} s"),
                *(f"{found['cpu_seconds']:.1f} s", f"{found['peak_bytes'] / GB:.2f} GB"),
                f"{found['preemptions']:,.0f}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n| {PART:,} of them at once | event engine | step by step | ratio |\n| :-- | --: | --: | --: |")
    for kind in POLICIES:
        ours, theirs = ratio(kind)
        print(f"| {kind} | {ours:.3f} s | {theirs:.2f} s | {theirs / ours:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))))
    else:
        run(int(sys.argv[1]) if len(sys.argv) > 1 else int(MILLION))
