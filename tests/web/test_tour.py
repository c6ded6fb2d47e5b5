"""The tour: every question of the book, whose words give the number that stands beside the book's."""

import pytest

import slicewise
from slicewise.book.run import question_ids, run
from slicewise.report.explorer.explore import explore
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
