"""The range around an expected time, and the bound that prefill cannot undercut at all.

What is expected comes from figures of measured engines (`costs/fitted.py`) or of a TPU's compiler
(`costs/compiled.py`). The range holds 8 of 10 measurements, and never reaches below the bound.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real
from slicewise.spec.efficiency import LARGE, SMALL


def group_batch(batch: Real) -> Real:
    """Sequences that the chips that work together advance in a step. []"""
    return batch


def step_low_s(
    group_batch: Real,
    step_expected_s: Real,
    small_step_s: Real,
    step_low_ratio: Real,
    large_step_low_ratio: Real,
    step_overlapped_s: Real,
) -> Real:
    """Lower end of the range of measured steps; never below the bound, nor below that of a smaller batch. [s]"""
    large_s = np.maximum(step_expected_s * large_step_low_ratio, small_step_s * step_low_ratio)
    low_s = np.where(group_batch <= SMALL, step_expected_s * step_low_ratio, large_s)
    return np.maximum(low_s, step_overlapped_s)


def step_high_s(group_batch: Real, step_expected_s: Real, step_high_ratio: Real, large_step_high_ratio: Real) -> Real:
    """Upper end of the range that holds 8 of 10 measured steps. [s]"""
    return step_expected_s * np.where(group_batch < LARGE, step_high_ratio, large_step_high_ratio)


def prefill_peak_s(prefill_flops: Real, n_chips: Real, flops_per_s: Real) -> Real:
    """Time of the prompt's FLOPs at peak. [s]"""
    return prefill_flops / (n_chips * flops_per_s)


def prefill_bound_s(prefill_peak_s: Real, param_load_s: Real, prefill_ici_s: Real) -> Real:
    """Prefill at peak, its collectives hidden as far as they can: no engine undercuts it. [s]"""
    return np.maximum(np.maximum(prefill_peak_s, param_load_s), prefill_ici_s)


def prefill_low_s(prefill_expected_s: Real, prefill_low_ratio: Real, prefill_bound_s: Real) -> Real:
    """Lower end of the range that holds 8 of 10 measured prefills; never below the bound. [s]"""
    return np.maximum(prefill_expected_s * prefill_low_ratio, prefill_bound_s)


def prefill_high_s(prefill_expected_s: Real, prefill_high_ratio: Real) -> Real:
    """Upper end of the range that holds 8 of 10 measured prefills. [s]"""
    return prefill_expected_s * prefill_high_ratio
