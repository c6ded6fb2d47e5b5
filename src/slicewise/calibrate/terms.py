"""A measurement as a sum of terms: each the bound's own time, or a count, that a fitted coefficient multiplies.

The terms are those of `costs/fitted.py`, so that a fit is linear: expected seconds = sum of coefficient x term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.calibrate.measurement import Measurement
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.spec.model import Model
from slicewise.spec.precision import ACTIVATION_BYTES_PER_ELEMENT, BYTES_PER_ELEMENT

TERMS = ("weights", "kv", "flops", "network", "layers", "sync", "tokens", "prefill16", "prefill8", "prefill_tokens")
"""What the coefficients multiply. Those of SLOWED are at least 1: 1 over an efficiency."""
SLOWED = ("weights", "kv", "flops", "network", "prefill16", "prefill8")

_STEP = ("param_load_s", "kv_load_s", "matmul_s", "attention_flops_s", "ici_s", "step_overlapped_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A measurement with its terms.

    Attributes:
        measurement: what was measured.
        chip: by its catalog name.
        n_chips: chips that work together.
        model: its name.
        terms: seconds or counts, in the order of TERMS. Shape (10,).
        bound_s: what no engine undercuts. [s]
        compiled_s: what a TPU's compiler expects of the steps and of the prefill in it; None where it was not asked.
            [s]
    """

    measurement: Measurement
    chip: str
    n_chips: int
    model: str
    terms: NDArray[np.float64]
    bound_s: float
    compiled_s: tuple[float, float] | None

    @property
    def phase(self) -> str:
        """Decode, prefill or end_to_end."""
        return self.measurement.phase


def point_of(measurement: Measurement, model: Model | None = None) -> Point:
    """The terms of a measurement, by the planner's own formulas.

    Args:
        measurement: what was measured.
        model: its model, where it is not to be looked up by name.

    Raises:
        InputError: the planner does not understand it.
        UnusableError: it is understood, and tells nothing.
    """
    found = _deployment(measurement, model)
    terms = np.zeros(len(TERMS))
    bound_s = 0.0
    if measurement.phase != "prefill":
        steps = measurement.output_tokens - 1 if measurement.phase == "end_to_end" else 1
        step, step_bound_s = _step(found, measurement)
        terms, bound_s = terms + steps * step, bound_s + steps * step_bound_s
    if measurement.phase != "decode":
        prompt, prompt_bound_s = _prefill(found, measurement)
        terms, bound_s = terms + prompt, bound_s + prompt_bound_s
    return Point(
        measurement=measurement,
        chip=found.slice.chip.name,
        n_chips=found.slice.n_chips,
        model=found.model.name,
        terms=terms,
        bound_s=bound_s,
        compiled_s=_compiled_s(found, measurement) if found.traits.is_compiled else None,
    )


def _compiled_s(found: Deployment, measurement: Measurement) -> tuple[float, float]:
    """What the compiler's table has of its steps and of its prompts, one after the other."""
    steps = {"decode": 1, "prefill": 0}.get(measurement.phase, measurement.output_tokens - 1)
    step_s = float(found.value("step_expected_s", batch=measurement.batch)) if steps else 0.0
    prompts = 0 if measurement.phase == "decode" else measurement.batch
    return steps * step_s, prompts * (float(found.value("prefill_expected_s")) if prompts else 0.0)


class UnusableError(InputError):
    """A measurement that is understood and tells nothing: it is left out, and counted."""


def _deployment(measurement: Measurement, model: Model | None) -> Deployment:
    flags: dict[str, Any] = {
        "slice": measurement.slice,
        "weights": measurement.weights,
        "kv": measurement.kv,
        "compute": measurement.compute,
        "isl": max(measurement.prompt_tokens, 1),
        "osl": max(measurement.output_tokens, 1),
        "memory_fraction": 1,
        **measurement.layout,
    }
    if measurement.context_tokens is not None and measurement.phase == "decode":
        flags["context"] = round(measurement.context_tokens)
    given = {name: value for name, value in flags.items() if value is not None}
    is_step = measurement.phase == "decode"
    found = ask(model or measurement.model, given).deployment()  # type: ignore[arg-type]  # words of a question
    if found.ranks and found.ranks.pp * found.ranks.dp > 1 and not (found.traits.is_compiled and is_step):
        raise UnusableError("pipeline stages or data parallelism, which are not fitted")
    if found.ranks and found.ranks.ep > 1 and not is_step and measurement.batch > 1:
        raise UnusableError("prompts of a batch whose experts are spread over chips, which are not fitted")
    if (measurement.batch if measurement.phase != "prefill" else 1) > int(found.value("max_batch")):
        raise UnusableError("more sequences than fit at once, so that the batch that ran is not known")
    return found


def _step(found: Deployment, measurement: Measurement) -> tuple[NDArray[np.float64], float]:
    value = {name: float(each) for name, each in found.evaluate(_STEP, batch=measurement.batch).items()}
    load_s = value["param_load_s"] * _weight_ratio(found, measurement)
    found_s = value["step_overlapped_s"] + max(load_s - value["param_load_s"], 0.0)
    return _vector(
        weights=load_s,
        kv=value["kv_load_s"],
        flops=value["matmul_s"] + value["attention_flops_s"],
        network=value["ici_s"],
        tokens=_passes(found, measurement.batch),
        **_layers(found),
    ), found_s


def _prefill(found: Deployment, measurement: Measurement) -> tuple[NDArray[np.float64], float]:
    """The whole batch at once: the weights are read once, everything else grows with the tokens."""
    prompts, inputs = measurement.batch, found.inputs
    given = {"prefill_all_gather_bytes": found.value("prefill_all_gather_bytes") * prompts}
    names = ("prefill_peak_s", "prefill_param_load_s" if found.is_layered else "param_load_s")
    peak_s, load_s = (float(found.value(name)) for name in names)
    ici_s = float(found.value("prefill_ici_s", **given))
    load_s *= _weight_ratio(found, measurement)
    bits = "prefill8" if BYTES_PER_ELEMENT[found.precision.compute] <= 1 else "prefill16"
    terms = _vector(
        weights=load_s,
        network=ici_s,
        prefill_tokens=_passes(found, prompts * inputs["prompt_tokens"]),
        **{bits: peak_s * prompts},
        **_layers(found),
    )
    return terms, max(peak_s * prompts, load_s, ici_s)


def _layers(found: Deployment) -> dict[str, float]:
    n_blocks = found.model.n_blocks
    return {"layers": n_blocks, "sync": n_blocks if found.slice.n_chips > 1 else 0.0}


def _passes(found: Deployment, tokens: float) -> float:
    """Time of one pass of all activations through HBM. [s]"""
    moved = tokens * found.model.n_blocks * found.model.d_model * ACTIVATION_BYTES_PER_ELEMENT
    return float(moved / found.inputs["hbm_bytes_per_s"])


def _weight_ratio(found: Deployment, measurement: Measurement) -> float:
    """Bytes of the file that was served over those of the plan, where the former are stated."""
    return (measurement.weight_bytes or 0.0) / float(found.value("weight_bytes")) or 1.0


def _vector(**terms: float) -> NDArray[np.float64]:
    return np.array([terms.get(name, 0.0) for name in TERMS])


def matrix(points: Sequence[Point]) -> NDArray[np.float64]:
    """The terms of several measurements. Shape (n, 10)."""
    return np.array([point.terms for point in points]).reshape(len(points), len(TERMS))
