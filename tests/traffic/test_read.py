"""Traces: the published ones, plain ones in their ways, and rows that are off."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.errors import InputError
from slicewise.traffic.read import MOST_BYTES, read_trace
from slicewise.traffic.requests import Requests

TRACES = Path(__file__).parents[2] / ".." / "shared" / "data" / "traces"
HEADER = "arrival,prompt,output\n"
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def read(folder: Path, text: str | bytes) -> Requests:
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(path)


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(InputError) as refused:
        read(folder, text)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 400 + len(str(folder))
    return message.replace(f"{folder}/", "")


def columns(requests: Requests) -> tuple[list, list, list]:
    return requests.arrival_s.tolist(), requests.prompt_tokens.tolist(), requests.output_tokens.tolist()


@pytest.mark.parametrize(
    ("name", "n", "last_s", "prompt_mean", "output_mean"),
    [
        ("azure_llm_2023_conv.csv", 19366, 3501.721937, 1154.6974, 211.1259),
        ("azure_llm_2023_code.csv", 8819, 3435.948056, 2047.8483, 27.8825),
        ("mooncake_conversation.jsonl", 12031, 3536.999, 12035.0613, 342.6189),
    ],
)
def test_published_traces(name: str, n: int, last_s: float, prompt_mean: float, output_mean: float) -> None:
    if not TRACES.is_dir():
        pytest.skip("../shared/data/traces is not there")
    start = time.process_time()
    found = read_trace(TRACES / name)
    assert time.process_time() - start < 2  # some tenths of it, but for machines that are busy
    assert (len(found), found.arrival_s[0], dict(found.dropped)) == (n, 0.0, {})
    assert found.arrival_s[-1] == pytest.approx(last_s, abs=1e-7)
    assert found.prompt_tokens.mean() == pytest.approx(prompt_mean, rel=1e-6)
    assert found.output_tokens.mean() == pytest.approx(output_mean, rel=1e-5)
    assert (np.diff(found.arrival_s) >= 0).all()
    assert name in found.source
    if name.startswith("mooncake"):
        assert [len(prefix) for prefix in found.prefixes] == (-(-found.prompt_tokens // 512)).tolist()
        assert found.prefix_block_tokens == 512
    else:
        assert (found.prefixes, found.prefix_block_tokens) == ((), 0)


@pytest.mark.parametrize("arrival", ["arrival", "arrival_s", "timestamp", "time", " Time "])
@pytest.mark.parametrize(
    ("prompt", "output"),
    [("prompt", "output"), ("prompt_tokens", "output_tokens"), ("ISL", "OSL"), ("Request tokens", "Response tokens")],
)
def test_names_of_columns_and_keys(tmp_path: Path, arrival: str, prompt: str, output: str) -> None:
    expected = ([0.0, 1.25], [7, 9], [8, 10])
    text = f'\n# a comment\n{output},"{arrival}",id,{prompt}\r\n8,1e1,"a,b",7\r\n\r\n10,11.25,é,9.0\n,,,\n  \n'
    assert columns(read(tmp_path, text)) == expected
    lines = [{arrival: 10, prompt: 7, output: 8, "id": "x"}, {output: 10.0, prompt: 9, arrival: 11.25}]
    assert columns(read(tmp_path, "\ufeff\n" + "\n\n".join(map(json.dumps, lines)))) == expected


def test_milliseconds_are_named(tmp_path: Path) -> None:
    assert read(tmp_path, "arrival_ms,isl,osl\n1500,1,1\n1515,1,1\n").arrival_s.tolist() == [0, 0.015]
    for text in (
        "timestamp,input_length,output_length\n0,1,1\n",
        '{"timestamp": 0, "input_length": 1, "output_length": 1}',
    ):
        assert refusal(tmp_path, text) == (
            "t.csv: timestamp beside input_length, without hash_ids, may be in milliseconds or seconds; "
            "name it arrival_ms or arrival_s"
        )


def test_dates(tmp_path: Path) -> None:
    rows = "2024-02-29 23:59:59.9999999,1,1\n2024-03-01T01:00:00.5+01:00,1,1\n2024-03-01 00:00:01Z,1,1\n"
    found = read(tmp_path, AZURE + rows)
    assert found.arrival_s.tolist() == pytest.approx([0, 0.5000001, 1.0000001], abs=1e-12)


def test_rows_that_are_no_requests_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER + "0,5,0\n3,1,2\n1,0,0\n2,0,4\n2.5,3,4\n")
    assert columns(found) == ([0, 0.5], [3, 1], [4, 2])
    assert dict(found.dropped) == {"no tokens to generate": 2, "an empty prompt": 1}
    assert "no tokens to generate (1 rows)" in refusal(tmp_path, HEADER + "0,5,0\n")


def test_prefixes_go_with_their_requests(tmp_path: Path) -> None:
    rows = [(9, 513, [3, 4]), (8, 513, [3]), (8, 1, []), (7, 0, [])]
    lines = [{"timestamp": at, "input_length": tokens, "output_length": 1, "hash_ids": ids} for at, tokens, ids in rows]
    found = read(tmp_path, "\n".join(map(json.dumps, lines)))
    assert found.prefixes == ((3,), (), (3, 4))
    assert found.arrival_s.tolist() == [0, 0, 0.001]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("x,1,1", "column arrival: 'x' is no time; write seconds"),
        (",1,1", "column arrival: is missing; write seconds"),
        ("-1,1,1", "column arrival: -1.0 is below 0"),
        ("nan,1,1", "column arrival: 'nan' is no time"),
        ("1e999,1,1", "column arrival: inf is not finite"),
        ("1700000000000,1,1", "is more than 100,000,000,000; write seconds such as 12.5 (or milliseconds"),
        ("2023-11-16 18:15:46,1,1", "'2023-11-16 18:15:46' is no time"),
        ("1,1.5,1", "column prompt: 1.5 is no whole number; write a whole number of tokens"),
        ("1,-1,1", "column prompt: -1.0 is below 0"),
        ("1,,1", "column prompt: is missing"),
        ("1,1,inf", "column output: 'inf' is no whole number"),
        ("1,1,1_0", "column output: '1_0' is no whole number"),
        ("1,1,١", "column output: '١' is no whole number"),
        ("1,1,1000000001", "column output: 1000000001.0 is more than 1,000,000,000"),
        (f"1,1,{'9' * 5000}", "column output: inf is not finite"),
        ("1,1", "has 2 cells under 3 columns"),
        ("1,1,1,1", "has 4 cells under 3 columns"),
        ('1,1,"1', "not valid CSV"),
        ('1,1,"1"2', "not valid CSV"),
        ("1,1,\x00", "is no UTF-8 text"),
    ],
)
def test_a_malformed_row_of_csv(tmp_path: Path, row: str, expected: str) -> None:
    message = refusal(tmp_path, f"{HEADER}0,1,1\n\n{row}\n")
    assert message.startswith("t.csv:line 4")
    assert expected in message
    assert ";" in message


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2023-02-30 10:00:00", "is no date, which the first row has; write in all rows dates such as"),
        ("2023-02-03 24:00:00", "is no date"),
        ("3023-02-03 10:00:00", "is no date"),
        ("2023-02-03 10:00:00+99:00", "is no date"),
        ("12.5", "12.5 is no date"),
        ("", "is missing"),
    ],
)
def test_a_malformed_date(tmp_path: Path, cell: str, expected: str) -> None:
    message = refusal(tmp_path, f"{AZURE}2023-11-16 18:15:46.6805900,1,1\n{cell},1,1\n")
    assert message.startswith("t.csv:line 3, column TIMESTAMP: ")
    assert expected in message


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{"arrival": true, "prompt": 1, "output": 1}', "key arrival: true is no time"),
        ('{"arrival": "1", "prompt": 1, "output": 1}', "key arrival: '1' is no time"),
        ('{"arrival": NaN, "prompt": 1, "output": 1}', "key arrival: nan is not finite"),
        ('{"arrival": 1, "prompt": "1", "output": 1}', "key prompt: '1' is no whole number"),
        ('{"arrival": 1, "prompt": [1], "output": 1}', "key prompt: [1] is no whole number"),
        ('{"arrival": 1, "prompt": 1}', "key output: is missing"),
        ('{"arrival": 1, "prompt": 1, "output": 1' + "0" * 400 + "}", "is more than 1,000,000,000"),
        ('{"arrival": 1, "prompt": 1, "output": 1' + "0" * 5000 + "}", "not valid JSON"),
        ('{"arrival": 1, "prompt": 1, "output": 1', "not valid JSON"),
        ('{"arrival": 1, "prompt": 1, "output": 1} {}', "is not one JSON object"),
        ("[1, 1, 1]", "is not one JSON object"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_row_of_json(tmp_path: Path, row: str, expected: str) -> None:
    message = refusal(tmp_path, f'{{"arrival": 0, "prompt": 1, "output": 1}}\n\n{row}\n')
    assert message.startswith("t.csv:line 3")
    assert expected in message


@pytest.mark.parametrize("hashes", ["[1, 2]", "[0.5]", "[true]", '"1"', "null", "{}"])
def test_hashes_that_are_off(tmp_path: Path, hashes: str) -> None:
    text = f'{{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": {hashes}}}\n'
    assert refusal(tmp_path, text).startswith("t.csv:line 1, key hash_ids: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "t.csv: is empty; give"),
        ("\n \n", "t.csv: is empty; give"),
        (HEADER, "t.csv: has no row below its header"),
        ("# nothing\n", "has no column of the arrival"),
        ("0,1,1\n", "t.csv:line 1: has no column of the arrival in '0,1,1'; give arrival_s"),
        ("arrival;prompt;output\n0;1;1\n", "parted by commas"),
        ("arrival,time,prompt,output\n", "the columns 'arrival' and 'time' both are of the arrival; leave one"),
        ("[{}]", "t.csv: is a JSON list; write one object a line"),
        ("{}", "has no key of the arrival"),
        (b"\x1f\x8b\x08\x00\x01", "t.csv:line 1: is no UTF-8 text; give an unpacked"),
        ("arrival,prompt".encode("utf-16"), "is no UTF-8 text"),
        (bytes(2_000_000), "is no UTF-8 text"),
        ("a" * 2_000_000, "is longer than any row"),
    ],
)
def test_files_that_are_no_trace(tmp_path: Path, text: str | bytes, expected: str) -> None:
    assert expected in refusal(tmp_path, text)


def test_files_that_are_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    for path, expected in (
        (large, "is larger than 2,000,000,000 bytes"),
        (tmp_path, "is a folder"),
        (tmp_path / "none", "cannot be read (No such file or directory)"),
        ("a\0b", "is no path"),
    ):
        with pytest.raises(InputError) as refused:
            read_trace(path)
        assert expected in str(refused.value)


LENGTHS = st.integers(1, 10**9)
ROWS = st.lists(st.tuples(st.floats(0, 1e9), LENGTHS, LENGTHS), min_size=1, max_size=30)


@given(rows=ROWS, is_json=st.booleans())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list, is_json: bool) -> None:
    folder = tmp_path_factory.mktemp("t", numbered=True)
    names = ("arrival", "prompt", "output")
    text = (
        "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
        if is_json
        else HEADER + "".join(f"{at!r},{prompt},{output}\n" for at, prompt, output in rows)
    )
    ordered = sorted(rows, key=lambda row: row[0])
    found = read(folder, text)
    assert found.arrival_s.tolist() == [at - ordered[0][0] for at, _, _ in ordered]
    assert columns(found)[1:] == ([row[1] for row in ordered], [row[2] for row in ordered])


@given(nanoseconds=st.lists(st.integers(0, 10**15), min_size=1, max_size=20))
def test_round_trip_of_dates(tmp_path_factory: pytest.TempPathFactory, nanoseconds: list[int]) -> None:
    start = np.datetime64("2023-11-16T18:15:46", "ns")
    rows = "".join(f"{str(start + np.timedelta64(at, 'ns')).replace('T', ' ')},1,1\n" for at in nanoseconds)
    found = read(tmp_path_factory.mktemp("t", numbered=True), AZURE + rows)
    assert found.arrival_s.tolist() == [(at - min(nanoseconds)) / 10**9 for at in sorted(nanoseconds)]


def read_or_refusal(path: Path) -> Requests | str:
    try:
        return read_trace(path)
    except InputError as error:
        return str(error)


WHOLE = (
    f"{AZURE}2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n".encode(),
    b'{"timestamp": 5, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}\n' * 2,
    b"time,isl,osl\n0.5,10,20\n0.75,30,40\n",
)


@given(whole=st.sampled_from(WHOLE), at=st.integers(0, 200), cut=st.integers(0, 5), put=st.binary(max_size=5))
def test_damage_is_refused_in_a_line_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, at: int, cut: int, put: bytes
) -> None:
    at = min(at, len(whole))
    path = tmp_path_factory.mktemp("t", numbered=True) / "t.csv"
    path.write_bytes(whole[:at] + put + whole[at + cut :])
    found = read_or_refusal(path)
    if isinstance(found, str):
        assert len(found.splitlines()) == 1
        return
    assert 1 <= len(found) <= len(found) + sum(found.dropped.values()) <= 4
    assert np.isfinite(found.arrival_s).all()
    assert (np.diff(found.arrival_s, prepend=0) >= 0).all()
    assert found.prompt_tokens.min() >= 1
    assert found.output_tokens.min() >= 1
