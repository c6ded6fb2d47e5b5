"""Tables kept by hand: every column, each way to state a time, and each cell that is off."""

import json
from pathlib import Path

import pytest

from slicewise.calibrate.measurement import Measurement
from slicewise.calibrate.read import Given, read_measurements
from slicewise.errors import InputError

GIVEN = Given(
    model="llama-3-70b", slice="h100:8", weights="fp8", kv="fp8", batch=None, prompt_tokens=None, output_tokens=None
)
LENGTHS = "isl,osl,"


def read(folder: Path, text: str, words: Given = GIVEN) -> tuple[Measurement, ...]:
    path = folder / "m.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return read_measurements(path, words).measurements


def refusal(folder: Path, text: str, words: Given = GIVEN) -> str:
    with pytest.raises(InputError) as refused:
        read(folder, text, words)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    return message.replace(str(folder) + "/", "")


def test_every_column(tmp_path: Path) -> None:
    text = (
        "model,slice,weights,kv,compute,phase,batch,isl,osl,context,ms,engine,tp,pp,dp,ep\n"
        "llama-3.1-8b,v5e:4x2,int8,bfloat16,bf16,decode,16,1000,200,1050.5,12.5,MaxEngine,8,1,1,1\n"
    )
    assert read(tmp_path, text, Given()) == (
        Measurement(
            model="llama-3-8b", slice="v5e:2x4", weights="int8", kv="bf16", compute="bf16", phase="decode", batch=16,
            prompt_tokens=1000, output_tokens=200, context_tokens=1050.5, seconds=0.0125, engine="maxengine",
            layout={"tp": 8, "pp": 1, "dp": 1, "ep": 1}, where="m.csv:line 2",
        ),
    )  # fmt: skip


def test_batch_and_a_time_are_enough(tmp_path: Path) -> None:
    words = Given(model="a/b", slice="h100:8", weights="fp8", kv="fp8", prompt_tokens=1024, output_tokens=512)
    (found,) = read(tmp_path, "batch,seconds\n32,0.0155\n", words)
    assert (found.phase, found.batch, found.prompt_tokens, found.output_tokens) == ("decode", 32, 1024, 512)
    assert (found.model, found.seconds, found.engine, dict(found.layout)) == ("a/b", 0.0155, "", {})


def test_a_step_that_states_its_context_needs_no_lengths(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "batch,context,ms\n32,4096,20\n")
    assert (found.held_tokens, found.prompt_tokens, found.output_tokens) == (4096, 0, 0)


@pytest.mark.parametrize(
    ("columns", "cells", "seconds"),
    [
        ("seconds", "0.25", 0.25),
        ("ms", "15", 0.015),
        ("ms", "1.5e1", 0.015),
        ("tok_s_per_seq", "50", 0.02),
        ("tokens_per_s", "3200", 0.01),
        ("phase,ms", "prefill,90", 0.09),
        ("phase,tokens_per_s", "prefill,65536", 0.5),
        ("phase,seconds", "End-to-End,8.5", 8.5),
        ("phase,seconds", "e2e,8.5", 8.5),
        ("seconds,ms", ",15", 0.015),
    ],
)
def test_a_time_in_its_ways(tmp_path: Path, columns: str, cells: str, seconds: float) -> None:
    (found,) = read(tmp_path, f"batch,isl,osl,{columns}\n32,1024,512,{cells}\n")
    assert found.seconds == pytest.approx(seconds, rel=1e-12)


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    text = '\n# measured in May\n Batch ,"isl",osl,ms,\r\n\r\n1,8,8,"3",\r\n# warm\n2,8,8,4,\n'
    assert [(one.where, one.batch) for one in read(tmp_path, text)] == [("m.csv:line 5", 1), ("m.csv:line 7", 2)]


def test_columns_have_the_names_of_the_flags_too(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "batch,prompt_tokens,output_tokens,ms\n1,8,6,3\n")
    assert (found.prompt_tokens, found.output_tokens) == (8, 6)


