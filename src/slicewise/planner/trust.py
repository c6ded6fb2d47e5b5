"""How far to trust expected times, in sentences: whose they are, what the range held, and what was carried further."""

from __future__ import annotations

from collections.abc import Mapping

from slicewise.catalog.efficiency import TpuErrors, tpu_errors
from slicewise.spec.efficiency import Efficiency, Error, Scale

_OTHER = "of another model than the one that was measured"
_STAGES = "in pipeline stages, which were not measured"
_KINDS = "of a model whose layers are not all plain attention and an MLP, as measured ones are"
_UNNAMED = "an unnamed engine"
"""What a user's file calls an engine that nobody named: theirs."""


def fit_words(fit: Efficiency, figure: str = "") -> str:
    """What a fitted figure rests on: its chips' rows, those of other chips too, or hardly any."""
    where = "" if fit.is_calibrated else "not calibrated for this chip: "
    if figure in fit.as_shipped:
        return f"{where}as shipped, or near it: the {counted(fit.n_rows, 'measurement')} of {fit.engine} hardly tell it"
    if figure in fit.shared:
        return (
            f"{where}one figure for {', '.join(fit.shared_chips)}, fitted to all {fit.shared_rows:,} measurements of"
            f" {fit.engine} on them ({fit.measured})"
        )
    return f"{where}fitted to {fit.n_rows:,} measurements of {fit.engine} on {', '.join(fit.chips)} ({fit.measured})"


def range_words(error: Error) -> str:
    """What an end of a range is."""
    held = "" if error.held is None else f"; it held {error.held:.0%} of those that it never saw"
    return f"end of the range that is to hold 8 of 10 measurements, of {counted(error.range_rows, 'row')}{held}"


def is_of_another(engine: str, measured: str) -> bool:
    """Whether an engine is spoken of, and it is not the one that was measured.

    >>> is_of_another("vllm", "vLLM 0.11"), is_of_another("vllm", "TensorRT-LLM 0.9.0"), is_of_another("", "vLLM 0.11")
    (False, True, False)
    """
    return bool(engine) and measured != _UNNAMED and engine.lower() not in measured.lower()


def strange(fit: Efficiency | Scale, *, model: str, n_chips: int, n_stages: int, is_plain: bool) -> str:
    """How a deployment differs from all that was measured, in words; "" where it does not."""
    is_own = isinstance(fit, Scale) or fit.is_own
    was_measured = is_own and model in fit.models
    found = {
        f"on more chips than the {fit.most_chips} that were measured at most": n_chips > fit.most_chips,
        _STAGES: n_stages > 1,
        _OTHER: is_own and not was_measured and len(fit.models) == 1,
        _KINDS: not is_plain and not was_measured,
    }
    return " and ".join(words for words, is_so in found.items() if is_so)


def fitted_basis(fit: Efficiency, chip: str, errors: Mapping[str, Error], *, is_like: bool) -> str:
    """What fitted figures rest on, and how far off they are.

    Args:
        fit: the figures.
        chip: that is asked about.
        errors: of decode, decode_large and prefill.
        is_like: the ranges are those of what was measured, so that they held what they say.
    """
    chips = ", ".join(fit.chips)
    if not fit.is_calibrated:
        return (
            f"{chip} is not calibrated: no fixed-batch measurements of several models on it are known."
            f" Expected times are what {chips} have in common ({fit.engine}), and the range is how far chips and"
            " engines lie apart."
        )
    if fit.is_own:
        return (
            f"Expected times are those of {fit.engine} on {chips}, fitted to {counted(fit.n_rows, 'measurement')} of"
            f" your own ({', '.join(fit.sources)}); where you measured little, the range is at least the shipped one."
        )
    small, large, prefill = (errors[name] for name in ("decode", "decode_large", "prefill"))
    steps, models = small.n_rows + large.n_rows, max(small.n_models, large.n_models)
    told = (
        f"Expected times are those of {fit.engine} on {chips}: {counted(steps, 'measured step')} of"
        f" {counted(models, 'model')} and {counted(prefill.n_rows, 'prefill')}. Of models that the fit never saw, steps"
        f" are {small.median:.0%} off in the median below batch 64 and {large.median:.0%} from there on, prefill"
        f" {prefill.median:.0%}"
    )
    if not is_like or None in (small.held, large.held, prefill.held):
        return f"{told}."
    return (
        f"{told}; the range, made to hold 8 of 10, held {small.held:.0%} of these steps below batch 64,"
        f" {large.held:.0%} from there on, and {prefill.held:.0%} of these prefills."
    )


def carried(strange_words: str) -> str:
    """What is said of a plan unlike all that was measured."""
    return f"This is a plan {strange_words}: its range is that of a chip that nobody measured." if strange_words else ""


def other_engine(engine: str, prior: Efficiency) -> str:
    """What is said where the figures are of another engine.

    Args:
        engine: that is spoken of.
        prior: what all chips have in common, with engines that were left out in turn.
    """
    steps, prefills = (prior.other_engine_errors[f"{phase} 1"].held for phase in ("decode", "prefill"))
    held = "" if steps is None or prefills is None else f" It held {steps:.0%} of steps and {prefills:.0%} of prefills."
    return (
        f"What {engine} itself would take was not measured: the range is at least that of engines which a fit never"
        f" saw ({', '.join(prior.other_engines)}: each told from the others, and counted alike).{held}"
    )


def compiled_basis(chip: str, steps: TpuErrors, versions: str, scale: Scale | None, *, is_like: bool) -> str:
    """What the times of a TPU's compiler rest on, and how far off they are.

    Args:
        chip: that is asked about.
        steps: its errors.
        versions: of the compiler.
        scale: a user's own measurements of it.
        is_like: the plan is like those that were measured.
    """
    made = (
        f"Expected times come from the cycles that the TPU's compiler ({versions}) expects of each operation, and the"
        " formulas of collectives"
    )
    if scale:
        own = f"{counted(scale.n_rows, 'measurement')} of your own ({', '.join(scale.sources)})"
        return (
            f"{made}, times what {own} took of that; where you measured little, the range is at least the shipped one."
        )
    error = steps.error
    made = (
        f"{made}; nothing is fitted to measurements. No prefill of a known length was measured: its range is how far"
        " prefills of GPUs and engines lie apart."
    )
    servers = tpu_errors("").error
    wide = (
        f"the range is that of {servers.n_rows} rows of servers on v6e and TPU7x, prefills mixed in, which took longer"
        " than expected."
    )
    if not steps.is_calibrated:
        return f"{made} {chip} is not calibrated: {wide}"
    told = f"{made} {error.n_rows} measured steps of {counted(error.n_models, 'model')} ({steps.engine} on"
    told = f"{told} {chip}) are {error.median:.0%} off in the median, mostly longer"
    return (
        f"{told}; the range of a step holds 8 of 10 of these same steps."
        if is_like
        else f"{told}. This plan is unlike them: {wide}"
    )


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
