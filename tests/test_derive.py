"""Wiring by name: evaluating equals calling, and an explanation says what was computed."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.derive import Derivation, Graph, show_value
from slicewise.errors import UnknownFactError, UnknownNameError
from slicewise.spec.topology import Axis

POSITIVE = st.floats(1e-6, 1e6)
FREE_RIDERS = 2


def load_s(weight_bytes: Any, bytes_per_s: Any) -> Any:
    """Time to read the weights. [s]

    Neglects: everything else.
    Source: a-key
    """
    return weight_bytes / bytes_per_s


def weight_bytes(n_params: Any, bytes_per_param: Any) -> Any:
    """Bytes of the weights. [B]"""
    return n_params * bytes_per_param


def step_s(load_s: Any, flops_s: Any) -> Any:
    """A step. [s]"""
    longer = np.maximum(load_s, flops_s)
    return longer + flops_s / FREE_RIDERS


def capped_tokens(tokens: Any, most: Any) -> Any:
    """Tokens, up to a limit. []"""
    return np.where(tokens > most, most, np.minimum(tokens, most))


def longest_s(load_s: Any, flops_s: Any, wait_s: Any) -> Any:
    """The longest of three. [s]"""
    return np.maximum(np.maximum(load_s, flops_s), wait_s)


def twice_s(load_s: Any) -> Any:
    """Twice the load. [s]"""
    return 2 * load_s


def calling_s(flops_s: Any) -> Any:
    """A formula that calls another. [s]"""
    return twice_s(flops_s) + 1


def longest_axis(axes: tuple[Axis, ...]) -> int:
    """The longest axis that is a ring. []"""
    return max(axis.length for axis in axes if axis.wraps)


def all_links_bytes_per_s(axes: tuple[Axis, ...]) -> float:
    """One link of each axis. [B/s]"""
    return sum(axis.link_bytes_per_s for axis in axes)


def longest_ring_hops(axes: tuple[Axis, ...], slack: Any) -> Any:
    """The most hops of an axis, at least one, beyond a slack. []"""
    hops = [np.asarray(axis.length / 2 - slack) for axis in axes]
    return np.max(hops, axis=0, initial=1.0)


def no_formula(tokens: Any) -> None:
    """Returns nothing. []"""


GRAPH = Graph.of(
    {
        f.__name__: f
        for f in (
            load_s, weight_bytes, step_s, capped_tokens, longest_s, calling_s, longest_axis, all_links_bytes_per_s,
            longest_ring_hops,
        )
    }
)  # fmt: skip
INPUTS = {"n_params": 8e9, "bytes_per_param": 2.0, "bytes_per_s": 8e11, "flops_s": 0.002}
ORIGINS = {name: (f"{name} as printed", "a document") for name in INPUTS}
AXES = (
    Axis(length=16, wraps=True, link_bytes_per_s=4.5e10),
    Axis(length=8, wraps=False, link_bytes_per_s=4.5e10),
)


# -- evaluating ------------------------------------------------------------------------------------------------------


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_the_graph_computes_what_direct_calls_do(n_params: float, width: float, rate: float, flops_s: float) -> None:
    inputs = {"n_params": n_params, "bytes_per_param": width, "bytes_per_s": rate, "flops_s": flops_s}
    assert GRAPH.evaluate(["step_s", "load_s"], inputs) == {
        "step_s": step_s(load_s(weight_bytes(n_params, width), rate), flops_s),
        "load_s": load_s(weight_bytes(n_params, width), rate),
    }


@given(POSITIVE)
def test_an_input_wins_over_a_formula(given_s: float) -> None:
    assert GRAPH.evaluate(["load_s", "step_s"], {"load_s": given_s, "flops_s": 0.0}) == {
        "load_s": given_s,
        "step_s": given_s,
    }


@given(st.lists(POSITIVE, min_size=1, max_size=5), st.lists(POSITIVE, min_size=1, max_size=5))
def test_a_grid_equals_its_points(params: list[float], rates: list[float]) -> None:
    axes = {"n_params": np.array(params)[:, None], "bytes_per_s": np.array(rates)[None, :]}
    grid = GRAPH.evaluate(["step_s"], {**INPUTS, **axes})["step_s"]
    assert grid.shape == (len(params), len(rates))
    for i, n_params in enumerate(params):
        for j, rate in enumerate(rates):
            point = GRAPH.evaluate(["step_s"], {**INPUTS, "n_params": n_params, "bytes_per_s": rate})
            assert grid[i, j] == point["step_s"]


def test_inputs_are_left_as_they_were() -> None:
    inputs = dict(INPUTS)
    GRAPH.evaluate(["step_s"], inputs)
    assert inputs == INPUTS


def test_a_quantity_may_be_served_by_a_function_of_another_name() -> None:
    graph = Graph.of({"load_s": twice_s, "step_s": step_s})
    with pytest.raises(RecursionError):
        graph.evaluate(["load_s"], {})
    renamed = Graph.of({"double_s": twice_s})
    assert renamed.evaluate(["double_s"], {"load_s": 3.0}) == {"double_s": 6.0}
    assert renamed.explain("double_s", {"load_s": 3.0}, {}).computed_by.endswith("twice_s")


@pytest.mark.parametrize("ask", [lambda g, n: g.evaluate([n], INPUTS), lambda g, n: g.explain(n, INPUTS, ORIGINS)])
def test_an_unknown_number_is_refused_with_the_nearest(ask: Any) -> None:
    with pytest.raises(UnknownNameError, match="unknown number 'lod_s': did you mean load_s"):
        ask(GRAPH, "lod_s")


def test_an_input_that_is_not_known_is_named_with_what_rests_on_it() -> None:
    unknown = {**INPUTS, "bytes_per_s": None}
    with pytest.raises(UnknownFactError, match="load_s rests on bytes_per_s, which is not known here"):
        GRAPH.evaluate(["step_s"], unknown)
    with pytest.raises(UnknownFactError, match="bytes_per_s is not known here"):
        GRAPH.explain("bytes_per_s", unknown, ORIGINS)


def test_a_missing_input_is_named() -> None:
    with pytest.raises(UnknownNameError, match="unknown number 'bytes_per_s'"):
        GRAPH.evaluate(["load_s"], {"weight_bytes": 1.0})


# -- explaining ------------------------------------------------------------------------------------------------------


def test_an_explanation_replays_the_computation_down_to_facts() -> None:
    found = GRAPH.explain("step_s", INPUTS, ORIGINS)
    assert found.value == GRAPH.evaluate(["step_s"], INPUTS)["step_s"] == 0.021
    assert (found.name, found.unit, found.meaning) == ("step_s", "s", "A step")
    assert found.formula == "max(load_s, flops_s) + flops_s / FREE_RIDERS"
    assert found.numbers == "max(20 ms, 2 ms) + 2 ms / 2"
    load, flops = found.parts
    assert (load.name, load.value, load.formula) == ("load_s", 0.02, "weight_bytes / bytes_per_s")
    assert load.numbers == "16 GB / 800 GB/s"
    assert (flops.origin, flops.source, flops.formula) == ("flops_s as printed", "a document", "")


def test_a_product_is_written_with_a_times_sign() -> None:
    assert GRAPH.explain("weight_bytes", INPUTS, ORIGINS).formula == "n_params × bytes_per_param"
    assert GRAPH.explain("weight_bytes", INPUTS, ORIGINS).numbers == "8,000,000,000 × 2 B"


def test_the_notes_hold_what_is_neglected_and_the_source() -> None:
    assert GRAPH.formulas["load_s"].notes == "Neglects: everything else.\nSource: a-key"


@given(POSITIVE, POSITIVE, POSITIVE)
def test_formula_and_numbers_compute_the_value(load: float, flops: float, wait: float) -> None:
    found = GRAPH.explain("longest_s", {"load_s": load, "flops_s": flops, "wait_s": wait}, {})
    assert found.formula == "max(load_s, flops_s, wait_s)"
    assert eval(found.formula, {"load_s": load, "flops_s": flops, "wait_s": wait}) == found.value


@pytest.mark.parametrize(("tokens", "value"), [(5.0, 5.0), (50.0, 10.0)])
def test_a_choice_reads_as_one(tokens: float, value: float) -> None:
    found = GRAPH.explain("capped_tokens", {"tokens": tokens, "most": 10.0}, {})
    assert found.formula == "most if tokens > most else min(tokens, most)"
    assert found.numbers == f"10 if {tokens:g} > 10 else min({tokens:g}, 10)"
    assert found.value == value == eval(found.numbers)


def test_formulas_that_are_called_are_put_in() -> None:
    found = GRAPH.explain("calling_s", {"flops_s": 0.5}, {})
    assert (found.formula, found.numbers, found.value) == ("2 × flops_s + 1", "2 × 500 ms + 1", 2.0)


def test_sums_and_extremes_over_structures_are_written_out_term_by_term() -> None:
    found = GRAPH.explain("all_links_bytes_per_s", {"axes": AXES}, {})
    assert (found.numbers, found.value) == ("(45 GB/s + 45 GB/s)", 9e10)
    assert found.formula == "sum(axis.link_bytes_per_s for axis in axes)"
    assert GRAPH.explain("longest_axis", {"axes": AXES}, {}).numbers == "max(16)"
    assert GRAPH.explain("all_links_bytes_per_s", {"axes": ()}, {}).numbers == "(0)"


def test_the_greatest_of_arrays_is_spelled_out_from_where_it_starts() -> None:
    found = GRAPH.explain("longest_ring_hops", {"axes": AXES, "slack": 2.0}, {})
    assert found.formula == "max(1.0, *(axis.length / 2 - slack for axis in axes))"
    assert (found.numbers, found.value) == ("max(1.0, 6, 2)", 6.0)
    grid = GRAPH.evaluate(["longest_ring_hops"], {"axes": AXES, "slack": np.array([0.0, 7.5])})
    assert grid["longest_ring_hops"].tolist() == [8.0, 1.0]


def test_what_was_derived_above_is_not_repeated() -> None:
    graph = Graph.of({"load_s": load_s, "step_s": step_s, "flops_s": twice_s})
    found = graph.explain("step_s", {"weight_bytes": 1.0, "bytes_per_s": 4.0}, {})
    first, second = found.parts
    assert not first.seen
    assert second.parts[0].name == "load_s"
    assert second.parts[0].seen
    assert second.parts[0].value == 0.25
    assert not second.parts[0].parts


def test_an_input_that_wins_is_explained_as_a_fact() -> None:
    found = GRAPH.explain("step_s", {"load_s": 1.0, "flops_s": 0.0}, {"load_s": ("as measured", "")})
    assert found.parts[0] == Derivation(name="load_s", value=1.0, unit="s", origin="as measured")


def test_a_function_without_a_plain_return_is_no_formula() -> None:
    with pytest.raises(TypeError, match="no_formula is not a formula"):
        _ = Graph.of({"no_formula": no_formula}).formulas["no_formula"].text


def test_a_derivation_is_json() -> None:
    found = json.loads(json.dumps(GRAPH.explain("step_s", INPUTS, ORIGINS).to_dict(), allow_nan=False))
    assert [part["name"] for part in found["parts"]] == ["load_s", "flops_s"]
    assert found["parts"][1] == {
        "name": "flops_s",
        "value": 0.002,
        "unit": "s",
        "origin": "flops_s as printed",
        "source": "a document",
    }


def test_an_unlimited_fact_is_json_too() -> None:
    found = GRAPH.explain("capped_tokens", {"tokens": np.float64(5.0), "most": math.inf}, {}).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False))["value"] == 5.0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.002, "s", "2 ms"),
        (np.float64(3.0), "", "3"),
        (None, "B", "unknown"),
        ("words", "", "words"),
        ((), "", "[none]"),
    ],
)
def test_values_are_shown_for_people(value: object, unit: str, text: str) -> None:
    assert show_value(value, unit) == text
