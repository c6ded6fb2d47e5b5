"""What is expected of a deployment beside the bound: figures and their origins, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slicewise.catalog.efficiency import PRIOR, TpuErrors, efficiency_of, shipped, tpu_errors
from slicewise.catalog.efficiency_compiled import compiled_inputs
from slicewise.catalog.load import sources
from slicewise.derive import Origins
from slicewise.spec.chip import Chip
from slicewise.spec.efficiency import LARGE, Efficiency, Error, Scale, group_of
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.units import BITS_PER_BYTE

_NARROW, _WIDE = 8, 16
_OTHER = "of another model than the one that was measured"
_STAGES = "in pipeline stages, which were not measured"
_KINDS = "of a model whose layers are not all plain attention and an MLP, as measured ones are"
_AT = {"decode": 1, "decode_large": LARGE, "prefill": 1}
"""A batch of each error's group."""
_RATIO = {"decode": "step", "decode_large": "large_step", "prefill": "prefill"}
_RANGE = "end of the range that holds 8 of 10 measurements"
_NO_PREFILL = "no prefill of a TPU is known: how far prefill of GPUs and engines lies apart"


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the expected times of a deployment rest on.

    Attributes:
        inputs: the figures, by the names that the formulas take.
        origins: their words and document.
        engine: whose times they are, with its version.
        is_calibrated: the chip itself was measured.
        decode: error of decode steps on as many chips, at batches below 64.
        decode_large: the same from batch 64 on.
        prefill: error of prefill on as many chips.
        basis: all that in a sentence or two.
    """

    inputs: dict[str, Any]
    origins: Origins
    engine: str
    is_calibrated: bool
    decode: Error
    decode_large: Error
    prefill: Error
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What of a deployment decides what is expected of it.

    Attributes:
        model: its name.
        chip: the chip.
        n_chips: chips that work together on a layer.
        n_stages: pipeline stages.
        precision: the dtypes.
        is_plain: the model is of plain attention and MLPs, as those that were measured.
        engine: the engine whose rules are spoken; "" for none.
        mfu: FLOPs utilisation in prefill that wins over what is expected; None where none was given.
    """

    model: str
    chip: Chip
    n_chips: int
    precision: Precision
    is_plain: bool
    n_stages: int = 1
    engine: str = ""
    mfu: float | None = None


def expectation(served: Served, given: Sequence[Efficiency | Scale] = ()) -> Expectation:
    """The expectation of a deployment: the user's figures, else a compiler's, else published measurements.

    Args:
        served: the deployment.
        given: fits of the user's own file.
    """
    own = [fit for fit in given if served.chip.name in fit.chips]
    if any(isinstance(fit, Efficiency) for fit in own):
        return _fitted(served, own)
    scale = next((fit for fit in own if isinstance(fit, Scale)), None)
    return _compiled(served, scale) or _fitted(served)


def _fitted(served: Served, given: Sequence[Efficiency | Scale] = ()) -> Expectation:
    """The expectation of figures that are fitted to measurements."""
    chip, n_chips = served.chip, served.n_chips
    fit = efficiency_of(chip, given)
    strange = _strange(fit, served)
    errors = _errors_of(fit, n_chips, is_like=not strange)
    words, document = fit_words(fit), "; ".join(map(_source, fit.sources))
    inputs = {
        "weight_read_efficiency": fit.weight_read_efficiency,
        "kv_read_efficiency": fit.kv_read_efficiency,
        "matmul_efficiency": fit.matmul_efficiency,
        "network_efficiency": fit.network_efficiency,
        "layer_s": fit.layer_s,
        "sync_s": fit.sync_s if n_chips > 1 else 0.0,
        "token_passes": fit.token_passes,
        "prefill_efficiency": served.mfu or _prefill_efficiency(fit, served.precision.compute),
        "prefill_token_passes": fit.prefill_token_passes,
    }
    origins = dict.fromkeys(inputs, (words, document))
    if n_chips == 1:
        origins["sync_s"] = ("a chip waits for no other", "")
    if served.mfu:
        origins["prefill_efficiency"] = ("given by --mfu", "")
    return Expectation(
        inputs={**inputs, **_ratios(errors)},
        origins={**origins, **_range_origins(errors, document)},
        engine=fit.engine,
        is_calibrated=fit.is_calibrated,
        **errors,
        basis=" ".join(filter(None, (_basis(fit, served, errors), _carried(strange), _other_engine(served)))),
    )


