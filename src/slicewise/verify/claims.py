"""What the plan claims of a program, in the compiler's terms: bytes, collectives and FLOPs of one chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slicewise.costs.decode import ALL_GATHERS_PER_LAYER, ALL_TO_ALLS_PER_LAYER
from slicewise.planner.deployment import Deployment
from slicewise.program.lines import CACHE, SCALES, WEIGHTS
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.spec.tensors import weight_tensors
from slicewise.units import show


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the program declares, of one chip.

    Attributes:
        line_bytes: bytes by ledger line, with the padding of an even cut and without that of tiles. [B]
        vector_bytes: bytes of norms and biases, which no dtype narrows. [B]
        sequences: sequences that the program has room for.
        head_shards: Y, the mesh's ways over the KV heads.
        batch_shards: Z, its ways over the batch.
        block_queries: queries that a prompt attends with at once.
    """

    line_bytes: Mapping[str, float]
    vector_bytes: float
    sequences: int
    head_shards: int
    batch_shards: int
    block_queries: int

    @property
    def all_axes(self) -> str:
        """The axes of a collective over all devices, as they are named."""
        return " × ".join(name for name, size in (("y", self.head_shards), ("z", self.batch_shards)) if size > 1)


@dataclass(frozen=True, kw_only=True)
class Claims:
    """The plan's figures for one chip and one step, and why a compiler may see others.

    Attributes:
        devices_per_chip: programs are compiled for devices, and a chip may have several.
        all_axes: the mesh axes longer than 1, as the compiler's collectives name them.
        compute: dtype of activations.
        line_bytes: bytes of weights, cache and their scales. [B]
        declared_bytes: the same as the program declares them, before tiles fill anything up. [B]
        beside: what else the plan counts, in words.
        beside_bytes: its bytes. [B]
        gather_bytes: bytes of a layer's AllGathers and ReduceScatters. [B]
        exchange_bytes: bytes of a layer's AllToAlls. [B]
        matmul_flops: FLOPs of the matrices. [FLOP]
        attention_flops: FLOPs of scores and weighted values. [FLOP]
        why: reasons by what differs: a ledger line, beside, gathers, exchanges, matmuls, attention.
    """

    n_layers: int
    devices_per_chip: int
    all_axes: str
    compute: str
    line_bytes: Mapping[str, float]
    declared_bytes: Mapping[str, float]
    beside: str
    beside_bytes: float
    gather_bytes: float
    exchange_bytes: float
    matmul_flops: float
    attention_flops: float
    why: Mapping[str, str]

    @property
    def total_bytes(self) -> float:
        """All that the plan counts. [B]"""
        return sum(self.line_bytes.values()) + self.beside_bytes

    @property
    def scale_bytes(self) -> float:
        """What of it the plan's own ledger does not have: the program's scales. [B]"""
        return sum(size for line, size in self.line_bytes.items() if line in SCALES)


def decode_claims(deployment: Deployment, declared: Declared, batch: int) -> Claims:
    """The plan's claims of a decode step."""
    n_chips = deployment.slice.n_chips
    names = ("weight_bytes", "kv_bytes", "activation_bytes", "matmul_flops", "attention_flops")
    of_chip = {name: float(value) / n_chips for name, value in deployment.evaluate(names, batch=batch).items()}
    moved, devices = _moved(deployment, batch), deployment.slice.chip.devices_per_chip
    rows = (
        f"the program has {declared.sequences:,} rows, whole rounds of the {declared.batch_shards} ways that the batch"
        f" is cut, for {batch:,}"
        if declared.sequences != batch
        else ""
    )
    finer = declared.batch_shards != deployment.layout.batch_shards
    return Claims(
        n_layers=deployment.model.n_layers,
        devices_per_chip=devices,
        all_axes=declared.all_axes,
        compute=deployment.precision.compute,
        line_bytes={WEIGHTS: of_chip["weight_bytes"], CACHE: of_chip["kv_bytes"], **_scales(declared)},
        declared_bytes=declared.line_bytes,
        beside="logits and activations",
        beside_bytes=of_chip["activation_bytes"],
        gather_bytes=moved["all_gather_bytes"] * ALL_GATHERS_PER_LAYER if n_chips > 1 else 0.0,
        exchange_bytes=moved.get("all_to_all_bytes", 0.0) * ALL_TO_ALLS_PER_LAYER,
        matmul_flops=of_chip["matmul_flops"],
        attention_flops=of_chip["attention_flops"],
        why={
            WEIGHTS: _why_weights(deployment, declared, of_chip["weight_bytes"]),
            CACHE: rows,
            "gathers": rows,
            "exchanges": sentences(
                f"the {devices} devices of a chip exchange, too" if finer else "",
                "new keys and values change places with the queries: 2 K / N more in the first AllToAll",
                rows,
            ),
            "attention": rows,
            "matmuls": sentences(rows, _why_matmuls(deployment, declared, of_chip["weight_bytes"])),
        },
    )


