"""Conventions: what was given outright wins, over the defaults as over the book's."""

from dataclasses import fields

import pytest

from slicewise.errors import InputError
from slicewise.planner.conventions import BOOK, CHOICES, Conventions, conventions


def test_nothing_given_is_the_default_or_the_book() -> None:
    assert conventions(book=False, ici=None) == Conventions()
    assert conventions(book=True, view=None) == BOOK


def test_the_book_at_once() -> None:
    # Nominal decimal HBM, all of it, full rings, fractions, S = T, no attention in prefill, no activations.
    assert (BOOK.nominal_hbm, BOOK.memory_fraction, BOOK.ici, BOOK.split) == (True, 1.0, "ring", "ideal")
    assert (BOOK.prompt_is_context, BOOK.prefill_attention, BOOK.activations) == (True, False, False)


@pytest.mark.parametrize("book", [False, True])
@pytest.mark.parametrize(("name", "word"), [(name, word) for name, words in CHOICES.items() for word in words])
def test_every_choice_can_be_given(book: bool, name: str, word: str) -> None:
    if book and word == "expected":
        with pytest.raises(InputError, match="--book shows bounds only"):
            conventions(book=book, **{name: word})
        return
    found, base = conventions(book=book, **{name: word}), conventions(book=book)
    assert getattr(found, name) == word
    assert all(getattr(found, f.name) == getattr(base, f.name) for f in fields(found) if f.name != name)


@pytest.mark.parametrize("name", CHOICES)
def test_other_words_are_refused_by_flag_with_the_choices(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"--{name.replace('_', '-')} 'odd' is not offered; choose {CHOICES[name][0]}"
    ):
        conventions(book=False, **{name: "odd"})


def test_given_memory_wins_over_the_nominal() -> None:
    assert not conventions(book=True, hbm_bytes_per_chip=15e9).nominal_hbm
