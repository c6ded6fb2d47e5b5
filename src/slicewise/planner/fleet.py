"""How many replicas a rate of requests takes, shared or split into prefill and decode servers. Means, no queues."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from slicewise.planner.option import Option


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Servers for a rate of requests.

    Attributes:
        rate: requests a second.
        replicas: servers that do both phases.
        replicas_usd_per_hour: their price; None where no price is known. [USD]
        prefill_servers: servers that only prefill, where the phases are split.
        decode_servers: servers that only decode.
        split_usd_per_hour: the price of both. [USD]
    """

    rate: float
    replicas: int
    replicas_chips: int
    replicas_usd_per_hour: float | None
    prefill_servers: int
    decode_servers: int
    split_chips: int
    split_usd_per_hour: float | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)


def fleet(option: Option, rate: float) -> Fleet:
    """Servers of an option's kind that serve a rate, each phase rounded up on its own."""
    names = ("replicas", "prefill_servers", "decode_servers")
    values = option.step.deployment.evaluate(names, batch=option.step.batch)
    replicas, prefill, decode = (int(values[name]) for name in names)
    n_chips, usd = option.step.n_chips, option.step.usd_per_hour
    return Fleet(
        rate=rate,
        replicas=replicas,
        replicas_chips=replicas * n_chips,
        replicas_usd_per_hour=None if usd is None else replicas * usd,
        prefill_servers=prefill,
        decode_servers=decode,
        split_chips=(prefill + decode) * n_chips,
        split_usd_per_hour=None if usd is None else (prefill + decode) * usd,
    )
