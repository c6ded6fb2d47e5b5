"""The compiler's estimate of published decode steps, beside the bound and the measurement.

Each step is compiled with its layers written out, about half a minute on two cores; what was compiled before is found
again. Needs the extra `verify`. Run: python benchmarks/estimates.py
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable

from slicewise.catalog.load import measured_steps
from slicewise.spec.measured import MeasuredStep
from slicewise.units import MS, US
from slicewise.verify.estimate import Estimate
from slicewise.verify.run import verify

COLUMNS = ("batch", "context", "core", "streamed", "network", "fetched", "roofline", "estimate", "measured", "off by")


def estimate_of(step: MeasuredStep) -> Estimate:
    """The estimate of a step. The cache is given all of the chip, as the published runs must have."""
    found = verify(
        step.model,
        slice=step.slice,
        weights=step.weights,
        kv=step.kv,
        batch=step.batch,
        context=step.context_tokens,
        memory_fraction=1,
        estimate=True,
    ).estimate
    if found is None:
        sys.exit(f"{step.model} on {step.slice}, batch {step.batch}: the compiler refuses it")
    return found


def row(step: MeasuredStep, found: Estimate, n_layers: int) -> list[str]:
    """A line of the table: microseconds a layer, then milliseconds a step."""
    layers = next(part for part in found.parts if part.ici_s)
    a_layer = (layers.core_s, layers.streamed_s, layers.ici_s, layers.fetch_s)
    whole = (found.roofline_s, found.estimate_s, step.step_s)
    return [
        str(step.batch),
        f"{step.context_tokens:,}",
        *(f"{seconds / n_layers / US:.0f}" for seconds in a_layer),
        *(f"{seconds / MS:.2f}" for seconds in whole),
        f"{found.estimate_s / step.step_s - 1:+.0%}",
    ]


def errors(times: Iterable[float], measured: Iterable[float]) -> str:
    """Median and worst absolute error."""
    off = [abs(time / truth - 1) for time, truth in zip(times, measured, strict=True)]
    return f"{statistics.median(off):.1%} in the median, {max(off):.1%} at worst"


def run() -> None:
    """Print the table, and how far estimate and roofline are off."""
    steps = measured_steps()
    print(f"| {' | '.join(COLUMNS)} |\n|{' --: |' * len(COLUMNS)}")
    found = []
    for step in steps:
        found.append(estimate_of(step))
        print(f"| {' | '.join(row(step, found[-1], 80))} |", flush=True)
    measured = [step.step_s for step in steps]
    print(f"\nestimate: {errors((each.estimate_s for each in found), measured)}")
    print(f"roofline: {errors((each.roofline_s for each in found), measured)}")


if __name__ == "__main__":
    run()
