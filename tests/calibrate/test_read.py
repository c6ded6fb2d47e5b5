"""Files of any kind: each format is found out, flags fill in what is missing, and the rest is refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.calibrate import contents
from slicewise.calibrate.measurement import Measurement, Reading
from slicewise.calibrate.read import Given, read_measurements
from slicewise.errors import InputError

GIVEN = Given(model="llama-3-70b", slice="h100:8", weights="fp8", kv="fp8")
ROW = {"batch": 32, "isl": 1024, "osl": 512, "ms": 15.5}
LATENCY = {"avg_latency": 2.0, "latencies": [2.0, 2.5], "percentiles": {"50": 2.25}}
SERVE = {
    "model_id": "llama-3-70b", "backend": "vllm", "max_concurrency": 1, "completed": 8, "total_input_tokens": 8192,
    "total_output_tokens": 4096, "median_ttft_ms": 90.0, "median_tpot_ms": 11.0, "input_lens": [1024],
    "output_lens": [512],
}  # fmt: skip
EXPORT = {
    "time_to_first_token": {"unit": "ms", "avg": 90.0, "p50": 88.0},
    "inter_token_latency": {"unit": "ms", "avg": 11.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1024},
    "output_sequence_length": {"unit": "tokens", "avg": 512},
    "input_config": {
        "endpoint": {"model_names": ["llama-3-70b"]}, "loadgen": {"concurrency": 1}, "phases": [{"name": "profiling"}],
        "models": {"items": [{"name": "llama-3-70b"}]}, "perf_analyzer": {"stimulus": {"concurrency": 1}},
    },
}  # fmt: skip
RESULT = {
    "hw": "h100-cw", "tp": 8, "pp": 1, "ep": 1, "dp_attention": "false", "conc": 1, "isl": 1024, "osl": 1024,
    "model": "llama-3-70b", "framework": "vllm", "precision": "fp8", "spec_decoding": "none", "disagg": False,
    "tput_per_gpu": 60.0, "median_ttft": 0.09, "median_tpot": 0.011,
}  # fmt: skip


def written(folder: Path, content: object, name: str = "m.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refusal(path: Path, words: Given = GIVEN) -> str:
    with pytest.raises(InputError) as refused:
        read_measurements(path, words)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize(
    ("content", "phases"),
    [
        (ROW, ["decode"]),
        (LATENCY, ["end_to_end"]),
        (SERVE, ["decode", "prefill"]),
        (EXPORT, ["decode", "prefill"]),
        (RESULT, ["decode", "prefill"]),
    ],
    ids=["row", "latency", "serve", "aiperf", "inferencemax"],
)
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: {"results": [one]}])
def test_each_format_is_found_out_alone_and_in_a_list(
    tmp_path: Path, content: dict[str, Any], phases: list[str], wrap: Callable[[Any], Any]
) -> None:
    words = Given(model="llama-3-70b", slice="h100:8", weights="fp8", kv="fp8")
    if content is LATENCY:
        words = Given(**{**{n: getattr(words, n) for n in ("model", "slice", "weights", "kv")}, "batch": 8},
                      prompt_tokens=1024, output_tokens="512")  # fmt: skip
    found = read_measurements(written(tmp_path, wrap(content)), words)
    assert [one.phase for one in found.measurements] == phases
    assert all((one.model, one.slice, one.weights) == ("llama-3-70b", "h100:8", "fp8") for one in found.measurements)
    assert not found.left_out


def test_an_item_and_a_line_say_where_they_are(tmp_path: Path) -> None:
    results = read_measurements(written(tmp_path, {"results": [ROW, ROW]}), GIVEN)
    assert [one.where for one in results.measurements] == ["m.json: results[0]", "m.json: results[1]"]
    listed = read_measurements(written(tmp_path, [ROW]), GIVEN)
    assert listed.measurements[0].where == "m.json: [0]"
    lines = f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n".encode()
    for name in ("m.jsonl", "m.json"):
        appended = read_measurements(written(tmp_path, lines, name), GIVEN)
        assert [one.where for one in appended.measurements] == [f"{name}:line 1", f"{name}:line 3"]


def test_one_file_may_hold_what_several_tools_wrote(tmp_path: Path) -> None:
    crowded = SERVE | {"max_concurrency": 8}
    found = read_measurements(written(tmp_path, [SERVE, crowded, crowded, RESULT | {"conc": 4}]), GIVEN)
    assert len(found.measurements) == 2
    assert list(found.left_out.values()) == [3]


def test_a_flag_fills_in_and_never_contradicts(tmp_path: Path) -> None:
    stated = ROW | {"model": "meta-llama/Llama-3.1-70B-Instruct", "slice": "8xH100", "weights": "float16", "kv": "bf16"}
    path = written(tmp_path, stated | {"engine": "vLLM"})
    same = Given(model="llama-3-70b", slice="h100:8", weights="fp16", batch="32", prompt_tokens=1024)
    assert read_measurements(path, same) == read_measurements(path, Given())
    assert read_measurements(path, Given(engine="vllm-0.19")).measurements[0].engine == "vllm-0.19"
    assert "model is llama-3-70b there, and --model says llama-3-8b; leave --model out" in refusal(
        path, Given(model="llama-3-8b")
    )
    assert "isl is 1024 there, and --isl says 2048; leave --isl out" in refusal(path, Given(prompt_tokens=2048))
    assert "engine is vllm there, and --engine says sglang" in refusal(path, Given(engine="sglang"))


def test_a_flag_may_say_more_exactly_what_the_file_says(tmp_path: Path) -> None:
    path = written(tmp_path, ROW | {"weights": "fp4"})
    words = {"model": "llama-3-70b", "slice": "b200:1", "kv": "fp8"}
    for weights in ("nvfp4", "mxfp4", "auto"):
        assert read_measurements(path, Given(**words, weights=weights)).measurements[0].weights == weights
    assert "weights is fp4 there" in refusal(path, Given(**words, weights="int4"))


def test_what_nobody_states_is_asked_for_at_once_at_the_first_row(tmp_path: Path) -> None:
    message = refusal(written(tmp_path, [{"batch": 1, "ms": 3}] * 2), Given(model="llama-3-70b"))
    assert message == (
        "m.json: [0]: states no slice and no weights and no kv and no isl and no osl of its decode time;"
        " give --slice and --weights and --kv and --isl and --osl"
    )
    assert "states no batch of its end_to_end time; give --batch" in refusal(
        written(tmp_path, LATENCY),
        Given(model="a", slice="h100:1", weights="fp8", kv="fp8", prompt_tokens=9, output_tokens=9),
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"slice": "h100"}, "--slice 'h100'"),
        ({"slice": "h900:8"}, "unknown chip"),
        ({"weights": "int5"}, "--weights 'int5' is not a dtype"),
        ({"kv": "x"}, "--kv 'x' is not a dtype"),
        ({"batch": "0"}, "--batch: 0 must be greater than 0"),
        ({"prompt_tokens": "1.5"}, "--isl: 1.5 must be a whole number"),
        ({"output_tokens": "many"}, "--osl: 'many' is not a quantity"),
        ({"model": " "}, "--model is empty"),
    ],
)
def test_flags_are_read_as_everywhere(tmp_path: Path, words: dict[str, Any], said: str) -> None:
    assert said in refusal(written(tmp_path, ROW), Given(**words))


def test_auto_is_what_the_checkpoint_says(tmp_path: Path) -> None:
    words = Given(model="deepseek-r1", slice="h200:8", weights="auto", kv="auto", compute="auto")
    found = read_measurements(written(tmp_path, ROW), words).measurements[0]
    assert (found.weights, found.kv, found.compute) == ("auto", "auto", None)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.json", b"", "is empty"),
        ("m.json", b" \n", "is empty"),
        ("m.json", b"{", "not valid JSON at line 1, column 2"),
        ("m.json", b"batch,ms\n1,2\n", "not valid JSON"),
        ("m.json", b"5", "m.json: 5 where an object of a measurement is due"),
        ("m.json", b"NaN", "m.json: nan where an object"),
        ("m.json", b"[[1]]", "m.json: [0]: a list where an object"),
        ("m.json", b"[]", "holds an empty list"),
        ("m.json", b"{}", "no format that is known here; give a CSV"),
        ("m.json", b'{"architectures": []}', "no format that is known here"),
        ("m.json", b'{"batch": 1, "batch": 2}', "batch is there twice"),
        ("m.json", b"[" * 100_000, "nested too deeply"),
        ("m.json", b'{"batch": 1}\n{"ba', "m.json:line 2: not valid JSON at column 2"),
        ("m.jsonl", b"[" * 100_000, "m.jsonl:line 1: not JSON that can be read (nested too deeply)"),
        ("m.csv", b"batch,ms\n\xff\n", "is no UTF-8 text from byte 9 on; save it as UTF-8"),
        ("m.csv", "batch,ms".encode("utf-16"), "is no UTF-8 text from byte 0 on"),
    ],
)
def test_what_is_no_file_of_measurements_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    message = refusal(written(tmp_path, content, name))
    assert said in message
    assert len(message) < len(str(tmp_path)) + 250


def test_a_folder_a_missing_file_and_an_impossible_name_are_refused(tmp_path: Path) -> None:
    assert "is a folder; give the file" in refusal(tmp_path)
    assert "cannot be read (No such file or directory); check the path" in refusal(tmp_path / "none.csv")
    assert "cannot be read (File name too long)" in refusal(tmp_path / ("x" * 5000))
    assert "cannot be read (embedded null byte)" in refusal(tmp_path / "a\0b")


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_ROWS", 3)
    many = [b"batch,ms" + b"\n1,2" * 4, json.dumps([ROW] * 4).encode(), f"{json.dumps(ROW)}\n".encode() * 4]
    for content in many:
        assert "has more than 3 rows" in refusal(written(tmp_path, content, "m.txt"))
    monkeypatch.setattr(contents, "MOST_BYTES", 10)
    assert "is larger than 10 bytes" in refusal(written(tmp_path, b" " * 11))
    assert contents.read_text(written(tmp_path, b"0123456789")) == "0123456789"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert read_measurements(written(tmp_path, b"\xef\xbb\xbf" + json.dumps(ROW).encode()), GIVEN).measurements


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"seconds": float("nan")}, "a time of nan s"),
        ({"seconds": -1.0}, "a time of -1 s"),
        ({"batch": 0}, "a batch of 0"),
        ({"phase": "warm-up"}, "phase 'warm-up' is not known; write decode, prefill, end_to_end"),
        ({"phase": "prefill", "prompt_tokens": 0}, "prefill of 0 prompt tokens"),
        ({"phase": "end_to_end"}, "end_to_end of 0 output tokens"),
        ({"context_tokens": -2.0}, "a context of -2 tokens"),
    ],
)
def test_what_is_no_measurement_cannot_be_made(values: dict[str, Any], said: str) -> None:
    sound = {"model": "a", "slice": "h100:1", "weights": "fp8", "kv": "fp8", "phase": "decode", "batch": 1}
    sound |= {"prompt_tokens": 8, "seconds": 1.0, "where": "m.csv:line 2"}
    with pytest.raises(InputError, match=r"^m\.csv:line 2: ") as refused:
        Measurement(**(sound | values))
    assert said in str(refused.value)


def test_context_is_the_prompt_and_half_of_the_output_unless_stated(tmp_path: Path) -> None:
    plain, outright = read_measurements(written(tmp_path, [ROW, ROW | {"context": 700.5}]), GIVEN).measurements
    assert (plain.held_tokens, outright.held_tokens) == (1280, 700.5)


# Damaged files: whatever they hold, they are read, or refused in one line.

SOUND = [ROW, LATENCY, SERVE, EXPORT, RESULT]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["1", "ms", "fp8"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


def read_or_refused(content: bytes, name: str, folder: Path, words: Given) -> None:
    path = folder / name
    path.write_bytes(content)
    try:
        assert isinstance(read_measurements(path, words), Reading)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right
        assert len(str(error)) < len(str(path)) + 400  # noqa: PT017


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A sound object with some values of any kind in the places of its own, at any depth."""
    found = json.loads(json.dumps(draw(st.sampled_from(SOUND))))
    for _ in range(draw(st.integers(1, 3))):
        place = found
        while True:
            key = draw(st.sampled_from(sorted(place)))
            inside = place[key]
            if not (isinstance(inside, dict) and inside and draw(st.booleans())):
                break
            place = inside
        place[key] = draw(JSON)
    return found


