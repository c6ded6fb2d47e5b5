"""What mixes tokens in a layer, each kind with its weights and cache; here, softmax attention over heads.

A mixer is a list of declared arrays. A new kind is a new function, here or beside; no formula learns of it. Latents are
in `latent`, attention to chosen or compressed tokens in `sparse`, and recurrences in `recurrences`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from slicewise.errors import InputError
from slicewise.spec.arrays import Cache, Tensor, matrix, under, vector

Extra = Sequence[object]
"""A further small array: (name, size or [rows, columns], role); a fourth part is its axes where it may be split."""

USUAL: Mapping[str, str] = MappingProxyType({})
"""Places of projections that are called what they are in most checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """One kind of token mixing.

    Attributes:
        kind: full, sliding, chunked, latent, sparse, compressed, linear, state-space or linear map.
        n_heads: N, query heads (heads of the state in a recurrence).
        n_kv_heads: K, key and value heads; 1 for a latent.
        head_dim: H, width of a key.
        weights: its arrays, of one layer.
        caches: what it keeps of a sequence, of one layer.
    """

    kind: str
    n_heads: int
    n_kv_heads: int
    head_dim: int
    weights: tuple[Tensor, ...]
    caches: tuple[Cache, ...]


def extras(items: Sequence[Extra], module: str = "") -> tuple[Tensor, ...]:
    """Further small arrays of a layer, mostly never split: norms of queries and keys, sinks, gates, biases."""
    found = []
    for name, size, role, *split in items:
        sides = size if isinstance(size, list | tuple) else (size,)
        dims = tuple((f"dim_{i}", int(side)) for i, side in enumerate(sides))
        axes = tuple(split[0]) if split else ("",) * len(dims)  # type: ignore[arg-type]
        found.append(Tensor(name=str(name), dims=dims, axes=axes, role=str(role), module=under(module, str(name))))
    return tuple(found)


def attention(
    *,
    d_model: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    value_dim: int = 0,
    window: float = math.inf,
    chunked: bool = False,
    qkv_bias: bool = False,
    out_bias: bool = False,
    gated: bool = False,
    shared_kv: bool = False,
    earlier_kv: bool = False,
    module: str = "self_attn",
    places: Mapping[str, str] = USUAL,
    more: Sequence[Extra] = (),
) -> Mixer:
    """Softmax attention over the keys and values of heads: all tokens, the last `window`, or those of a chunk.

    Args:
        d_model: D.
        n_heads: N.
        n_kv_heads: K.
        head_dim: H, width of a key.
        value_dim: width of a value where it is not that of a key.
        window: most tokens attended to.
        chunked: the window is a chunk that begins anew, not one that slides.
        qkv_bias: the projections in have biases.
        out_bias: the projection out has one.
        gated: the query projection makes a gate for the output too, and is twice as wide.
        shared_kv: values are the projected keys, so there is no value projection; both are kept.
        earlier_kv: keys and values are those of an earlier layer, so it projects and keeps none, and reads them again.
        module: where the projections are in a checkpoint, below the layer.
        places: where q, k, v and o are below the module, if not in q_proj, k_proj, v_proj and o_proj.
        more: further small arrays.

    Raises:
        InputError: query heads do not divide over KV heads.
    """
    for key, size in (("n_heads", n_heads), ("n_kv_heads", n_kv_heads), ("head_dim", head_dim)):
        if size < 1:
            raise InputError(f"{key} is {size}; it must be at least 1")
    if n_heads % n_kv_heads:
        raise InputError(
            f"{n_heads} query heads do not divide over {n_kv_heads} KV heads;"
            " check num_attention_heads and num_key_value_heads"
        )
    values = value_dim or head_dim
    width = ("d_model", d_model)
    queries, keys = ("n_heads*head_dim", n_heads * head_dim), ("n_kv_heads*head_dim", n_kv_heads * head_dim)
    vs, out = (
        ("n_kv_heads*value_dim" if value_dim else keys[0], n_kv_heads * values),
        ("n_heads*head_dim", n_heads * values),
    )
    asked = ("n_heads*head_dim*2", 2 * n_heads * head_dim) if gated else queries

    def put(name: str, rows: tuple[str, int], columns: tuple[str, int], axes: tuple[str, str], units: int) -> Tensor:
        place = under(module, places.get(name, f"{name}_proj"))
        return matrix(f"w{name}", rows, columns, axes, "attention", units=units, module=place)

    sides = {"q": (asked, "heads", n_heads), "k": (keys, "kv_heads", n_kv_heads), "v": (vs, "kv_heads", n_kv_heads)}
    projected = ("q",) if earlier_kv else ("q", "k") if shared_kv else ("q", "k", "v")
    weights = [put(name, width, sides[name][0], ("embed", sides[name][1]), sides[name][2]) for name in projected]
    weights.append(put("o", out, width, ("heads", "embed"), n_heads))
    if qkv_bias:
        weights += [
            vector(f"b{name}", sides[name][0], "bias", sides[name][1], units=sides[name][2]) for name in projected
        ]
    if out_bias:
        weights.append(vector("bo", width, "bias"))
    flops = 2.0 * n_heads * (head_dim + values)
    cache = Cache(
        name="k and v",
        elements_per_token=0 if earlier_kv else n_kv_heads * (head_dim + values),
        reread_elements_per_token=n_kv_heads * (head_dim + values) if earlier_kv else 0,
        n_heads=n_kv_heads,
        window=window,
        head_dim=head_dim,
        value_dim=values,
        decode_flops_per_token=flops,
        prefill_flops_per_token=flops,
        query_elements=n_heads * head_dim,
    )
    kind = "full" if window == math.inf else "chunked" if chunked else "sliding"
    return Mixer(
        kind=kind,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        weights=(*weights, *extras(more, module)),
        caches=(cache,),
    )


def linear_map(*, d_model: int, bias: bool = False, module: str = "self_attn", more: Sequence[Extra] = ()) -> Mixer:
    """One matrix in the place of attention: it mixes no tokens and keeps nothing.

    Args:
        d_model: D.
        bias: the matrix has a bias.
        module: where the matrix is in a checkpoint, below the layer.
        more: further small arrays.
    """
    sides = ("d_model", d_model), ("d_model", d_model)
    weights = [matrix("w_linear", *sides, ("embed", ""), "attention", module=module)]
    if bias:
        weights.append(vector("b_linear", sides[1], "bias"))
    return Mixer(kind="linear map", n_heads=1, n_kv_heads=1, head_dim=0, weights=(*weights, *extras(more)), caches=())
