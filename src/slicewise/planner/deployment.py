"""One model on one slice at one precision: the formulas' inputs, their origins, and the graph that serves them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from slicewise.derive import Derivation, Graph, Origins, Values
from slicewise.errors import InputError, UnknownFactError
from slicewise.planner import wiring
from slicewise.planner.conventions import Conventions
from slicewise.planner.edge import RANGE_END, SMALL_STEP, small_batch, small_step, with_small_step
from slicewise.planner.engines import TPU_INFERENCE, VLLM, Engine
from slicewise.planner.expectation import Expectation, Served, expectation
from slicewise.planner.holding import Holding, holdings, is_plain, layered_inputs, weight_bytes_per_param
from slicewise.planner.origins import MODEL_SIZES, origins
from slicewise.planner.pacing import TOTALS, explain_paced, is_paced, open_phases, slowest
from slicewise.planner.rates import peak_rate
from slicewise.spec.chip import Price
from slicewise.spec.efficiency import Efficiency, Scale
from slicewise.spec.layout import KvLayout, kv_layout, sub_axes
from slicewise.spec.model import Model
from slicewise.spec.precision import ACTIVATION_BYTES_PER_ELEMENT, BYTES_PER_ELEMENT, Precision
from slicewise.spec.ranks import Ranks, rope_table_bytes
from slicewise.spec.tensors import weight_tensors
from slicewise.spec.topology import Axis, Domain, Slice
from slicewise.spec.workload import Workload

FIXED = (
    "n_params",
    "matmul_params",
    "head_params",
    "weight_bytes_per_chip",
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
"""Quantities computed once, as far as they do not depend on the batch."""

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
        ranks: tensor, pipeline, data and expert parallelism; None for weights cut evenly over the whole slice.
        engine: whose padding and tables are counted; None for none.
        efficiencies: fits of the user's own file; empty for those that ship.
        mfu_is_given: the FLOPs utilisation in prefill was asked for, and wins over the fitted one.
        stage: the pipeline stage to look at; None for the one that memory limits, and for times the heaviest.

    Raises:
        InputError: the chip does not offer the compute dtype, or the ranks are not as many as the chips.
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
    ranks: Ranks | None = None
    engine: Engine | None = None
    efficiencies: tuple[Efficiency | Scale, ...] = ()
    mfu_is_given: bool = False
    stage: int | None = None

    def __post_init__(self) -> None:
        peak_rate(self.slice.chip, self.precision.compute)
        if self.ranks and self.ranks.n_chips != self.slice.n_chips:
            raise InputError(
                f"{self.ranks} is {self.ranks.n_chips} ranks, not the {self.slice.n_chips} of {self.slice.name}"
            )

    @cached_property
    def layout(self) -> KvLayout:
        """How the KV cache lies over the chips: over the heads, then the batch; of ranks, over data parallelism."""
        if self.ranks:
            heads = math.gcd(self.ranks.tp, self.model.n_kv_heads)
            return KvLayout(head_shards=heads, batch_shards=self.ranks.dp)
        return kv_layout(self.slice, self.model.n_kv_heads)

    @cached_property
    def is_layered(self) -> bool:
        """Whether the formulas for layers of several kinds, experts and ranks serve it."""
        return self.ranks is not None or not is_plain(self.model)

    @property
    def layout_name(self) -> str:
        """The layout of ranks in words; "" for weights cut evenly over the whole slice."""
        return str(self.ranks) if self.ranks else ""

    @property
    def ttft(self) -> str:
        """The quantity that is the time to the first token: prefill, of one group where groups serve side by side."""
        return "ttft_s" if self.is_layered else "prefill_s"

    @cached_property
    def traits(self) -> wiring.Traits:
        """What decides the formulas that serve this deployment."""
        group = self.ranks.tp * self.ranks.dp if self.ranks else self.slice.n_chips
        network = "none" if group == 1 else "switch" if self.slice.chip.is_gpu else "torus"
        return wiring.Traits(
            network=network,
            splits_batch=self.ranks is None and self.layout.batch_shards > 1,
            is_layered=self.is_layered,
            as_stored=self.precision.as_stored and self.params is None,
            has_ranks=self.ranks is not None,
            gathers=self.ranks is None or self.ranks.tp > 1,
            is_compiled="compiled" in self.expectation.inputs,
            mfu_is_given=self.mfu_is_given,
            has_experts=self.model.n_experts > 0,
            spreads_experts=self.model.n_experts > 0 and self.ranks is not None and self.ranks.ep > 1,
            gathers_experts=self.model.n_experts > 0
            and self.ranks is not None
            and self.ranks.ep == 1
            and self.ranks.dp > 1,
        )

    @cached_property
    def expectation(self) -> Expectation:
        """What expected times rest on."""
        served = Served(
            model=self.model.name,
            chip=self.slice.chip,
            n_chips=self._together,
            n_stages=self.ranks.pp if self.ranks else 1,
            precision=self.precision,
            is_plain=is_plain(self.model) or self.model.reduces_once,
            engine=self.engine.name if self.engine else "",
            mfu=self.mfu if self.mfu_is_given else None,
        )
        return expectation(served, self.efficiencies)

    @property
    def _together(self) -> int:
        """Chips that wait for each other in a layer: a group's, or all that experts are spread over."""
        if self.ranks is None:
            return self.slice.n_chips
        return self.ranks.tp * self.ranks.dp if self.ranks.ep > 1 else self.ranks.tp

    @cached_property
    def graph(self) -> Graph:
        """The formulas that serve this deployment."""
        return wiring.graph(self.conventions, self.traits)

    @cached_property
    def holdings(self) -> tuple[Holding, ...]:
        """What the fullest chips of each pipeline stage hold; of an even cut, what the slice does."""
        name, chip = self.engine.name if self.engine else "", self.slice.chip
        return holdings(
            self.model,
            self.precision,
            self.ranks,
            padded=name == TPU_INFERENCE,
            widened=name == VLLM and chip.is_gpu and "fp4" not in chip.flops_per_s,
        )

    @cached_property
    def holding(self) -> Holding:
        """What the fullest chips of the stage that holds the fewest sequences hold, or of the one to look at."""
        if len(self.holdings) == 1 or self.stage is not None:
            return self.holdings[self.stage or 0]
        counted, width = self.conventions, BYTES_PER_ELEMENT[self.precision.kv]
        granted = self.hbm_bytes_per_chip * counted.memory_fraction - counted.reserve_bytes_per_chip
        rooms = np.array([granted - self.table_bytes - part.held_bytes for part in self.holdings]) * self.slice.n_chips
        longest = self.workload.capacity_context_tokens
        sizes = {
            "kv_budget_bytes": rooms,
            "kv_bytes_per_sequence": np.array([part.sequence_bytes(width, longest) for part in self.holdings]),
            "kv_batch_shards": self.layout.batch_shards,
            "vocab_size": self.model.vocab_size,
            "d_ff": self.model.d_ff,
            "activation_bytes_per_element": ACTIVATION_BYTES_PER_ELEMENT,
        }
        most = self.graph.evaluate(["max_batch"], sizes)["max_batch"]
        return self.holdings[int(np.lexsort((rooms, most))[0])]

    @property
    def table_bytes(self) -> float:
        """Bytes of the rotary tables that the engine keeps on every chip. [B]"""
        return rope_table_bytes(self.model) if self.engine and self.engine.name == VLLM else 0.0

    def at_stage(self, stage: int) -> dict[str, Any]:
        """The inputs of a pipeline stage's chips, to be given in place of those that hold the fewest sequences."""
        part = self.holdings[stage]
        numbers = layered_inputs(self.model, self.precision, self.ranks, self.slice.n_chips, part)
        return {"caches": part.caches, "held_weights": part.held, **numbers}

    @cached_property
    def ici_axes(self) -> tuple[Axis, ...]:
        """The mesh axes of a tensor-parallel group, all of them rings under `--ici ring`."""
        return self._axes(self.ranks.tp if self.ranks else self.slice.n_chips)

    def _axes(self, n_chips: int) -> tuple[Axis, ...]:
        axes = self.slice.axes
        if axes and n_chips != self.slice.n_chips:
            axes = sub_axes(axes, n_chips)
        return tuple(replace(axis, wraps=True) for axis in axes) if self.conventions.ici == "ring" else axes

    def _domain(self, n_chips: int) -> Domain | None:
        return replace(self.slice.domain, n_chips=n_chips) if self.slice.domain else None

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
            "caches": self.holding.caches,
            "weight_bytes_per_param": self._weight_bytes_per_param(),
            "kv_bytes_per_element": BYTES_PER_ELEMENT[self.precision.kv],
            "activation_bytes_per_element": ACTIVATION_BYTES_PER_ELEMENT,
            "n_chips": self.slice.n_chips,
            "hbm_bytes_per_chip": self.hbm_bytes_per_chip,
            "hbm_bytes_per_s": chip.hbm_bytes_per_s,
            "flops_per_s": chip.flops_per_s[peak_rate(chip, self.precision.compute)],
            "ici_axes": self.ici_axes,
            "domain": self._domain(self.ranks.tp if self.ranks else self.slice.n_chips),
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
            "reserve_bytes_per_chip": self.conventions.reserve_bytes_per_chip,
            "mfu": self.mfu,
            "prompts_in_flight": 1,
            "requests_per_s": self.requests_per_s,
            "usd_per_chip_hour": self.price.usd_per_chip_hour if self.price else None,
            **self.expectation.inputs,
        }
        if self.is_layered or self.precision.as_stored:
            group = self.ranks.tp * self.ranks.dp if self.ranks else self.slice.n_chips
            found |= {
                "stored_weights": self.holding.stored,
                "held_weights": self.holding.held,
                "table_bytes": self.table_bytes,
                "expert_axes": self._axes(group),
                "expert_domain": self._domain(group),
                **layered_inputs(self.model, self.precision, self.ranks, self.slice.n_chips, self.holding),
            }
        if self.params is not None:
            # All of a given count is read and used.
            found |= {**dict.fromkeys(("n_params", "n_active_params", "matmul_params"), self.params), "idle_bytes": 0.0}
        if self.handoff_bytes_per_s is not None:
            found["handoff_bytes_per_s"] = self.handoff_bytes_per_s
        return found

    @cached_property
    def _stages(self) -> tuple[Deployment, ...]:
        """The pipeline stages, where there are several and none is looked at alone."""
        if len(self.holdings) == 1 or self.stage is not None or self.ranks is None:
            return ()
        stages = tuple(self.with_(stage=stage) for stage in range(len(self.holdings)))
        for one in stages:
            # What the stages hold does not depend on which is looked at, and is the dearest thing to count.
            vars(one)["holdings"] = self.holdings
        return stages

    @cached_property
    def _slowest(self) -> Mapping[str, Deployment]:
        return slowest(self._stages, self.graph)

    def paced_by(self, name: str) -> Deployment:
        """The pipeline stage that sets the pace of all: the slowest by a phase's time, for all else by `step_s`.

        It is the slowest with one sequence a group: another may be at large batches, by a little.
        """
        if not self._stages:
            return self
        return self._slowest[name if name in TOTALS else "step_s"]

    def evaluate(self, names: Iterable[str], **given: Any) -> Values:
        """Compute quantities at a batch, or over arrays of batches and contexts."""
        if not self._stages:
            return self._evaluate(names, **given)
        by_stage: dict[int | None, list[str]] = {}
        for name in names:
            by_stage.setdefault(self.paced_by(name).stage if is_paced(self.graph, name) else None, []).append(name)
        found: Values = {}
        for stage, asked in by_stage.items():
            one, derived = (
                self if stage is None else self._stages[stage],
                [name for name in asked if name not in TOTALS],
            )
            phases = self._phases(**given) if derived and stage is not None else {}
            found |= one._evaluate([name for name in asked if name in TOTALS], **given)
            found |= one._evaluate(derived, **{**phases, **given})
        return found

    def _phases(self, **given: Any) -> Values:
        """The times of both phases, from which rates and prices follow whatever the stage."""
        return {name: self.paced_by(name).value(name, **given) for name in open_phases(given)}

    def _evaluate(self, names: Iterable[str], **given: Any) -> Values:
        # Most calls vary the batch alone: what does not depend on it is computed once.
        known = {**(self._fixed if given.keys() <= {"batch"} else self.inputs), **given}
        asked = list(names)
        return self.graph.evaluate(asked, {**known, **small_step(self.graph, asked, known)})

    @cached_property
    def _fixed(self) -> Mapping[str, Any]:
        fixed = [name for name in FIXED if not self.graph.rests_on(name, "batch", self.inputs)]
        return {**self.inputs, **self.graph.evaluate(fixed, self.inputs)}

    def _weight_bytes_per_param(self) -> float:
        if self.precision.as_stored and self.params is None:
            return weight_bytes_per_param(self.holding.stored)
        return BYTES_PER_ELEMENT[self.precision.weights]

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
        if self._stages and is_paced(self.graph, name):
            return explain_paced(self, name, origins or {}, **given)
        known, words = {**self.inputs, **given}, {**self.origins, **(origins or {})}
        if name == RANGE_END and "batch" in given:
            small = self.explain("step_expected_s", origins, **{**given, "batch": small_batch(self.graph, known)})
            return with_small_step(self.graph.explain(name, {**known, SMALL_STEP: small.value}, words), small)
        try:
            return self.graph.explain(name, known, words)
        except UnknownFactError as error:
            raise UnknownFactError(error.name, error.fact, _GIVE.get(error.fact, "")) from None

    def with_(self, **changes: Any) -> Deployment:
        """The same deployment with some parts changed."""
        return replace(self, **changes)

    @cached_property
    def origins(self) -> Origins:
        """Where each input comes from: its words, and its document."""
        found = origins(
            model=self.model,
            slice_=self.slice,
            precision=self.precision,
            workload=self.workload,
            counted=self.conventions,
            ranks=self.ranks,
            price=self.price,
            layout=self.layout,
            rate=f"flops_per_s.{peak_rate(self.slice.chip, self.precision.compute)}",
            inputs=self.inputs,
        )
        return {**found, **self.expectation.origins}