def test_rows_of_json_are_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps([{"batch": 1, "isl": "8", "osl": 6, "ms": 3, "tp": None, "engine": ""}]))
    (found,) = read_measurements(path, GIVEN).measurements
    assert (found.prompt_tokens, found.seconds, found.where) == (8, 0.003, "m.json: [0]")
    for row, said in (
        ({"btach": 1, "ms": 3}, "m.json: [0]: unknown column 'btach': did you mean batch?"),
        ({"batch": True, "ms": 3}, "m.json: [0], key batch: true is no number; write for example 32"),
        ({"batch": [1], "ms": 3}, "m.json: [0], key batch: a list is no number"),
        ({"batch": 1, "ms": 3, "model": 4}, "m.json: [0], key model: 4 is no word; write text in quotes"),
        ({"batch": 1, "ms": 3, "isl": 1, "prompt_tokens": 1}, "the key isl is there twice"),
        ({"batch": 10**400, "ms": 3}, "m.json: [0], key batch: 1e+30 is no sensible number; write for example 32"),
    ):
        path.write_text(json.dumps([row]))
        with pytest.raises(InputError) as refused:
            read_measurements(path, GIVEN)
        assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("batch,ms\n", "m.csv: has no row below its header"),
        ("btch,ms\n1,2\n", "m.csv: unknown column 'btch': did you mean batch?"),
        ("batch,ms,notes\n1,2,3\n", "m.csv: unknown column 'notes': "),
        ("batch,ms,ms\n1,2,3\n", "m.csv: the column ms is there twice; leave one"),
        ("batch;ms\n1;2\n", "m.csv: the columns 'batch;ms' are not parted by commas"),
        ("batch,ms\n1\n", "m.csv:line 2: has 1 cells under 2 columns"),
        ("batch,ms\n1,2,3\n", "m.csv:line 2: has 3 cells under 2 columns"),
        ("batch,ms,\n1,2,3\n", "m.csv:line 2: '3' stands under no name"),
        ('batch,ms\n1,"2\n', "m.csv:line 2: not valid CSV (unexpected end of data)"),
        ('batch,ms\n1,"2"x\n', "m.csv:line 2: not valid CSV"),
        ("batch,isl\n1,2\n", "m.csv:line 2: states no time; give one of seconds, ms, tok_s_per_seq, tokens_per_s"),
        ("batch,ms,seconds\n1,2,3\n", "m.csv:line 2: states seconds and ms; give one of"),
        ("batch,ms\n0,2\n", "m.csv:line 2, column batch: 0 must be at least 1; write for example 32"),
        ("batch,ms\n1.5,2\n", "m.csv:line 2, column batch: 1.5 must be a whole number; write for example 32"),
        ("batch,ms\n1e15,2\n", "m.csv:line 2, column batch: 1e+15 must be at most 1,000,000,000,000; write"),
        ("batch,ms\nfew,2\n", "m.csv:line 2, column batch: 'few' is no number; write for example 32"),
        ('batch,ms\n"1,024",2\n', "column batch: '1,024' is no number"),
        ("batch,ms\n1,0\n", "m.csv:line 2, column ms: 0 must be greater than 0; write for example 15"),
        ("batch,ms\n1,-2\n", "m.csv:line 2, column ms: -2 must be greater than 0"),
        ("batch,ms\n1,nan\n", "m.csv:line 2, column ms: 'nan' is no number"),
        ("batch,ms\n1,1e999\n", "m.csv:line 2, column ms: '1e999' is no sensible number"),
        ("batch,ms\n1,15 ms\n", "m.csv:line 2, column ms: '15 ms' is no number; write for example 15"),
        ("batch,isl,ms\n1,-8,2\n", "m.csv:line 2, column isl: -8 must be at least 0; write for example 8192"),
        ("batch,osl,ms\n1,half,2\n", "m.csv:line 2, column osl: 'half' is no number; write for example 512"),
        ("batch,tp,ms\n1,0,2\n", "m.csv:line 2, column tp: 0 must be at least 1; write for example 8"),
        ("batch,context,ms\n1,-5,2\n", "m.csv:line 2, column context: -5 is below 0"),
        ("batch,context,phase,ms\n1,5,prefill,2\n", "column context: 5 is of a decode step, and this is prefill"),
        ("batch,phase,ms\n1,warm-up,2\n", "column phase: 'warm_up' is not known; write decode, prefill, end_to_end"),
        ("batch,slice,ms\n1,h900:8,2\n", "m.csv:line 2, column slice: unknown chip 'h900'"),
        ("batch,slice,ms\n1,v5e:9x9,2\n", "m.csv:line 2, column slice: 'v5e:9x9': v5e has no 9x9"),
        ("batch,weights,ms\n1,int5,2\n", "m.csv:line 2, column weights 'int5' is not a dtype known here; choose"),
        ("batch,compute,ms\n1,x,2\n", "m.csv:line 2, column compute 'x' is not a dtype known here"),
        (f"batch,model,ms\n1,{'x' * 400},2\n", "column model: 'xxx"),
        ("tokens_per_s\n100\n", "column tokens_per_s: 100 of the whole batch needs the column batch; add it"),
        ("batch,phase,tokens_per_s\n1,prefill,9\n", "column tokens_per_s: 9 of the whole batch needs the column isl"),
        ("batch,phase,tokens_per_s\n1,e2e,9\n", "column tokens_per_s: 9 is no time of end_to_end; give seconds or ms"),
        ("batch,phase,tok_s_per_seq\n1,prefill,9\n", "column tok_s_per_seq: 9 is no time of prefill"),
        ("batch,isl,phase,ms\n1,0,prefill,9\n", "m.csv:line 2: prefill of 0 prompt tokens; give isl, at least 1"),
        ("batch,isl,ms\n1,8,9\n", "m.csv:line 2: states no osl of its decode time; give --osl"),
        ("batch,ms\n1,2\n" + "3,4\n" * 3 + "x,5\n", "m.csv:line 6, column batch"),
    ],
)  # fmt: skip
def test_what_is_off_is_refused_with_its_place_and_the_fix(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)