def _compiled(served: Served, scale: Scale | None) -> Expectation | None:
    """The expectation of a TPU compiler's table of operations; None where the chip has none.

    Nothing in it is fitted to measurements but for a user's own scale.
    """
    chip = served.chip
    found = compiled_inputs(chip, served.precision)
    if found is None:
        return None
    steps, versions = tpu_errors(chip.name), found["compiled"].versions
    is_like = served.is_plain and served.n_chips <= steps.most_chips and served.n_stages == 1 and steps.is_calibrated
    decode = (steps if is_like else tpu_errors("")).error
    # No prefill of a known length was measured on a TPU.
    unknown = replace(shipped(PRIOR)[0].errors[group_of("prefill", served.n_chips, 1)], n_rows=0, n_models=0)
    errors = {"decode": decode, "decode_large": decode, "prefill": unknown}
    strange = _strange(scale, served) if scale else ""
    if scale:
        own = {name: scale.errors[group_of(name.partition("_")[0], served.n_chips, at)] for name, at in _AT.items()}
        wide = {name: tpu_errors("").error if name.startswith("decode") else unknown for name in _AT}
        errors = {name: _widened(own[name], wide[name]) for name in own} if strange else own
    table = f"cycles of operations as {versions} gives them", str(sources()["xla-cycles"])
    ratio = (f"measured over expected, of {scale.engine}" if scale else "nothing is fitted to measurements", "")
    document = "; ".join(map(_source, scale.sources if scale else steps.sources))
    given = {"step_ratio": scale.step_ratio if scale else 1.0, "prefill_ratio": scale.prefill_ratio if scale else 1.0}
    origins = {
        "compiled": table,
        "clock_hz": chip.provenance["clock_hz"].origin,
        "devices_per_chip": ("devices that programs see in a chip", ""),
        **dict.fromkeys(given, ratio),
        **_range_origins(errors, document),
    }
    if not scale:
        origins |= dict.fromkeys(("prefill_low_ratio", "prefill_high_ratio"), (_NO_PREFILL, ""))
    return Expectation(
        inputs={**found, **given, **_ratios(errors)},
        origins=origins,
        engine=scale.engine if scale else f"XLA:TPU ({versions})",
        is_calibrated=steps.is_calibrated or scale is not None,
        **errors,
        basis=" ".join(
            filter(None, (_compiled_basis(served, steps, versions, scale, is_like=is_like), _carried(strange)))
        ),
    )


def _ratios(errors: Mapping[str, Error]) -> dict[str, float]:
    """The ends of the ranges as shares of what is expected."""
    return {f"{_RATIO[name]}_{end}_ratio": getattr(errors[name], end) for name in _RATIO for end in ("low", "high")}


def _range_origins(errors: Mapping[str, Error], document: str) -> dict[str, tuple[str, str]]:
    return {
        f"{_RATIO[name]}_{end}_ratio": (f"{_RANGE}, of {_counted(errors[name].range_rows, 'row')}", document)
        for name in _RATIO
        for end in ("low", "high")
    }


def _prefill_efficiency(fit: Efficiency, compute: str) -> float:
    """The share in prefill of operands as wide as the compute dtype's; of the other width where that is not known."""
    bits = _NARROW if BYTES_PER_ELEMENT[compute] * BITS_PER_BYTE <= _NARROW else _WIDE
    return fit.prefill_efficiency.get(bits) or next(iter(fit.prefill_efficiency.values()))


def fit_words(fit: Efficiency) -> str:
    """What a fitted figure rests on."""
    where = "" if fit.is_calibrated else "not calibrated for this chip: "
    return f"{where}fitted to {fit.n_rows:,} measurements of {fit.engine} on {', '.join(fit.chips)} ({fit.measured})"


