"""Two mixers that read the same input side by side: attention, and a recurrence beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slicewise.spec.mixers import Mixer
from slicewise.spec.mixers import attention as make_attention
from slicewise.spec.recurrences import recurrence as make_recurrence


def side_by_side(*, d_model: int, attention: Mapping[str, Any], recurrence: Mapping[str, Any]) -> Mixer:
    """Attention and a recurrence in one layer, whose outputs add up: the weights and the caches of both.

    Args:
        d_model: D.
        attention: arguments of `attention`, without D.
        recurrence: arguments of `recurrence`.

    Raises:
        InputError: query heads do not divide over KV heads.
    """
    heads, state = make_attention(d_model=d_model, **attention), make_recurrence(**recurrence)
    return Mixer(
        kind=f"{heads.kind} beside {state.kind}",
        n_heads=heads.n_heads,
        n_kv_heads=heads.n_kv_heads,
        head_dim=heads.head_dim,
        weights=(*heads.weights, *state.weights),
        caches=(*heads.caches, *state.caches),
    )
