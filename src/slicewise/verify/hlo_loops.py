"""How often a loop of a compiled program runs: as XLA:CPU notes it, or as the loop's counter says.

XLA:TPU leaves the count out of the text. A counted loop can be read all the same: its condition compares one element of
the tuple that it carries with a constant, its operand sets that element, and its body adds a constant to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from slicewise.verify.hlo_text import Computation, Instruction

_KNOWN = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_INDEX = re.compile(r"index=(\d+)")
_MOVES = ("copy", "copy-start", "copy-done", "bitcast", "convert")


def trip_count(loop: Instruction, within: Computation, computations: Mapping[str, Computation]) -> int | None:
    """How often the body of a while instruction runs; None where neither a note nor a counter says. []

    Args:
        loop: the while instruction.
        within: the computation that it is in.
        computations: all of the module, by name.
    """
    known = _KNOWN.search(loop.attributes)
    if known:
        return int(known[1])
    condition, body = (_called(loop, role, computations) for role in ("condition", "body"))
    test = condition.root if condition else None
    start = _source(within, loop.operands[0])
    if not condition or not body or not test or test.opcode != "compare" or "direction=LT" not in test.attributes:
        return None
    counter = _index(condition, test.operands[0])
    limit = _constant(condition, test.operands[1])
    end = body.root
    if counter is None or limit is None or not start or not end or {start.opcode, end.opcode} != {"tuple"}:
        return None
    first = _constant(within, start.operands[counter])
    step = _step(body, end.operands[counter], counter)
    return max(0, -(-(limit - first) // step)) if first is not None and step else None


def _called(loop: Instruction, role: str, computations: Mapping[str, Computation]) -> Computation | None:
    found = re.search(rf"\b{role}=%([\w.\-]+)", loop.attributes)
    return computations.get(found[1]) if found else None


def _source(computation: Computation, name: str) -> Instruction | None:
    """The instruction that makes a value, past those that only move it."""
    made = computation.instructions.get(name)
    while made and made.opcode in _MOVES:
        made = computation.instructions.get(made.operands[0])
    return made


def _constant(computation: Computation, name: str) -> int | None:
    made = _source(computation, name)
    return int(made.literal) if made and made.opcode == "constant" and made.literal.lstrip("-").isdigit() else None


def _index(computation: Computation, name: str) -> int | None:
    """Which element of the computation's parameter a value is."""
    made = _source(computation, name)
    found = _INDEX.search(made.attributes) if made and made.opcode == "get-tuple-element" else None
    return int(found[1]) if found else None


def _step(body: Computation, name: str, counter: int) -> int | None:
    """What the body adds to its counter; None where it does not add a positive constant."""
    made = _source(body, name)
    if not made or made.opcode != "add":
        return None
    for one, other in (made.operands, made.operands[::-1]):
        step = _constant(body, other)
        if _index(body, one) == counter and step and step > 0:
            return step
    return None
