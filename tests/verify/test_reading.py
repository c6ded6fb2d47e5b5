"""A reading as data: nothing is lost on the way to JSON and back."""

import json
from collections.abc import Callable

import pytest

from slicewise.verify.reading import Reading, from_dict


def test_a_reading_survives_json(reading_of: Callable[..., Reading], refused: Reading) -> None:
    for reading in (reading_of(), refused):
        assert from_dict(json.loads(json.dumps(reading.to_dict()))) == reading


def test_a_program_fits_unless_it_is_refused(reading_of: Callable[..., Reading], refused: Reading) -> None:
    assert reading_of().fits
    assert not refused.fits


def test_the_total_is_arguments_temporaries_and_new_results(reading_of: Callable[..., Reading]) -> None:
    assert reading_of().total_bytes == 1508 + 20 + 12


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept.pop("flops"),
        lambda kept: kept.pop("refusal"),
        lambda kept: kept.update(exchanges=[{"kind": "all-reduce"}]),
        lambda kept: kept.update(exchanges=[7]),
        lambda kept: kept.update(largest=None),
        lambda kept: kept.update(refusal={"why": "no room"}),
    ],
)
def test_an_object_of_another_form_is_refused(reading_of: Callable[..., Reading], damage: Callable) -> None:
    kept = reading_of().to_dict()
    damage(kept)
    with pytest.raises((KeyError, TypeError)):
        from_dict(kept)
