"""Tables of compiled operations: what XLA:TPU expects of the operations of a step, by generation and dtype.

`benchmarks/compile_operations.py` writes the files, `catalog/data/efficiency/v5e.toml` and so on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from slicewise.errors import CatalogError
from slicewise.spec.chip import Chip
from slicewise.spec.compiled import CompiledOperations
from slicewise.spec.precision import Precision

_CLOSEST = {
    "fp32": ("bf16",),
    "fp16": ("bf16",),
    "fp8": ("int8",),
    "int4": ("int8",),
    "fp4": ("int4", "int8"),
    "nvfp4": ("int4", "int8"),
    "mxfp4": ("int4", "int8"),
}
"""Dtypes that are taken for one that was not compiled, the first that was."""


@cache
def compiled_table(name: str) -> Mapping[str, Any] | None:
    """The table of a chip as its file has it; None where there is none."""
    file = resources.files("slicewise.catalog").joinpath("data", "efficiency", f"{name}.toml")
    if not file.is_file():
        return None
    parsed = tomllib.loads(file.read_text(encoding="utf-8"))
    return parsed if "matmul" in parsed else None


@cache
def compiled_operations(name: str, precision: Precision) -> CompiledOperations | None:
    """The operations of a chip in the dtypes of a deployment, or the closest that were compiled; None without a table.

    Raises:
        CatalogError: the table lacks a figure, or its figures fall where they must rise.
    """
    table = compiled_table(name)
    if table is None:
        return None
    try:
        return _picked(name, table, precision)
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise CatalogError(f"efficiency/{name}.toml: {error}") from error


def compiled_inputs(chip: Chip, precision: Precision) -> dict[str, Any] | None:
    """The inputs of the formulas in `costs/compiled.py`; None where the chip has no table, or no known clock."""
    found = compiled_operations(chip.name, precision)
    if found is None or chip.clock_hz is None:
        return None
    # v4's compiler describes a chip as two devices, each a core of its own, and programs see the chip as one.
    devices = (compiled_table(chip.name) or {}).get("devices_per_chip", chip.devices_per_chip)
    return {"compiled": found, "clock_hz": chip.clock_hz, "devices_per_chip": devices}


def _picked(name: str, table: Mapping[str, Any], precision: Precision) -> CompiledOperations:
    matmul, caches, layer, prefill = (table[key] for key in ("matmul", "cache", "layer", "prefill"))
    pair = _pair(precision.weights, precision.compute, matmul["element_cycles"])
    kv = next(dtype for dtype in (precision.kv, *_CLOSEST.get(precision.kv, ())) if dtype in caches)
    weights, compute = pair.split("-")
    return CompiledOperations(
        chip=name,
        versions=table["versions"],
        weights=weights,
        compute=compute,
        kv=kv,
        operation_cycles=matmul["operation_cycles"],
        rows=tuple(matmul["rows"]),
        element_cycles=tuple(matmul["element_cycles"][pair]),
        kv_element_cycles=caches[kv]["element_cycles"],
        score_cycles=caches[kv]["score_cycles"],
        few_score_cycles=caches[kv]["few_score_cycles"],
        softmax_cycles=caches[kv]["softmax_cycles"],
        write_cycles=caches[kv]["write_cycles"],
        row_cycles=caches[kv]["row_cycles"],
        layer_cycles=layer["layer_cycles"],
        activation_cycles=layer["activation_cycles"],
        fetched_bytes=layer["fetched_bytes"],
        prefill_activation_cycles=prefill["activation_cycles"],
        prefill_score_cycles=prefill["score_cycles"],
    )


def _pair(weights: str, compute: str, known: Mapping[str, Any]) -> str:
    """The pair of dtypes that were compiled closest to these: the compute dtype first, then that of the weights."""
    of_compute = (compute, *_CLOSEST.get(compute, ()))
    of_weights = (weights, *_CLOSEST.get(weights, ()))
    tried = [f"{stored}-{multiplied}" for multiplied in of_compute for stored in (*of_weights, multiplied)]
    return next(pair for pair in (*tried, "bf16-bf16") if pair in known)
