"""Compiled operations: what their figures must be like."""

from typing import Any

import pytest

from slicewise.spec.compiled import CompiledOperations

OF_CACHE = dict.fromkeys(
    ("kv_element_cycles", "score_cycles", "few_score_cycles", "softmax_cycles", "write_cycles", "row_cycles"), 1.0
)
OF_LAYER = dict.fromkeys(("layer_cycles", "activation_cycles", "fetched_bytes"), 1.0)
OF_PREFILL = dict.fromkeys(("prefill_activation_cycles", "prefill_score_cycles"), 1.0)
NAMES = {"chip": "v5e", "versions": "libtpu 1", "weights": "int8", "compute": "bf16", "kv": "int8"}


def made(rows: tuple[float, ...], cycles: tuple[float, ...]) -> CompiledOperations:
    figures: dict[str, Any] = {**NAMES, **OF_CACHE, **OF_LAYER, **OF_PREFILL}
    return CompiledOperations(operation_cycles=10.0, rows=rows, element_cycles=cycles, **figures)


def test_what_lies_beyond_goes_on_as_the_last_row() -> None:
    assert made((8, 16), (1.0, 1.6)).last_row_cycles == 0.1


@pytest.mark.parametrize(
    ("rows", "cycles", "why"),
    [
        pytest.param((8, 8), (1.0, 1.0), "must rise", id="rows"),
        pytest.param((8, 16), (1.0, 0.9), "cycles fall from 1 to 0.9", id="falling"),
        pytest.param((8, 16), (1.0, 2.1), "cycles rise faster than rows, to 2.1", id="steep"),
    ],
)
def test_figures_that_would_make_more_work_faster_are_refused(rows: Any, cycles: Any, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        made(rows, cycles)


def test_it_says_what_it_is_of() -> None:
    assert str(made((8,), (1.0,))) == "v5e: int8 weights, bf16 FLOPs, int8 cache, by XLA:TPU of libtpu 1"
