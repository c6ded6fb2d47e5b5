"""What can go wrong, as exceptions.

    SlicewiseError
    ├── InputError                 the user's words are off; exit code 2, one line with the fix
    │   ├── UnknownNameError       no such model, chip, slice or number
    │   ├── UnknownFactError       a number rests on a fact that is not known, such as a price
    │   └── UnsupportedModelError  a config.json that is not understood, named by its key
    └── CatalogError               a data file of the package is wrong: a defect of ours

What does not fit is no exception: it is a result with a reason (exit code 1).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

_FEW = 40


class SlicewiseError(Exception):
    """Root of every exception that slicewise raises on purpose. Its message is one line, whatever the input held."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def __reduce__(self) -> tuple[Any, ...]:
        """As other processes get it: by its message, whatever it was made of."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[SlicewiseError], args: tuple[str], state: dict[str, Any]) -> SlicewiseError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(SlicewiseError):
    """The input is wrong. The message is one line that names the fix."""


class UnknownNameError(InputError):
    """A name is not in the catalog. The message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(set(known))
        near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        short = [known_name for known_name in names if "/" not in known_name]
        few = f"known: {', '.join(short)}" if len(short) <= _FEW else f"{len(short)} are known"
        offer = f"did you mean {' or '.join(near)}?" if near else few
        super().__init__(f"unknown {kind} '{name}': {offer}{' ' + hint if hint else ''}")


class UnknownFactError(InputError):
    """A number rests on a fact that is not known. The message names both, and how to give the fact."""

    def __init__(self, name: str, fact: str, hint: str = "") -> None:
        what = f"{name} rests on {fact}, which" if name != fact else name
        super().__init__(f"{what} is not known here{'; ' + hint if hint else ''}")
        self.name, self.fact = name, fact


class UnsupportedModelError(InputError):
    """A model configuration holds something that is not understood. The message names the key."""


class CatalogError(SlicewiseError):
    """A catalog file of the package is wrong. The message names file and key."""
