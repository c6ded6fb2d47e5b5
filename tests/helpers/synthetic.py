"""Measurements that were never made: times that known coefficients give, for a fit to give back."""

from dataclasses import replace

import numpy as np

from slicewise.calibrate.fit import Fit
from slicewise.calibrate.measurement import Measurement
from slicewise.calibrate.terms import point_of
from slicewise.errors import InputError

KNOWN = {
    "weights": 1.15,
    "kv": 1.3,
    "flops": 1.9,
    "network": 1.6,
    "layers": 60e-6,
    "sync": 25e-6,
    "tokens": 40.0,
    "prefill16": 1.7,
    "prefill8": 1.7,
    "prefill_tokens": 6.0,
}


def measured(**words):
    plain = {"model": "llama-3-8b", "slice": "h100:1", "weights": "bf16", "kv": "bf16", "phase": "decode", "batch": 8}
    return Measurement(
        **{**plain, "prompt_tokens": 1024, "output_tokens": 256, "seconds": 1.0, "where": "a row", **words}
    )


def synthetic(chip="h100", coefficients=KNOWN, noise=0.0):
    """Points whose seconds are what the coefficients make of them."""
    rng = np.random.default_rng(7)
    found = []
    for model, counts in (("llama-3-8b", (1, 2)), ("llama-3-70b", (4, 8)), ("llama-2-13b", (1, 4))):
        for n in counts:
            for batch in (1, 8, 32, 128):
                for prompt in (128, 2048):
                    for phase in ("decode", "prefill"):
                        words = {"model": model, "slice": f"{chip}:{n}", "batch": batch, "prompt_tokens": prompt}
                        try:
                            found.append(point_of(measured(phase=phase, **words)))
                        except InputError:
                            continue  # does not fit
    exact = Fit(groups={chip: coefficients}).expected_s(found, [chip] * len(found))
    seconds = exact * np.exp(noise * rng.standard_normal(len(found)))
    return [
        replace(point, measurement=replace(point.measurement, seconds=float(s)))
        for point, s in zip(found, seconds, strict=True)
    ]
