"""The derivation of every number that we print beside the book's: its value, and of what it is made."""

import math

import pytest

from slicewise.book.explain import derivation_of, explain
from slicewise.book.ours import Planner, compute
from slicewise.book.questions import rows
from slicewise.derive import Derivation
from slicewise.errors import InputError


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner()


def leaves(node: Derivation) -> list[Derivation]:
    return [leaf for part in node.parts for leaf in leaves(part)] if node.parts else [node]


@pytest.mark.parametrize("question", dict.fromkeys(row.question for row in rows()))
def test_every_number_is_the_product_of_its_parts(question: str, planner: Planner) -> None:
    for row in rows():
        if row.question != question:
            continue
        found = derivation_of(row, planner)
        assert found.value == compute(row, planner)[0]
        if row.against is not None or row.value in (*row.times, *row.over):
            continue
        values = [part.value for part in found.parts]
        upper, lower = values[: 1 + len(row.times)], values[1 + len(row.times) :]
        assert math.prod(upper) / math.prod(lower) == pytest.approx(found.value, rel=1e-12)


def test_what_is_divided_by_another_slices_number_shows_both() -> None:
    found = explain("0.8", "throughput a chip over that on a 4x4, bf16 on 4x8")
    ours, other = (part.value for part in found.parts)
    assert found.value == pytest.approx(ours / other, rel=1e-12)
    assert "slice=v5e:4x4" in found.parts[1].name


def test_a_largest_batch_is_derived_from_what_memory_holds() -> None:
    found = explain("0.7", "largest batch, bf16 on 4x4")
    (most,) = found.parts
    assert (found.value, most.name, most.value) == (43, "max_batch", 43)
    assert any(leaf.source for leaf in leaves(found))


def test_a_batch_that_was_searched_says_within_which_limit() -> None:
    found = explain("exercise 3", "largest batch, 8k, 8x8 overlapped without hops and AllToAlls")
    (batch,) = found.parts
    assert "15 ms" in batch.formula
    at, beyond = (part.value for part in batch.parts)
    assert at <= 0.015 < beyond


@pytest.mark.parametrize(
    ("asked", "words"), [(("0.99",), "unknown question"), (("0.7", "largest bath"), "'largest batch, bf16 on 4x4'; ")]
)
def test_unknown_names_are_refused(asked: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        explain(*asked)
