"""The questions that may be asked, each with its words, and what answers it: the JSON of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from slicewise.book.explain import explain
from slicewise.book.run import run
from slicewise.catalog.load import find_chip
from slicewise.derive import Derivation
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.compare import compare
from slicewise.planner.disaggregate import disaggregate
from slicewise.planner.flags import Flags, listed
from slicewise.planner.frontier import frontier
from slicewise.planner.limits import limits
from slicewise.planner.memory import memory
from slicewise.planner.plan import plan
from slicewise.planner.prefill import prefill
from slicewise.planner.question import ask
from slicewise.planner.step import step
from slicewise.planner.vocabulary import TAKES, WORDS
from slicewise.report.explorer.explore import EXPLORED, explore
from slicewise.report.explorer.found import find
from slicewise.report.explorer.html import report_of
from slicewise.report.explorer.numbers import shown
from slicewise.report.views.catalog import ROWS
from slicewise.spec.model import Model
from slicewise.web.tour import tour
from slicewise.web.words import CONFIG, FILES, Asked, model_of

MOST_CANDIDATES = 160
"""Slices, formats, layouts and contexts of one request together: some seconds' work at worst."""
COMMANDS: dict[str, Callable[..., Any]] = {
    "plan": plan, "step": step, "prefill": prefill, "memory": memory, "limits": limits, "frontier": frontier,
    "disaggregate": disaggregate, "compare": compare,
}  # fmt: skip
_SUMMARIES = {
    "plan": "Choose slice, dtypes and batch for a model and a workload: the main job.",
    "step": "One decode step: memory, terms, what binds, throughput and cost.",
    "prefill": "Prefill of one prompt: its time and what binds.",
    "memory": "What a model needs and where it fits: parameters, KV bytes, largest batch and context.",
    "limits": "Critical batch, model parallelism, KV layout, the knee.",
    "frontier": "Latency against throughput per chip over the batch.",
    "disaggregate": "Prefill and decode on servers of their own: ratio, hand-off, whether to split.",
    "compare": "Chips or slices side by side: what a dollar buys, and with a model a plan on each.",
    "explain": "The derivation of one number of a question, down to its sources.",
    "explore": "Everything that the explorer shows of one question, in one document.",
    "report": "What the explorer shows of one question, as one HTML file that fetches nothing.",
    "models": "The models of the catalog, with sources.",
    "chips": "The chips of the catalog, each fact as printed and with its source.",
    "slices": "The standard slices.",
    "prices": "Prices of a chip-hour; the first of a chip is its default.",
    "book": "Chapter 8 of How to Scale Your Model: what it prints, what we compute, and why they differ.",
    "tour": "Chapter 8's questions, each with the words that ask it.",
}
MODEL_WORDS = {
    "model": "A model of the catalog, by its name or an alias: llama-3-70b. With a config, what to call it.",
    CONFIG: "The object of a Hugging Face config.json, or its text: the model to answer about.",
}
OWN_WORDS = {
    "names": "A chip or a slice, once for each: v5e, h100:8.",
    "command": f"The question that the number belongs to: {', '.join(COMMANDS)}, or book.",
    "name": "The number, by its name in the JSON; without it, the headline number. tokens_per_s:low is an end of its "
    "range, ledger:logits a line of a chip's memory.",
    "shown": "Also give each value as the page shows it: three digits, unit, colour.",
    "question": "One question of the book, such as 0.7; without it, all.",
}
_NO_WORDS = ("model", "command", "name", "question", "shown")
_OWN = {"compare": ("names",)}
_REPEATED, _PAGE = {"names"}, {"explore", "tour", "report"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that may be asked.

    Attributes:
        name: as it stands in the address.
        summary: what it answers, in a sentence.
        tag: under which heading it is listed.
        offered: its words, and whether each repeats.
        render: what answers it, as it is sent.
        is_list: the JSON is a list.
        media_type: what is sent.
    """

    name: str
    summary: str
    tag: str
    offered: Mapping[str, bool]
    render: Callable[[Asked], bytes]
    is_list: bool = False
    media_type: str = "application/json"

    @property
    def takes_config(self) -> bool:
        """Whether a config.json may be posted."""
        return CONFIG in self.offered

    @property
    def in_query(self) -> dict[str, bool]:
        """The words that may stand in an address."""
        return {word: repeats for word, repeats in self.offered.items() if word != CONFIG}

    @property
    def headers(self) -> dict[str, str]:
        """Further headers of the answer: a report is a file to keep."""
        is_file = self.media_type != "application/json"
        return {"content-disposition": 'attachment; filename="slicewise.html"'} if is_file else {}


@cache
def questions() -> dict[str, Question]:
    """Every question, by its name."""
    found = {name: _about_a_model(name, TAKES[name], _asker(name), *_OWN.get(name, ())) for name in COMMANDS}
    found["explain"] = _about_a_model(
        "explain", tuple(WORDS), _explain, "command", "name", "names", "question", "shown"
    )
    found["explore"] = _about_a_model("explore", EXPLORED, _explore)
    found["report"] = replace(
        _about_a_model("report", EXPLORED, _explore), render=_report, media_type="text/html; charset=utf-8"
    )
    found |= {name: _plain(name, lambda _, name=name: ROWS[name]()) for name in ROWS}  # type: ignore[misc]
    found["book"] = _plain("book", _book, "question")
    found["tour"] = _plain("tour", lambda _: tour())
    return found


def _about_a_model(name: str, words: tuple[str, ...], answer: Callable[[Asked], Any], *own: str) -> Question:
    offered = {"model": False, CONFIG: False, **{word: word in _REPEATED for word in own}}
    offered |= {word: repeats(name, word) for word in words if word not in FILES}
    tag = "The explorer" if name in _PAGE else "Questions"
    return Question(name=name, summary=_SUMMARIES[name], tag=tag, offered=offered, render=_json(answer))


def _plain(name: str, answer: Callable[[Asked], Any], *own: str) -> Question:
    tag = "The explorer" if name in _PAGE else "What is known"
    offered = dict.fromkeys(own, False)
    return Question(name=name, summary=_SUMMARIES[name], tag=tag, offered=offered, render=_json(answer), is_list=True)


def _json(answer: Callable[[Asked], Any]) -> Callable[[Asked], bytes]:
    return lambda asked: json.dumps(answer(asked), allow_nan=False, separators=(",", ":")).encode()


def repeats(question: str, word: str) -> bool:
    """Whether a word may be said several times in a question: `frontier` takes several contexts."""
    return WORDS[word].repeats or (question in ("frontier", "explain") and word == "context")


def _asker(name: str) -> Callable[[Asked], Any]:
    return lambda asked: result_of(name, asked).to_dict()


def result_of(command: str, asked: Asked) -> Any:
    """The planner's result.

    Raises:
        InputError: a word is off, or the request asks for too much.
    """
    words = words_of(asked)
    if command == "compare":
        names = words.pop("names", [])
        model = model_of(asked) if asked.config is not None or "model" in asked.words else None
        if model is not None:
            # A row takes the prices of its own chip alone, and they are no candidates.
            plain = {word: value for word, value in words.items() if word != "price"}
            refuse_many(sum(candidates(model, {**plain, **_place(str(name))}) for name in names))
        return compare([str(name) for name in names], model=model, **words)
    model = model_of(asked)
    within_bounds(model, words)
    return COMMANDS[command](model, **words)


def words_of(asked: Asked) -> dict[str, Any]:
    """The words that a request says to a question."""
    return {name: value for name, value in asked.words.items() if name not in _NO_WORDS}


def within_bounds(model: Model, words: Mapping[str, Any]) -> None:
    """Refuse what would keep the server busy for long: too many slices, formats, layouts and contexts together.

    Raises:
        InputError: it is too much, or a word is off.
    """
    refuse_many(candidates(model, words))


def candidates(model: Model, words: Mapping[str, Any]) -> int:
    """How many slices, formats, layouts and contexts a question has together.

    Raises:
        InputError: a word is off.
    """
    contexts = listed(words.get("context"))
    plain = {word: value for word, value in words.items() if word in Flags.__annotations__ and word != "context"}
    question = ask(model, {**plain, **({"context": contexts[0]} if contexts else {})})  # type: ignore[typeddict-item]
    return max(1, len(contexts)) * sum(
        len(question.layouts(slice_, precision)) for slice_ in question.slices for precision in question.precisions
    )


def refuse_many(count: int) -> None:
    """Refuse more candidates than one request may have.

    Raises:
        InputError: they are more.
    """
    if count > MOST_CANDIDATES:
        raise InputError(
            f"{count:,} candidates (slices × formats × layouts × contexts) are more than the {MOST_CANDIDATES} of one"
            " request; name fewer chips, a --slice, or the layout (--tp, --pp, --dp, --ep)"
        )


def _explore(asked: Asked) -> Any:
    model, words = model_of(asked), words_of(asked)
    within_bounds(model, words)
    return explore(model, words, called=_called(asked))


def _called(asked: Asked) -> str:
    """How the command line names the model: a config that came with the request is saved to a file first."""
    return "" if asked.config is None else "config.json"


def _report(asked: Asked) -> bytes:
    model, words = model_of(asked), words_of(asked)
    within_bounds(model, words)
    return report_of(find(model, words, called=_called(asked))).encode()


def _place(name: str) -> dict[str, Any]:
    """A name of a comparison as a word: a chip, or a slice such as v5e:4x4 and v6e-8."""
    try:
        return {"chip": find_chip(name).name}
    except InputError:
        return {"slice": name}


def _explain(asked: Asked) -> Any:
    derivation = _derived(asked)
    return shown(derivation) if asked.words.get("shown") else derivation.to_dict()


def _derived(asked: Asked) -> Derivation:
    """The derivation of one number of a question.

    Raises:
        InputError: the question is missing, a word is none of its own, or off.
        UnknownNameError: there is no such question or number.
    """
    command, name = asked.words.get("command"), str(asked.words.get("name", ""))
    every = (*COMMANDS, "book")
    if command is None:
        raise InputError(f"command is missing; give the question of the number: {', '.join(every)}")
    if command not in every:
        raise UnknownNameError("command", str(command), every)
    allowed = {"question"} if command == "book" else {*TAKES[str(command)], "names", "model", CONFIG}
    said = {word for word in asked.words if word not in ("command", "name", "shown")}
    stray = next(iter(sorted((said | ({CONFIG} if asked.config is not None else set())) - allowed)), None)
    if stray is not None:
        raise UnknownNameError("word", stray, allowed, f"({command} does not take it)")
    if command != "book":
        found: Derivation = result_of(str(command), asked).explain(name)
        return found
    if "question" not in asked.words:
        raise InputError("question is missing; give one of the book, such as 0.7")
    return explain(str(asked.words["question"]), name)


def _book(asked: Asked) -> Any:
    question = asked.words.get("question")
    return [answer.to_dict() for answer in run(None if question is None else str(question))]
