"""What a request says, read into the library's words: only words that are offered, each within bounds.

A request names no file and reaches no network: a model is one of the catalog, or comes with the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.catalog.hf import model_from_config
from slicewise.catalog.json_file import parse_object
from slicewise.catalog.load import catalog_model, catalog_name, names_of_models
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.vocabulary import WORDS
from slicewise.spec.model import Model
from slicewise.units import MILLION

MOST_BYTES = int(MILLION)
"""Of a body: a config.json is a few kB, lists of the names of every expert make some of half of that."""
LONGEST = 200
"""Characters of a word."""
MOST_REPEATS = 16
"""Values of one word."""
FILES = frozenset({"efficiency"})
"""Words that name files of the machine, which a request does not."""
CONFIG = "config"
TRUTHS = frozenset({"shown"})
"""Words of a request's own that are said or not."""
_QUANTITIES = frozenset({"TIME", "RATE", "SIZE", "SHARE", "USD", "COUNT", "N", "GIB"})
_NUMBER = re.compile(r"\d*\.?\d+(?:[eE][+-]?\d+)?", re.ASCII)
_LEAST = 1 / MILLION**2
"""No quantity comes near, and what is divided by it stays finite."""
_SHOWN = 40
_LONGEST_NAME = 96
_ORIGIN = "config.json"
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, read.

    Attributes:
        words: what it says, by name; what repeats is a list.
        config: the keys of a config.json that came with it; None where there is none.
    """

    words: Mapping[str, Any]
    config: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """What it asks, as one text: requests that ask the same have the same."""
        return json.dumps([self.words, self.config], sort_keys=True)


def read_query(pairs: Iterable[tuple[str, str]], offered: Mapping[str, bool]) -> Asked:
    """Read the parameters of an address.

    Args:
        pairs: names and values as they are given.
        offered: the words that may be said, and whether each repeats.

    Raises:
        InputError: a word is not offered, is said too often, or is too long.
    """
    said: dict[str, list[str]] = {}
    for name, value in pairs:
        said.setdefault(name, []).append(value)
    _known(said, offered)
    found: dict[str, Any] = {}
    for name, values in said.items():
        if len(values) > 1 and not offered[name]:
            raise InputError(f"{flag(name)} is given {len(values)} times; give it once")
        kept = [_text(name, value) for value in values if value.strip()]
        if kept:
            found[name] = _listed(name, kept) if offered[name] else _truth(name, kept[0])
    return Asked(words=found)


def read_body(body: bytes, offered: Mapping[str, bool]) -> Asked:
    """Read a JSON body: the same words, and `config` in place of the model.

    Raises:
        InputError: it is no JSON object, or says what is not offered, or too much.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"the body is not UTF-8 ({error.reason}); send JSON") from error
    said = parse_object(text, "the body", "the words as a JSON object")
    config = said.pop(CONFIG, None) if CONFIG in offered else None
    _known(said, offered)
    found = {name: _json_word(name, value, repeats=offered[name]) for name, value in said.items()}
    words = {name: value for name, value in found.items() if value is not None and value not in ("", [])}
    if config is None:
        return Asked(words=words)
    return Asked(words=words, config=_config(config))


def model_of(asked: Asked) -> Model:
    """The model that a request is about: one of the catalog, or the config that came with it.

    Raises:
        InputError: none is named, or it is not known, or its config is not understood.
    """
    name = asked.words.get("model")
    if asked.config is not None:
        return model_from_config(dict(asked.config), str(name or CONFIG)[:_LONGEST_NAME], _ORIGIN)
    if name is None:
        raise InputError("model is missing; give a name of the catalog such as llama-3-70b, or post a config.json")
    known = catalog_name(str(name))
    if known is None:
        hint = "For a model that is not in the catalog, give its config.json."
        raise UnknownNameError("model", str(name), names_of_models(), hint)
    return catalog_model(known)


def flag(name: str) -> str:
    """A word as the command line writes it."""
    return f"--{name.replace('_', '-')}" if name in WORDS else name


def is_truth(name: str) -> bool:
    """Whether a word is one that is said or not."""
    return name in TRUTHS or (name in WORDS and not WORDS[name].kind)


def _known(said: Collection[str], offered: Mapping[str, bool]) -> None:
    for name in said:
        if name in FILES:
            raise InputError(f"{flag(name)} names a file of the server's machine, which a request cannot; leave it out")
        if name not in offered:
            raise UnknownNameError("word", name[:LONGEST], offered, "(the words are the command line's flags)")


def _sensible(name: str, value: str | float) -> None:
    """Refuse a quantity so small that what is divided by it overflows; what is too large is refused where it is read.

    Raises:
        InputError: it is next to nothing.
    """
    if name not in WORDS or WORDS[name].kind not in _QUANTITIES:
        return
    for number in _NUMBER.findall(value) if isinstance(value, str) else [value]:
        if 0 < abs(float(number)) < _LEAST:
            raise InputError(
                f"{flag(name)}: {str(value)[:_SHOWN]} is next to nothing; give at least {_LEAST:g}, or leave it out"
            )


def _text(name: str, value: str) -> str:
    if len(value) > LONGEST:
        raise InputError(f"{flag(name)} has {len(value):,} characters; give at most {LONGEST}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{flag(name)} holds half a character; write it as UTF-8") from None
    _sensible(name, value)
    return value


def _listed(name: str, values: list[Any]) -> list[Any]:
    if len(values) > MOST_REPEATS:
        raise InputError(f"{flag(name)} is given {len(values):,} times; give at most {MOST_REPEATS}")
    return values


def _truth(name: str, value: str) -> str | bool:
    """A word that is said or not; other words as they are."""
    if not is_truth(name):
        return value
    if value.strip().lower() not in _TRUTHS:
        raise InputError(f"{flag(name)}: {value[:40]!r} is neither true nor false; give true, or leave it out")
    return _TRUTHS[value.strip().lower()]


def _json_word(name: str, value: Any, *, repeats: bool) -> Any:
    if isinstance(value, list):
        if not repeats and len(value) > 1:
            raise InputError(f"{flag(name)} is given {len(value):,} times; give it once")
        kept = [_scalar(name, one) for one in _listed(name, value)]
        return kept if repeats else next(iter(kept), None)
    found = _scalar(name, value)
    return [found] if repeats and found is not None and found != "" else found


def _scalar(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return _truth(name, _text(name, value)) if value.strip() else ""
    if is_truth(name) and value not in (None, True, False):
        raise InputError(f"{flag(name)}: {value} is neither true nor false; give true, or leave it out")
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list of lists"
        raise InputError(f"{flag(name)} is {kind}; give a text or a number")
    if isinstance(value, int | float):
        _sensible(name, value)
    return value


def _config(value: Any) -> dict[str, Any]:
    """The keys of a config.json, which may be given as the text of the file, too."""
    if isinstance(value, str):
        return parse_object(value, _ORIGIN)
    if not isinstance(value, dict):
        raise InputError(f"{CONFIG} holds a {type(value).__name__}, not an object; give a Hugging Face config.json")
    return value
