"""Gaps between tokens, as users see them stream: percentiles over all tokens of a run, from runs of steps."""

from __future__ import annotations

import numpy as np

from slicewise.traffic.requests import Floats
from slicewise.traffic.summary import Summary

MOST_PARTS = 16
"""A run of more steps is told in so many parts: its gaps grow by a hair each, and a part has its mean."""


def gap_summary(gaps: Floats, since_s: float = 0.0) -> Summary | None:
    """Mean, percentiles and maximum of the gaps between tokens; None where there are none. [s]

    As of the list of all gaps, percentiles between two of them on a line. Neglects: how gaps differ within a part of
    a run of more than 16 steps.

    Args:
        gaps: as in `Outcome`. Shape (m, 5).
        since_s: gaps of steps that begin earlier are left out. [s]
    """
    kept = _since(gaps, since_s)
    if not len(kept):
        return None
    gap_s, count = _parts(kept)
    order = np.argsort(gap_s, kind="stable")
    gap_s, upto = gap_s[order], np.cumsum(count[order])
    n = upto[-1]

    def percentile(share: float) -> float:
        place = (n - 1) * share
        low, high = gap_s[np.searchsorted(upto, [np.floor(place), np.ceil(place)], side="right")]
        return float(low + (high - low) * (place - np.floor(place)))

    return Summary(
        mean=float(gap_s @ count[order] / n),
        p50=percentile(0.50),
        p90=percentile(0.90),
        p95=percentile(0.95),
        p99=percentile(0.99),
        most=float(gap_s[-1]),
    )


def _since(gaps: Floats, since_s: float) -> Floats:
    """Rows of the steps that begin at a time or later; of a row that begins before, its later steps."""
    late = gaps[gaps[:, 0] >= since_s]
    before = gaps[(gaps[:, 0] < since_s) & (gaps[:, 3] > 1)]
    begin_s, first_s, growth_s, n_steps, _ = before.T
    last = n_steps - 1
    rest = []
    for row in before[begin_s + last * first_s + growth_s * last * (last - 1) / 2 >= since_s]:
        step = np.arange(row[3])
        begins_s = row[0] + step * row[1] + row[2] * step * (step - 1) / 2
        cut = int(np.argmax(begins_s >= since_s))
        rest.append([begins_s[cut], row[1] + row[2] * cut, row[2], row[3] - cut, row[4]])
    return np.concatenate([np.array(rest).reshape(-1, 5), late])


def _parts(gaps: Floats) -> tuple[Floats, Floats]:
    """Gaps, and of how many tokens each. Shapes (k,)."""
    _, first_s, growth_s, n_steps, sequences = gaps.T
    n_parts = np.minimum(n_steps, MOST_PARTS).astype(np.int64)
    row = np.repeat(np.arange(len(gaps)), n_parts)
    part = np.arange(len(row)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    begin = part * n_steps[row] // n_parts[row]
    end = (part + 1) * n_steps[row] // n_parts[row]
    gap_s = first_s[row] + growth_s[row] * (begin + end - 1) / 2
    return gap_s, (end - begin) * sequences[row]
