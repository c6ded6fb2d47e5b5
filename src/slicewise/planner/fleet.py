"""How many replicas a rate of requests takes, shared or split into prefill and decode servers. Means, no queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slicewise.errors import UnknownFactError
from slicewise.planner.option import Option
from slicewise.planner.record import record
from slicewise.spec.workload import Limits

_COUNTS = ("replicas", "replicas_chips", "prefill_servers", "decode_servers", "split_chips")
_PRICES = ("replicas_usd_per_hour", "split_usd_per_hour")


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Servers for a rate of requests, and whether each way keeps the limits.

    Attributes:
        requests_per_s: the rate. [1/s]
        replicas: servers that do both phases.
        replicas_usd_per_hour: their price; None where no price is known. [USD]
        replicas_tpot_s: mean time a token there, prefills in between. [s]
        replicas_ttft_s: prefill there. [s]
        replicas_meet_limits: both are within the limits.
        prefill_servers: servers that only prefill, where the phases are split.
        decode_servers: servers that only decode.
        split_usd_per_hour: the price of both. [USD]
        split_tpot_s: the decode step. [s]
        split_ttft_s: prefill and hand-off; None where the hand-off is not known. [s]
        split_meets_limits: both are within the limits; None where that is not known.
    """

    requests_per_s: float
    replicas: int
    replicas_chips: int
    replicas_usd_per_hour: float | None
    replicas_tpot_s: float
    replicas_ttft_s: float
    replicas_meet_limits: bool
    prefill_servers: int
    decode_servers: int
    split_chips: int
    split_usd_per_hour: float | None
    split_tpot_s: float
    split_ttft_s: float | None
    split_meets_limits: bool | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


def fleet(option: Option, rate: float, limits: Limits) -> Fleet:
    """Servers of an option's kind that serve a rate, each phase rounded up on its own."""
    deployment, batch = option.step.deployment, option.step.batch
    counts = {name: int(value) for name, value in deployment.evaluate(_COUNTS, batch=batch).items()}
    prices = deployment.evaluate(_PRICES, batch=batch) if deployment.price else {}
    try:
        split_ttft_s: float | None = float(deployment.value("ttft_split_s"))
    except UnknownFactError:
        split_ttft_s = None
    return Fleet(
        requests_per_s=rate,
        **counts,
        replicas_usd_per_hour=float(prices["replicas_usd_per_hour"]) if prices else None,
        replicas_tpot_s=option.tpot_shared_s,
        replicas_ttft_s=option.ttft_s,
        replicas_meet_limits=bool(_meet(limits, option.tpot_shared_s, option.ttft_s)),
        split_usd_per_hour=float(prices["split_usd_per_hour"]) if prices else None,
        split_tpot_s=option.tpot_s,
        split_ttft_s=split_ttft_s,
        split_meets_limits=_meet(limits, option.tpot_s, split_ttft_s),
    )


def _meet(limits: Limits, tpot_s: float, ttft_s: float | None) -> bool | None:
    if limits.tpot_s is not None and tpot_s > limits.tpot_s:
        return False
    if limits.ttft_s is None:
        return True
    return None if ttft_s is None else ttft_s <= limits.ttft_s
