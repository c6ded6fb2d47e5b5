"""The page of the API: every question and word with its meaning, plain HTML without scripts, examples that work."""

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient

from slicewise.planner.vocabulary import WORDS
from slicewise.web.app import create_app
from slicewise.web.questions import questions


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_app())


@pytest.fixture(scope="module")
def page(client: TestClient) -> str:
    return client.get("/docs").text


def test_every_question_and_word_is_told(page: str) -> None:
    for name, question in questions().items():
        assert f'id="{name}"' in page
        assert question.summary in unescape(page)
    plain = re.sub(r"<[^>]+>|`", "", unescape(page))
    for name, word in WORDS.items():
        assert name == "efficiency" or word.meaning.replace("`", "") in plain


def test_page_needs_no_script_and_nothing_from_elsewhere(page: str) -> None:
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page)


@pytest.mark.parametrize("address", re.findall(r'<pre><a href="([^"]+)"', TestClient(create_app()).get("/docs").text))
def test_examples_work(client: TestClient, address: str) -> None:
    assert client.get(unescape(address)).status_code == 200


def test_schema_tells_every_word(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {f"/api/{name}" for name in questions()}
    for name, question in questions().items():
        told = paths[f"/api/{name}"]
        assert {each["name"] for each in told["get"].get("parameters", [])} == set(question.in_query)
        assert all(each["description"] for each in told["get"].get("parameters", []))
        assert ("post" in told) == question.takes_config
        if question.takes_config:
            body = told["post"]["requestBody"]["content"]["application/json"]["schema"]
            assert set(body["properties"]) == set(question.offered)
            assert body["additionalProperties"] is False
        assert set(told["get"]["responses"]) >= {"200", "422"}


def test_keys_of_answers_are_told_with_units_and_meanings(client: TestClient, page: str) -> None:
    properties = client.get("/openapi.json").json()["paths"]["/api/step"]["get"]["responses"]["200"]["content"][
        "application/json"
    ]["schema"]["properties"]
    assert properties["param_load_s"] == {
        "type": ["number", "null"],
        "description": "Time to read every weight once [s]",
    }
    assert set(properties) == set(client.get("/api/step?model=llama-3-8b&slice=v5e:2x2").json())
    shown = re.sub(r"<[^>]+>", " ", unescape(page))
    assert "Time to read every weight once" in shown
    answered = [name for name, question in questions().items() if not question.headers]
    assert shown.count("of the answer") == len(answered)
