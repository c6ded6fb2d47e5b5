"""Coefficients of a fit as the figures that people read, and as the efficiency file that `--efficiency` takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, log10
from typing import Any

from slicewise.calibrate.fit import Coefficients
from slicewise.calibrate.terms import TERMS, Point
from slicewise.catalog.efficiency import SHARES
from slicewise.spec.efficiency import Efficiency, Error, Scale
from slicewise.units import US

DIGITS = 3
"""Digits that a fit of some hundred rows bears."""
FIGURES = {
    "weights": "weight_read_efficiency",
    "kv": "kv_read_efficiency",
    "flops": "matmul_efficiency",
    "network": "network_efficiency",
    "layers": "layer_s",
    "sync": "sync_s",
    "tokens": "token_passes",
    "prefill16": "prefill_efficiency_16",
    "prefill8": "prefill_efficiency_8",
    "prefill_tokens": "prefill_token_passes",
}
"""What people read, by the term that it is the coefficient of."""


def bits_of(points: Sequence[Point]) -> tuple[int, ...]:
    """Widths of operands whose prefill was measured; both where no prefill was."""
    found = tuple(bits for bits in (8, 16) if any(point.terms[TERMS.index(f"prefill{bits}")] for point in points))
    return found or (8, 16)


def efficiency_from(
    coefficients: Coefficients, errors: Mapping[str, Error], bits: tuple[int, ...], **words: Any
) -> Efficiency:
    """The figures of a group.

    Args:
        coefficients: by term.
        errors: by phase and chips, as `Efficiency.errors` has them.
        bits: widths of operands whose prefill was measured.
        words: name, family, engine, chips, models, measured and sources, and what else an efficiency says.
    """
    return Efficiency(
        is_calibrated=True,
        weight_read_efficiency=_share(coefficients["weights"]),
        kv_read_efficiency=_share(coefficients["kv"]),
        matmul_efficiency=_share(coefficients["flops"]),
        network_efficiency=_share(coefficients["network"]),
        layer_s=_short(coefficients["layers"] / US) * US,
        sync_s=_short(coefficients["sync"] / US) * US,
        token_passes=_short(coefficients["tokens"]),
        prefill_efficiency={width: _share(coefficients[f"prefill{width}"]) for width in bits},
        prefill_token_passes=_short(coefficients["prefill_tokens"]),
        errors={name: rounded(error) for name, error in errors.items()},
        **words,
    )


def start_from(efficiency: Efficiency) -> Coefficients:
    """The coefficients of figures: where another fit may start."""
    sixteen = efficiency.prefill_efficiency.get(16) or efficiency.prefill_efficiency[8]
    return {
        "weights": 1 / efficiency.weight_read_efficiency,
        "kv": 1 / efficiency.kv_read_efficiency,
        "flops": 1 / efficiency.matmul_efficiency,
        "network": 1 / efficiency.network_efficiency,
        "layers": efficiency.layer_s,
        "sync": efficiency.sync_s,
        "tokens": efficiency.token_passes,
        "prefill16": 1 / sixteen,
        "prefill8": 1 / (efficiency.prefill_efficiency.get(8) or sixteen),
        "prefill_tokens": efficiency.prefill_token_passes,
    }


def efficiency_toml(fits: Sequence[Efficiency | Scale], heading: str) -> str:
    """The file.

    Args:
        fits: of one file, the default first.
        heading: what the file is, a line or several.
    """
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    tables = (
        f"\n[[fit]]\n{_entry(each)}" if isinstance(each, Efficiency) else f"\n[[scale]]\n{_scale_entry(each)}"
        for each in fits
    )
    return comment + "".join(tables)


def _entry(fit: Efficiency) -> str:
    words = {key: getattr(fit, key) for key in ("name", "family", "engine", "measured")}
    lists = {key: list(getattr(fit, key)) for key in ("chips", "models", "sources")}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in {**words, **lists}.items()]
    lines += [f"most_chips = {fit.most_chips}", f"rows = {fit.n_rows}"]
    lines += [f"{key} = {getattr(fit, key):g}" for key in SHARES]
    lines += [f'{key} = "{getattr(fit, f"{key}_s") / US:.{DIGITS}g} us"' for key in ("layer", "sync")]
    lines += [f"{key} = {getattr(fit, key):g}" for key in ("token_passes", "prefill_token_passes")]
    by_bits = ", ".join(f"{bits} = {share:g}" for bits, share in sorted(fit.prefill_efficiency.items()))
    lines.append(f"prefill_efficiency = {{ {by_bits} }}")
    told = {key: list(getattr(fit, key)) for key in ("shared", "shared_chips", "as_shipped", "other_engines")}
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in told.items() if value]
    lines += [f"shared_rows = {fit.shared_rows}"] if fit.shared else []
    others = _errors(fit.other_engine_errors, "other_engine_errors")
    return "\n".join([*lines, *_errors(fit.errors), *others]) + "\n"


def _errors(errors: Mapping[str, Error], key: str = "errors") -> list[str]:
    lines = []
    for name, error in errors.items():
        counts = f"rows = {error.n_rows}, models = {error.n_models}, range_rows = {error.range_rows}"
        told = f"{counts}, median = {error.median:g}, low = {error.low:g}, high = {error.high:g}"
        held = "" if error.held is None else f", held = {error.held:g}"
        lines.append(f'{key}."{name}" = {{ {told}{held} }}')
    return lines


def _scale_entry(scale: Scale) -> str:
    words = {key: getattr(scale, key) for key in ("name", "engine", "measured")}
    lists = {key: list(getattr(scale, key)) for key in ("chips", "models", "sources")}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in {**words, **lists}.items()]
    lines += [f"most_chips = {scale.most_chips}", f"rows = {scale.n_rows}"]
    lines += [f"{key} = {getattr(scale, key):g}" for key in ("step_ratio", "prefill_ratio")]
    return "\n".join([*lines, *_errors(scale.errors)]) + "\n"


def rounded(error: Error) -> Error:
    """An error in as many digits as it bears; the range takes in what is expected, and all that it did before."""
    low, high = min(_short(error.low, floor), 1.0), max(_short(error.high, ceil), 1.0)
    held = None if error.held is None else _short(error.held)
    return replace(error, median=_short(error.median), low=low, high=high, held=held)


def _share(coefficient: float) -> float:
    """1 over a coefficient; the least by which a term is slowed is not at all."""
    return min(_short(1 / coefficient), 1.0)


def _short(value: float, to: Callable[[float], int] = round) -> float:
    """A value in few digits."""
    if value <= 0:
        return 0.0
    scale = 10.0 ** (DIGITS - 1 - floor(log10(value)))
    return float(f"{to(value * scale) / scale:.{DIGITS}g}")
