"""Words that several documents share."""

from __future__ import annotations

from slicewise.planner.assumptions import model_notes
from slicewise.planner.step import BOUND_WORDS, Step
from slicewise.report.document import Items, Line, Table
from slicewise.units import show, show_gib

BOUNDS = {**BOUND_WORDS, "prefill_flops": "FLOPs", "prefill_ici": BOUND_WORDS["ici"]}
"""What binds, in words."""

BOUND_BY = {
    "param_load": "parameters",
    "kv_load": "KV cache",
    "matmul": "FLOPs",
    "attention_flops": "attention FLOPs",
    "ici": "network",
}
"""What binds, in a cell of a table."""

TERM_WORDS = {
    "param_load_s": "load parameters",
    "kv_load_s": "load the KV cache",
    "matmul_s": "matmul FLOPs",
    "attention_flops_s": "attention FLOPs",
    "ici_s": "network (collectives)",
}


def kind(step: Step) -> str:
    """What a step's time is in a view of bounds."""
    return "nothing overlapped" if step.view == "serial" else "a bound"


def ms(seconds: float | None) -> str:
    """A time, four digits."""
    return show(seconds, "s", 4)


def usd(amount: float | None) -> str:
    """Dollars, or that no price is known."""
    return "no price" if amount is None else show(amount, "USD")


def rate(per_s: float | None) -> str:
    """A rate, four digits."""
    return show(per_s, "", 4)


def ledger(step: Step) -> Table:
    """Where a slice's memory goes."""
    n_chips = step.n_chips
    rows = [
        ("weights", f"{step.n_params:,.0f} × {step.weight_dtype}", step.weight_bytes),
        (
            "KV cache",
            f"{step.batch:,} × {_held(step):,.0f} tokens, {step.kv_dtype}{_uneven(step)}",
            step.kv_bytes,
        ),
        ("activations", "logits, gate and up", step.activation_bytes),
        ("total", "", step.total_bytes),
        ("granted", "", step.hbm_bytes),
        ("free", "" if step.fits else "DOES NOT FIT", step.free_bytes),
    ]
    cells = [[name, what, show_gib(size), show_gib(size / n_chips)] for name, what, size in rows]
    return Table(
        "Memory",
        ["", "", "fullest chip × chips" if step.kv_replication != 1 else "whole slice", "per chip"],
        cells,
        left=(0, 1),
    )


def _held(step: Step) -> float:
    """Tokens of a sequence that the cache holds: all of them, or the attention window."""
    return float(step.deployment.value("kv_held_tokens"))


def _uneven(step: Step) -> str:
    """What an uneven split or copies add."""
    return "" if step.kv_replication == 1 else f", × {show(step.kv_replication, '', 4)} on the fullest chip"


def terms(step: Step) -> Table:
    """Where a step's time goes."""
    rows = [[words, ms(getattr(step, name)), _remark(step, name)] for name, words in TERM_WORDS.items()]
    return Table("Terms of the step", ["", "time", ""], rows, left=(0, 2))


def _remark(step: Step, name: str) -> str:
    if name == f"{step.bound}_s":
        return "← binds"
    return "not counted in this view" if step.view == "roofline" and name == "ici_s" else ""


def knee_sentence(step: Step) -> str:
    """The knee, and whether it lies within what fits."""
    if step.experts_touched is not None and step.knee_batch is not None and step.knee_batch <= 1:
        return "A further sequence costs more than its own cache: it touches further experts."
    if step.knee_batch is None:
        return "A further sequence costs only its own cache."
    if step.knee_batch >= step.max_batch:
        return f"A further sequence costs only its own cache (the knee, {step.knee_batch:,}, lies beyond)."
    return f"Up to {step.knee_batch:,} (the knee) a further sequence costs only its own cache."


def cache_words(step: Step) -> str:
    """What a token costs of the cache, and what it costs where windows are full."""
    per_token = f"{show(step.kv_bytes_per_token, 'B')} a token"
    if step.kv_growth_bytes_per_token is None or step.kv_growth_bytes_per_token == step.kv_bytes_per_token:
        grown = ""
    else:
        grown = f" while no window is full, {show(step.kv_growth_bytes_per_token, 'B')} at this length"
    state = f", and {show(step.kv_state_bytes, 'B')} of states a sequence" if step.kv_state_bytes else ""
    return f"{per_token}{grown}{state}"


def experts_lines(step: Step) -> list[Line]:
    """How the batch meets the experts, where there are any."""
    if step.experts_touched is None or step.tokens_per_expert is None:
        return []
    model = step.deployment.model
    who = "1 sequence touches" if step.batch == 1 else f"{step.batch:,} sequences touch"
    words = (
        f"Experts: {who} {show(step.experts_touched, '', 4)} of the {model.n_experts:,} of a"
        f" layer, {model.n_active} each; an expert sees {show(step.tokens_per_expert, '', 3)} tokens on average"
    )
    if step.expert_tokens_per_chip is None or step.fullest_expert_tokens_per_chip is None:
        return [Line(f"{words}.")]
    return [
        Line(
            f"{words}, a chip's experts {show(step.expert_tokens_per_chip, '', 3)}, the busiest chip's about"
            f" {show(step.fullest_expert_tokens_per_chip, '', 3)} (routed evenly at random)."
        )
    ]


def notes(step: Step) -> list[Line]:
    """What a reader must know before the numbers, such as a context beyond the model's limit."""
    return [Line(f"Note: {sentence}") for sentence in model_notes(step.deployment)]


def assumed(sentences: tuple[str, ...]) -> Items:
    """The assumptions."""
    return Items("Assumed", sentences)
