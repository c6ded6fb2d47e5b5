"""The command lines that give the same answer, and the words behind each door."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from slicewise.planner.deployment import Deployment
from slicewise.planner.flags import listed
from slicewise.planner.vocabulary import TAKES, WORDS
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.local import file_name
from slicewise.report.explorer.numbers import ANSWER, FLEET, KNEE, MOST, PLAN, SERVERS

Said = dict[str, Any]

_DOORS = {ANSWER: "step", SERVERS: "disaggregate", FLEET: "plan"}
"""The question about what is shown behind each door."""
_PLACE = ("slice", "chip", "weights", "kv", "compute")


def doors(found: Found) -> dict[str, Said]:
    """The words by which the derivation of a number is asked for; its name is added to them."""
    shown = {door: _door(command, found, said_to(command, found)) for door, command in _DOORS.items()}
    step, further = found.step, {PLAN: _door("plan", found, _asked(found))}
    for door, batch in ((KNEE, step.knee_batch), (MOST, 0 if step.fits else step.max_batch)):
        if batch:
            further[door] = door_to(found, found.deployment, batch)
    return {**shown, **further}


def door_to(found: Found, deployment: Deployment, batch: int) -> Said:
    """The words behind the numbers of another deployment than the one that is shown."""
    return _door("step", found, said_of("step", found, deployment, batch))


def _door(command: str, found: Found, said: Said) -> Said:
    """How the model is named stands first; one that came as a config is sent again beside these words."""
    return {"command": command, "model": found.question.model.name, **said, "shown": True}


def commands(found: Found) -> dict[str, str]:
    """The command lines of the answer, by command: the question as it was asked, and its parts for what is shown."""
    asked = {"plan": _asked(found)}
    parts = ("step", "memory", "frontier", "disaggregate")
    asked |= {name: said_to(name, found) for name in parts}
    return {name: command_line(name, [found.called], said) for name, said in asked.items()}


def command_line(command: str, arguments: list[str], said: Mapping[str, Any]) -> str:
    """A command line, quoted for a shell."""
    written = ["slicewise", command, *arguments]
    for word, value in said.items():
        flag = f"--{word.replace('_', '-')}"
        if not WORDS[word].kind:
            written += [flag] if value else []
        else:
            written += [part for one in listed(value) for part in (flag, _told(word, str(one)))]
    return shlex.join(written)


def _told(word: str, value: str) -> str:
    """A word's value as a command shows it: a file by its name."""
    return file_name(value) if WORDS[word].kind == "FILE" else value


def said_to(command: str, found: Found) -> Said:
    """The words that ask a question about what is shown: its slice, formats, layout, batch and view."""
    return said_of(command, found, found.deployment, found.step.batch)


def said_of(command: str, found: Found, deployment: Deployment, batch: int) -> Said:
    """The words that ask a question about a deployment, as far as the command takes them."""
    asked, words, precision = found.question, found.words, deployment.precision
    said: Said = {word: value for word, value in words.items() if word in TAKES[command] and word not in _PLACE}
    place: Said = {"slice": deployment.slice.name}
    is_changed = precision not in asked.precisions
    for word, dtype in (("weights", precision.weights), ("kv", precision.kv), ("compute", precision.compute)):
        if word in words or (is_changed and word != "compute"):
            place[word] = dtype
    if "prefill_slice" in words and command == "disaggregate":
        place["prefill_slice"] = words["prefill_slice"]
    if "price" in said:
        said["price"] = _own_price(deployment)
    said["batch"] = batch
    if not asked.conventions.book:
        said["view"] = asked.conventions.view
    ranks = deployment.ranks
    if ranks is not None:
        said |= {"tp": ranks.tp, "pp": ranks.pp, "dp": ranks.dp, "ep": ranks.ep}
    held = deployment.workload
    if held != asked.workload:
        said |= {"context": held.context_tokens} if held.context_is_set else {"isl": held.prompt_tokens}
    return {**place, **{word: value for word, value in said.items() if word in TAKES[command]}}


def _asked(found: Found) -> Said:
    """The question as it was asked, without what only other questions take."""
    return {word: value for word, value in found.words.items() if word in TAKES["plan"]}


def _own_price(deployment: Deployment) -> list[str]:
    """The price of the chip that is shown, out of those that were given."""
    price = deployment.price
    return [] if price is None else [f"{price.usd_per_chip_hour!r}"]
