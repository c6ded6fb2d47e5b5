"""The tour: every question of the book, whose words give the number that stands beside the book's."""

import json
import math
from typing import Any

import pytest
from fastapi.testclient import TestClient

import slicewise
from slicewise.book.questions import rows
from slicewise.book.run import question_ids, run
from slicewise.report.explorer.explore import explore
from slicewise.report.explorer.numbers import every_number
from slicewise.web.app import create_app
from slicewise.web.tour import tour


def test_every_question_and_answer_is_there() -> None:
    found = tour()
    assert [each["id"] for each in found] == list(question_ids())
    assert sum(len(each["answers"]) for each in found) == len(run())
    assert all(each["title"] for each in found)


def test_question_0_7() -> None:
    (asked,) = (each for each in tour() if each["id"] == "0.7")
    first = asked["answers"][0]
    assert (first["book"]["text"], first["ours"]["value"], first["agrees"]) == ("43", 43, True)
    words = dict(asked["words"])
    found = explore(slicewise.load_model(words.pop("model")), words)
    assert found["answer"]["max_batch"]["value"] == 43


@pytest.mark.parametrize("asked", [each for each in tour() if each["words"]], ids=lambda each: each["id"])
def test_words_of_a_question_can_be_explored(asked: dict) -> None:
    words = dict(asked["words"])
    model = slicewise.load_model(words.pop("model"))
    assert explore(model, words)["answer"]["slice"]


def test_controls_ask_what_the_answer_is_of() -> None:
    """Where the document that a row's words give has the row's quantity, it has the row's answer."""
    answers = {(each["id"], answer["quantity"]): answer for each in tour() for answer in each["answers"]}
    documents: dict[str, dict[str, Any]] = {}
    off, compared = [], 0
    for row in rows():
        answer = answers[row.question, row.quantity]
        if not answer["words"] or row.times or row.over:
            continue
        key = json.dumps(answer["words"])
        if key not in documents:
            words = dict(answer["words"])
            documents[key] = explore(slicewise.load_model(words.pop("model")), words)
        document = documents[key]
        parts = [document[name] for name in ("model", "answer", "memory", "breakdown", "servers", "cost")]
        shown = [number["value"] for number in every_number(parts) if number["name"] == row.value]
        shown += [document["answer"]["batch"]] if row.value == "batch" else []
        compared += bool(shown)
        if shown and not any(math.isclose(value, answer["ours"]["value"]) for value in shown):
            off.append((row.question, row.quantity, answer["ours"]["value"], shown))
    assert off == []
    assert compared >= 60


@pytest.mark.parametrize(
    "row", [row for row in rows() if row.given or row.within or row.shape], ids=lambda row: row.quantity
)
def test_what_the_page_cannot_ask_has_no_words(row: Any) -> None:
    (found,) = (
        answer
        for each in tour()
        for answer in each["answers"]
        if (each["id"], answer["quantity"]) == (row.question, row.quantity)
    )
    assert found["words"] is None


def test_our_numbers_are_doors() -> None:
    """Behind each lies its derivation, asked for as the page asks."""
    with TestClient(create_app()) as client:
        for asked in tour():
            ours = asked["answers"][0]["ours"]
            words = {**asked["doors"][ours["door"]], "name": ours["name"]}
            found = client.get("/api/explain", params=words)
            assert found.status_code == 200, found.text
            assert found.json()["value"] == pytest.approx(ours["value"], rel=1e-9)
