"""Operations of a decode step and of a prefill as programs for a TPU slice, and the cycles that its compiler gives.

Four kinds of programs, each small enough to compile in seconds:

- matmul: a chain of products, so that the compiler fetches later matrices to VMEM while earlier ones are multiplied. A
  barrier after each keeps two products from becoming one operation.
- attention: the program's own attention over caches that fit into VMEM, a few in a row.
- decode: layers of the program's own decode step, cut over four chips, for the small operations between the matrices.
- prefill: layers of the program's own prefill.

Everything that comes back is of one device.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import load_slice
from slicewise.program.arrays import DTYPES, SCALED
from slicewise.program.attention import cached_attention
from slicewise.program.build import Program, decode_program, prefill_program
from slicewise.program.decode import SCOPES
from slicewise.program.family import Llama, llama_of
from slicewise.spec.model import dense_model
from slicewise.spec.precision import Precision
from slicewise.verify.devices import mesh_of, tpu_devices
from slicewise.verify.hlo import Module, parse, scope_of
from slicewise.verify.hlo_flops import flops
from slicewise.verify.hlo_text import arrays
from slicewise.verify.hlo_work import prefetch_bytes, work

ONE_CHIP = {"v4": "1x1x1", "v5e": "1x1", "v6e": "1x1", "v5p": "1x1x1", "tpu7x": "1x1x1"}
FOUR_CHIPS = {"v4": "2x2x1", "v5e": "2x2", "v6e": "2x2", "v5p": "2x2x1", "tpu7x": "2x2x1"}
CORES = {"v4": 2}
"""Devices that the compiler makes of a chip which programs see as one."""
MATRICES = ((4096, 2048), (2048, 8192), (8192, 1024), (1024, 4096))
"""Inputs and columns of the matrices of a chain: as they come on a chip of a slice, and one after the other."""
CACHES = 4
LAYERS = 4
VOCABULARY = 2048
FLOAT_COMPUTE = "bf16"


class Matmul(NamedTuple):
    """A chain of products of [rows, inputs] and the matrices, twice."""

    rows: int
    weights: str
    compute: str


class Attention(NamedTuple):
    """Attention of one new token of each sequence to its cache."""

    batch: int
    kv_heads: int
    group: int
    slots: int
    head_dim: int
    kv: str


class Decode(NamedTuple):
    """Layers of a decode step; heads and width of the feed-forward are those of a device."""

    batch: int
    d_model: int
    d_ff: int
    heads: int
    kv_heads: int
    context: int
    kv: str


class Prefill(NamedTuple):
    """Layers of the prefill of one prompt; heads and width of the feed-forward are those of a device."""

    tokens: int
    d_model: int
    d_ff: int
    heads: int
    kv_heads: int


Point = Matmul | Attention | Decode | Prefill
Reading = list[dict[str, Any]]
"""Operations that are alike: what they are, their cycles, how often they run, and bytes that they read from HBM.

