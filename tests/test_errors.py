"""Exceptions: one tree, and names that are unknown come with the nearest known ones."""

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slicewise.errors import (
    CatalogError,
    InputError,
    SlicewiseError,
    UnknownFactError,
    UnknownNameError,
    UnsupportedModelError,
)


@pytest.mark.parametrize("kind", [InputError, UnknownFactError, UnknownNameError, UnsupportedModelError, CatalogError])
def test_all_errors_have_one_root(kind: type) -> None:
    assert issubclass(kind, SlicewiseError)


def test_a_catalog_error_is_no_fault_of_the_user() -> None:
    assert not issubclass(CatalogError, InputError)


@pytest.mark.parametrize(
    "error",
    [
        InputError("--rate: 0 must be greater than 0"),
        UnknownNameError("chip", "V5", ["v5e", "h100"], "(of the catalog)"),
        UnknownFactError("usd", "price"),
    ],
)
def test_errors_of_other_processes_come_back_as_they_were(error: SlicewiseError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_unknown_names_offer_the_nearest() -> None:
    message = str(UnknownNameError("chip", "V5", ["v5e", "v5p", "h100"]))
    assert message in ("unknown chip 'V5': did you mean v5p or v5e?", "unknown chip 'V5': did you mean v5e or v5p?")


def test_unknown_names_far_from_all_list_what_is_known() -> None:
    assert str(UnknownNameError("chip", "abacus", ["v5e", "h100"], "(see the list)")) == (
        "unknown chip 'abacus': known: h100, v5e (see the list)"
    )


def test_an_unknown_fact_is_named_with_what_rests_on_it() -> None:
    error = UnknownFactError("usd_per_hour", "usd_per_chip_hour", "give --price")
    assert str(error) == "usd_per_hour rests on usd_per_chip_hour, which is not known here; give --price"
    assert (error.name, error.fact) == ("usd_per_hour", "usd_per_chip_hour")
    assert str(UnknownFactError("price", "price")) == "price is not known here"


@given(st.text())
@example("v5e\nv5p")
def test_messages_are_one_line(name: str) -> None:
    assert len(str(UnknownNameError("chip", name, ["v5e", "h100"])).splitlines()) == 1
