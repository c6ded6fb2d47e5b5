"""The bound beside what is expected: three figures of each number, and what an expected time is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slicewise.planner.figures import Figures
from slicewise.planner.step import Step
from slicewise.report.document import Items, Table
from slicewise.report.views.words import ms, rate, usd
from slicewise.units import brief_alike, unit_of

NUMBERS = {
    "step_s": "decode step",
    "prefill_s": "prefill, of the slice's time",
    "ttft_s": "time to the first token",
    "ttft_split_s": "prefill and hand-off (TTFT)",
    "tpot_shared_s": "a token, prefills in between",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_chip": "tokens/s per chip",
    "requests_per_s_per_chip": "requests/s per chip, decode alone",
    "requests_per_s_shared": "requests/s of a replica",
    "prefill_tokens_per_s_per_chip": "prompt tokens/s per chip",
    "usd_per_million_input_tokens": "$ per million input tokens",
    "usd_per_million_output_tokens": "$ per million output tokens",
    "usd_per_million_tokens": "$ per million tokens, all",
    "request_usd": "$ a request",
    "prefill_servers_per_decode_server": "prefill servers per decode server",
    "prefill_requests_per_s": "prompts/s of a prefill server",
    "decode_requests_per_s": "requests/s of a decode server",
}
"""Numbers that have three figures, in words."""

TERMS = {
    "expected_param_load_s": "load parameters",
    "expected_prefill_param_load_s": "load parameters",
    "expected_kv_load_s": "load the KV cache",
    "expected_attention_s": "attention, with the KV cache",
    "expected_flops_s": "FLOPs beside the loads",
    "expected_prefill_flops_s": "FLOPs",
    "expected_ici_s": "network (collectives)",
    "expected_prefill_ici_s": "network (collectives)",
    "streamed_weights_s": "streaming weights, or their matmuls if longer",
    "fetched_weights_s": "fetching weights, or all work beside if longer",
    "prefill_waiting_s": "waiting for parameters beyond the rest",
    "prefill_matmul_core_s": "matmuls",
    "prefill_attention_core_s": "attention",
    "prefill_small_core_s": "norms, residuals, cache writes",
    "prefill_ici_s": "network (collectives)",
    "prefill_busy_ici_s": "network (collectives)",
    "prefill_overhead_s": "layers: launches, norms, waiting",
    "overhead_s": "layers: launches, norms, waiting",
    "tokens_s": "sequences: what grows with the batch",
    "prefill_tokens_s": "tokens: what grows with the prompt",
}
"""Terms of an expected time, in words; others go by their names."""


def figures_table(found: Mapping[str, Figures], title: str = "Bound, expected and range") -> Table:
    """Three figures of each number; the range holds 8 of 10 measurements."""
    rows = [[NUMBERS.get(name, name), *_cells(name, each)] for name, each in found.items() if name in NUMBERS]
    return Table(title, ["", "bound", "expected", "low", "high"], rows)


def spread(name: str, each: Figures) -> str:
    """The bound and the range of a number, in a clause."""
    bound, _, low, high = _cells(name, each)
    return f"bound {bound}, range {low} to {high}"


TOLD = "expected (bound; low–high)"
"""How `told` writes three figures."""


def told(name: str, each: Figures) -> str:
    """Three figures of a number in a cell of a table of many rows, in three digits and one unit."""
    unit = unit_of(name)
    expected, *others = brief_alike([each.expected, each.bound, each.low, each.high], "" if unit == "1/s" else unit)
    bound, low, high = others
    return f"{expected} ({bound}; {low}–{high})"


def whose(steps: Iterable[tuple[str, Step]]) -> Items:
    """Whose times are expected of which rows, and how many measurements are behind them."""
    found: dict[str, list[str]] = {}
    for name, step in steps:
        if step.figures is not None:
            found.setdefault(step.deployment.expectation.basis, []).append(name)
    return Items("Expected times", [f"{', '.join(names)}: {basis}" for basis, names in found.items()])


def terms_table(terms: Mapping[str, float], title: str) -> Table:
    """What an expected time is made of."""
    largest = max(terms, key=lambda name: terms[name])
    rows = [
        [TERMS.get(name, name), ms(seconds), "← most" if name == largest else ""] for name, seconds in terms.items()
    ]
    return Table(title, ["", "time", ""], rows, left=(0, 2))


def _cells(name: str, each: Figures) -> tuple[str, str, str, str]:
    show = usd if "usd" in name else ms if name.endswith("_s") and "per_s" not in name else rate
    return show(each.bound), show(each.expected), show(each.low), show(each.high)
