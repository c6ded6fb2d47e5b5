"""Expected times of any deployment that can be made up: layouts, kinds of layers, chips, dtypes, conventions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.planner.deployment import Deployment
from slicewise.planner.figures import expected_terms, times_of

ROUNDING = 1 + 1e-9
STEPS = ("step_overlapped_s", "step_low_s", "step_expected_s", "step_high_s")
PREFILLS = ("prefill_bound_s", "prefill_low_s", "prefill_expected_s", "prefill_high_s")


@given(deployment=..., batch=st.integers(1, 2000))
def test_the_bound_is_at_most_the_low_end_and_so_on(deployment: Deployment, batch: int) -> None:
    for names in (STEPS, PREFILLS):
        times = [float(deployment.value(name, batch=batch)) for name in names]
        for less, more in pairwise(times):
            assert 0 < less <= more * ROUNDING, names


@given(deployment=...)
def test_more_sequences_never_take_less_time(deployment: Deployment) -> None:
    # The ends of the range as well, across the batch from which another range holds.
    for name in STEPS[1:]:
        steps = np.broadcast_to(deployment.value(name, batch=np.arange(1.0, 257.0)), (256,))
        assert np.all(np.diff(steps) >= -steps[1:] * (ROUNDING - 1)), name


@given(deployment=..., batch=st.integers(1, 500), context=st.integers(1, 2**16), more=st.integers(1, 2**16))
def test_more_context_never_takes_less_time(deployment: Deployment, batch: int, context: int, more: int) -> None:
    short, long = (
        float(deployment.value("step_expected_s", batch=batch, context_tokens=tokens))
        for tokens in (context, context + more)
    )
    assert long >= short / ROUNDING


@given(
    deployment=...,
    batch=st.integers(1, 500),
    share=st.floats(0.05, 1.0),
    rate=st.sampled_from(["hbm_bytes_per_s", "link_bytes_per_s", "flops_per_s"]),
)
def test_a_slower_chip_is_never_expected_to_be_quicker(
    deployment: Deployment, batch: int, share: float, rate: str
) -> None:
    whole = getattr(deployment.slice.chip, rate)
    part = {dtype: each * share for dtype, each in whole.items()} if isinstance(whole, dict) else None
    if part is None and not isinstance(whole, int | float):
        part = type(whole)({dtype: each * share for dtype, each in dict(whole).items()})
    chip = replace(deployment.slice.chip, **{rate: whole * share if part is None else part})
    slower = deployment.with_(slice=replace(deployment.slice, chip=chip))
    for name in ("step_expected_s", "prefill_expected_s"):
        # Stage by stage: the slowest may change with the chip.
        stage = deployment.paced_by(name).stage
        pair = (d.with_(stage=stage) if stage is not None else d for d in (slower, deployment))
        less, more = (float(d.value(name, batch=batch)) for d in pair)
        assert less >= more / ROUNDING, name


@given(deployment=..., batch=st.integers(1, 500))
def test_the_terms_add_up(deployment: Deployment, batch: int) -> None:
    for name, bound in (("step_expected_s", "step_overlapped_s"), ("prefill_expected_s", "prefill_bound_s")):
        stage = deployment.paced_by(name).stage
        one = deployment if stage is None else deployment.with_(stage=stage)
        terms = sum(expected_terms(one, batch, name).values())
        assert float(one.value(name, batch=batch)) == pytest.approx(max(terms, float(one.value(bound, batch=batch))))


@given(deployment=..., batch=st.integers(1, 500))
def test_what_is_expected_does_not_hang_on_the_view(deployment: Deployment, batch: int) -> None:
    told = {
        view: times_of(deployment.with_(conventions=replace(deployment.conventions, view=view)), batch)
        for view in ("overlapped", "expected", "serial")
    }
    for view in ("expected", "serial"):
        for end, times in told["overlapped"].items():
            assert told[view][end]["step_s"] == times["step_s"]
            # Prefill is told of the stage whose step is the slowest in the view: all but equal.
            assert told[view][end]["prefill_s"] == pytest.approx(times["prefill_s"], rel=0.05)
