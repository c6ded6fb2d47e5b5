"""A decode step out of compiled operations: what the compiler gave, what was published, and what must always hold."""

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.efficiency_compiled import compiled_inputs, compiled_operations
from slicewise.catalog.load import measured_steps
from slicewise.costs import compiled
from slicewise.derive import Graph
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.spec.compiled import CompiledOperations
from slicewise.spec.model import dense_model
from slicewise.spec.precision import Precision

US, MS = 1e-6, 1e-3
CLOCKS_HZ = {"v5e": 1.5e9, "v5p": 1.75e9, "v6e": 1.75e9, "tpu7x": 2.2e9}
"""Peak FLOPs over those of all matrix units a cycle."""
INT8 = {"weights": "int8", "kv": "int8"}


def operations(chip: str, **dtypes: str) -> CompiledOperations:
    found = compiled_operations(chip, Precision(**dtypes))
    assert found is not None
    return found


def graph_of(deployment: Deployment, *modules: ModuleType) -> tuple[Graph, Mapping[str, Any]]:
    """The deployment's formulas with those of some modules, and its inputs with the chip's table."""
    chip = deployment.slice.chip
    inputs = compiled_inputs(replace(chip, clock_hz=CLOCKS_HZ[chip.name]), deployment.precision)
    assert inputs is not None
    functions = {name: formula.function for name, formula in deployment.graph.formulas.items()}
    for module in modules:
        own = {name: each for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__}
        functions |= {name: each for name, each in own.items() if callable(each)}
    return Graph.of(functions), {**deployment.inputs, **inputs}


def values(deployment: Deployment, *names: str, **given: Any) -> list[Any]:
    graph, inputs = graph_of(deployment, compiled)
    return list(graph.evaluate(names, {**inputs, **given}).values())


def deployment(model: str, **words: Any) -> Deployment:
    return ask(model, {"memory_fraction": 1, **words}).deployment()


# -- the compiler's own cycles ---------------------------------------------------------------------------------------


# Matmuls of LLaMA 3-70B's decode step in int8 at 32 rows on v5e 4x4, as the whole program has them: gate, up and down;
# queries, keys and values; output. `slicewise verify ... --estimate --json`, libtpu 0.0.42.1.
@pytest.mark.parametrize(
    ("inputs", "columns", "cycles"),
    [
        pytest.param(8192, 1792, 13_040, id="gate"),
        pytest.param(8192, 1792, 12_914, id="up"),
        pytest.param(1792, 8192, 12_657, id="down"),
        pytest.param(8192, 640, 7_268, id="queries-keys-values"),
        pytest.param(512, 8192, 5_952, id="output"),
    ],
)
def test_matmuls_of_a_whole_program(inputs: int, columns: int, cycles: int) -> None:
    table = operations("v5e", **INT8)
    element_cycles = compiled.weight_element_cycles(32, table)
    assert table.operation_cycles + inputs * columns * element_cycles == pytest.approx(cycles, rel=0.15)


# A bf16 matmul of 8192 x 8192 x 8192 alone, which also reads and writes HBM.
@pytest.mark.parametrize(
    ("chip", "cycles"), [("v5e", 9_557_312), ("v5p", 4_652_072), ("v6e", 2_977_840), ("tpu7x", 2_604_600)]
)
def test_a_large_matmul(chip: str, cycles: int) -> None:
    element_cycles = compiled.weight_element_cycles(8192, operations(chip))
    assert 0.75 < 8192**2 * element_cycles / cycles < 1.05


def test_beyond_the_last_rows_every_row_costs_the_same() -> None:
    table = operations("v5e")
    at = [float(compiled.weight_element_cycles(rows, table)) for rows in (512, 1024, 4096)]
    assert at[0] == table.element_cycles[-1]
    assert at == pytest.approx([at[0], 2 * at[0], 8 * at[0]])


# -- published steps, and whole programs -----------------------------------------------------------------------------


def test_published_steps() -> None:
    # LLaMA 3-70B in int8 on a v5e-16; nothing in the table was fitted to these.
    off = []
    for step in measured_steps():
        words = {"slice": step.slice, "weights": step.weights, "kv": step.kv, "context": step.context_tokens}
        (expected_s,) = values(deployment(step.model, **words), "step_expected_s", batch=step.batch)
        off.append(abs(float(expected_s) / step.step_s - 1))
    assert np.median(off) < 0.10
    assert max(off) < 0.20


# What the compiler's whole programs come to, from the table of docs/verify.md: LLaMA 3-70B in int8 on v5e 4x4.
@pytest.mark.parametrize(
    ("batch", "context", "estimate_ms"),
    [(8, 2048, 7.07), (8, 8192, 7.67), (16, 4096, 7.89), (32, 8192, 10.93), (64, 2048, 12.78), (128, 2048, 22.58)],
)
def test_whole_programs(batch: int, context: int, estimate_ms: float) -> None:
    (expected_s,) = values(
        deployment("llama-3-70b", slice="v5e:4x4", context=context, **INT8), "step_expected_s", batch=batch
    )
    assert expected_s == pytest.approx(estimate_ms * MS, rel=0.13)


