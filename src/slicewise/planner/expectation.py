"""What is expected of a deployment beside the bound: figures of an engine, their origins, and how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slicewise.catalog.efficiency import PRIOR, TpuErrors, efficiency_of, shipped, tpu_errors
from slicewise.catalog.efficiency_compiled import compiled_inputs
from slicewise.catalog.load import sources
from slicewise.derive import Origins
from slicewise.spec.chip import Chip
from slicewise.spec.efficiency import Efficiency, Error
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.units import BITS_PER_BYTE

_BITS = (8, 16)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the expected times of a deployment rest on.

    Attributes:
        inputs: the figures, by the names that the formulas take.
        origins: their words and document.
        engine: whose times they are, with its version.
        is_calibrated: the chip itself was measured.
        decode: error of decode steps on as many chips.
        prefill: error of prefill on as many chips.
        basis: all that in a sentence.
    """

    inputs: dict[str, Any]
    origins: Origins
    engine: str
    is_calibrated: bool
    decode: Error
    prefill: Error
    basis: str


def fitted(
    chip: Chip,
    n_chips: int,
    compute: str,
    *,
    is_plain: bool,
    given: tuple[Efficiency, ...] = (),
    mfu: float | None = None,
) -> Expectation:
    """The expectation of figures that are fitted to measurements.

    Args:
        chip: the chip.
        n_chips: chips that work together.
        compute: dtype of the matmuls.
        is_plain: whether the model is of plain attention and MLPs, as those that were measured.
        given: fits of the user's own file.
        mfu: FLOPs utilisation in prefill that wins over the fitted one; None where none was given.
    """
    fit = efficiency_of(chip, given)
    strange = _strange(fit, n_chips, is_plain=is_plain)
    decode, prefill = (_error(fit, phase, n_chips, is_like=not strange) for phase in ("decode", "prefill"))
    inputs = {
        "weight_read_efficiency": fit.weight_read_efficiency,
        "kv_read_efficiency": fit.kv_read_efficiency,
        "matmul_efficiency": fit.matmul_efficiency,
        "network_efficiency": fit.network_efficiency,
        "layer_s": fit.layer_s,
        "sync_s": fit.sync_s if n_chips > 1 else 0.0,
        "token_passes": fit.token_passes,
        "prefill_efficiency": mfu or _prefill_efficiency(fit, compute),
        "prefill_token_passes": fit.prefill_token_passes,
        **ratios(decode, prefill),
    }
    words, document = fit_words(fit), "; ".join(_source(key) for key in fit.sources)
    origins = dict.fromkeys(inputs, (words, document))
    if n_chips == 1:
        origins["sync_s"] = ("a chip waits for no other", "")
    if mfu:
        origins["prefill_efficiency"] = ("given by --mfu", "")
    origins |= {f"step_{end}_ratio": (f"{ERROR_WORDS} of {decode.n_rows} steps", document) for end in ("low", "high")}
    origins |= {
        f"prefill_{end}_ratio": (f"{ERROR_WORDS} of {prefill.n_rows} prefills", document) for end in ("low", "high")
    }
    return Expectation(
        inputs=inputs,
        origins=origins,
        engine=fit.engine,
        is_calibrated=fit.is_calibrated,
        decode=decode,
        prefill=prefill,
        basis=_basis(fit, chip, decode, prefill, strange),
    )


_NO_PREFILL = "no prefill of a TPU is known: how far prefill of GPUs and engines lies apart"


def compiled(chip: Chip, n_chips: int, precision: Precision, *, is_plain: bool) -> Expectation | None:
    """The expectation of a TPU compiler's table of operations; None where the chip has none.

    Nothing in it is fitted to measurements, which tell its range alone.

    Args:
        chip: the chip.
        n_chips: chips that work together.
        precision: the dtypes.
        is_plain: whether the model is of plain attention and MLPs, as those that were measured.
    """
    found = compiled_inputs(chip, precision)
    if found is None:
        return None
    steps, widest = tpu_errors(chip.name), tpu_errors("")
    is_like = steps.is_calibrated and is_plain
    decode = (steps if is_like else widest).error
    # No prefill of a known length was measured on a TPU.
    prefill = replace(shipped(PRIOR)[0].error("prefill", n_chips), n_rows=0)
    table, document = f"cycles of operations as {found['compiled'].versions} gives them", str(sources()["xla-cycles"])
    told = f"over {steps.error.n_rows} measurements, {steps.engine}"
    origins = {
        "compiled": (table, document),
        "clock_hz": chip.provenance["clock_hz"].origin,
        "devices_per_chip": ("devices that programs see in a chip", ""),
        **dict.fromkeys(ratios(decode, prefill), (f"{RANGE_WORDS} {told}", "; ".join(map(_source, steps.sources)))),
        **dict.fromkeys(("prefill_low_ratio", "prefill_high_ratio"), (_NO_PREFILL, "")),
    }
    return Expectation(
        inputs={**found, **ratios(decode, prefill)},
        origins=origins,
        engine=f"XLA:TPU ({found['compiled'].versions})",
        is_calibrated=steps.is_calibrated,
        decode=decode,
        prefill=prefill,
        basis=_compiled_basis(chip, steps, found["compiled"].versions, is_plain=is_plain),
    )


