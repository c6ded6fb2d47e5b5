"""Which formula serves which quantity, under which convention. Conventions swap functions; no function branches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from slicewise.costs import collectives, decode, kv_cache, limits, memory, money, prefill, serving, weights
from slicewise.derive import Graph
from slicewise.planner.conventions import Conventions

Functions = dict[str, Callable[..., Any]]

_LEFT_OUT = {
    "kv_replication_whole",
    "kv_replication_ideal",
    "kv_replication_copied",
    "max_batch_whole",
    "max_batch_ideal",
    "max_batch_copied",
    "activation_bytes_per_sequence_neglected",
    "prefill_flops_book",
    "window_tokens",
}
"""Formulas that serve a quantity of another name where a convention asks for them, or that other formulas call."""
_NETWORK = (
    "all_gather_bytes_per_s",
    "all_gather_latency_s",
    "all_to_all_bytes_per_s",
    "all_to_all_latency_s",
    "one_axis_bytes_per_s",
)


def _formulas(module: Any) -> Functions:
    return {
        name: function
        for name, function in vars(module).items()
        if callable(function)
        and getattr(function, "__module__", "") == module.__name__
        and name not in _LEFT_OUT
        and not name.startswith("_")
    }


@cache
def graph(conventions: Conventions, network: str, *, splits_batch: bool) -> Graph:
    """The formulas of a deployment.

    Args:
        conventions: how things are counted.
        network: torus, switch or none (a single chip).
        splits_batch: the KV cache is split over the batch too, so AllToAlls are needed.
    """
    functions: Functions = {}
    for module in (weights, kv_cache, memory, decode, prefill, serving, money, limits):
        functions |= _formulas(module)
    functions |= _split(conventions)
    functions |= _network(conventions, network, splits_batch=splits_batch)
    if not conventions.activations:
        functions["activation_bytes_per_sequence"] = memory.activation_bytes_per_sequence_neglected
    if not conventions.prefill_attention:
        functions["prefill_flops"] = prefill.prefill_flops_book
    steps: Functions = {
        "roofline": decode.step_roofline_s,
        "overlapped": decode.step_overlapped_s,
        "serial": decode.step_serial_s,
    }
    prefills: Functions = {
        "roofline": prefill.prefill_roofline_s,
        "overlapped": prefill.prefill_overlapped_s,
        "serial": prefill.prefill_serial_s,
    }
    # The collective of one matmul is an AllGather of the step.
    functions["gate_matmul_ici_s"] = decode.all_gather_s
    functions |= {"step_s": steps[conventions.view], "prefill_s": prefills[conventions.view]}
    return Graph.of(functions)


def _split(conventions: Conventions) -> Functions:
    if conventions.kv_split == "copy":
        return {"kv_replication": kv_cache.kv_replication_copied, "max_batch": memory.max_batch_copied}
    if conventions.split == "whole":
        return {"kv_replication": kv_cache.kv_replication_whole, "max_batch": memory.max_batch_whole}
    return {"kv_replication": kv_cache.kv_replication_ideal, "max_batch": memory.max_batch_ideal}


def _network(conventions: Conventions, network: str, *, splits_batch: bool) -> Functions:
    quiet: Functions = {
        name: collectives.no_bytes_per_s if name.endswith("bytes_per_s") else collectives.no_latency_s
        for name in _NETWORK
    }
    if network == "none" or conventions.ici == "none":
        return quiet
    # Behind a switch every collective has the same latency.
    same = {"switch_all_to_all_latency_s": "switch_all_gather_latency_s"}
    served = {name: f"{network}_{name}" for name in _NETWORK}
    found = {name: getattr(collectives, same.get(function, function)) for name, function in served.items()}
    if conventions.ici == "ring":
        found |= {name: quiet[name] for name in _NETWORK if name.startswith("all_to_all") or name.endswith("latency_s")}
    if not splits_batch or conventions.kv_split == "copy":
        found |= {name: quiet[name] for name in _NETWORK if name.startswith("all_to_all")}
    return found
