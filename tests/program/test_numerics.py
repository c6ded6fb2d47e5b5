"""Constants of the arithmetic, as configs of old and new transformers state them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.errors import InputError
from slicewise.program.numerics import Numerics, RotaryScaling, numerics_of, rotary_frequencies

LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
STRETCHED = RotaryScaling(factor=8, low_freq_factor=1, high_freq_factor=4, original_context_tokens=8192)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({}, Numerics(norm_eps=1e-6, rope_theta=1e4), id="transformers' defaults"),
        pytest.param({"rms_norm_eps": 1e-5, "rope_theta": 5e5, "rope_scaling": None}, Numerics(), id="llama 3"),
        pytest.param(
            {"rope_theta": 5e5, "rope_scaling": LLAMA_3, "rms_norm_eps": 1e-5},
            Numerics(rope_scaling=STRETCHED),
            id="llama 3.1, before transformers 5",
        ),
        pytest.param(
            {"rope_parameters": {**LLAMA_3, "rope_theta": 5e5}, "rms_norm_eps": 1e-5},
            Numerics(rope_scaling=STRETCHED),
            id="llama 3.1, since transformers 5",
        ),
        pytest.param({"rope_scaling": {"type": "default"}}, Numerics(norm_eps=1e-6, rope_theta=1e4), id="default"),
    ],
)
def test_constants_are_those_of_the_config(config: dict[str, Any], expected: Numerics) -> None:
    assert numerics_of(config) == expected


@pytest.mark.parametrize("key", ["rope_type", "type"])
@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("kind", ["yarn", "linear", "dynamic", "longrope"])
def test_other_rotary_embeddings_are_refused_by_name(kind: str, place: str, key: str) -> None:
    with pytest.raises(InputError, match=f"^rope_scaling: '{kind}' is not understood; default and llama3 are$"):
        numerics_of({place: {key: kind, "factor": 2.0}})


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"hidden_act": "gelu"}, "hidden_act: only silu is understood"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor: only 1.0 is understood"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor: only 1.0 is understood"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}},
            "rope_scaling: llama3 has no high_freq_factor, original_max_position_embeddings; give it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_arithmetic_is_refused_by_the_name_of_its_key(config: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as caught:
        numerics_of(config)
    assert str(caught.value) == line


@given(theta=st.floats(100, 1e7), half=st.integers(1, 64))
def test_frequencies_fall_from_one_by_equal_factors(theta: float, half: int) -> None:
    found = rotary_frequencies(Numerics(rope_theta=theta), 2 * half)
    assert found.shape == (half,)
    assert found == pytest.approx([theta ** (-i / half) for i in range(half)], rel=1e-6)


@given(factor=st.floats(1, 32), low=st.floats(0.5, 2), more=st.floats(0.5, 8), context=st.floats(64, 8192))
def test_short_waves_stay_and_long_ones_are_stretched(factor: float, low: float, more: float, context: float) -> None:
    scaling = RotaryScaling(
        factor=factor, low_freq_factor=low, high_freq_factor=low + more, original_context_tokens=context
    )
    plain, found = (rotary_frequencies(Numerics(rope_scaling=each), 128) for each in (None, scaling))
    turns = context * plain / (2 * math.pi)
    ratio = plain / found
    assert np.all(ratio[turns > (low + more) * 1.001] == pytest.approx(1, rel=1e-6))
    assert np.all(ratio[turns < low * 0.999] == pytest.approx(factor, rel=1e-6))
    assert np.all((ratio > 1 - 1e-6) & (ratio < factor * (1 + 1e-6)))
    assert np.all(np.diff(found) < 0)
