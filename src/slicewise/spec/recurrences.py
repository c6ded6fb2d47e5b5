"""Recurrences: layers whose memory of a sequence is a state of fixed size."""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.spec.arrays import Cache, matrix
from slicewise.spec.mixers import Extra, Mixer, extras


def recurrence(
    *,
    form: str,
    n_heads: int,
    head_dim: int,
    state_elements: int,
    conv_elements: int,
    matrices: Sequence[Extra],
    out: Extra,
    state_dtype_bytes: float = 4.0,
    module: str = "linear_attn",
    more: Sequence[Extra] = (),
) -> Mixer:
    """A recurrence with a state of fixed size: gated delta nets, Mamba 2 and their kin.

    Args:
        form: linear or state-space.
        n_heads: heads that the state is split over.
        head_dim: width of a head.
        state_elements: elements of the recurrent state of one layer.
        conv_elements: elements of the short convolution's memory, kept in 16 bits.
        matrices: (name, [inputs, outputs], role) of each projection in, split over heads.
        out: the projection out.
        state_dtype_bytes: bytes of an element of the state. [B]
        module: where the projections are in a checkpoint, below the layer.
        more: further small arrays.
    """
    weights = []
    for name, sides, role in (*matrices, out):
        rows, columns = (int(side) for side in sides)  # type: ignore[attr-defined]
        axes = ("heads", "embed") if name == out[0] else ("embed", "heads")
        weights.append(
            matrix(str(name), ("in", rows), ("out", columns), axes, str(role), units=n_heads, module=f"{module}.{name}")
        )
    state = Cache(
        name="state",
        n_heads=n_heads,
        state_bytes=state_elements * state_dtype_bytes + conv_elements * 2.0,
        state_flops=6.0 * state_elements,
    )
    return Mixer(
        kind=form,
        n_heads=n_heads,
        n_kv_heads=n_heads,
        head_dim=head_dim,
        weights=(*weights, *extras(more, module)),
        caches=(state,),
    )
