"""A quantity over requests or tokens in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.planner.record import record
from slicewise.traffic.requests import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A quantity over requests, in the unit of the quantity; percentiles lie on lines between two values.

    Attributes:
        mean: of all values.
        p50: the median.
        p90: what 90 % stay within; and so on.
        p95: what 95 % stay within.
        p99: what 99 % stay within.
        most: the largest value.
    """

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    most: float

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


def summary(values: Floats) -> Summary | None:
    """Mean, percentiles and maximum of the values that are there; None where none is."""
    there = values[np.isfinite(values)]
    if not len(there):
        return None
    p50, p90, p95, p99 = (float(value) for value in np.percentile(there, (50, 90, 95, 99)))
    return Summary(mean=float(there.mean()), p50=p50, p90=p90, p95=p95, p99=p99, most=float(there.max()))
