"""What the TPU compiler says of a program that is too large."""

from __future__ import annotations

import re

from slicewise.units import GIB
from slicewise.verify.reading import Refusal

_SIZE = r"([\d.]+)([KMGT]?)"
_NEEDS = (
    re.compile(rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    re.compile(rf"Used {_SIZE} of {_SIZE} hbm"),
)
_SCALES = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": GIB, "T": 2.0**40}


def refusal(message: str) -> Refusal | None:
    """The refusal that a compiler's error states; None where it says something else.

    >>> found = refusal("RESOURCE_EXHAUSTED: ... memory required (16.98G) exceeds available HBM (15.75G).")
    >>> round(found.needed_bytes / 2**30, 2), found.available_bytes / 2**30
    (16.98, 15.75)
    """
    if "RESOURCE_EXHAUSTED" not in message:
        return None
    first = message.strip().splitlines()[0]
    for pattern in _NEEDS:
        found = pattern.search(message)
        if found:
            needed, of_needed, available, of_available = found.groups()
            return Refusal(
                needed_bytes=float(needed) * _SCALES[of_needed],
                available_bytes=float(available) * _SCALES[of_available],
                message=first,
            )
    return Refusal(needed_bytes=None, available_bytes=None, message=first)
