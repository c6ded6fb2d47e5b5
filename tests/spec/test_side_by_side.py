"""Two mixers side by side: the weights and the caches of both, and the heads of attention."""

import pytest

from slicewise.errors import InputError
from slicewise.spec.mixers import attention
from slicewise.spec.recurrences import recurrence
from slicewise.spec.side_by_side import side_by_side

HEADS = {"n_heads": 8, "n_kv_heads": 2, "head_dim": 16}
STATE = {
    "form": "state-space",
    "n_heads": 4,
    "head_dim": 32,
    "state_elements": 4 * 32 * 16,
    "conv_elements": 3 * 160,
    "matrices": [["in_proj", [64, 292], "state_space"]],
    "out": ["out_proj", [128, 64], "state_space"],
    "module": "mamba",
}


def test_it_has_what_both_have() -> None:
    both = side_by_side(d_model=64, attention=HEADS, recurrence=STATE)
    heads, state = attention(d_model=64, **HEADS), recurrence(**STATE)
    assert both.weights == (*heads.weights, *state.weights)
    assert both.caches == (*heads.caches, *state.caches)
    assert (both.kind, both.n_heads, both.n_kv_heads) == ("full beside state-space", 8, 2)


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="8 query heads do not divide over 3 KV heads"):
        side_by_side(d_model=64, attention={**HEADS, "n_kv_heads": 3}, recurrence=STATE)
