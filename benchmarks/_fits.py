"""A table's few numbers out of the compiler's cycles, and how well they give these back.

Cycles of an operation that reads HBM itself hold the transfer as well. How many cycles the compiler takes for a byte is
seen where the same operation reads HBM in one place and VMEM in another; so much is taken off.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from _operations import CACHES, LAYERS, Attention, Decode, Matmul, Point, Prefill
from numpy.typing import NDArray

from slicewise.program.attention import PROMPT_BLOCK

FEW_ROWS = 64
"""Rows up to which what an operation costs beside its weights is seen best."""
FEW_SIZES = 2
FETCHED = 0.45
"""Bytes an element below which it is not the matrix that is read from HBM, but its inputs."""
FLOAT = "bf16"
PROJECTION = "bd,df->bf/dot_general"
PRODUCT = "/dot_general"
PRODUCTS = 2
"""Of attention: scores, and weighted values."""
SUBLANES = 8
DIGITS = 3
OPERATIONS = {"attention", "mlp"}

Readings = Mapping[Point, list[dict[str, Any]]]
Table = dict[str, Any]
Off = dict[str, list[float]]
"""By part of the table, what it gives over what the compiler gave, less 1, at each point."""


def table_of(readings: Readings) -> tuple[Table, Off]:
    """The numbers of a chip, and how far they are off at each point."""
    byte_cycles = _byte_cycles(readings)
    off: Off = defaultdict(list)
    table: Table = {
        "matmul": _matmul(readings, byte_cycles, off),
        "cache": _cache(readings, off),
        "layer": _layer(readings, off),
        "prefill": _prefill(readings, off),
    }
    return table, off


def _byte_cycles(readings: Readings) -> float:
    """Cycles of the transfer of a byte, as the compiler has it in the attention over bf16 caches."""
    found = []
    for point, reading in readings.items():
        if isinstance(point, Attention) and point.kv == FLOAT:
            by_what: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for each in _timed(reading):
                by_what[each["what"]].append(each)
            for alike in by_what.values():
                fast = [each["cycles"] for each in alike if not each["hbm_bytes"]]
                slow = [each for each in alike if each["hbm_bytes"]]
                found += [(each["cycles"] - min(fast)) / each["hbm_bytes"] for each in slow if fast]
    return statistics.median(found)


def _matmul(readings: Readings, byte_cycles: float, off: Off) -> Table:
    ops = _products(readings, byte_cycles)
    fixed = [
        _line(np.stack([np.ones_like(sizes), sizes], axis=1), cycles)[0]
        for (_, rows), (sizes, cycles) in ops.items()
        if rows <= FEW_ROWS and len(set(sizes)) > FEW_SIZES
    ]
    operation = round(statistics.median(fixed))
    found = matmul_table(readings, operation, byte_cycles)
    for (pair, rows), (sizes, cycles) in ops.items():
        off[f"matmul {pair}"] += list((operation + found[pair][rows] * sizes) / cycles - 1)
    rows = sorted({rows for _, rows in ops})
    return {
        "operation_cycles": operation,
        "rows": rows,
        "element_cycles": {pair: [_short(of_rows[each]) for each in rows] for pair, of_rows in found.items()},
    }


def matmul_table(readings: Readings, operation: float, byte_cycles: float = 0.0) -> dict[str, dict[int, float]]:
    """Cycles of a matrix's element, by pair of dtypes and number of rows.

    More rows never take less, and never more than in proportion: where the compiler's shapes of blocks have it
    otherwise, the nearest that is so.

    Args:
        readings: of the points.
        operation: cycles of a matmul beside its elements.
        byte_cycles: of the transfer of a byte, taken off where HBM is read.
    """
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for (pair, rows), (sizes, cycles) in sorted(_products(readings, byte_cycles).items()):
        element = statistics.median((cycles - operation) / sizes)
        found[pair][rows] = max(element, *found[pair].values(), 0.0) if found[pair] else element
    for of_rows in found.values():
        rising = sorted(of_rows)
        for fewer, more in zip(rising[-2::-1], rising[:0:-1], strict=True):
            of_rows[fewer] = max(of_rows[fewer], of_rows[more] * fewer / more)
    return found


def _products(readings: Readings, byte_cycles: float) -> dict[tuple[str, int], tuple[NDArray[np.float64], ...]]:
    """Elements and cycles of the matmuls that find their matrix in VMEM, by pair of dtypes and rows.

    Of a chain's two products with matrices of one shape the faster one counts: the last writes its result to HBM.
    """
    ops: dict[tuple[str, int], dict[tuple[int, int], float]] = defaultdict(dict)
    for point, reading in readings.items():
        if isinstance(point, Matmul):
            of_point = ops[f"{point.weights}-{point.compute}", point.rows]
            for each in reading:
                shape = each["inputs"], each["columns"]
                if each["hbm_bytes"] < shape[0] * shape[1] * FETCHED:
                    core = each["cycles"] - each["hbm_bytes"] * byte_cycles
                    of_point[shape] = min(core, of_point.get(shape, core))
    return {
        key: (np.asarray([float(a * b) for a, b in found]), np.asarray(list(found.values())))
        for key, found in ops.items()
        if found
    }


def _cache(readings: Readings, off: Off) -> Table:
    found: Table = {}
    for kv in dict.fromkeys(point.kv for point in readings if isinstance(point, Attention)):
        compiled = kv if kv == FLOAT else "int8"
        beside, element = _elements(readings, kv, off)
        # What is narrow is widened first, and takes no less.
        element = max(element, found[FLOAT]["element_cycles"] if FLOAT in found else 0.0)
        softmax, score, few_score, softmax_row = _softmax(readings, compiled, off)
        write, write_row = _write(readings, compiled, off)
        found[kv] = {
            "element_cycles": _short(element),
            "score_cycles": _short(score),
            "few_score_cycles": _short(few_score),
            "softmax_cycles": round(softmax + beside),
            "write_cycles": round(write),
            "row_cycles": _short(softmax_row + write_row),
        }
    return found


def _elements(readings: Readings, kv: str, off: Off) -> tuple[float, float]:
    """Scores and weighted values of a layer: what they cost at all, and an element of the cache.

    Only what reads the cache from VMEM counts. Where that is one of the two, the other is taken to cost the same.
    """
    sizes, cycles = [], []
    for point, reading in readings.items():
        if isinstance(point, Attention) and point.kv == kv:
            size = float(point.batch * point.kv_heads * point.slots * point.head_dim)
            products = [
                min(each["cycles"] for each in alike if each["hbm_bytes"] < size * FETCHED)
                for alike in _by_kind(each for each in _timed(reading) if each["what"].endswith(PRODUCT))
                if sum(each["times"] for each in alike) >= CACHES
                and any(each["hbm_bytes"] < size * FETCHED for each in alike)
            ]
            if products:
                sizes.append((1.0, PRODUCTS * size))
                cycles.append(PRODUCTS * statistics.mean(products))
    fixed, element = _line(np.asarray(sizes), np.asarray(cycles))
    off[f"cache {kv}"] += list(np.asarray(sizes) @ (fixed, element) / cycles - 1)
    return fixed, element


def _softmax(readings: Readings, kv: str, off: Off) -> NDArray[np.float64]:
    """What a layer's softmax costs at all, a score, one where few queries share a KV head, and a KV head."""
    sizes, cycles = [], []
    for point, reading in readings.items():
        if not isinstance(point, Attention | Decode) or point.kv != kv:
            continue
        ours = [each for each in _timed(reading) if isinstance(point, Attention) or each["scope"] == "dot_product"]
        rest = [each for each in ours if not each["what"].endswith(PRODUCT)]
        if not _stands_alone(ours, LAYERS) or any(each["hbm_bytes"] for each in rest):
            continue
        group, tokens = _group(point)
        rows = float(point.batch * point.kv_heads)
        scores = rows * tokens * group
        sizes.append((1.0, scores, 0.0, rows) if group >= SUBLANES else (1.0, 0.0, scores, rows))
        often = [alike for alike in _by_kind(rest) if sum(each["times"] for each in alike) >= LAYERS - 1]
        cycles.append(sum(each["cycles"] * each["times"] for alike in often for each in alike) / LAYERS)
    found = _line(np.asarray(sizes), np.asarray(cycles))
    off[f"softmax {kv}"] += list(np.asarray(sizes) @ found / cycles - 1)
    found[2] = max(found[1:3])
    return found


