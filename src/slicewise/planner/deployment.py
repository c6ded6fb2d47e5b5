"""One model on one slice at one precision: the formulas' inputs, their origins, and the graph that serves them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from slicewise.derive import Derivation, Graph, Origins, Values
from slicewise.errors import InputError, UnknownFactError
from slicewise.planner import wiring
from slicewise.planner.conventions import Conventions
from slicewise.spec.chip import Chip, Price
from slicewise.spec.layout import KvLayout, kv_layout
from slicewise.spec.model import Model
from slicewise.spec.precision import ACTIVATION_BYTES_PER_ELEMENT, BYTES_PER_ELEMENT, Precision
from slicewise.spec.tensors import cache_tensors, weight_tensors
from slicewise.spec.topology import Axis, Slice
from slicewise.spec.workload import Workload
from slicewise.units import show

MODEL_SIZES = ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "attention_window")

FIXED = (
    "n_params",
    "matmul_params",
    "head_params",
    "weight_bytes",
    "kv_bytes_per_token",
    "kv_bytes_per_sequence",
    "hbm_bytes",
    "kv_budget_bytes",
    "param_load_s",
    "all_gather_bytes_per_s",
    "all_gather_latency_s",
    "all_to_all_bytes_per_s",
    "all_to_all_latency_s",
)
"""Quantities that do not depend on the batch."""

_GIVE = {
    "usd_per_chip_hour": "give --price",
    "dcn_bytes_per_s_per_chip": "give --network",
    "requests_per_s": "give --rate",
}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A model on a slice.

    Attributes:
        params: overrides both parameter counts; None for the exact ones.
        handoff_bytes_per_s: overrides the rate at which the slice sends a cache out; None for the chips' network. [B/s]
        requests_per_s: the rate to serve; None where none was asked for. [1/s]

    Raises:
        InputError: the chip does not offer the compute dtype.
    """

    model: Model
    slice: Slice
    precision: Precision
    workload: Workload
    conventions: Conventions
    mfu: float
    price: Price | None
    params: float | None = None
    handoff_bytes_per_s: float | None = None
    requests_per_s: float | None = None

    def __post_init__(self) -> None:
        peak_rate(self.slice.chip, self.precision.compute)

    @cached_property
    def layout(self) -> KvLayout:
        """How the KV cache lies over the chips."""
        return kv_layout(self.slice, self.model.n_kv_heads)

    @cached_property
    def graph(self) -> Graph:
        """The formulas that serve this deployment."""
        network = "none" if self.slice.n_chips == 1 else "switch" if self.slice.chip.is_gpu else "torus"
        return wiring.graph(self.conventions, network, splits_batch=self.layout.batch_shards > 1)

    @cached_property
    def ici_axes(self) -> tuple[Axis, ...]:
        """The mesh axes longer than 1, all of them rings under `--ici ring`."""
        axes = self.slice.axes
        return tuple(replace(axis, wraps=True) for axis in axes) if self.conventions.ici == "ring" else axes

    @cached_property
    def hbm_bytes_per_chip(self) -> float:
        """HBM of a chip that may be planned with, before the memory fraction. [B]"""
        chip, given = self.slice.chip, self.conventions.hbm_bytes_per_chip
        if given is not None:
            return given
        return chip.hbm_bytes if self.conventions.nominal_hbm else chip.usable_hbm_bytes

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """Every input of the formulas but the batch."""
        chip, workload = self.slice.chip, self.workload
        found: dict[str, Any] = {name: getattr(self.model, name) for name in MODEL_SIZES}
        found |= {
            "weight_tensors": weight_tensors(self.model),
            "cache_tensors": cache_tensors(self.model),
            "weight_bytes_per_param": BYTES_PER_ELEMENT[self.precision.weights],
            "kv_bytes_per_element": BYTES_PER_ELEMENT[self.precision.kv],
            "activation_bytes_per_element": ACTIVATION_BYTES_PER_ELEMENT,
            "n_chips": self.slice.n_chips,
            "hbm_bytes_per_chip": self.hbm_bytes_per_chip,
            "hbm_bytes_per_s": chip.hbm_bytes_per_s,
            "flops_per_s": chip.flops_per_s[peak_rate(chip, self.precision.compute)],
            "ici_axes": self.ici_axes,
            "domain": self.slice.domain,
            "hop_s": chip.hop_s,
            "dcn_bytes_per_s_per_chip": chip.dcn_bytes_per_s,
            "kv_head_shards": self.layout.head_shards,
            "kv_batch_shards": self.layout.batch_shards,
            "kv_batch_axes": self.layout.batch_axes,
            "prompt_tokens": workload.prompt_tokens,
            "output_tokens": workload.output_tokens,
            "context_tokens": workload.context_tokens,
            "capacity_context_tokens": workload.capacity_context_tokens,
            "memory_fraction": self.conventions.memory_fraction,
            "mfu": self.mfu,
            "requests_per_s": self.requests_per_s,
            "usd_per_chip_hour": self.price.usd_per_chip_hour if self.price else None,
        }
        if self.params is not None:
            found |= {"n_params": self.params, "matmul_params": self.params}
        if self.handoff_bytes_per_s is not None:
            found["handoff_bytes_per_s"] = self.handoff_bytes_per_s
        return found

    def evaluate(self, names: Iterable[str], **given: Any) -> Values:
        """Compute quantities at a batch, or over arrays of batches and contexts."""
        # Most calls vary the batch alone: what does not depend on it is computed once.
        known = self._fixed if given.keys() <= {"batch"} else self.inputs
        return self.graph.evaluate(names, {**known, **given})

    @cached_property
    def _fixed(self) -> Mapping[str, Any]:
        return {**self.inputs, **self.graph.evaluate(FIXED, self.inputs)}

    def value(self, name: str, **given: Any) -> Any:
        """Compute one quantity."""
        return self.evaluate([name], **given)[name]

    def explain(self, name: str, origins: Origins | None = None, **given: Any) -> Derivation:
        """Replay one quantity down to sourced facts.

        Args:
            name: the quantity.
            origins: where further inputs come from.
            given: the batch, and inputs that win over formulas.

        Raises:
            UnknownNameError: no such quantity.
            UnknownFactError: it rests on a fact that is not known, such as a price.
        """
        try:
            return self.graph.explain(name, {**self.inputs, **given}, {**self.origins, **(origins or {})})
        except UnknownFactError as error:
            raise UnknownFactError(error.name, error.fact, _GIVE.get(error.fact, "")) from None

    def with_(self, **changes: Any) -> Deployment:
        """The same deployment with some parts changed."""
        return replace(self, **changes)

    @cached_property
    def origins(self) -> Origins:
        """Where each input comes from: its words, and its document."""
        facts, compute = self.slice.chip.provenance, peak_rate(self.slice.chip, self.precision.compute)
        shapes = {name: self.model.provenance[name].origin for name in MODEL_SIZES if name in self.model.provenance}
        rate = facts[f"flops_per_s.{compute}"]
        unknown = ("not known here", "")
        words = {
            "attention_window": "full attention" if self.model.attention_window == math.inf else "the model's window",
            "weight_tensors": "\n".join(map(str, weight_tensors(self.model))),
            "cache_tensors": "\n".join(map(str, cache_tensors(self.model))),
            "weight_bytes_per_param": f"{self.precision.weights} weights",
            "kv_bytes_per_element": f"{self.precision.kv} cache",
            "activation_bytes_per_element": "activations travel in 16 bits",
            "n_chips": f"chips of {self.slice.name}",
            "kv_head_shards": f"{self.model.n_kv_heads} KV heads over {self.slice.n_chips} chips, heads first",
            "kv_batch_shards": "the ways that are left after the heads",
            "kv_batch_axes": ", ".join(str(axis) for axis in self.layout.batch_axes) or "none",
            "prompt_tokens": "prompt length (ISL)",
            "output_tokens": "output length (OSL)",
            "context_tokens": self._context_origin("bandwidth"),
            "capacity_context_tokens": self._context_origin("memory"),
            "memory_fraction": "share of HBM that may be used",
            "mfu": "prefill FLOPs utilisation, an assumption",
            "n_params": "given by --params",
            "matmul_params": "given by --params",
            "handoff_bytes_per_s": "given by --network",
            "requests_per_s": "given by --rate",
            "batch": "sequences in a decode step, as asked or as planned",
        }
        return {
            **{name: (text, "") for name, text in words.items()},
            **shapes,
            "hbm_bytes_per_chip": self._hbm_origin(),
            "hbm_bytes_per_s": facts["hbm_bytes_per_s"].origin,
            "flops_per_s": (f"{self.precision.compute}: {rate.words}", rate.document),
            "ici_axes": (self._axes_words(), facts["link_bytes_per_s"].document),
            "domain": (f"{self.slice.domain}, {facts['link_bytes_per_s'].words}", facts["link_bytes_per_s"].document),
            "hop_s": facts["hop_s"].origin,
            "dcn_bytes_per_s_per_chip": facts["dcn_bytes_per_s"].origin if "dcn_bytes_per_s" in facts else unknown,
            "usd_per_chip_hour": self.price.provenance.origin if self.price else unknown,
        }

    def _hbm_origin(self) -> tuple[str, str]:
        if self.conventions.hbm_bytes_per_chip is not None:
            return f"given by --hbm: {show(self.conventions.hbm_bytes_per_chip, 'B')}", ""
        return self.slice.chip.provenance["hbm_bytes" if self.conventions.nominal_hbm else "usable_hbm_bytes"].origin

    def _axes_words(self) -> str:
        axes = " × ".join(str(axis) for axis in self.ici_axes) or "one chip, no axes"
        why = " (--ici ring takes every axis as a ring)" if self.conventions.ici == "ring" else ""
        return f"{axes}{why}; one link one way: {self.slice.chip.provenance['link_bytes_per_s'].words}"

    def _context_origin(self, what: str) -> str:
        if self.workload.context_is_set:
            return "given by --context"
        if self.conventions.prompt_is_context:
            return "the prompt's length, as the book counts"
        return "prompt plus output" if what == "memory" else "prompt plus half the output: the mean of a sequence"


def peak_rate(chip: Chip, compute: str) -> str:
    """The dtype whose peak rate a chip offers for a compute dtype: fp16 runs at the rate of bf16.

    Raises:
        InputError: the chip does not offer it.
    """
    rate = "bf16" if compute == "fp16" else compute
    if rate not in chip.flops_per_s:
        raise InputError(
            f"--compute {compute}: {chip.name} has no peak rate for it; offered: {', '.join(chip.flops_per_s)}"
        )
    return rate
