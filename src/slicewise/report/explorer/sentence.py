"""The answer in words: what to run, what it gives, what binds; or why it does not fit, and what comes nearest."""

from __future__ import annotations

from slicewise.planner.step import Step
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.numbers import ANSWER, PLAN, Number, number
from slicewise.report.explorer.prose import Printed, Segment, linked
from slicewise.report.explorer.resources import resource_of
from slicewise.report.views.words import BOUNDS
from slicewise.units import show, show_gib

HOVERS = {
    "param_load": "Every step reads every weight once. While that takes longest, more sequences at a time cost little.",
    "kv_load": "Every step reads the cache of every sequence. That grows with the batch and with the context.",
    "matmul": "Every step multiplies each token with the weights. Beyond the critical batch that takes longest.",
    "attention_flops": "Attention multiplies each query with the whole cache, and that takes longest.",
    "ici": "Chips exchange activations in every layer, and that takes longest.",
}


def sentence(found: Found) -> list[list[Segment]]:
    """The lines of the answer."""
    if found.option is None:
        return _refused(found)
    return [_what(found), _gives(found), _bound(found)]


def _what(found: Found) -> list[Segment]:
    step, words = found.step, _plural(found.step.batch)
    layout = f" ({step.layout})" if step.layout else ""
    return [
        *_words("Run it on "),
        {"text": f"{step.slice}{layout}", "strong": True},
        *_words(", "),
        _number(number("n_chips", step.n_chips, door=ANSWER)),
        *_words(f" chip{'s' if step.n_chips > 1 else ''}, "),
        _number(number("batch", step.batch, door=PLAN)),
        *_words(f" {words} at a time."),
    ]


def _plural(count: int) -> str:
    return "sequence" if count == 1 else "sequences"


def _gives(found: Found) -> list[Segment]:
    step, option = found.step, found.option
    assert option is not None, "there is an answer"
    asked_price = option.request_usd if option.request_usd is not None else None
    segments = [
        _number(number("step_s", step.step_s, door=ANSWER)),
        *_words(f" a token{'' if found.is_expected else ' at least'} · "),
        _number(number("tokens_per_s", step.tokens_per_s, door=ANSWER)),
    ]
    if step.usd_per_million_output_tokens is not None:
        segments += [
            *_words(" · "),
            _number(number("usd_per_million_output_tokens", step.usd_per_million_output_tokens, door=ANSWER)),
            *_words(" per million output tokens"),
        ]
    if asked_price is not None:
        segments += [*_words(" · "), _number(number("request_usd", asked_price, door=ANSWER)), *_words(" a request")]
    return segments


def _bound(found: Found) -> list[Segment]:
    step = found.step
    segments = [*_words("Bound by "), _binds(step), *_words(". ")]
    if step.figures and found.is_expected:
        step_s = step.figures["step_s"]
        segments += [
            *_words("No engine betters "),
            _number(number("step_overlapped_s", step_s.bound, door=ANSWER)),
            *_words("; a range made to hold 8 of 10 measurements lies between "),
            _number(number("step_low_s", step_s.low, door=ANSWER)),
            *_words(" and "),
            _number(number("step_high_s", step_s.high, door=ANSWER)),
            *_words(". "),
        ]
    most = number("max_batch", step.max_batch, door=ANSWER)
    return [*segments, *_words("At most "), _number(most), *_words(f" {_plural(step.max_batch)} fit.")]


def _binds(step: Step) -> Segment:
    key = step.bound or ""
    return {"text": BOUNDS[key], "resource": resource_of(f"{key}_s"), "hover": HOVERS[key]}


def _refused(found: Found) -> list[list[Segment]]:
    step = found.step
    if not step.fits:
        return [
            [
                _number(number("batch", step.batch, door=ANSWER)),
                *_words(f" {_plural(step.batch)} of "),
                _number(number("capacity_context_tokens", step.capacity_context_tokens, door=ANSWER)),
                *_words(f" tokens {'does' if step.batch == 1 else 'do'} not fit "),
                {"text": step.slice, "strong": True},
                *_words("."),
            ],
            _reason(found),
        ]
    return [
        _words("No plan meets the limits."),
        _reason(found),
        [
            *_words("Nearest: "), {"text": step.slice, "strong": True}, *_words(", "),
            _number(number("batch", step.batch, door=ANSWER)), *_words(" at a time, "),
            _number(number("step_s", step.step_s, door=ANSWER)), *_words(" a token."),
        ],
    ]  # fmt: skip


def _reason(found: Found) -> list[Segment]:
    """Why, with the numbers of what is shown as doors; those of another slice stay words."""
    step = found.step
    sizes = ("weight_bytes", "hbm_bytes", "total_bytes", "kv_bytes", "free_bytes")
    values = {name: float(getattr(step, name)) for name in sizes}
    values["hbm_bytes_per_chip"] = found.deployment.hbm_bytes_per_chip
    printed: list[Printed] = [(show_gib(value), number(name, value, door=ANSWER)) for name, value in values.items()]
    printed += [
        (show(-step.free_bytes, "B"), number("free_bytes", step.free_bytes, door=ANSWER)),
        (f"{step.max_batch:,} sequences", number("max_batch", step.max_batch, door=ANSWER)),
    ]
    if step.fits:
        times = {name: getattr(step, name) for name in ("param_load_s", "kv_load_s", "matmul_s", "ici_s", "step_s")}
        times["ttft_s"] = float(found.deployment.value(found.deployment.ttft))
        printed += [(show(value, "s"), number(name, value, door=ANSWER)) for name, value in times.items()]
    return linked(f"{found.reason}.", printed)


def _words(text: str) -> list[Segment]:
    return [{"text": text}]


def _number(found: Number | None) -> Segment:
    return {"number": found} if found is not None else {"text": "unknown"}