def _group(point: Attention | Decode) -> tuple[int, int]:
    """Queries of a KV head, and tokens of a sequence."""
    if isinstance(point, Attention):
        return point.group, point.slots
    return point.heads // point.kv_heads, point.context


def _stands_alone(reading: list[dict[str, Any]], layers: int) -> bool:
    """Whether each layer's two products are operations of their own, and not parts of a softmax."""
    products = [each for each in _timed(reading) if each["what"].endswith(PRODUCT)]
    return sum(each["times"] for each in products) >= PRODUCTS * layers


def _write(readings: Readings, kv: str, off: Off) -> tuple[float, float]:
    """Writing a token of each sequence: what it costs at all, and a row, which is a sequence's KV head."""

    def is_write(each: Mapping[str, Any]) -> bool:
        return each["scope"] == "cache_write"

    sizes, cycles = _a_layer(
        (each for each in readings.items() if isinstance(each[0], Decode) and each[0].kv == kv),
        lambda point: (1.0, float(point.batch * point.kv_heads)),
        is_write,
    )
    fixed, row = _line(sizes, cycles)
    off[f"write {kv}"] += list(sizes @ (fixed, row) / cycles - 1)
    return fixed, row


def _layer(readings: Readings, off: Off) -> Table:
    """Norms, residuals and the rotary embedding of a layer of a decode step."""
    sizes, cycles = _a_layer(
        (each for each in readings.items() if isinstance(each[0], Decode)),
        lambda point: (1.0, float(point.batch * point.d_model)),
        lambda each: each["scope"] in OPERATIONS and each["what"] != PROJECTION,
    )
    fixed, activation = _line(sizes, cycles)
    off["layer"] += list(sizes @ (fixed, activation) / cycles - 1)
    return {
        "layer_cycles": round(fixed),
        "activation_cycles": _short(activation),
        "fetched_bytes": round(max(_fetched(reading) for reading in readings.values())),
    }