def test_what_stands_between_a_step_and_its_bound() -> None:
    # docs/verify.md, B = 32 at 8,192 tokens: 68 us of core a layer, of which 5 matmuls take 35.
    names = ("matmul_core_s", "small_core_s", "ici_s", "kv_load_s", "attention_core_s", "expected_attention_s")
    matmul, small, ici, kv_load, attention_core, attention = values(
        deployment("llama-3-70b", slice="v5e:4x4", context=8192, **INT8), *names, batch=32
    )
    assert (matmul + small) / 80 == pytest.approx(68 * US, rel=0.15)
    assert matmul / 80 == pytest.approx(35 * US, rel=0.08)
    assert ici / 80 == pytest.approx(26 * US)
    assert attention_core < kv_load == attention


# -- what must always hold -------------------------------------------------------------------------------------------

MODELS = ("llama-3-70b", "llama-3.2-1b", "deepseek-v3", "gpt-oss-20b", "gemma-3-27b")
SLICES = ("v5e:4x4", "v5p:2x2x1", "v6e:2x4", "tpu7x:2x2x1", "v5e:1x1")


@given(
    model=st.sampled_from(MODELS),
    slice_name=st.sampled_from(SLICES),
    dtypes=st.sampled_from([{}, INT8, {"weights": "int4"}, {"weights": "fp8", "kv": "fp8"}]),
    batch=st.integers(1, 2000),
    context=st.integers(1, 200_000),
)
def test_never_below_the_bound(model: str, slice_name: str, dtypes: dict[str, str], batch: int, context: int) -> None:
    found = deployment(model, slice=slice_name, context=context, **dtypes)
    expected, bound, matmul_core, matmul, attention = values(
        found,
        *("step_expected_s", "step_overlapped_s", "matmul_core_s", "matmul_s", "expected_attention_s"),
        batch=batch,
    )
    assert np.isfinite(expected)
    assert expected >= bound * (1 - 1e-12)
    assert matmul_core >= matmul
    assert attention >= found.value("attention_s", batch=batch)
    # Nor out of this world: the core is slow at few rows, not idle.
    assert expected < 40 * bound + 100 * MS


@given(
    model=st.sampled_from(MODELS),
    slice_name=st.sampled_from(SLICES),
    batch=st.integers(1, 1000),
    more=st.integers(1, 500),
    context=st.integers(1, 50_000),
)
def test_more_sequences_or_tokens_never_take_less(
    model: str, slice_name: str, batch: int, more: int, context: int
) -> None:
    found = deployment(model, slice=slice_name, **INT8)
    contexts = np.array([[context], [context + more]])
    batches = np.array([batch, batch + more])
    (times,) = values(found, "step_expected_s", batch=batches, context_tokens=contexts)
    assert np.all(np.diff(times, axis=0) >= -1e-12)
    assert np.all(np.diff(times, axis=1) >= -1e-12)


@given(rows=st.lists(st.floats(0, 1e5), min_size=2, max_size=8), chip=st.sampled_from(list(CLOCKS_HZ)))
def test_elements_take_more_with_more_rows_and_never_more_than_in_proportion(rows: list[float], chip: str) -> None:
    table = operations(chip)
    at = np.sort(np.asarray(rows)) + 1e-3
    cycles = compiled.weight_element_cycles(at, table)
    assert np.all(np.diff(cycles) >= 0)
    assert np.all(np.diff(cycles / at) <= 1e-2 * (cycles / at)[:-1])


@given(
    batch=st.integers(1, 500),
    share=st.floats(0.1, 1),
    slice_name=st.sampled_from(SLICES),
    model=st.sampled_from(MODELS),
)
def test_less_bandwidth_is_never_faster(batch: int, share: float, slice_name: str, model: str) -> None:
    found = deployment(model, slice=slice_name, **INT8)
    fast, slow = (
        values(found, "step_expected_s", batch=batch, hbm_bytes_per_s=found.inputs["hbm_bytes_per_s"] * each)[0]
        for each in (1, share)
    )
    assert slow >= fast * (1 - 1e-12)


@given(batch=st.integers(1, 500), layers=st.integers(1, 100), more=st.integers(1, 50))
def test_more_layers_never_take_less(batch: int, layers: int, more: int) -> None:
    def made(n_layers: int) -> Any:
        sizes = {"d_model": 4096, "d_ff": 14336, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128, "vocab_size": 128256}
        model = dense_model(name="made", n_layers=n_layers, tied_embeddings=False, **sizes)
        return values(ask(model, {"slice": "v5p:2x2x1"}).deployment(), "step_expected_s", batch=batch)[0]

    assert made(layers + more) >= made(layers)


def test_a_grid_is_its_points() -> None:
    found = deployment("llama-3-70b", slice="v5e:4x4", **INT8)
    batches, contexts = np.array([1, 7, 300]), np.array([[100], [9000]])
    (grid,) = values(found, "step_expected_s", batch=batches, context_tokens=contexts)
    for row, context in enumerate(contexts[:, 0]):
        for column, batch in enumerate(batches):
            (point,) = values(found, "step_expected_s", batch=int(batch), context_tokens=int(context))
            assert grid[row, column] == pytest.approx(float(point))


def test_it_can_be_explained() -> None:
    graph, inputs = graph_of(deployment("llama-3-70b", slice="v5e:4x4", **INT8), compiled)
    origins = dict.fromkeys((*inputs, "batch"), ("given", ""))
    found = graph.explain("step_expected_s", {**inputs, "batch": 32}, origins)
    summed = "expected_attention_s + streamed_weights_s + fetched_weights_s"
    assert found.formula == f"max(({summed}) × step_ratio, step_overlapped_s)"
