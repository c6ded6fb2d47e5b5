"""The wired graph: under every convention each formula is explained down to facts, and its text computes its value."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from slicewise.catalog.load import load_model
from slicewise.catalog.slices import load_slice
from slicewise.costs import collectives, decode, kv_cache, limits, memory, money, prefill, serving, weights
from slicewise.derive import Derivation
from slicewise.planner import wiring
from slicewise.planner.conventions import BOOK, CHOICES, Conventions
from slicewise.planner.deployment import Deployment
from slicewise.spec.precision import Precision
from slicewise.spec.workload import Workload
from slicewise.units import parse

MODULES = (weights, kv_cache, memory, decode, prefill, serving, money, limits, collectives)
POINT = {"batch": 37, "requests_per_s": 10.0}
ORIGINS = {"requests_per_s": ("given by --rate", "")}
SLICES = {"torus": "v5e:8x16", "partial-torus": "v5e:2x4", "switch": "h100:16", "none": "h100:1"}


def every_convention() -> Iterator[Conventions]:
    for words in product(*CHOICES.values()):
        yield Conventions(**dict(zip(CHOICES, words, strict=True)))
    for detail in ("activations", "prefill_attention"):
        yield replace(Conventions(), **{detail: False})
    yield BOOK


def deployed(slice_: str, conventions: Conventions) -> Deployment:
    return Deployment(
        model=load_model("llama-3-70b"),
        slice=load_slice(slice_),
        precision=Precision(weights="int8"),
        workload=Workload(prompt_tokens=8192, output_tokens=512, context_tokens=8448, capacity_context_tokens=8704),
        conventions=conventions,
        mfu=0.4,
        price=load_slice(slice_).chip.prices[0],
    )


@cache
def explained() -> dict[tuple[str, str], Derivation]:
    """Every quantity under every convention and network, once for each function that serves it."""
    found: dict[tuple[str, str], Derivation] = {}
    for slice_ in SLICES.values():
        for conventions in every_convention():
            deployment = deployed(slice_, conventions)
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
    assert len(explained()) > 80


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
                    "window_tokens",
                    "mean_context_tokens",
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
    scope: dict[str, Any] = {"ceil": math.ceil, "floor": math.floor, "inf": math.inf}
    for module in MODULES:
        scope |= vars(module)
    scope |= {part.name: part.value for part in derivation.parts} | {"max": max, "min": min, "sum": sum}
    # A lone generator has no brackets of its own, as people write it.
    written = re.sub(
        r"\b(min|max)\(([^()]*(?:\([^()]*\))?[^()]* for [^()]*), default=", r"\1((\2), default=", derivation.formula
    )
    assert eval(written.replace("×", "*"), scope) == pytest.approx(float(derivation.value), rel=1e-12)


NUMBER = re.compile(
    r"\$?([\d,]*\d\.?\d*(?:e[-+]?\d+)?) ?(ns|µs|ms|s|[kMGTP]?B/s|[kMGTP]?B|[GTP]?FLOP/s|[MGTP]?FLOP|/s)?(?![\w.])"
)


def as_number(match: re.Match[str]) -> str:
    text, suffix = match[1], match[2] or ""
    if not suffix:
        return text.replace(",", "")
    unit = "s" if suffix in ("ns", "µs", "ms", "s") else "B/s" if suffix.endswith("B/s") else "B"
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
    scope = {"ceil": math.ceil, "floor": math.floor, "inf": math.inf, "min": least, "max": most}
    sizes = [float(part.value) for part in derivation.parts if np.isscalar(part.value) and np.isfinite(part.value)]
    slack = 2e-4 * max(map(abs, sizes), default=0.0) if " - " in derivation.formula else 0.0
    assert eval(written, scope) == pytest.approx(float(derivation.value), rel=5e-4, abs=slack)


@pytest.mark.parametrize("network", ["torus", "switch", "none"])
@pytest.mark.parametrize("splits_batch", [True, False])
def test_what_hides_a_network_is_wired_by_convention(network: str, splits_batch: bool) -> None:
    graph = wiring.graph(Conventions(), network, splits_batch=splits_batch)
    serves = graph.formulas["all_to_all_bytes_per_s"].function
    hidden = network == "none" or not splits_batch
    assert (serves is collectives.no_bytes_per_s) == hidden
    quiet = wiring.graph(Conventions(ici="none"), network, splits_batch=splits_batch).formulas
    assert quiet["all_gather_bytes_per_s"].function is collectives.no_bytes_per_s
    assert quiet["all_gather_latency_s"].function is collectives.no_latency_s


def test_the_books_network_has_neither_hops_nor_all_to_alls() -> None:
    formulas = wiring.graph(BOOK, "torus", splits_batch=True).formulas
    assert formulas["all_gather_bytes_per_s"].function is collectives.torus_all_gather_bytes_per_s
    assert formulas["all_gather_latency_s"].function is collectives.no_latency_s
    assert formulas["all_to_all_bytes_per_s"].function is collectives.no_bytes_per_s


def test_copies_of_the_cache_need_no_all_to_alls() -> None:
    formulas = wiring.graph(Conventions(kv_split="copy"), "torus", splits_batch=True).formulas
    assert formulas["all_to_all_bytes_per_s"].function is collectives.no_bytes_per_s
    assert formulas["kv_replication"].function is kv_cache.kv_replication_copied
    assert formulas["max_batch"].function is memory.max_batch_copied


@pytest.mark.parametrize("view", CHOICES["view"])
def test_the_view_decides_the_step_and_the_prefill(view: str) -> None:
    formulas = wiring.graph(Conventions(view=view), "torus", splits_batch=True).formulas
    assert formulas["step_s"].function is getattr(decode, f"step_{view}_s")
    assert formulas["prefill_s"].function is getattr(prefill, f"prefill_{view}_s")
