"""Which formula serves which quantity, under which convention. Conventions swap functions; no function branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from slicewise.costs import (
    collectives,
    compiled,
    compiled_layered,
    compiled_prefill,
    decode,
    expected,
    experts,
    fitted,
    fitted_ranks,
    gathered_experts,
    kv_cache,
    layered_cache,
    layered_step,
    limits,
    memory,
    money,
    prefill,
    ranks,
    serving,
    shared_prefill,
    spread_experts,
    weights,
)
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
    "step_batch_whole",
    "step_batch_ideal",
    "activation_bytes_per_sequence_neglected",
    "logit_bytes_per_chip_neglected",
    "attended_tokens",
    "cache_bytes",
    "hbm_bytes_beside_reserve",
    "prefill_flops_book",
    "weight_bytes_as_stored",
    "window_tokens",
}
"""Formulas that serve a quantity of another name where a convention asks for them, or that other formulas call."""
_NETWORK = (
    "all_gather_bytes_per_s",
    "all_gather_latency_s",
    "all_to_all_bytes_per_s",
    "all_to_all_latency_s",
    "one_axis_bytes_per_s",
    "expert_all_to_all_bytes_per_s",
    "expert_all_to_all_latency_s",
    "expert_gather_bytes_per_s",
    "expert_gather_latency_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What of a deployment decides which formulas serve it.

    Attributes:
        network: torus, switch or none (a single chip).
        splits_batch: the KV cache is split over the batch too, so AllToAlls are needed.
        is_layered: layers keep different things, or there are experts, towers or ranks with unequal shares.
        as_stored: the weights weigh what the checkpoint stores, matrix by matrix.
        has_ranks: a layout of ranks was asked for.
        has_experts: some layers are mixtures of experts.
        spreads_experts: whole experts lie on different chips.
        gathers_experts: experts are cut over groups that work on different parts of the batch.
        gathers: a tensor-parallel group has more than one chip.
        is_compiled: expected times come from a compiler's table of operations.
        mfu_is_given: prefill is expected at a FLOPs utilisation that was given.
    """

    network: str
    splits_batch: bool = False
    is_layered: bool = False
    as_stored: bool = False
    has_ranks: bool = False
    has_experts: bool = False
    spreads_experts: bool = False
    gathers_experts: bool = False
    gathers: bool = True
    is_compiled: bool = False
    mfu_is_given: bool = False

    @property
    def modules(self) -> tuple[ModuleType, ...]:
        """Where the formulas are that win over the plain ones, each over those before it."""
        asked = {
            layered_cache: self.is_layered,
            layered_step: self.is_layered,
            shared_prefill: self.is_layered,
            fitted: not self.is_compiled,
            fitted_ranks: self.is_layered and not self.is_compiled,
            compiled: self.is_compiled,
            compiled_prefill: self.is_compiled,
            compiled_layered: self.is_compiled and self.is_layered,
            ranks: self.has_ranks,
            experts: self.has_experts,
            spread_experts: self.spreads_experts,
            gathered_experts: self.gathers_experts,
        }
        return tuple(module for module, is_asked in asked.items() if is_asked)


def _formulas(module: ModuleType) -> Functions:
    return {
        name: function
        for name, function in vars(module).items()
        if callable(function)
        and getattr(function, "__module__", "") == module.__name__
        and name not in _LEFT_OUT
        and not name.startswith("_")
    }


@cache
def graph(conventions: Conventions, traits: Traits) -> Graph:
    """The formulas of a deployment.

    Args:
        conventions: how things are counted.
        traits: what the deployment is like.
    """
    functions: Functions = {}
    for module in (weights, kv_cache, memory, decode, prefill, expected, serving, money, limits):
        functions |= _formulas(module)
    if traits.as_stored:
        functions["weight_bytes"] = weights.weight_bytes_as_stored
    for module in traits.modules:
        functions |= _formulas(module)
    functions |= _split(conventions, has_ranks=traits.has_ranks)
    if traits.has_ranks:
        whole = conventions.split == "whole"
        functions["step_batch"] = ranks.step_batch_whole if whole else ranks.step_batch_ideal
    functions |= _network(conventions, traits)
    if not conventions.activations:
        functions["activation_bytes_per_sequence"] = memory.activation_bytes_per_sequence_neglected
        functions["logit_bytes_per_chip"] = memory.logit_bytes_per_chip_neglected
    if conventions.reserve_bytes_per_chip:
        functions["hbm_bytes"] = memory.hbm_bytes_beside_reserve
    if not conventions.prefill_attention:
        book = experts.prefill_flops_book if traits.has_experts else prefill.prefill_flops_book
        functions["prefill_flops"] = book
    if traits.is_compiled and traits.mfu_is_given:
        functions["prefill_expected_s"] = functions["prefill_serial_s"]
    # The collective of one matmul is an AllGather of the step.
    functions["gate_matmul_ici_s"] = decode.all_gather_s
    functions |= {name: functions[name.replace("_s", f"_{conventions.view}_s")] for name in ("step_s", "prefill_s")}
    return Graph.of(functions)


def _split(conventions: Conventions, *, has_ranks: bool) -> Functions:
    if conventions.kv_split == "copy" and not has_ranks:
        return {"kv_replication": kv_cache.kv_replication_copied, "max_batch": memory.max_batch_copied}
    if conventions.split == "whole":
        return {"kv_replication": kv_cache.kv_replication_whole, "max_batch": memory.max_batch_whole}
    return {"kv_replication": kv_cache.kv_replication_ideal, "max_batch": memory.max_batch_ideal}


def _network(conventions: Conventions, traits: Traits) -> Functions:
    asked = {"expert_all": traits.spreads_experts, "expert_gat": traits.gathers_experts}
    names = [name for name in _NETWORK if asked.get(name[:10], True)]
    quiet: Functions = {
        name: collectives.no_bytes_per_s if name.endswith("bytes_per_s") else collectives.no_latency_s for name in names
    }
    if traits.network == "none" or conventions.ici == "none":
        return quiet
    # Behind a switch every collective has the same latency.
    same = {"switch_all_to_all_latency_s": "switch_all_gather_latency_s"}
    served = {name: f"{traits.network}_{name}" for name in names}
    found = {name: getattr(collectives, same.get(function, function)) for name, function in served.items()}
    if conventions.ici == "ring":
        found |= {name: quiet[name] for name in names if "all_to_all" in name or name.endswith("latency_s")}
    if not traits.gathers:
        found |= {name: quiet[name] for name in names if name.startswith(("all_gather", "one_axis"))}
    if not traits.splits_batch or conventions.kv_split == "copy":
        found |= {name: quiet[name] for name in names if name.startswith("all_to_all")}
    return found
