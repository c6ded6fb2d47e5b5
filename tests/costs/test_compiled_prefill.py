"""Prefill out of compiled operations: what must always hold, and what a prompt on a v5e comes to."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.efficiency_compiled import compiled_inputs
from slicewise.costs import compiled, compiled_layered, compiled_prefill
from slicewise.derive import Graph
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask

CLOCKS_HZ = {"v5e": 1.5e9, "v5p": 1.75e9, "v6e": 1.75e9, "tpu7x": 2.2e9}
INT8 = {"weights": "int8", "kv": "int8"}
PARTS = ("prefill_matmul_core_s", "prefill_attention_core_s", "prefill_small_core_s")


def formulas(module: ModuleType) -> dict[str, Any]:
    own = {name: each for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__}
    return {name: each for name, each in own.items() if callable(each)}


def deployment(model: str, **words: Any) -> Deployment:
    return ask(model, {"memory_fraction": 1, **words}).deployment()


def values(found: Deployment, *names: str, **given: Any) -> list[Any]:
    chip = found.slice.chip
    inputs = compiled_inputs(replace(chip, clock_hz=CLOCKS_HZ[chip.name]), found.precision)
    assert inputs is not None
    functions = {name: formula.function for name, formula in found.graph.formulas.items()}
    functions |= formulas(compiled) | formulas(compiled_prefill)
    functions |= formulas(compiled_layered) if found.is_layered else {}
    return list(Graph.of(functions).evaluate(names, {**found.inputs, **inputs, **given}).values())


def peak_s(found: Deployment, **given: Any) -> Any:
    flops = found.value("prefill_flops", **given)
    return flops / (found.inputs["n_chips"] * found.inputs["flops_per_s"])


def test_a_prompt_of_llama_70b_on_v5e() -> None:
    found = deployment("llama-3-70b", slice="v5e:4x4", isl=8192, **INT8)
    expected, ici, *parts = values(found, "prefill_expected_s", "prefill_ici_s", *PARTS)
    assert expected == pytest.approx(sum(parts) + ici)
    # Matmuls come near the peak, attention does not: its softmax is not made for matrix units.
    peaks = [float(found.value(f"prefill_{name}_flops")) / (16 * 1.97e14) for name in ("matmul", "attention")]
    assert 1 < parts[0] / peaks[0] < 1.1
    assert 2 < parts[1] / peaks[1] < 5
    assert 0.3 < peak_s(found) / expected < 0.8


def test_few_tokens_wait_for_the_weights() -> None:
    found = deployment("llama-3-70b", slice="v5e:4x4", isl=16, **INT8)
    expected, load = values(found, "prefill_expected_s", "param_load_s")
    assert load <= expected < 2 * load


@given(
    model=st.sampled_from(["llama-3-70b", "llama-3.2-1b", "deepseek-v3", "gpt-oss-20b", "gemma-3-27b"]),
    slice_name=st.sampled_from(["v5e:4x4", "v5p:2x2x1", "v6e:2x4", "tpu7x:2x2x1"]),
    prompt=st.integers(1, 100_000),
    more=st.integers(1, 10_000),
)
def test_never_below_the_flops_at_peak_and_never_faster_for_more(
    model: str, slice_name: str, prompt: int, more: int
) -> None:
    found = deployment(model, slice=slice_name, **INT8)
    few, many = (values(found, "prefill_expected_s", prompt_tokens=each)[0] for each in (prompt, prompt + more))
    assert few >= peak_s(found, prompt_tokens=prompt) * (1 - 1e-12)
    assert many >= few * (1 - 1e-12)
    assert np.isfinite(many)


@given(dp=st.sampled_from([1, 2, 4]), prompt=st.integers(1000, 50_000))
def test_groups_that_serve_side_by_side_share_the_slice(dp: int, prompt: int) -> None:
    words = {"slice": "v5e:4x4", "isl": prompt, **INT8}
    found = deployment("llama-3-8b", dp=dp, tp=16 // dp, **words)
    (expected, bound) = values(found, "prefill_expected_s", "prefill_overlapped_s", mfu=1.0)
    assert expected >= bound * (1 - 1e-12)
    # A prompt takes as much of the slice whichever group it is on, but for heads that ranks hold copies of.
    (matmul,) = values(found, "prefill_matmul_core_s")
    (alone,) = values(deployment("llama-3-8b", **words), "prefill_matmul_core_s")
    assert matmul == pytest.approx(alone, rel=0.06)
