"""Money: published rows of dollars a million tokens, and shares that sum up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.costs import money

PRICE, TIME, TOKENS = st.floats(0.01, 1e4), st.floats(1e-5, 1e3), st.integers(1, 10**6)


# https://www.peakinfer.com/blog/cost-per-token-across-hardware-options prints 0.14 for the first: its own expression
# gives 13.89.
@pytest.mark.parametrize(("usd", "tokens", "per_million"), [(2.5, 50, 13.89), (2.0, 85, 6.54)])
def test_dollars_a_million_output_tokens(usd: float, tokens: float, per_million: float) -> None:
    assert money.usd_per_million_output_tokens(usd, tokens) == pytest.approx(per_million, rel=2e-3)


def test_dollars_of_question_3_of_chapter_8() -> None:
    # 4x2 at $1.2 a chip-hour and 1858.5 tokens/s: $1.435.
    hourly = money.usd_per_hour(8, 1.2)
    assert money.usd_per_million_output_tokens(hourly, 1858.5) == pytest.approx(1.435, rel=1e-3)


# Chapter 8's first table: 3.3e17, 3.9e17 and, printed as 5.8e17, exactly 5.91e17 FLOPs a dollar.
@pytest.mark.parametrize(
    ("flops", "usd", "per_usd"), [(9.9e14, 10.8, 3.3e17), (4.59e14, 4.2, 3.934e17), (1.97e14, 1.2, 5.91e17)]
)
def test_flops_that_a_dollar_buys(flops: float, usd: float, per_usd: float) -> None:
    assert money.flops_per_usd(flops, usd) == pytest.approx(per_usd, rel=1e-3)


def test_bytes_that_a_dollar_moves_and_holds() -> None:
    assert money.bytes_moved_per_usd(8.2e11, 1.2) == pytest.approx(2.46e15)
    assert money.hbm_byte_hours_per_usd(16e9, 1.2) == pytest.approx(16e9 / 1.2)


def test_dollars_of_a_fleet() -> None:
    assert money.replicas_usd_per_hour(48, 1.2) == pytest.approx(57.6)
    assert money.split_usd_per_hour(80, 1.2) == pytest.approx(96.0)


@given(PRICE, TIME, TIME, TOKENS, TOKENS, st.integers(1, 1000))
def test_input_and_output_tokens_cost_what_the_request_does(
    hourly: float, prefill_s: float, step_s: float, prompt: int, output: int, batch: int
) -> None:
    request = money.request_usd(hourly, prefill_s + output * step_s / batch)
    inputs = money.usd_per_million_input_tokens(hourly, prefill_s, prompt) * prompt / 1e6
    outputs = money.usd_per_million_output_tokens(hourly, batch / step_s) * output / 1e6
    assert inputs + outputs == pytest.approx(request, rel=1e-9)
    blended = money.usd_per_million_tokens(request, prompt, output)
    assert blended * (prompt + output) / 1e6 == pytest.approx(request, rel=1e-9)
