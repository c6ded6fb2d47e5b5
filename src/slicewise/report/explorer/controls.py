"""The controls: what each may be set to, and where it stands, so that a page computes none of it."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from slicewise.catalog.load import chips
from slicewise.catalog.slices import standard_slices
from slicewise.planner.conventions import CHOICES
from slicewise.planner.engines import ENGINES
from slicewise.planner.flags import OBJECTIVES
from slicewise.report.explorer.curves import batches
from slicewise.report.explorer.found import Found
from slicewise.spec.precision import BYTES_PER_ELEMENT

_LENGTHS = tuple(2**k for k in range(7, 21))
_EVERY_BELOW = 32


def controls(found: Found) -> dict[str, Any]:
    """Stops of the sliders, and choices of the rest."""
    asked, step = found.question, found.step
    lengths = asked.workload
    names = dict.fromkeys(slice_.chip.name for slice_ in asked.slices)
    fit = {each.deployment.slice.name for each in found.searched if each.batches.size}
    every = range(1, min(step.max_batch, _EVERY_BELOW) + 1)
    stops = [int(batch) for batch in batches(step.max_batch, extra=every)]
    return {
        "batch": {**slider(stops, step.batch), "max": step.max_batch, "max_text": f"{step.max_batch:,}"},
        "context": slider(_LENGTHS, int(lengths.context_tokens)),
        "isl": slider(_LENGTHS, lengths.prompt_tokens),
        "osl": slider(_LENGTHS, lengths.output_tokens),
        "slices": [
            {
                "slice": slice_.name,
                "text": f"{slice_.topology}, {slice_.n_chips} chip{'s' if slice_.n_chips > 1 else ''}",
                "fits": slice_.name in fit if slice_ in asked.slices else None,
            }
            for name in names
            for slice_ in standard_slices(chips()[name])
        ],
        "chips": [{"chip": chip.name, "title": chip.title} for chip in chips().values()],
        "weights": list(BYTES_PER_ELEMENT),
        "kv": list(BYTES_PER_ELEMENT),
        "engines": list(ENGINES),
        "objectives": list(OBJECTIVES),
        "views": list(CHOICES["view"]),
    }


def slider(stops: Sequence[int], value: int) -> dict[str, Any]:
    """A slider over stops, of which the value is one."""
    every = sorted({*stops, value})
    return {
        "stops": every,
        "value": value,
        "index": bisect.bisect_left(every, value),
        "texts": [f"{at:,}" for at in every],
    }
