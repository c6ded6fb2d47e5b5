"""The API as its users meet it: the command line's JSON, its one line where input is off, and bounds that hold."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

import slicewise
from slicewise.catalog.load import read_data
from slicewise.cli.main import main
from slicewise.web.app import create_app
from slicewise.web.questions import MOST_CANDIDATES, candidates
from slicewise.web.words import MOST_BYTES

QUESTIONS = [
    ("plan", "llama-3-70b --weights int8 --kv int8 --tpot 30ms --rate 2"),
    ("plan", "llama-3-70b --slice v5e:2x2"),
    ("plan", "mixtral-8x7b --chip v5p --chip h100 --objective throughput"),
    ("step", "llama-3-70b --slice v5e:4x4 --weights int8 --kv int8 --batch 32 --context 8192 --book --params 70e9"),
    ("step", "llama-3-70b --slice v5e:4x4 --batch 4000"),
    ("prefill", "llama-3-8b --slice v5e:2x2 --isl 2048 --mfu 0.5"),
    ("memory", "llama-3-70b --slice h100:8 --engine vllm --max-model-len 8192"),
    ("limits", "llama-3-70b --slice v5e:4x8"),
    ("frontier", "llama-3-70b --slice v5e:4x4 --context 2048 --context 8192 --tpot 20ms"),
    ("disaggregate", "llama-3-70b --slice v5e:4x4 --prefill-slice v5e:4x8 --rate 10"),
]
REFUSED = [
    ("step", "llama-3-70b --slice v5e:3x3"),
    ("step", "llama-3-70b --slice v5e:4x4 --slice v5e:2x2"),
    ("plan", "llama-3-70b --tpot soon"),
    ("plan", "llama-3-70b --chip nothing"),
    ("plan", "llama-3-70b --weights int9"),
    ("memory", "llama-3-70b --batch 0"),
    ("disaggregate", "llama-3-70b --network 5"),
    ("limits", "llama-3-70b --engine nothing"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(), raise_server_exceptions=False) as found:
        yield found


def said(words: str) -> list[tuple[str, str]]:
    """A command line as the parameters of an address."""
    model, *rest = shlex.split(words)
    pairs = [("model", model)]
    for word, value in zip(rest, [*rest[1:], "--"], strict=True):
        if word.startswith("--"):
            pairs.append((word[2:].replace("-", "_"), "true" if value.startswith("--") else value))
    return pairs


def printed(capsys: pytest.CaptureFixture[str], command: str, words: str, *more: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([command, *shlex.split(words), "--json", *more])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.mark.parametrize(("command", "words"), QUESTIONS, ids=str)
def test_answer_is_the_json_of_the_command_line(
    client: TestClient, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    code, out, _ = printed(capsys, command, words)
    answer = client.get(f"/api/{command}", params=said(words))
    assert answer.status_code == 200
    assert answer.json() == json.loads(out)
    assert code == 0 or answer.json().get("fits", answer.json().get("recommended")) in (False, None)
    body: dict[str, Any] = {}
    for name, value in said(words):
        body[name] = (
            [*body[name], value] if isinstance(body.get(name), list) else [body[name], value] if name in body else value
        )
    assert client.post(f"/api/{command}", json=body).content == answer.content


@pytest.mark.parametrize(("command", "words"), REFUSED, ids=str)
def test_refusal_is_the_line_of_the_command_line(
    client: TestClient, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    code, _, err = printed(capsys, command, words)
    assert code == 2
    answer = client.get(f"/api/{command}", params=said(words))
    assert answer.status_code == 422
    assert f"slicewise: {answer.json()['detail']}" == err.strip()


def test_derivation_is_that_of_the_command_line(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    words = "llama-3-70b --slice v5e:4x4 --weights int8"
    _, out, _ = printed(capsys, "step", words, "--explain", "tokens_per_s")
    asked = [("command", "step"), ("name", "tokens_per_s"), *said(words)]
    assert client.get("/api/explain", params=asked).json() == json.loads(out)
    shown = client.get("/api/explain", params=[*asked, ("shown", "true")]).json()
    assert shown["text"].endswith("/s")
    assert client.get("/api/explain", params=said(words)).json()["detail"].startswith("command is missing")
    assert client.get("/api/explain", params=[*asked, ("rate", "3")]).status_code == 422
    assert (
        "unknown number"
        in client.get("/api/explain", params=[*asked[2:], asked[0], ("name", "stepp")]).json()["detail"]
    )


def test_comparison_is_that_of_the_command_line(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "v5e", "h100:8", "--model", "llama-3-8b", "--json"])
    told = json.loads(capsys.readouterr().out)
    answer = client.get("/api/compare", params=[("names", "v5e"), ("names", "h100:8"), ("model", "llama-3-8b")])
    assert answer.json() == told


@pytest.mark.parametrize("what", ["models", "chips", "slices", "prices"])
def test_lists_are_those_of_the_catalog(client: TestClient, capsys: pytest.CaptureFixture[str], what: str) -> None:
    with pytest.raises(SystemExit):
        main(["catalog", what, "--json"])
    assert client.get(f"/api/{what}").json() == json.loads(capsys.readouterr().out)


def test_book_is_that_of_the_command_line(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["book", "--question", "0.7", "--json"])
    assert client.get("/api/book", params={"question": "0.7"}).json() == json.loads(capsys.readouterr().out)
    assert "unknown question" in client.get("/api/book", params={"question": "99"}).json()["detail"]


def test_config_is_posted(client: TestClient) -> None:
    config = {
        "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64,
        "num_key_value_heads": 8, "num_hidden_layers": 80, "vocab_size": 128256, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip
    answer = client.post("/api/memory", json={"config": config, "model": "ours", "slice": "v5e:4x8"}).json()
    known = slicewise.memory("llama-3-70b", slice="v5e:4x8").to_dict()
    assert answer["model"] == "ours"
    assert answer["n_params"] == known["n_params"]
    assert answer["max_batch"] == known["max_batch"]
    explored = client.post("/api/explore", json={"config": json.dumps(config)}).json()
    assert explored["command"] == "slicewise plan config.json"


def test_explorer_is_one_document(client: TestClient) -> None:
    found = client.get("/api/explore", params={"model": "llama-3-70b", "slice": "v5e:4x4"}).json()
    assert found["fits"] is True
    door = {**found["doors"]["answer"], "name": "step_s"}
    value = client.get("/api/explain", params={**door, "shown": "true"}).json()["value"]
    assert value == found["answer"]["rows"][0]["number"]["value"]


def test_report_is_a_file(client: TestClient) -> None:
    pytest.importorskip("vl_convert")
    answer = client.get("/api/report", params={"model": "llama-3-8b", "slice": "v5e:2x2"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.text.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("plan", [("model", "deepseek-v3"), *(("chip", c) for c in ("h100", "h200", "b200")), ("engine", "vllm")]),
        ("frontier", [("model", "llama-3-70b"), *(("context", str(2**k)) for k in range(4, 20)), ("chip", "v5p")]),
        ("memory", [("model", "llama-3-70b"), ("chip", "v5p"), *(("weights", w) for w in ("bf16", "int8", "int4") * 3),
                    *(("kv", w) for w in ("bf16", "int8", "int4", "fp8", "fp4"))]),
    ],
)  # fmt: skip
def test_too_much_is_refused_before_it_is_computed(client: TestClient, path: str, words: list[tuple[str, str]]) -> None:
    answer = client.get(f"/api/{path}", params=words)
    assert answer.status_code == 422
    assert f"more than the {MOST_CANDIDATES} of one request" in answer.json()["detail"]
    assert answer.elapsed.total_seconds() < 5


MIXED = ("v5e", "v6e", "v5p", "h100")


def test_chips_of_a_comparison_are_counted_together(client: TestClient) -> None:
    """Each chip alone is within bounds, mixed with others it is not."""
    dtypes = {"weights": ["bf16", "int8"], "kv": ["bf16", "int8", "int4"]}
    model = slicewise.load_model("llama-3-70b")
    counts = [candidates(model, {"chip": name, **dtypes}) for name in MIXED]
    assert max(counts) <= MOST_CANDIDATES < sum(counts)
    answer = client.post("/api/compare", json={"model": "llama-3-70b", "names": MIXED, **dtypes})
    assert answer.status_code == 422
    assert f"{sum(counts):,} candidates" in answer.json()["detail"]
    assert f"more than the {MOST_CANDIDATES} of one request" in answer.json()["detail"]


def test_comparison_takes_chips_and_slices_mixed(client: TestClient) -> None:
    params = [("model", "llama-3-8b"), *(("names", name) for name in ("v5e", "v5e-4", "h100:8")), ("price", "h100=3")]
    answer = client.get("/api/compare", params=params)
    assert answer.status_code == 200, answer.text
    assert [row["name"] for row in answer.json()["rows"]] == ["v5e", "v5e-4", "h100:8"]


@pytest.mark.parametrize("words", [{"network": "1e-300B/s"}, {"network": 1e-300}, {"network": "1e-12B/s"}], ids=str)
def test_what_is_next_to_nothing_overflows_nowhere(client: TestClient, words: dict) -> None:
    asked = {"model": "llama-3-70b", "slice": "v5e:4x8", "prefill_slice": "v5p:2x2x2", **words}
    assert client.post("/api/explore", json=asked).status_code in (200, 422)
    assert client.post("/api/disaggregate", json=asked).status_code in (200, 422)


def test_body_is_bounded(client: TestClient) -> None:
    answer = client.post("/api/plan", content=b" " * (MOST_BYTES + 1))
    assert answer.status_code == 413
    assert f"{MOST_BYTES:,} bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/nothing", 404), ("DELETE", "/api/plan", 405), ("POST", "/api/chips", 405)],
)
def test_what_is_not_there_is_said(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_words_stand_in_one_place(client: TestClient) -> None:
    answer = client.post("/api/plan?model=llama-3-8b", json={"model": "llama-3-8b"})
    assert answer.status_code == 422
    assert client.get("/api/chips", params={"model": "x"}).status_code == 422


def test_a_defect_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: object, **words: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setitem(__import__("slicewise.web.questions", fromlist=["COMMANDS"]).COMMANDS, "limits", broken)
    with TestClient(create_app(), raise_server_exceptions=False) as client:
        answer = client.get("/api/limits", params={"model": "llama-3-8b"})
    assert answer.status_code == 500
    assert answer.json() == {"detail": "a defect of slicewise, please report it: ZeroDivisionError"}


def test_catalog_is_whole_for_the_page(client: TestClient) -> None:
    assert len(client.get("/api/models").json()) == len(read_data("names.toml"))
