"""Comparisons: chapter 8's table of chips, and a model on each."""

import json

import pytest

import slicewise
from slicewise.errors import InputError


def test_the_table_of_chapter_8() -> None:
    # FLOPs a dollar: 3.3e17, 3.9e17, and 5.8e17 as printed, which is exactly 5.91e17.
    rows = slicewise.compare(["h100", "v5p", "v5e"]).rows
    assert [row.flops_per_usd for row in rows] == pytest.approx([3.3e17, 3.934e17, 5.91e17], rel=1e-3)
    assert [row.bytes_moved_per_usd for row in rows] == pytest.approx([1.117e15, 2.4e15, 2.46e15], rel=1e-3)
    assert [row.hbm_byte_hours_per_usd for row in rows] == pytest.approx([80e9 / 10.8, 96e9 / 4.2, 16e9 / 1.2])


def test_a_chip_without_a_price_has_no_value_for_money() -> None:
    (row,) = slicewise.compare(["v6e"]).rows
    assert row.price is row.usd_per_chip_hour is row.flops_per_usd is row.bytes_moved_per_usd is None
    (row,) = slicewise.compare(["v6e"], price="v6e=2.7").rows
    assert row.flops_per_usd == pytest.approx(9.2e14 * 3600 / 2.7)


def test_a_model_is_planned_on_each() -> None:
    found = slicewise.compare(
        ["v5e:4x4", "v6e-8", "h100", "v5e:2x2"], model="llama-3-70b", weights="int8", context=4096
    )
    assert [row.chip for row in found.rows] == ["v5e", "v6e", "h100", "v5e"]
    plans = [row.plan for row in found.rows]
    assert all(plans)
    slices = [plan.recommended and plan.recommended.step.slice for plan in plans if plan]
    assert slices[0] == "v5e:4x4"
    assert slices[1] == "v6e:2x4"
    assert slices[3] is None
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "nothing to compare"),
        (["v5x"], "unknown chip 'v5x'"),
        (["v5e:3x3"], "v5e has no 3x3"),
        (["v5e-3"], "3 chips"),
    ],
)
def test_bad_names_are_refused(names: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        slicewise.compare(names)


def test_a_dtype_that_a_chip_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="--compute fp4: v5e has no peak rate for it"):
        slicewise.compare(["b200", "v5e"], compute="fp4")


@pytest.mark.parametrize("name", ["", "flops_per_usd", "bytes_moved_per_usd", "hbm_byte_hours_per_usd"])
def test_values_are_explained_chip_by_chip(name: str) -> None:
    found = slicewise.compare(["v5e", "v6e", "h100"])
    derivation = found.explain(name)
    assert [part.name for part in derivation.parts] == ["v5e", "h100"]
    values = [getattr(row, name or "flops_per_usd") for row in found.rows if row.price]
    assert [part.value for part in derivation.parts] == pytest.approx(values)
    assert all(fact.origin and fact.source for part in derivation.parts for fact in part.parts)
    json.dumps(derivation.to_dict(), allow_nan=False)


def test_an_unknown_value_is_refused() -> None:
    with pytest.raises(InputError, match="unknown number 'step_s'"):
        slicewise.compare(["v5e"]).explain("step_s")
