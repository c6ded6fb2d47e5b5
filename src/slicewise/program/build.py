"""The programs for a mesh: jitted functions, and the arrays that they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from slicewise.errors import InputError
from slicewise.program.arrays import (
    DTYPES,
    SCALED,
    Array,
    Arrays,
    cache_arrays,
    checked_dtypes,
    packed,
    padded,
    stacked,
    weight_arrays,
)
from slicewise.program.decode import decode_step
from slicewise.program.family import Llama
from slicewise.program.lines import INPUTS
from slicewise.program.prefill import prefill_step
from slicewise.program.sharding import ALL, partition
from slicewise.spec.precision import Precision


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program and what it takes.

    Attributes:
        name: decode or prefill.
        sharded: the function of whole arrays, cut over the mesh.
        arguments: the arrays that it takes, trees of declared arrays.
        results: the partitions of what it returns.
        donated: arguments that it takes over, by index: the cache, which it returns changed.
        mesh: where they lie.
    """

    name: str
    sharded: Callable[..., Any] = field(repr=False)
    arguments: tuple[Any, ...] = field(repr=False)
    results: tuple[Any, ...] = field(repr=False)
    donated: tuple[int, ...] = ()
    mesh: Mesh

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The program, ready to run."""
        jitted: Callable[..., Any] = jax.jit(self.sharded, donate_argnums=self.donated)
        return jitted

    def lower(self) -> Any:
        """The program for the compiler, which may choose how each array lies in memory, as a server lets it.

        Left to their usual layout, stacked caches would be turned round before the loop and back after it.
        """

        def free(spec: PartitionSpec) -> Format:
            return Format(Layout.AUTO, NamedSharding(self.mesh, spec))

        def is_spec(value: Any) -> bool:
            return isinstance(value, PartitionSpec)

        given = jax.tree.map(free, _partitions(self.arguments), is_leaf=is_spec)
        returned = jax.tree.map(free, self.results, is_leaf=is_spec)
        jitted = jax.jit(
            self.sharded, donate_argnums=self.donated, in_shardings=given, out_shardings=returned, keep_unused=True
        )
        return jitted.lower(*jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype), self.abstract()))

    def abstract(self) -> tuple[Any, ...]:
        """The arguments as shapes, dtypes and places, without numbers."""
        found: tuple[Any, ...] = jax.tree.map(
            lambda array: array.abstract(self.mesh), self.arguments, is_leaf=_is_array
        )
        return found

    def arrays(self) -> list[Array]:
        """Every array that it takes."""
        return jax.tree.leaves(self.arguments, is_leaf=_is_array)  # type: ignore[no-any-return]


def decode_program(
    llama: Llama,
    precision: Precision,
    mesh: Mesh,
    *,
    batch: int,
    context: int,
    scaled: bool = True,
    loop: bool = False,
) -> Program:
    """The decode step: (weights, cache, tokens [B], lengths [B], slot) to (logits [B, V], cache).

    B and V are filled up to divide over the chips: see `batch`, and `layers.logits`.

    Args:
        llama: the model.
        precision: dtypes of weights and cache; activations have that of compute.
        mesh: the slice, see `sharding.make_mesh`.
        batch: sequences; the cache has room for the next multiple of the ways that cut it.
        context: tokens that each sequence may hold.
        scaled: narrow arrays have scales; without them only their bytes are those of a model.
        loop: layers are a loop over stacked arrays, rather than written out.

    Raises:
        InputError: the model cannot be cut so, or a dtype is not one of the program's.
    """
    _checked(llama, precision, mesh)
    sequences = padded(batch, mesh.shape["z"])
    cache = cache_arrays(llama, precision.kv, sequences, context, scaled=scaled)
    arguments = (
        weights_of(llama, precision, mesh, scaled=scaled, loop=loop),
        _each(cache, llama, loop=loop),
        _numbers((sequences,), ("",)),
        _numbers((sequences,), ("batch",)),
        _numbers((), ()),
    )
    step = partial(
        decode_step,
        llama=llama,
        batch_ways=mesh.shape["z"],
        cache_dtype=precision.kv,
        dtype=DTYPES[precision.compute],
    )
    results = (PartitionSpec(None, ALL), _partitions(arguments[1]))
    sharded = jax.shard_map(step, mesh=mesh, in_specs=_partitions(arguments), out_specs=results, check_vma=False)
    return Program(name="decode", sharded=sharded, arguments=arguments, results=results, mesh=mesh, donated=(1,))


def prefill_program(
    llama: Llama, precision: Precision, mesh: Mesh, *, prompt_tokens: int, scaled: bool = True, loop: bool = False
) -> Program:
    """Prefill of one prompt: (weights, tokens [T]) to (the last token's logits [1, V], cache [2, 1, K, T, H] a layer).

    Args:
        llama: the model.
        precision: dtypes, as for decode.
        mesh: the slice.
        prompt_tokens: T.
        scaled: narrow arrays have scales; without them only their bytes are those of a model.
        loop: layers are a loop over stacked arrays, rather than written out.

    Raises:
        InputError: the model cannot be cut so, or a dtype is not one of the program's.
    """
    _checked(llama, precision, mesh)
    if mesh.shape["z"] > 1 and (llama.n_heads % mesh.size or llama.n_kv_heads != mesh.shape["y"]):
        raise InputError(
            f"--prefill: {llama.n_heads} query heads over {llama.n_kv_heads} KV heads do not lie whole on {mesh.size}"
            " chips; give a slice on which they do"
        )
    arguments = (weights_of(llama, precision, mesh, scaled=scaled, loop=loop), _numbers((prompt_tokens,), ("",)))
    one = cache_arrays(llama, precision.kv, 1, prompt_tokens, scaled=scaled)
    kept = {name: replace(array, axes=("", "", *array.axes[2:])) for name, array in one.items()}
    step = partial(
        prefill_step,
        llama=llama,
        batch_ways=mesh.shape["z"],
        cache_dtype=precision.kv,
        scaled=scaled and precision.kv in SCALED,
        dtype=DTYPES[precision.compute],
    )
    results = (PartitionSpec(None, ALL), _partitions(_each(kept, llama, loop=loop)))
    sharded = jax.shard_map(step, mesh=mesh, in_specs=_partitions(arguments), out_specs=results, check_vma=False)
    return Program(name="prefill", sharded=sharded, arguments=arguments, results=results, mesh=mesh)


def weights_of(llama: Llama, precision: Precision, mesh: Mesh, *, scaled: bool = True, loop: bool = False) -> Any:
    """The weights: those outside the layers by name, and "layers", a list of those of each, or stacked for a loop."""
    shape = mesh.shape
    outside: dict[str, Any] = dict(weight_arrays(llama.outside.values(), precision.weights, shape, scaled=scaled))
    layer = packed(weight_arrays(llama.layer.values(), precision.weights, shape, scaled=scaled))
    return {**outside, "layers": _each(layer, llama, loop=loop)}


def _each(arrays: Arrays, llama: Llama, *, loop: bool) -> Any:
    return stacked(arrays, llama.n_layers) if loop else [arrays] * llama.n_layers


def put_prompt(cache: list[Arrays], prompt: list[Arrays], row: int, slot: int) -> list[Any]:
    """The decode step's cache with a prompt's in one of its rows, so that the prompt's last token is before `slot`.

    Args:
        cache: of each layer, arrays [2, B, K, slots, ...]; a list of them, as programs without a loop take it.
        prompt: of each layer, arrays [2, 1, K, T, ...] with T up to the slots.
        row: the sequence.
        slot: where the next step writes.
    """

    def put(old: Any, new: Any) -> Any:
        room = [(0, 0)] * new.ndim
        room[3] = (0, old.shape[3] - new.shape[3])
        turned = jnp.roll(jnp.pad(new, room), slot - new.shape[3], axis=3)
        return old.at[:, row].set(turned[:, 0])

    return jax.tree.map(put, cache, prompt)  # type: ignore[no-any-return]


def _numbers(shape: tuple[int, ...], axes: tuple[str, ...]) -> Array:
    return Array(shape=shape, axes=axes, dtype="int32", line=INPUTS)


def _partitions(tree: Any) -> Any:
    return jax.tree.map(lambda array: partition(array.axes), tree, is_leaf=_is_array)


def _is_array(value: Any) -> bool:
    return isinstance(value, Array)


def _checked(llama: Llama, precision: Precision, mesh: Mesh) -> None:
    checked_dtypes(precision)
    for name, heads in (("query", llama.n_heads), ("KV", llama.n_kv_heads)):
        columns = heads * llama.head_dim
        if columns % mesh.size:
            raise InputError(
                f"{heads} {name} heads of {llama.head_dim} are {columns:,} columns, which do not divide over"
                f" {mesh.size} chips; give a slice of which they are a multiple"
            )
