"""What is expected of a deployment beside the bound: figures and their origins, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slicewise.catalog.efficiency import PRIOR, efficiency_of, shipped, tpu_errors
from slicewise.catalog.efficiency_compiled import compiled_inputs
from slicewise.catalog.load import sources
from slicewise.derive import Origins
from slicewise.planner.trust import (
    carried,
    compiled_basis,
    fit_words,
    fitted_basis,
    is_of_another,
    other_engine,
    range_words,
    strange,
)
from slicewise.spec.chip import Chip
from slicewise.spec.efficiency import LARGE, Efficiency, Error, Scale, group_of
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.units import BITS_PER_BYTE

_NARROW, _WIDE = 8, 16
_AT = {"decode": 1, "decode_large": LARGE, "prefill": 1}
"""A batch of each error's group."""
_RATIO = {"decode": "step", "decode_large": "large_step", "prefill": "prefill"}
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
    unlike, is_another = _strange(fit, served), is_of_another(served.engine, fit.engine)
    errors = _errors_of(fit, served, is_like=not unlike)
    document = "; ".join(map(_source, fit.sources))
    bits = _prefill_bits(fit, served.precision.compute)
    inputs = {
        "weight_read_efficiency": fit.weight_read_efficiency,
        "kv_read_efficiency": fit.kv_read_efficiency,
        "matmul_efficiency": fit.matmul_efficiency,
        "network_efficiency": fit.network_efficiency,
        "layer_s": fit.layer_s,
        "sync_s": fit.sync_s if n_chips > 1 else 0.0,
        "token_passes": fit.token_passes,
        "prefill_efficiency": served.mfu or fit.prefill_efficiency[bits],
        "prefill_token_passes": fit.prefill_token_passes,
    }
    origins = {name: (fit_words(fit, name), document) for name in inputs}
    origins["prefill_efficiency"] = (fit_words(fit, f"prefill_efficiency_{bits}"), document)
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
        basis=" ".join(
            filter(
                None,
                (
                    fitted_basis(fit, chip.name, errors, is_like=not unlike and not is_another),
                    carried(unlike),
                    other_engine(served.engine, shipped(PRIOR)[0]) if is_another else "",
                ),
            )
        ),
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
    is_like = is_like and not is_of_another(served.engine, steps.engine)
    decode = (steps if is_like else tpu_errors("")).error
    # No prefill of a known length was measured on a TPU.
    unknown = replace(shipped(PRIOR)[0].errors[group_of("prefill", served.n_chips, 1)], n_rows=0, n_models=0)
    errors = {"decode": decode, "decode_large": decode, "prefill": unknown}
    unlike = _strange(scale, served) if scale else ""
    if scale and is_of_another(served.engine, scale.engine):
        unlike = " and ".join(filter(None, (unlike, f"of {served.engine}, which was not measured")))
    if scale:
        own = {name: scale.errors[group_of(name.partition("_")[0], served.n_chips, at)] for name, at in _AT.items()}
        wide = {name: tpu_errors("").error if name.startswith("decode") else unknown for name in _AT}
        errors = {name: own[name].widened(wide[name]) for name in own} if unlike else own
    table = f"cycles of operations as {versions} gives them", str(sources()["xla-cycles"])
    ratio = (f"measured over expected, of {scale.engine}" if scale else "nothing is fitted to measurements", "")
    document = "; ".join(map(_source, scale.sources if scale else steps.sources))
    given = {"step_ratio": scale.step_ratio if scale else 1.0, "prefill_ratio": scale.prefill_ratio if scale else 1.0}
    origins = {
        "compiled": table,
        "clock_hz": chip.provenance["clock_hz"].origin,
        "devices_per_chip": ("devices that a chip is compiled as", ""),
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
            filter(None, (compiled_basis(chip.name, steps, versions, scale, is_like=is_like), carried(unlike)))
        ),
    )


def _ratios(errors: Mapping[str, Error]) -> dict[str, float]:
    """The ends of the ranges as shares of what is expected."""
    return {f"{_RATIO[name]}_{end}_ratio": getattr(errors[name], end) for name in _RATIO for end in ("low", "high")}


def _range_origins(errors: Mapping[str, Error], document: str) -> dict[str, tuple[str, str]]:
    return {
        f"{_RATIO[name]}_{end}_ratio": (range_words(errors[name]), document)
        for name in _RATIO
        for end in ("low", "high")
    }


def _prefill_bits(fit: Efficiency, compute: str) -> int:
    """The width of operands that is as wide as the compute dtype; the other where no prefill of it was measured."""
    bits = _NARROW if BYTES_PER_ELEMENT[compute] * BITS_PER_BYTE <= _NARROW else _WIDE
    return bits if bits in fit.prefill_efficiency else next(iter(fit.prefill_efficiency))


def _strange(fit: Efficiency | Scale, served: Served) -> str:
    return strange(fit, model=served.model, n_chips=served.n_chips, n_stages=served.n_stages, is_plain=served.is_plain)


def _errors_of(fit: Efficiency, served: Served, *, is_like: bool) -> dict[str, Error]:
    """The errors of decode and prefill; at least those of other engines, or of other chips, where the figures are."""
    groups = {name: group_of(name.partition("_")[0], served.n_chips, batch) for name, batch in _AT.items()}
    prior = shipped(PRIOR)[0]
    found = {name: fit.errors[group] for name, group in groups.items()}
    if is_of_another(served.engine, fit.engine):
        found = {name: error.widened(prior.other_engine_errors[groups[name]]) for name, error in found.items()}
    if not is_like:
        found = {name: error.widened(prior.errors[groups[name]]) for name, error in found.items()}
    return found


def _source(key: str) -> str:
    known = sources()
    return str(known[key]) if key in known else key
