"""The wired graph: under every convention each formula is explained down to facts, and its text computes its value."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slicewise.catalog.load import load_model
from slicewise.catalog.slices import load_slice
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
    hybrid_paging,
    kv_cache,
    layered_cache,
    layered_step,
    limits,
    memory,
    money,
    paging,
    prefill,
    ranks,
    serving,
    shared_prefill,
    spread_experts,
    weights,
)
from slicewise.derive import Derivation
from slicewise.planner import wiring
from slicewise.planner.conventions import BOOK, CHOICES, Conventions
from slicewise.planner.deployment import Deployment
from slicewise.planner.engines import VLLM, Engine
from slicewise.planner.wiring import Traits
from slicewise.spec.precision import Precision
from slicewise.spec.ranks import Ranks
from slicewise.spec.workload import Workload
from slicewise.units import parse

PLAIN = (weights, kv_cache, memory, decode, prefill, expected, serving, money, limits, collectives)
LAYERED = (
    layered_cache,
    layered_step,
    shared_prefill,
    fitted,
    fitted_ranks,
    compiled,
    compiled_prefill,
    compiled_layered,
    ranks,
    experts,
    spread_experts,
    gathered_experts,
)
MODULES = (*PLAIN, *LAYERED)
POINT = {"batch": 37, "requests_per_s": 10.0, "utilisation": 0.5, "api_usd_per_million_tokens": 0.9}
ORIGINS = dict.fromkeys(POINT, ("given", ""))
MATHS = {"ceil": math.ceil, "floor": math.floor, "inf": math.inf, "log": math.log, "sqrt": math.sqrt}
MATHS |= {"interp": np.interp}
STORED = {"precision": Precision(weights="fp8", as_stored=True)}
DEPLOYED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "torus": ("llama-3-70b", "v5e:8x16", {}),
    "partial-torus": ("llama-3-70b", "v5e:2x4", {}),
    "switch": ("llama-3-70b", "h100:16", {}),
    "one-chip": ("llama-3-70b", "h100:1", {}),
    "windows": ("gemma-3-27b", "v5e:8x16", {}),
    "windows-behind-a-switch": ("gemma-3-27b", "h100:16", {}),
    "states": ("nemotron-h-56b", "h100:8", {}),
    "stored": ("qwen3-32b-fp8", "h100:8", STORED),
    "ranks": ("llama-3-70b", "v5e:2x4", {"ranks": Ranks(tp=4, pp=2)}),
    "ranks-in-groups": ("llama-3-70b", "h100:16", {"ranks": Ranks(tp=8, dp=2), "engine": Engine(name=VLLM)}),
    "experts": ("mixtral-8x7b", "v5e:8x16", {}),
    "stored-latent-experts": ("deepseek-v3", "h100:16", STORED),
    "experts-spread-over-a-torus": ("deepseek-v3", "v5p:4x4x4", {"ranks": Ranks(tp=16, dp=4, ep=64), **STORED}),
    "experts-spread-behind-switches": ("deepseek-v3.2", "h100:16", {"ranks": Ranks(dp=16, ep=16), **STORED}),
    "experts-gathered-over-a-torus": ("deepseek-v3", "v5p:4x4x4", {"ranks": Ranks(tp=16, dp=4), **STORED}),
    "experts-gathered-behind-switches": ("deepseek-v3", "h100:16", {"ranks": Ranks(dp=16), **STORED}),
    "experts-spread-over-stages": ("deepseek-v3", "h100:16", {"ranks": Ranks(tp=4, dp=2, pp=2, ep=4), **STORED}),
}


def every_convention() -> Iterator[Conventions]:
    for words in product(*CHOICES.values()):
        yield Conventions(**dict(zip(CHOICES, words, strict=True)))
    for detail in ("activations", "prefill_attention"):
        yield replace(Conventions(), **{detail: False})
    yield replace(Conventions(), reserve_bytes_per_chip=1e9)
    yield BOOK


def deployed(name: str, conventions: Conventions) -> Deployment:
    model, slice_, changes = DEPLOYED[name]
    chip = load_slice(slice_).chip
    found = Deployment(
        model=load_model(model),
        slice=load_slice(slice_),
        precision=Precision(weights="int8"),
        workload=Workload(prompt_tokens=8192, output_tokens=512, context_tokens=8448, capacity_context_tokens=8704),
        conventions=conventions,
        mfu=0.4,
        price=chip.prices[0],
    )
    return found.with_(**changes)


@cache
def explained() -> dict[tuple[str, str], Derivation]:
    """Every quantity under every convention and network, once for each function that serves it."""
    found: dict[tuple[str, str], Derivation] = {}
    for kind in DEPLOYED:
        for conventions in every_convention():
            deployment = deployed(kind, conventions)
            for name, formula in deployment.graph.formulas.items():
                if (name, formula.computed_by) not in found:
                    found[name, formula.computed_by] = deployment.explain(name, ORIGINS, **POINT)
    return found


ALL = [pytest.param(key, id="-".join(key).replace("slicewise.costs.", "")) for key in explained()]


def every_part(derivation: Derivation) -> Iterator[Derivation]:
    yield derivation
    for part in derivation.parts:
        yield from every_part(part)


def test_there_are_many_formulas() -> None:
    assert len(explained()) > 140


def test_every_module_of_the_costs_is_wired_but_those_of_pages_and_blocks() -> None:
    files = {path.stem for path in Path(weights.__file__).parent.glob("*.py")} - {"__init__", "real"}
    assert {module.__name__.rpartition(".")[2] for module in (*MODULES, paging, hybrid_paging)} == files


def test_every_function_of_the_costs_serves_a_quantity() -> None:
    """A formula that nothing wires is dead; those that a formula calls have no name in the graph."""
    wired = {key[1] for key in explained()}
    for module in MODULES:
        for name, function in vars(module).items():
            if getattr(function, "__module__", "") == module.__name__ and callable(function):
                called = name in (
                    "collective_s",
                    "axis_bytes_per_s",
                    "axis_hops",
                    "cache_bytes",
                    "window_tokens",
                    "mean_context_tokens",
                    "attended_tokens",
                )
                assert called or f"{module.__name__}.{name}" in wired or name.endswith("_per_usd")


@pytest.mark.parametrize("key", ALL)
def test_every_formula_is_explained_down_to_facts_with_their_origin(key: tuple[str, str]) -> None:
    derivation = explained()[key]
    assert derivation.formula
    assert derivation.numbers
    assert derivation.meaning
    assert derivation.computed_by == key[1]
    for part in every_part(derivation):
        if not part.formula and not part.seen:
            assert part.origin, f"{part.name} has no origin"
            assert not part.parts


@pytest.mark.parametrize("key", ALL)
def test_the_formula_as_written_computes_the_value(key: tuple[str, str]) -> None:
    derivation = explained()[key]
    scope: dict[str, Any] = dict(MATHS)
    for module in MODULES:
        scope |= vars(module)
    scope |= {part.name: part.value for part in derivation.parts} | {"max": max, "min": min, "sum": sum}
    # A lone generator has no brackets of its own, as people write it.
    written = re.sub(
        r"\b(min|max)\(([^()]*(?:\([^()]*\))?[^()]* for [^()]*), default=", r"\1((\2), default=", derivation.formula
    )
    assert eval(written.replace("×", "*"), scope) == pytest.approx(float(derivation.value), rel=1e-12)


NUMBER = re.compile(
    r"\$?([\d,]*\d\.?\d*(?:e[-+]?\d+)?)"
    r" ?(ns|µs|ms|s|[kMGTP]?B/s|[kMGTP]?B|[GTP]?FLOP/s|[MGTP]?FLOP|[kMG]?Hz|/s)?(?![\w.])"
)


def as_number(match: re.Match[str]) -> str:
    text, suffix = match[1], match[2] or ""
    if not suffix:
        return text.replace(",", "")
    unit = "s" if suffix in ("ns", "µs", "ms", "s") else "B/s" if suffix.endswith("B/s") else "B"
    if suffix.endswith("Hz"):
        unit = "Hz"
    if suffix == "/s":
        unit = "request/s"
    elif "FLOP" in suffix:
        unit, suffix = "FLOP/s", suffix.removesuffix("/s") + "/s"
    return repr(parse(f"{text} {suffix}", unit))


def least(*terms: Any, default: float = math.inf) -> float:
    return min(terms, default=default)


def most(*terms: Any, default: float = -math.inf) -> float:
    return max(terms, default=default)


@pytest.mark.parametrize("key", ALL)
def test_the_numbers_as_written_compute_the_value(key: tuple[str, str]) -> None:
    """Numbers are shown in five digits, so a difference of large ones may be off by those digits of the largest."""
    derivation = explained()[key]
    written = NUMBER.sub(as_number, derivation.numbers.replace("×", "*").replace("unlimited", "inf"))
    scope = {**MATHS, "min": least, "max": most}
    sizes = [float(part.value) for part in derivation.parts if np.isscalar(part.value) and np.isfinite(part.value)]
    slack = 2e-4 * max(map(abs, sizes), default=0.0) if " - " in derivation.formula else 0.0
    assert eval(written, scope) == pytest.approx(float(derivation.value), rel=5e-4, abs=slack)


@pytest.mark.parametrize("network", ["torus", "switch", "none"])
@pytest.mark.parametrize("splits_batch", [True, False])
def test_what_hides_a_network_is_wired_by_convention(network: str, splits_batch: bool) -> None:
    traits = Traits(network=network, splits_batch=splits_batch)
    serves = wiring.graph(Conventions(), traits).formulas["all_to_all_bytes_per_s"].function
    hidden = network == "none" or not splits_batch
    assert (serves is collectives.no_bytes_per_s) == hidden
    quiet = wiring.graph(Conventions(ici="none"), traits).formulas
    assert quiet["all_gather_bytes_per_s"].function is collectives.no_bytes_per_s
    assert quiet["all_gather_latency_s"].function is collectives.no_latency_s


@pytest.mark.parametrize("network", ["torus", "switch"])
def test_a_group_of_one_chip_gathers_nothing_and_still_sends_to_experts(network: str) -> None:
    traits = Traits(
        network=network, is_layered=True, has_ranks=True, has_experts=True, spreads_experts=True, gathers=False
    )
    formulas = wiring.graph(Conventions(), traits).formulas
    assert formulas["all_gather_bytes_per_s"].function is collectives.no_bytes_per_s
    assert formulas["all_gather_latency_s"].function is collectives.no_latency_s
    served = formulas["expert_all_to_all_bytes_per_s"].function
    assert served is getattr(collectives, f"{network}_expert_all_to_all_bytes_per_s")


def test_what_experts_need_is_wired_only_where_they_are_spread() -> None:
    whole = wiring.graph(Conventions(), Traits(network="torus", is_layered=True, has_experts=True)).formulas
    assert not any(name.startswith("expert_all_to_all") for name in whole)
    assert whole["ici_s"].function is layered_step.ici_s
    spread = Traits(network="torus", is_layered=True, has_ranks=True, has_experts=True, spreads_experts=True)
    assert wiring.graph(Conventions(), spread).formulas["ici_s"].function is spread_experts.ici_s


def test_what_weighs_what_is_stored_is_wired_where_weights_are_cut_evenly() -> None:
    stored = Traits(network="torus", as_stored=True)
    formulas = wiring.graph(Conventions(), stored).formulas
    assert formulas["weight_bytes"].function is weights.weight_bytes_as_stored
    by_rank = wiring.graph(Conventions(), replace(stored, is_layered=True, has_ranks=True)).formulas
    assert by_rank["weight_bytes"].function is ranks.weight_bytes


@pytest.mark.parametrize("split", CHOICES["split"])
@pytest.mark.parametrize("kv_split", CHOICES["kv_split"])
def test_ranks_share_the_batch_whatever_an_even_cut_would_copy(split: str, kv_split: str) -> None:
    counted = Conventions(split=split, kv_split=kv_split)
    formulas = wiring.graph(counted, Traits(network="torus", is_layered=True, has_ranks=True)).formulas
    assert formulas["max_batch"].function is getattr(memory, f"max_batch_{split}")
    assert formulas["kv_replication"].function is getattr(kv_cache, f"kv_replication_{split}")


def test_the_books_network_has_neither_hops_nor_all_to_alls() -> None:
    formulas = wiring.graph(BOOK, Traits(network="torus", splits_batch=True)).formulas
    assert formulas["all_gather_bytes_per_s"].function is collectives.torus_all_gather_bytes_per_s
    assert formulas["all_gather_latency_s"].function is collectives.no_latency_s
    assert formulas["all_to_all_bytes_per_s"].function is collectives.no_bytes_per_s


def test_copies_of_the_cache_need_no_all_to_alls() -> None:
    formulas = wiring.graph(Conventions(kv_split="copy"), Traits(network="torus", splits_batch=True)).formulas
    assert formulas["all_to_all_bytes_per_s"].function is collectives.no_bytes_per_s
    assert formulas["kv_replication"].function is kv_cache.kv_replication_copied
    assert formulas["max_batch"].function is memory.max_batch_copied


@pytest.mark.parametrize("view", CHOICES["view"])
def test_the_view_decides_the_step_and_the_prefill(view: str) -> None:
    for is_layered, served in ((False, prefill), (True, shared_prefill)):
        traits = Traits(network="torus", splits_batch=True, is_layered=is_layered)
        formulas = wiring.graph(Conventions(view=view), traits).formulas
        if view == "expected":
            assert formulas["step_s"].function is fitted.step_expected_s
            assert formulas["prefill_s"].function is fitted.prefill_expected_s
            waits = fitted_ranks if is_layered else fitted
            assert formulas["prefill_overhead_s"].function is waits.prefill_overhead_s
            table = wiring.graph(Conventions(view=view), replace(traits, is_compiled=True)).formulas
            served_by = compiled_layered if is_layered else compiled_prefill
            assert table["step_s"].function is compiled.step_expected_s
            assert table["prefill_s"].function is served_by.prefill_expected_s
            continue
        assert formulas["step_s"].function is getattr(decode, f"step_{view}_s")
        assert formulas["prefill_s"].function is getattr(served, f"prefill_{view}_s")