def _compiled_basis(chip: Chip, steps: TpuErrors, versions: str, *, is_plain: bool) -> str:
    made = (
        f"Expected times come from the cycles that the TPU's compiler ({versions}) expects of each operation, and the"
        " formulas of collectives; nothing is fitted to measurements, and no prefill was measured."
    )
    error, off = steps.error, f"{steps.error.median:.0%}"
    if not steps.is_calibrated:
        return (
            f"{made} {chip.name} is not calibrated: its range is that of {error.n_rows} rows of servers on other"
            f" generations ({steps.engine}), {off} off in the median with prefills mixed in."
        )
    told = (
        f"{made} {error.n_rows} measured steps ({steps.engine} on {chip.name}) are {off} off in the median; 8 of 10"
        " lie in the range."
    )
    return told if is_plain else f"{told} They are of plain attention and MLPs: this model's range is a wider one."


RANGE_WORDS = "end of the range that holds 8 of 10 measured times over expected ones,"
ERROR_WORDS = "end of the range that held 8 of 10 measurements of models that the fit never saw,"


def ratios(decode: Error, prefill: Error) -> dict[str, float]:
    """The ends of the ranges as shares of what is expected."""
    return {
        "step_low_ratio": decode.low,
        "step_high_ratio": decode.high,
        "prefill_low_ratio": prefill.low,
        "prefill_high_ratio": prefill.high,
    }


def _prefill_efficiency(fit: Efficiency, compute: str) -> float:
    """The share in prefill of operands as wide as the compute dtype's; of the other width where that is not known."""
    bits = 8 if BYTES_PER_ELEMENT[compute] * BITS_PER_BYTE <= _BITS[0] else 16
    return fit.prefill_efficiency.get(bits) or next(iter(fit.prefill_efficiency.values()))


def fit_words(fit: Efficiency) -> str:
    """What a fitted figure rests on."""
    rows = sum(error.n_rows for error in fit.errors.values())
    where = "" if fit.is_calibrated else "not calibrated for this chip: "
    return f"{where}fitted to {rows:,} measurements of {fit.engine} on {', '.join(fit.chips)} ({fit.measured})"


def _strange(fit: Efficiency, n_chips: int, *, is_plain: bool) -> str:
    """How a deployment differs from all that was measured, in words; "" where it does not."""
    found = []
    if n_chips > fit.most_chips:
        found.append(f"on more than the {fit.most_chips} chips that were measured at most")
    if not is_plain:
        found.append("of a model whose layers are not all plain attention and an MLP, as measured ones are")
    return " and ".join(found)


def _error(fit: Efficiency, phase: str, n_chips: int, *, is_like: bool) -> Error:
    """The error of a phase; where a deployment is not like what was measured, the range of a chip that nobody did."""
    own = fit.error(phase, n_chips)
    if is_like:
        return own
    wide = shipped(PRIOR)[0].error(phase, n_chips)
    return replace(own, low=min(own.low, wide.low), high=max(own.high, wide.high))


def _basis(fit: Efficiency, chip: Chip, decode: Error, prefill: Error, strange: str) -> str:
    chips = ", ".join(fit.chips)
    if not fit.is_calibrated:
        return (
            f"{chip.name} is not calibrated: no measurements of it are known here. Expected times are what {chips} have"
            f" in common ({fit.engine}), and the range is how far chips and engines lie apart."
        )
    told = (
        f"Expected times are those of {fit.engine} on {chips}: {decode.n_rows:,} measured steps and"
        f" {prefill.n_rows:,} prefills of {len(fit.models)} models, {decode.median:.0%} and {prefill.median:.0%} off in"
        " the median for a model that the fit never saw; the range held 8 of 10."
    )
    return f"{told} This is a plan {strange}: the range is that of a chip that nobody measured." if strange else told


def _source(key: str) -> str:
    known = sources()
    return str(known[key]) if key in known else key
