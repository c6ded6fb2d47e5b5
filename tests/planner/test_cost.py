"""What a rate costs, and break-even: the arithmetic that tables on the web get wrong by factors of a hundred."""

import pytest

import slicewise
from slicewise.errors import InputError

MILLION = 1e6


def test_a_million_tokens_at_a_rate() -> None:
    """USD/h / (tok/s × 3600) × 1e6."""
    found = slicewise.cost(price=2.5, tokens_per_s=50)
    assert found.usd_per_million_output_tokens == pytest.approx(13.8889, rel=1e-5)
    assert found.usd_per_million_sustained_tokens == found.usd_per_million_output_tokens


def test_every_chip_is_paid_for() -> None:
    one, eight = slicewise.cost(price=2.5, tokens_per_s=50), slicewise.cost(price=2.5, tokens_per_s=50, slice="h100:8")
    assert eight.usd_per_million_output_tokens == 8 * (one.usd_per_million_output_tokens or 0)
    assert (one.n_chips, eight.n_chips) == (1, 8)


def test_idle_hours_are_paid_for() -> None:
    found = slicewise.cost(price=2, tokens_per_s=85, utilisation="40%")
    assert found.usd_per_million_output_tokens == pytest.approx(2 / (85 * 3600) * MILLION)
    assert found.usd_per_million_sustained_tokens == pytest.approx(2 / (0.4 * 85 * 3600) * MILLION)


def test_break_even_needs_no_rate() -> None:
    found = slicewise.cost(usd_per_month=4608, api_price=10)
    assert found.breakeven_tokens_per_month == 460.8 * MILLION
    assert found.breakeven_utilisation is None
    assert found.usd_per_hour == pytest.approx(4608 / 730)


def test_break_even_tells_how_busy_the_chips_must_be() -> None:
    found = slicewise.cost(price=2, tokens_per_s=2000, api_price=0.5)
    month_tokens = 2000 * 730 * 3600
    assert found.breakeven_tokens_per_month == pytest.approx(2 * 730 / 0.5 * MILLION)
    assert found.breakeven_utilisation == pytest.approx(2 * 730 / 0.5 * MILLION / month_tokens)


def test_a_step_and_its_rate_cost_the_same() -> None:
    step = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8", kv="int8", batch=32, context=8192)
    assert step.tokens_per_s is not None
    found = slicewise.cost(slice="v5e:4x4", tokens_per_s=step.tokens_per_s)
    assert found.usd_per_million_output_tokens == pytest.approx(step.usd_per_million_output_tokens)


def test_an_explanation_ends_in_what_was_given() -> None:
    found = slicewise.cost(price=2.5, tokens_per_s=50, utilisation=0.5)
    assert found.explain().name == "usd_per_million_sustained_tokens"
    assert slicewise.cost(usd_per_month=4608, api_price=10).explain().name == "breakeven_tokens_per_month"
    with pytest.raises(InputError, match="unknown number 'step_s'"):
        found.explain("step_s")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "nothing to tell; give --tokens-per-s"),
        ({"tokens_per_s": 50}, "no price is known; give --price"),
        ({"tokens_per_s": 50, "slice": "mi300x:8"}, "no price is known for mi300x; give --price"),
        ({"tokens_per_s": 50, "price": 1, "usd_per_month": 1}, "give one of them"),
        ({"tokens_per_s": 50, "price": 1, "utilisation": 1.4}, "--utilisation: 1.4 must be greater than 0"),
        ({"tokens_per_s": 50, "price": 1, "utilisation": 0}, "--utilisation: 0 must be greater than 0"),
        ({"tokens_per_s": -1, "price": 1}, "--tokens-per-s: -1 must be greater than 0"),
        ({"tokens_per_s": 50, "prise": 1}, "unknown word 'prise': did you mean price"),
    ],
)
def test_bad_words_are_refused_with_the_fix(words: dict, said: str) -> None:
    with pytest.raises(InputError) as refused:
        slicewise.cost(**words)
    assert said in str(refused.value)
