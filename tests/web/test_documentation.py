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