def prefill_claims(deployment: Deployment, declared: Declared) -> Claims:
    """The plan's claims of one prompt's prefill."""
    n_chips = deployment.slice.n_chips
    names = ("weight_bytes", "prefill_matmul_flops", "prefill_attention_flops", "prefill_all_gather_bytes")
    found = {name: float(value) for name, value in deployment.evaluate(names, batch=1).items()}
    per_chip = found["weight_bytes"] / n_chips
    return Claims(
        n_layers=deployment.model.n_layers,
        devices_per_chip=deployment.slice.chip.devices_per_chip,
        all_axes=declared.all_axes,
        compute=deployment.precision.compute,
        line_bytes={WEIGHTS: per_chip, **_scales(declared)},
        declared_bytes=declared.line_bytes,
        beside="activations and the prompt's cache",
        beside_bytes=0.0,
        gather_bytes=found["prefill_all_gather_bytes"] * ALL_GATHERS_PER_LAYER if n_chips > 1 else 0.0,
        exchange_bytes=0.0,
        matmul_flops=found["prefill_matmul_flops"] / n_chips,
        attention_flops=found["prefill_attention_flops"] / n_chips,
        why={
            WEIGHTS: _why_weights(deployment, declared, per_chip),
            "beside": "the plan's ledger has no prefill",
            "exchanges": "chips that share a KV head gather its keys and values, which the plan leaves out",
            "attention": _in_blocks(deployment.workload.prompt_tokens, declared.block_queries),
            "matmuls": _why_matmuls(deployment, declared, per_chip),
        },
    )


def sentences(*parts: str) -> str:
    """Those that are not empty, as one."""
    return "; ".join(part for part in parts if part)


def _scales(declared: Declared) -> dict[str, float]:
    return {line: size for line, size in declared.line_bytes.items() if line in SCALES and size}


def _moved(deployment: Deployment, batch: int) -> dict[str, float]:
    names = ["all_gather_bytes"] + (["all_to_all_bytes"] if deployment.layout.batch_shards > 1 else [])
    inputs = {**deployment.inputs, "batch": batch}
    return {name: float(deployment.graph.evaluate([name], inputs)[name]) for name in names}


def _why_weights(deployment: Deployment, declared: Declared, planned: float) -> str:
    if deployment.params is not None:
        return _of_params(deployment.params)
    more = declared.vector_bytes - _planned_vectors(deployment)
    return sentences(
        f"norms are whole on every chip, and no vector narrower than 16 bits: {show(more, 'B')} more"
        if more >= 1
        else "",
        _filled_up(deployment, declared, planned),
    )


def _why_matmuls(deployment: Deployment, declared: Declared, planned: float) -> str:
    if deployment.params is not None:
        return _of_params(deployment.params)
    return _filled_up(deployment, declared, planned)


def _of_params(params: float) -> str:
    return f"the plan takes the {params:,.0f} parameters that were given"


def _filled_up(deployment: Deployment, declared: Declared, planned: float) -> str:
    matrices = declared.line_bytes[WEIGHTS] - declared.vector_bytes
    filled = matrices - (planned - _planned_vectors(deployment))
    return f"matrices that do not cut evenly are filled up: {show(filled, 'B')} more" if filled >= 1 else ""


def _planned_vectors(deployment: Deployment) -> float:
    """Bytes of norms and biases of a chip as the plan counts them: in the weights' dtype, and shared out evenly. [B]"""
    vectors = sum(tensor.size for tensor in weight_tensors(deployment.model) if tensor.role in ("norm", "bias"))
    return vectors * BYTES_PER_ELEMENT[deployment.precision.weights] / deployment.slice.n_chips


def _in_blocks(tokens: int, block: int) -> str:
    """Why scores in blocks are more than half of a square."""
    starts = range(0, tokens, block)
    computed = sum((min(start + block, tokens) - start) * min(start + block, tokens) for start in starts)
    factor = computed / (tokens * tokens / 2)
    blocks = "one block of queries" if len(starts) == 1 else f"{len(starts)} blocks of queries"
    return f"{blocks}, each to all keys up to its end: {factor:.4f} of the plan's half square"