def _strange(fit: Efficiency | Scale, served: Served) -> str:
    """How a deployment differs from all that was measured, in words; "" where it does not."""
    is_own = isinstance(fit, Scale) or fit.is_own
    was_measured = is_own and served.model in fit.models
    found = {
        f"on more chips than the {fit.most_chips} that were measured at most": served.n_chips > fit.most_chips,
        _STAGES: served.n_stages > 1,
        _OTHER: is_own and not was_measured and len(fit.models) == 1,
        _KINDS: not served.is_plain and not was_measured,
    }
    return " and ".join(words for words, is_so in found.items() if is_so)


def _errors_of(fit: Efficiency, n_chips: int, *, is_like: bool) -> dict[str, Error]:
    """The errors of decode and prefill; where a deployment is not like what was measured, at least the wide ones."""
    groups = {name: group_of(name.partition("_")[0], n_chips, batch) for name, batch in _AT.items()}
    wide = shipped(PRIOR)[0].errors
    own = {name: fit.errors[group] for name, group in groups.items()}
    if is_like:
        return own
    return {name: _widened(error, wide[groups[name]]) for name, error in own.items()}


def _widened(error: Error, other: Error) -> Error:
    """A range that takes in another, which tells how far it reaches."""
    low, high = min(error.low, other.low), max(error.high, other.high)
    return replace(error, low=low, high=high, range_rows=other.range_rows)


def _basis(fit: Efficiency, served: Served, errors: Mapping[str, Error]) -> str:
    chips = ", ".join(fit.chips)
    if not fit.is_calibrated:
        return (
            f"{served.chip.name} is not calibrated: no fixed-batch measurements of several models on it are known."
            f" Expected times are what {chips} have in common ({fit.engine}), and the range is how far chips and"
            " engines lie apart."
        )
    if fit.is_own:
        return (
            f"Expected times are those of {fit.engine} on {chips}, fitted to {_counted(fit.n_rows, 'measurement')} of"
            f" your own ({', '.join(fit.sources)}); where you measured little, the range is at least the shipped one."
        )
    small, large, prefill = (errors[name] for name in _AT)
    steps, models = small.n_rows + large.n_rows, max(small.n_models, large.n_models)
    return (
        f"Expected times are those of {fit.engine} on {chips}: {_counted(steps, 'measured step')} of"
        f" {_counted(models, 'model')} and {_counted(prefill.n_rows, 'prefill')}. Of models that the fit never saw, on"
        f" all measured GPUs, steps are {small.median:.0%} off in the median below batch 64 and {large.median:.0%} from"
        f" there on, prefill {prefill.median:.0%}; the range held 8 of 10."
    )


def _carried(strange: str) -> str:
    return f"This is a plan {strange}: its range is that of a chip that nobody measured." if strange else ""


def _other_engine(served: Served) -> str:
    return f"What {served.engine} itself would take was not measured." if served.engine else ""


def _compiled_basis(served: Served, steps: TpuErrors, versions: str, scale: Scale | None, *, is_like: bool) -> str:
    made = (
        f"Expected times come from the cycles that the TPU's compiler ({versions}) expects of each operation, and the"
        " formulas of collectives"
    )
    if scale:
        own = f"{_counted(scale.n_rows, 'measurement')} of your own ({', '.join(scale.sources)})"
        return (
            f"{made}, times what {own} took of that; where you measured little, the range is at least the shipped one."
        )
    error = steps.error
    made = (
        f"{made}; nothing is fitted to measurements. No prefill was measured: its range is how far prefills of GPUs and"
        " engines lie apart."
    )
    servers = tpu_errors("").error
    wide = (
        f"the range is that of {servers.n_rows} rows of servers on v6e and TPU7x, prefills mixed in, which took longer"
        " than expected."
    )
    if not steps.is_calibrated:
        return f"{made} {served.chip.name} is not calibrated: {wide}"
    told = f"{made} {error.n_rows} measured steps of {_counted(error.n_models, 'model')} ({steps.engine} on"
    told = f"{told} {served.chip.name}) are {error.median:.0%} off in the median, mostly longer"
    return (
        f"{told}; the range of a step holds 8 of 10 of these same steps."
        if is_like
        else f"{told}. This plan is unlike them: {wide}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _source(key: str) -> str:
    known = sources()
    return str(known[key]) if key in known else key
