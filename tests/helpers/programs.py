"""Small programs on virtual CPU devices: their weights laid out as declared, and runs of them."""

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from helpers.made_llamas import Weights
from slicewise.catalog.hf import model_from_config
from slicewise.program.arrays import SCALED, pack, weight_arrays
from slicewise.program.build import Program
from slicewise.program.family import Llama, llama_of
from slicewise.program.numerics import numerics_of
from slicewise.program.quantise import cast, quantise
from slicewise.program.sharding import make_mesh
from slicewise.spec.arrays import Tensor
from slicewise.spec.precision import Precision

EXACT = Precision(weights="fp32", kv="fp32", compute="fp32")
_LAYER = {
    "wq": "self_attn.q_proj.weight",
    "wk": "self_attn.k_proj.weight",
    "wv": "self_attn.v_proj.weight",
    "wo": "self_attn.o_proj.weight",
    "bq": "self_attn.q_proj.bias",
    "bk": "self_attn.k_proj.bias",
    "bv": "self_attn.v_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "w_gate": "mlp.gate_proj.weight",
    "w_up": "mlp.up_proj.weight",
    "w_down": "mlp.down_proj.weight",
    "attention_norm": "input_layernorm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
}
_OUTSIDE = {"embedding": "model.embed_tokens.weight", "lm_head": "lm_head.weight", "final_norm": "model.norm.weight"}


def read(config: Mapping[str, Any]) -> Llama:
    """The model of a config, by way of the project's own reader."""
    return llama_of(model_from_config(dict(config), "made-up", "config.json"), numerics_of(config))


@cache
def mesh(shape: tuple[int, ...] = (1,), split: tuple[int, ...] = (1,)) -> Mesh:
    """A torus of CPU devices, cut by KV heads as `split` says."""
    return make_mesh(np.asarray(jax.devices("cpu")[: math.prod(shape)], dtype=object).reshape(shape), split)


def place(program: Program, argument: int, tree: Any) -> Any:
    """An argument where the program has it, if its arrays are as declared."""

    def put(array: Any, declared: jax.ShapeDtypeStruct) -> jax.Array:
        assert (array.shape, array.dtype) == (declared.shape, declared.dtype)
        return jax.device_put(array, declared.sharding)

    return jax.tree.map(put, tree, program.abstract()[argument])