def _fetched(reading: list[dict[str, Any]]) -> float:
    """Bytes of a layer's matrices that are fetched ahead. [B]"""
    ours = [each for each in reading if each.get("scope") in OPERATIONS]
    return sum(each.get("fetched_bytes", 0.0) for each in ours) / LAYERS


def _prefill(readings: Readings, off: Off) -> Table:
    of_prompts = [each for each in readings.items() if isinstance(each[0], Prefill)]
    sizes, cycles = _a_layer(
        of_prompts,
        lambda point: (float(point.tokens * point.d_model),),
        lambda each: each["scope"] in {*OPERATIONS, "cache_write"} and each["what"] != PROJECTION,
    )
    (activation,) = _line(sizes, cycles)
    off["prefill layer"] += list(sizes @ (activation,) / cycles - 1)
    sizes, cycles = _a_layer(
        # The scores of one block stay in VMEM, as those of all blocks do in a kernel.
        [each for each in of_prompts if each[0].tokens == PROMPT_BLOCK],
        lambda point: (float(point.heads * PROMPT_BLOCK**2),),
        lambda each: each["scope"] == "dot_product",
    )
    (score,) = _line(sizes, cycles)
    off["prefill attention"] += list(sizes @ (score,) / cycles - 1)
    return {"activation_cycles": _short(activation), "score_cycles": _short(score)}


def _a_layer(
    found: Iterable[tuple[Any, list[dict[str, Any]]]],
    sizes_of: Callable[[Any], tuple[float, ...]],
    counts: Callable[[Mapping[str, Any]], bool],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes and cycles of what counts, a layer; what runs once a program is left out."""
    sizes, cycles = [], []
    for point, reading in found:
        times: dict[tuple[str, str], int] = defaultdict(int)
        for each in _timed(reading):
            times[_kind(each)] += each["times"]
        sizes.append(sizes_of(point))
        cycles.append(
            sum(
                each["cycles"] * each["times"]
                for each in _timed(reading)
                if counts(each) and times[_kind(each)] >= LAYERS - 1
            )
            / LAYERS
        )
    return np.asarray(sizes), np.asarray(cycles)


def _kind(each: Mapping[str, Any]) -> tuple[str, str]:
    """What is alike in all layers: the compiler numbers what it makes itself."""
    return each.get("scope", ""), each["what"].split(".")[0]


def _by_kind(operations: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in operations:
        found[_kind(each)].append(each)
    return list(found.values())


def _timed(reading: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in reading if "cycles" in each]


def _line(sizes: NDArray[np.float64], cycles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients, none below zero, with the least squares of what they are off by in parts."""
    kept = list(range(sizes.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(sizes[:, kept] / cycles[:, None], np.ones_like(cycles), rcond=None)
        if np.all(found >= 0):
            break
        kept.pop(int(np.argmin(found)))
    line = np.zeros(sizes.shape[1])
    line[kept] = found
    return line


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
