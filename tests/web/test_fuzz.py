"""Fuzzing the OpenAPI schema finds no 500, and nothing that the schema does not describe."""

import json
import string
from typing import Any

import hypothesis
import pytest
from fastapi.testclient import TestClient
from hypothesis import strategies as st

from slicewise.planner.vocabulary import WORDS
from slicewise.web.app import create_app
from slicewise.web.keys import EXAMPLES
from slicewise.web.questions import questions

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.checks")
pytestmark = pytest.mark.slow

SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", create_app())
SETTINGS = hypothesis.settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck), database=None
)
CHECKED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@SCHEMA.parametrize()
@SETTINGS
def test_schema_holds(case: Any) -> None:
    case.call_and_validate(checks=checks.CHECKS.get_by_names(CHECKED))


NUMBERS = st.sampled_from(
    ["0", "1", "-1", "1e3", "1e30", "1e400", "nan", "inf", "0.5", "4096", "10**9", "999999999999", "1k"]
)
UNITS = st.sampled_from(["", "ms", "s", "GB", "GiB", "Gb/s", "%", "B", "T", "/s", "$"])
NAMES = st.sampled_from(
    ["llama-3-70b", "mixtral-8x7b", "deepseek-v3", "gemma-3-1b", "v5e", "v5e:4x4", "h100:8", "v5p-8",
     "v6e:1x1", "int8", "bf16", "auto", "vllm", "sglang", "vllm-0.19", "expected", "serial", "ring", "copy",
     "latency", "v5e=1.2", "=", ":", "h100:999999", "step", "plan", "step_s", "0.7"]
)  # fmt: skip
VALUES = st.one_of(
    st.builds(lambda number, unit: number + unit, NUMBERS, UNITS), NAMES, st.text(string.printable, max_size=12)
)
ASKED = [name for name, question in questions().items() if question.takes_config]


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_app(), raise_server_exceptions=False)


@pytest.mark.parametrize("name", ASKED)
@hypothesis.given(data=st.data())
@SETTINGS
def test_likely_words_never_break_it(client: TestClient, name: str, data: st.DataObject) -> None:
    offered = questions()[name].in_query
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(offered)), VALUES, max_size=4))
    start = {word: EXAMPLES[word] for word in ("model", "slice", "command", "names") if word in offered}
    answer = client.get(f"/api/{name}", params={**start, **changed})
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        assert "\n" not in answer.json()["detail"]


KEYS = st.sampled_from(
    ["model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
     "quantization_config", "intermediate_size", "num_key_value_heads", "max_position_embeddings",
     "rope_scaling", "architectures", "head_dim", "sliding_window"]
)  # fmt: skip
FAMILIES = st.sampled_from(["llama", "qwen3_moe", "deepseek_v3", "gemma3_text"])
SIZES = st.one_of(st.integers(-2, 10**12), st.integers(1, 64), st.floats(), st.none())
SHAPES = st.one_of(st.text(max_size=5), st.lists(st.integers(0, 3), max_size=3), st.dictionaries(KEYS, st.integers()))


@hypothesis.given(config=st.dictionaries(KEYS, st.one_of(SIZES, FAMILIES, SHAPES)))
@SETTINGS
def test_configs_never_break_it(client: TestClient, config: dict[str, Any]) -> None:
    text = json.dumps({"config": {"model_type": "llama", **config}})
    answer = client.post("/api/explore", content=text)
    assert answer.status_code in (200, 422), answer.text


def test_words_of_the_fuzz_are_words() -> None:
    assert set(EXAMPLES) & set(WORDS)