Then FLOPs by scope, and bytes that are fetched from HBM ahead of their use.
"""


def read(chip: str, point: Point) -> Reading:
    """What the compiler says of a point, compiled now."""
    if isinstance(point, Matmul):
        return _matmul(chip, point)
    if isinstance(point, Attention):
        return _attention(chip, point)
    return _layers(chip, point)


def _matmul(chip: str, point: Matmul) -> Reading:
    x_dtype = DTYPES[point.compute]
    added_up = jnp.int32 if point.compute == "int8" else jnp.float32

    def chain(x: jax.Array, *matrices: jax.Array) -> jax.Array:
        for matrix in matrices:
            y = jnp.einsum("bd,df->bf", x, matrix.astype(x.dtype), preferred_element_type=added_up)
            x = jax.lax.optimization_barrier(y.astype(x_dtype))
        return x

    text = _compiled(chip, chain, ((point.rows, MATRICES[0][0]), x_dtype), *_twice(point.weights))
    module = parse(text)
    found = []
    for each in work(module, lambda _: ""):
        shapes = _operand_shapes(module, each.name)
        found += [
            {"inputs": shape[0], "columns": shape[1], "cycles": each.cycles, "hbm_bytes": each.hbm_bytes}
            for shape in MATRICES
            if shape in shapes and (point.rows, shape[0]) in shapes  # which activations of the same shape are not
        ]
    return found


def _twice(dtype: str) -> list[tuple[tuple[int, int], Any]]:
    return [(shape, DTYPES[dtype]) for shape in (*MATRICES, *MATRICES)]


def _operand_shapes(module: Module, name: str) -> list[tuple[int, ...]]:
    for computation in module.computations.values():
        made = computation.instructions.get(name)
        if made and not module.is_fused(computation.name):
            return [arrays(computation.instructions[each].shape)[0].dims for each in made.operands]
    return []


def _attention(chip: str, point: Attention) -> Reading:
    parts = 2 if point.kv in SCALED else 1

    def chain(q: jax.Array, held: jax.Array, *caches: jax.Array) -> jax.Array:
        for at in range(0, len(caches), parts):
            one = dict(zip(("kv", "kv_scale"), caches[at : at + parts], strict=False))
            q = jax.lax.optimization_barrier(cached_attention(q, one, held))
        return q

    shape = (2, point.batch, point.kv_heads, point.slots, point.head_dim)
    one = [(shape, DTYPES[point.kv]), (shape[:-1], DTYPES[FLOAT_COMPUTE])][:parts]
    queries = ((point.batch, point.kv_heads * point.group, point.head_dim), DTYPES[FLOAT_COMPUTE])
    text = _compiled(chip, chain, queries, ((point.batch, point.slots), jnp.bool_), *one * CACHES)
    return _alike(parse(text))


def _layers(chip: str, point: Decode | Prefill) -> Reading:
    slice_ = load_slice(f"{chip}:{FOUR_CHIPS[chip]}")
    slice_ = replace(slice_, chip=replace(slice_.chip, devices_per_chip=CORES.get(chip, slice_.chip.devices_per_chip)))
    devices = tpu_devices(slice_)
    llama = _llama(point, devices.size)
    mesh = mesh_of(slice_, devices, llama.n_kv_heads)
    program: Program
    if isinstance(point, Decode):
        precision = Precision(weights="int8", kv=point.kv)
        program = decode_program(llama, precision, mesh, batch=point.batch, context=point.context)
    else:
        program = prefill_program(llama, Precision(), mesh, prompt_tokens=point.tokens)
    return _alike(parse(program.lower().compile().as_text()))


def _llama(point: Decode | Prefill, n_devices: int) -> Llama:
    return llama_of(
        dense_model(
            name="made",
            n_layers=LAYERS,
            d_model=point.d_model,
            d_ff=point.d_ff * n_devices,
            n_heads=point.heads * n_devices,
            n_kv_heads=point.kv_heads * n_devices,
            head_dim=128,
            vocab_size=VOCABULARY,
            tied_embeddings=False,
        )
    )


def _alike(module: Module) -> Reading:
    """Operations by scope and expression, those with the same cycles counted together."""
    op_names = {
        instruction.name: instruction.op_name
        for name in module.times
        for instruction in module.computations[name].instructions.values()
    }
    counts: Counter[tuple[str, str, float, float]] = Counter()
    for each in work(module, partial(scope_of, scopes=SCOPES)):
        what = "/".join(op_names[each.name].split("/")[-2:])
        counts[each.scope, what, each.cycles, each.hbm_bytes] += each.times
    spent = flops(module, partial(scope_of, scopes=SCOPES))
    found: Reading = [
        {"scope": scope, "what": what, "cycles": cycles, "hbm_bytes": hbm_bytes, "times": times}
        for (scope, what, cycles, hbm_bytes), times in counts.items()
    ]
    fetched = prefetch_bytes(module, partial(scope_of, scopes=SCOPES))
    return [
        *found,
        *({"scope": scope, "flops": value} for scope, value in spent.items()),
        *({"scope": scope, "fetched_bytes": value} for scope, value in fetched.items()),
    ]


def _compiled(chip: str, function: Any, *arguments: tuple[tuple[int, ...], Any]) -> str:
    given = [jax.ShapeDtypeStruct(shape, dtype, sharding=_device(chip)) for shape, dtype in arguments]
    text: str = jax.jit(function).lower(*given).compile().as_text()
    return text


@cache
def _device(chip: str) -> SingleDeviceSharding:
    name = f"{find_chip(chip).name}:{ONE_CHIP[chip]}"
    described = topologies.get_topology_desc(platform="tpu", topology_name=name, chips_per_host_bounds=(1, 1, 1))
    return SingleDeviceSharding(described.devices[0])
