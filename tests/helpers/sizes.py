"""Shapes, traces and limits whose sizes differ, small enough to run at every count."""

import numpy as np

from slicewise.traffic.fleets import PrefillPool
from slicewise.traffic.limits import Limit, parse_limit
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST, Policy, Server
from slicewise.traffic.shapes import Shape
from slicewise.traffic.synthetic import arrivals, lognormal
from slicewise.traffic.times import Times

LONGEST = 4000


def server(kind: str = PREFILL_FIRST, *, step_s: float = 0.02, n_blocks: int = 800, **rules: int) -> Server:
    knots, batches = np.array([0.0, LONGEST]), np.arange(33.0)[:, None]
    steps_s = step_s + batches * (1e-4 + knots * 2e-6)
    times = Times(knots=knots, steps_s=steps_s, prefills_s=step_s + 2e-4 * np.arange(LONGEST + 1.0))
    return Server(times=times, n_blocks=n_blocks, policy=Policy(kind=kind, max_num_seqs=32, **rules))


def shared(kind: str = PREFILL_FIRST, usd_per_hour: float | None = 12.0, **words: float) -> Shape:
    return Shape(name=kind, server=server(kind, **words), n_chips=4, usd_per_hour=usd_per_hour)


def split(usd_per_hour: float | None = 12.0, prefill_usd_per_hour: float | None = 7.0) -> Shape:
    prefills_s = server().times.prefills_s
    pool = PrefillPool(
        n_servers=1, prefills_s=prefills_s, handoff_s_per_token=1e-6, n_chips=2, usd_per_hour=prefill_usd_per_hour
    )
    return Shape(name="split", server=server(), n_chips=4, usd_per_hour=usd_per_hour, prefill=pool)


def traffic(seed: int, n: int = 120, rate: float = 16.0, burstiness: float = 1.0) -> Requests:
    return Requests(
        arrival_s=arrivals(n, rate, burstiness=burstiness, seed=seed),
        prompt_tokens=np.minimum(lognormal(n, 600, 0.8, seed + 1), 3000),
        output_tokens=np.minimum(lognormal(n, 80, 0.8, seed + 2), 900),
    )


def limits(*texts: str) -> list[Limit]:
    return [parse_limit(text, flag) for flag, text in (each.split("=") for each in texts)]


STRICT = limits("--ttft=p95:1s", "--tpot=p99:60ms")
# The same, strict on one side, on the whole request, and on single gaps.
ASKED = [STRICT, limits("--ttft=p99:700ms"), limits("--e2e=p90:4.5s", "--ttft=mean:1s"), limits("--itl=p95:45ms")]
SHAPES = (shared(), shared(CHUNKED, max_num_batched_tokens=512), split())
