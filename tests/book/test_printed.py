"""One rule decides whether a printed figure agrees: ours, rounded to the printed digits, equals it."""

import pytest

from slicewise.book.printed import read_printed
from slicewise.errors import CatalogError


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("17 ms", "s", 0.017),
        ("11 us", "s", 11e-6),
        ("160 kB", "B", 160e3),
        ("1.3 TB", "B", 1.3e12),
        ("8e9 B", "B", 8e9),
        ("5.8e17", "FLOP/USD", 5.8e17),
        ("810e9", "FLOP", 810e9),
        ("~100", "", 100),
        ("4x2", "chips", 8),
        ("8x16", "chips", 128),
        ("32/4096", "sequences", 0.0078125),
        ("~1 token/ms/chip", "tokens/s/chip", 1000),
    ],
)
def test_a_figure_is_read_in_its_base_unit(text, unit, value):
    assert read_printed(text, unit).value == pytest.approx(value, rel=1e-12)
    assert read_printed(text, unit).text == text


@pytest.mark.parametrize(
    ("text", "unit", "ours", "agrees"),
    [
        ("17 ms", "s", 0.0165, True),
        ("17 ms", "s", 0.017499, True),
        ("17 ms", "s", 0.0175, False),
        ("17 ms", "s", 0.016499, False),
        ("160 kB", "B", 163840, False),  # trailing zeros are digits
        ("164 kB", "B", 163840, True),
        ("160 kB", "B", 159600, True),
        ("4.38", "chips", 4.375, True),  # half a digit rounds up
        ("0.90", "", 0.896, True),
        ("0.9", "", 0.94, True),
        ("0.90", "", 0.94, False),
        ("~10 ms", "s", 0.01067, False),  # a tilde loosens nothing
        ("~10 ms", "s", 0.01049, True),
        ("810e9", "FLOP", 810.4e9, True),
        ("810e9", "FLOP", 807.5e9, False),
        ("4x2", "chips", 8, True),
        ("4x2", "chips", 8.2, False),
        ("32/4096", "sequences", 32 / 4096, True),
        ("32/4096", "sequences", 0.0078, False),
        ("~1 token/ms/chip", "tokens/s/chip", 893.0, True),
    ],
)
def test_agreement_is_decided_by_the_printed_digits(text, unit, ours, agrees):
    assert read_printed(text, unit).agrees(ours) is agrees


@pytest.mark.parametrize(
    ("text", "unit"), [("", "s"), ("about 9 s", "s"), ("9 parsec", "s"), ("9 ms", "chips"), ("-1", "")]
)
def test_what_is_no_figure_is_refused(text, unit):
    with pytest.raises(CatalogError):
        read_printed(text, unit)
