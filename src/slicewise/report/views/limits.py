"""The document of `limits`."""

from __future__ import annotations

from slicewise.planner.limits import ServingLimits
from slicewise.report.document import Document, Heading, Table
from slicewise.report.views.words import assumed, ms
from slicewise.units import show


def limits_document(limits: ServingLimits) -> Document:
    """Critical batch, model-parallel limits, one gate matmul, the KV layout and the knee."""
    ways = limits.model_parallel_ways
    rows = [
        ["critical batch", show(limits.critical_batch, "", 4), "matmuls are compute bound from here"],
        ["knee", _whole(limits.knee_batch), "up to here a further sequence costs only its cache"],
        ["largest batch that fits", f"{limits.max_batch:,}", ""],
        ["model-parallel ways used", f"{ways:,}", limits.axes],
        [
            f"… limit from batch {limits.critical_batch:,.0f}, where FLOPs bind",
            _ways(limits.model_parallel_limit_flops_bound),
            _within(limits, limits.model_parallel_limit_flops_bound, applies=limits.batch >= limits.critical_batch),
        ],
        [
            f"… limit at batch {limits.batch:,}, where HBM binds",
            _ways(limits.model_parallel_limit_hbm_bound),
            _within(limits, limits.model_parallel_limit_hbm_bound, applies=limits.batch < limits.critical_batch),
        ],
        [
            "legal tensor parallelism",
            _listed(limits.legal_tensor_parallel),
            "heads, widths, blocks, vocabulary",
        ],
        ["KV layout", f"{limits.kv_head_shards} × {limits.kv_batch_shards}", "head shards by batch shards"],
    ]
    gate = [
        ["network, all chips", ms(limits.gate_matmul_ici_s)],
        ["network, one axis (or one GPU's link), bandwidth alone", ms(limits.gate_matmul_ici_one_axis_s)],
        ["HBM", ms(limits.gate_matmul_hbm_s)],
        ["FLOPs", ms(limits.gate_matmul_flops_s)],
    ]
    verdict = "it binds" if limits.network_binds else "it does not bind"
    where = f"{limits.model} on {limits.slice}, {limits.weight_dtype} weights, {limits.compute_dtype} FLOPs"
    return [
        Heading(f"Limits of {where}"),
        Table("", ["", "value", ""], rows, left=(0, 2)),
        Table(f"One gate matmul at batch {limits.batch:,}: the network, hops included: {verdict}", ["", "time"], gate),
        assumed(limits.assumptions),
    ]


def _whole(batch: int | None) -> str:
    return "none" if batch is None else f"{batch:,}"


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))


def _ways(limit: float | None) -> str:
    return "none" if limit is None else show(limit, "", 4)


def _within(limits: ServingLimits, limit: float | None, *, applies: bool) -> str:
    if limit is None:
        return "no network"
    if not applies:
        return f"does not apply at batch {limits.batch:,}"
    return f"the network's bandwidth {'does not bind' if limits.model_parallel_ways <= limit else 'binds'}"
