"""The slice to take when none is named: the smallest that fits, and an honest ledger where none does."""

import pytest

import slicewise
from slicewise.errors import InputError
from slicewise.planner.question import ask
from slicewise.planner.slices import default_deployment, fitting


@pytest.mark.parametrize(
    ("model", "flags", "slice_"),
    [
        ("llama-3-8b", {}, "v5e:2x2"),
        ("llama-3-8b", {"weights": "int4", "context": 1024}, "v5e:1x1"),
        ("llama-3-8b", {"batch": 100}, "v5e:4x4"),
        ("llama-3-405b", {}, "v5e:8x8"),
        ("llama-3-8b", {"chip": ["v6e", "h100"]}, "v6e:1x1"),
        ("llama-3-70b", {"slice": "v5e:1x1"}, "v5e:1x1"),
    ],
)
def test_the_smallest_that_fits_unless_one_is_named(model: str, flags: dict, slice_: str) -> None:
    assert default_deployment(ask(model, flags)).slice.name == slice_


def test_where_nothing_fits_the_largest_says_what_breaks() -> None:
    step = slicewise.step("llama-3-405b", chip="l40s")
    assert step.slice == "l40s:8"
    assert not step.fits
    assert "do not fit" in str(step.reason)


def test_fitting_slices_go_up_and_each_fits() -> None:
    found = fitting(ask("llama-3-70b", {"chip": ["v5e", "h100"], "batch": 20}))
    sizes = [deployment.slice.n_chips for deployment in found]
    assert sizes == sorted(sizes)
    assert all(deployment.value("free_bytes", batch=20) >= 0 for deployment in found)


@pytest.mark.parametrize("flags", [{"slice": ["v5e:2x4", "v5e:4x4"]}, {"weights": ["bf16", "int8"]}])
@pytest.mark.parametrize("command", ["step", "prefill", "limits", "frontier", "disaggregate"])
def test_an_answer_about_one_refuses_several(command: str, flags: dict) -> None:
    with pytest.raises(InputError, match="this answers about one"):
        getattr(slicewise, command)("llama-3-8b", **flags)