@given(damaged(), st.sampled_from([GIVEN, Given(batch=1, prompt_tokens=1, output_tokens=1), Given()]))
def test_json_with_the_right_keys_and_any_values(
    tmp_path_factory: pytest.TempPathFactory, content: Any, words: Given
) -> None:
    read_or_refused(json.dumps(content).encode(), "m.json", tmp_path_factory.getbasetemp(), words)


@given(JSON)
def test_any_json(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    read_or_refused(json.dumps(content).encode(), "m.json", tmp_path_factory.getbasetemp(), GIVEN)


@given(st.binary(max_size=60), st.sampled_from(["m.csv", "m.json", "m.jsonl", "m"]), st.booleans())
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str, headed: bool) -> None:
    start = b"batch,ms,isl,osl\n" if headed else b""
    read_or_refused(start + content, name, tmp_path_factory.getbasetemp(), GIVEN)


CELLS = st.just("1") | st.sampled_from(
    ["", "1", "-1", "0", "1e400", "nan", "1,5", '"', "x", "1e-320", "fp8", "prefill", "h100:8", "#"]
)
NAMES = ["batch", "ms", "seconds", "tok_s_per_seq", "tokens_per_s", "phase", "isl", "osl", "context", "slice", "tp"]


@given(st.sets(st.sampled_from(NAMES), max_size=4), st.lists(st.lists(CELLS, min_size=8, max_size=8), max_size=3))
def test_any_cells(tmp_path_factory: pytest.TempPathFactory, extra: set[str], rows: list[list[str]]) -> None:
    names = ["batch", "context", *sorted(extra - {"batch", "context"})]
    text = "\n".join(",".join(cells[: len(names)]) for cells in [names, *rows])
    read_or_refused(text.encode(), "m.csv", tmp_path_factory.getbasetemp(), GIVEN)


def test_a_file_cut_off_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    for whole in (b"batch,isl,osl,ms\n32,1024,512,15.5\n", json.dumps([RESULT]).encode(), json.dumps(EXPORT).encode()):
        for length in range(len(whole)):
            read_or_refused(whole[:length], "m.csv", tmp_path, GIVEN)