def laid_out(
    program: Program, llama: Llama, weights: Weights, dtype: str, *, scaled: bool = True, loop: bool = True
) -> Any:
    """Transformers' weights as the program takes them."""
    kept = _kept(_ours(weights), dtype, scaled)

    def filled(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
        declared = weight_arrays(tensors.values(), dtype, program.mesh.shape, scaled=scaled)
        return {name: _filled(kept[f"{prefix}{name}"], array.shape) for name, array in declared.items()}

    def packed(layer: dict[str, Any]) -> dict[str, Any]:
        for parts, name in ((("wq", "wk", "wv"), "wqkv"), (("bq", "bk", "bv"), "bqkv")):
            for suffix in ("", "_scale"):
                found = [layer.pop(f"{part}{suffix}") for part in parts if f"{part}{suffix}" in layer]
                if found:
                    layer[f"{name}{suffix}"] = np.asarray(_packed(found, program.mesh.size))
        return layer

    layers = [packed(filled(llama.layer, f"{index}.")) for index in range(llama.n_layers)]
    stacked = {name: np.stack([layer[name] for layer in layers]) for name in layers[0]} if loop else layers
    return place(program, 0, {**filled(llama.outside, ""), "layers": stacked})


def as_kept(weights: Weights, dtype: str) -> Weights:
    """Weights in float32 that are what a narrow dtype and its scales stand for."""
    kept = {name: np.asarray(array).astype(np.float32) for name, array in _kept(_ours(weights), dtype, True).items()}
    found = {}
    for name, ours in zip(weights, _ours(weights), strict=True):
        scale = kept.get(f"{ours}_scale", np.ones((), np.float32))
        found[name] = kept[ours] * (scale[:, None] if ours == "embedding" and scale.ndim else scale)
        found[name] = found[name].T if _is_turned(name) else found[name]
    return found


def untouched(program: Program) -> Any:
    """A cache that no token was written to, full of what must not be read."""
    filled = jax.tree.map(lambda declared: np.full(declared.shape, 3, declared.dtype), program.abstract()[1])
    return place(program, 1, filled)


def decoded(
    program: Program,
    weights: Any,
    cache: Any,
    tokens: NDArray[np.int32],
    *,
    lengths: Sequence[int] | int = 0,
    slot: int = 0,
) -> tuple[NDArray[np.float32], Any]:
    """Steps that take the tokens [B, steps] one after the other: the logits [B, steps, V], and the cache.

    Args:
        program: of decode.
        weights: as laid out.
        cache: what it holds already.
        tokens: the new ones.
        lengths: tokens that each sequence holds before the first step.
        slot: where the first step writes.
    """
    rows, steps = tokens.shape
    room, slots = program.arguments[2].shape[0], jax.tree.leaves(program.abstract()[1])[0].shape[-2]
    tokens = np.pad(tokens, [(0, room - rows), (0, 0)])
    held = np.pad(np.broadcast_to(np.asarray(lengths, np.int32), (rows,)), (0, room - rows))
    found = []
    for step in range(steps):
        now = (place(program, 2, tokens[:, step]), place(program, 3, held + 1 + step))
        where = place(program, 4, np.asarray((slot + step) % slots, np.int32))
        logits, cache = program.function(weights, cache, *now, where)
        found.append(np.asarray(logits)[:rows])
    return np.stack(found, axis=1), cache


def prefilled(program: Program, weights: Any, tokens: NDArray[np.int32]) -> tuple[NDArray[np.float32], Any]:
    """The prompt's last logits [V], and its cache."""
    logits, cache = program.function(weights, place(program, 1, tokens))
    return np.asarray(logits)[0], cache


def wide(cache: Mapping[str, Any]) -> NDArray[np.float32]:
    """Keys and values of one layer's cache, or of all, as its numbers and scales have them."""
    numbers = np.asarray(cache["kv"].astype(jnp.float32))
    return numbers * np.asarray(cache["kv_scale"].astype(jnp.float32))[..., None] if "kv_scale" in cache else numbers


def alike(kept: NDArray[np.float32], others: NDArray[np.float32], near: float = 2e-5) -> list[int]:
    """The sequences whose caches [layers, 2, B, ...] are the same.

    Two programs that add up in another order may see a number on either side of where a narrow dtype rounds. Such a
    number comes out a step apart, and what follows in its sequence is another thing to compute.
    """
    apart = np.abs(kept - others).max(axis=(0, 1, *range(3, kept.ndim)))
    return [int(row) for row in np.flatnonzero(apart < near)]


def _ours(weights: Weights) -> dict[str, NDArray[np.float32]]:
    """The weights by our names, those of layers as "0.wq", and [inputs, outputs]."""
    names = {theirs: ours for ours, theirs in (_LAYER | _OUTSIDE).items()}
    found = {}
    for name, array in weights.items():
        index, _, place = name.removeprefix("model.layers.").partition(".")
        ours = f"{index}.{names[place]}" if name.startswith("model.layers.") else names[name]
        found[ours] = array.T if _is_turned(name) else array
    return found


def _is_turned(name: str) -> bool:
    return name.endswith(("proj.weight", "lm_head.weight"))


_packed = jax.jit(pack, static_argnums=1)


@partial(jax.jit, static_argnums=(1, 2))
def _kept(ours: dict[str, jax.Array], dtype: str, scaled: bool) -> dict[str, jax.Array]:
    found = {}
    for name, array in ours.items():
        if array.ndim == 1:
            found[name] = cast(array, "bf16" if dtype in SCALED else dtype)
        elif scaled and dtype in SCALED:
            found[name], found[f"{name}_scale"] = quantise(array, dtype, axis=1 if name == "embedding" else 0)
        else:
            found[name] = cast(array, dtype)
    return found


def _filled(array: jax.Array, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.pad(np.asarray(array), [(0, size - has) for size, has in zip(shape, array.shape, strict=True)])
