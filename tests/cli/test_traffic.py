"""`simulate` and `size` on the command line: forms, exit codes, files, Ctrl-C, and errors of one line."""

import csv
import io
import json
import signal
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import slicewise
from slicewise.cli import progress
from slicewise.cli.main import main

PLACE = ["llama-3-70b", "--slice", "v5e:4x4"]
LOAD = ["--rate", "5", "--requests", "30", "--isl", "100", "--osl", "10"]
SIMULATE, SIZE = ["simulate", *PLACE, *LOAD], ["size", *PLACE, *LOAD, "--ttft", "p95:1s"]
CURVE = [*SIMULATE, "--rate", "9", "--seed", "1", "--seed", "2"]
APART = ["--prefill-servers", "1", "--decode-servers", "1"]
ANSWERS = {"simulate": SIMULATE, "split": [*SIMULATE, *APART], "size": SIZE, "curve": CURVE}
EACH = pytest.mark.parametrize("words", ANSWERS.values(), ids=list(ANSWERS))

GOOD = "arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,200,20\n2,300,30\n"
FILES = {
    "good.csv": GOOD,
    "bad.csv": GOOD.replace("1,200", "x,200"),
    "negative.csv": GOOD.replace("200", "-200"),
    "huge.csv": GOOD.replace("200", "1e10"),
    "long.csv": GOOD.replace("200", "1000000000"),
    "far.csv": GOOD.replace("2,300", "99999999999,300"),
    "empty.csv": "",
    "header.csv": GOOD.splitlines()[0] + "\n",
    "none.jsonl": '{"timestamp": 0, "input_length": 0, "output_length": 5, "hash_ids": []}\n',
}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(words)
        done = capsys.readouterr()
        return int(stopped.value.code or 0), done.out, done.err

    return call


def strictly(text: str) -> Any:
    """JSON that has no NaN and no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


@EACH
def test_each_form_has_its_answer_and_nothing_on_stderr(run: Run, words: list[str]) -> None:
    code, text, err = run(*words)
    assert (code, err) == (0, "")
    assert "Assumed" in text
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    assert strictly(out)["is_whole"]
    code, out, err = run(*words, "--md")
    assert (code, err) == (0, "")
    assert "| --:" in out
    code, out, err = run(*words, "--csv")
    assert (code, err) == (0, "")
    rows = list(csv.reader(io.StringIO(out)))
    assert len(set(rows[0])) == len(rows[0])
    assert {len(row) for row in rows} == {len(rows[0])}


def test_a_table_of_a_curve_has_a_row_a_run(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run(*CURVE, "--csv")[1])))
    data = strictly(run(*CURVE, "--json")[1])["rows"]
    assert len(rows) == len(data) == 4
    for row, found in zip(rows, data, strict=True):
        assert float(row["rate"]) == found["rate"]
        assert int(row["seed"]) == found["seed"]
        assert float(row["metrics.ttft_s.p99"]) == found["metrics"]["ttft_s"]["p99"]
    markdown = [line for line in run(*CURVE, "--md")[1].splitlines() if line.startswith("| ")]
    assert len(markdown) == 2 + 4


def test_json_is_what_python_gives(run: Run) -> None:
    words: dict[str, Any] = {"slice": "v5e:4x4", "rate": 5, "requests": 30, "isl": 100, "osl": 10}
    assert strictly(run(*SIMULATE, "--json")[1]) == slicewise.simulate("llama-3-70b", **words).to_dict()
    assert strictly(run(*SIZE, "--json")[1]) == slicewise.size("llama-3-70b", **words, ttft="p95:1s").to_dict()


def test_numbers_of_the_text_are_those_of_the_json(run: Run) -> None:
    data = strictly(run(*SIMULATE, "--ttft", "50ms", "--json")[1])
    text = " ".join(run(*SIMULATE, "--ttft", "50ms")[1].split())
    run_ = data["metrics"]
    assert f"of {run_['arrived']} {run_['finished']}" in text
    assert f"{run_['goodput_share']:.1%} of those that arrived {run_['good']}" in text
    assert f"{data['shares']['busy']:.1%}" in text
    for sentence in data["gap"]:
        assert sentence in text
    for what in ("bound", "expected", "low", "high"):
        assert f"{1000 * data['figures']['tpot_s_p50'][what]:.4g} ms" in text


def test_headline_of_a_size_names_fleet_limits_and_price(run: Run) -> None:
    best = strictly(run(*SIZE, "--json")[1])["best"]
    text = " ".join(run(*SIZE)[1].split())
    assert f"1 replica of {best['shape']} meets TTFT p95 within 1 s, $19.20 an hour (16 chips)" in text
    assert "Split prefill from decode? no: $38.40 an hour against $19.20 an hour" in text


@pytest.mark.parametrize("words", [SIMULATE, [*SIMULATE, *APART]])
def test_explanations(run: Run, words: list[str]) -> None:
    steady = strictly(run(*words, "--json")[1])["steady"]
    for name, value in (("ttft_s", "ttft_s"), ("tpot_s", "tpot_s"), ("headline", "tpot_s")):
        asked = [] if name == "headline" else [name]
        code, out, err = run(*words, "--json", "--explain", *asked)
        assert (code, err) == (0, "")
        assert strictly(out)["value"] == pytest.approx(steady[value])
    code, out, err = run(*words, "--explain", "step_s")
    assert (code, err) == (0, "")
    assert "Sources" in out
    code, out, err = run(*words, "--explain", "goodput_share")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is counted in a run" in err


def test_explanation_of_a_size(run: Run) -> None:
    code, out, err = run(*SIZE, "--explain")
    assert (code, err) == (0, "")
    assert out.startswith("replicas")
    code, out, err = run(*SIZE, "--explain", "nonsense")
    assert (code, out, err.count("\n")) == (2, "", 1)


@EACH
def test_what_does_not_fit_is_exit_code_1_with_the_line_that_breaks(run: Run, words: list[str]) -> None:
    words = [word.replace("v5e:4x4", "v5e:1x1") for word in words]
    said = "141.11 GB (131.42 GiB) of bf16 weights do not fit 16.066 GB"
    code, text, err = run(*words)
    assert (code, err) == (1, "")
    assert said in " ".join(text.split())
    code, out, err = run(*words, "--json")
    assert (code, err) == (1, "")
    data = strictly(out)
    assert data["fits"] is False
    assert said in (data["rows"][0] if "rows" in data else data)["reason"]
    assert run(*words, "--csv")[0] == run(*words, "--md")[0] == 1


@pytest.mark.parametrize("words", [SIMULATE, [*SIMULATE, *APART], SIZE[:-2]])
def test_missed_limits_are_exit_code_1_with_the_reason(run: Run, words: list[str]) -> None:
    code, text, err = run(*words, "--ttft", "p95:1ms", "--tpot", "50s")
    assert (code, err) == (1, "")
    assert "TTFT p95 is" in text
    assert "over 1 ms by" in " ".join(text.split())
    code, out, _ = run(*words, "--ttft", "p95:1ms", "--tpot", "50s", "--json")
    assert code == 1
    assert "TTFT p95 is" in strictly(out)["reason"]


def test_a_curve_that_misses_a_limit_somewhere_is_exit_code_1(run: Run) -> None:
    code, out, _ = run(*CURVE, "--ttft", "p95:1ms")
    assert code == 1
    assert "0.0%" in out


def test_what_is_too_long_is_dropped_and_said(run: Run) -> None:
    for more in ([], APART):
        code, text, _ = run("simulate", *PLACE, "--trace", "long.csv", *more)
        assert code == 0
        assert "of 3; 1 dropped, as they fit no server" in text
    code, text, _ = run("size", *PLACE, "--trace", "long.csv", "--ttft", "1h")
    assert code == 1
    assert "1 of 3 requests are dropped" in " ".join(text.split())


def test_rows_that_are_no_requests_are_said(run: Run) -> None:
    Path("some.csv").write_text(GOOD + "3,0,5\n4,5,0\n5,6,0\n", encoding="utf-8")
    text = " ".join(run("simulate", *PLACE, "--trace", "some.csv")[1].split())
    assert "left out: 2 with no tokens to generate, 1 with an empty prompt." in text


BAD_LOADS: list[tuple[list[str], str]] = [
    (["--trace", "nowhere.csv"], "nowhere.csv: cannot be read"),
    (["--trace", "bad.csv"], "bad.csv:line 3, column arrival_s: 'x' is no time; write seconds such as 12.5"),
    (["--trace", "negative.csv"], "negative.csv:line 3, column prompt_tokens: -200.0 is below 0"),
    (["--trace", "huge.csv"], "huge.csv:line 3, column prompt_tokens: 10000000000.0 is more than 1,000,000,000"),
    (["--trace", "far.csv"], "more than 1,000,000,000 s are not simulated"),
    (["--trace", "empty.csv"], "empty.csv: is empty; give a trace"),
    (["--trace", "header.csv"], "header.csv: has no row below its header"),
    (["--trace", "none.jsonl"], "no row is a request"),
    (["--trace", "."], "is a folder"),
    (["--trace", "good.csv", "--isl", "3"], "--isl: the trace has lengths"),
    (["--trace", "good.csv", "--prefix-cache"], "--prefix-cache: no hashes"),
    (["--trace", "good.csv", "--rate", "1e-12"], "more than 1,000,000,000 s are not simulated"),
    ([], "there is no load: give --trace FILE, or --rate"),
    (["--isl", "100"], "there is no load"),
    (["--rate", "0"], "--rate: 0 must be greater than 0"),
    (["--rate", "-1"], "--rate: -1 must be greater than 0"),
    (["--rate", "nan"], "--rate: 'nan' is not a quantity"),
    (["--rate", "1e-30"], "more than 1,000,000,000 s are not simulated"),
    (["--rate", "1", "--requests", "0"], "--requests: 0 must be greater than 0"),
    (["--rate", "1", "--requests", "1e12"], "--requests: 1,000,000,000,000 is more than the 100,000,000"),
    (["--rate", "1", "--isl", "1e12"], "--isl: 1,000,000,000,000 is more than"),
    (["--rate", "1", "--osl", "-3"], "--osl: -3 must be greater than 0"),
    (["--rate", "1", "--sigma", "9"], "sigma: 9.0 is not from 0 to 5"),
    (["--rate", "1", "--burstiness", "0"], "burstiness: 0.0 is no sensible number above 0"),
    (["--rate", "1", "--on", "3s"], "give both, or neither"),
    (["--rate", "1", "--on", "3s", "--off", "1s", "--burstiness", "2"], "--burstiness: what is on and off"),
]
BAD_WORDS: list[tuple[list[str], str]] = [
    (["--route", "prefix-aware"], "add --prefix-cache"),
    (["--route", "fun"], "--route 'fun' is not offered; choose round-robin"),
    (["--policy", "fun"], "--policy 'fun' is not offered; choose prefill-first, chunked, static"),
    (["--policy", "static", "--max-num-batched-tokens", "512"], "add --policy chunked, or leave it out"),
    (["--policy", "chunked", "--max-num-batched-tokens", "5"], "5 is fewer than a token for each of 256 sequences"),
    (["--batch", "0"], "--batch: 0"),
    (["--batch", "1e9"], "--batch: 1,000,000,000 is more than the 65,536"),
    (["--block-size", "1.5"], "--block-size: 1.5"),
    (["--warm-up", "1h"], "--warm-up: the last request arrives at 5.9"),
    (["--warm-up", "-1s"], "--warm-up: -1s is below 0"),
    (["--context", "5"], "No such option '--context'"),
    (["--objective", "cost"], "No such option '--objective'"),
    (["--pp", "2"], "--pp: traffic is simulated on servers of one group"),
    (["--dp", "2"], "--dp: traffic is simulated on servers of one group"),
    (["--backend", "fun"], "--backend 'fun' is not offered; choose local, dask, ray"),
    (["--jobs", "0"], "--jobs: 0 must be greater than 0"),
    (["--jobs", "1.5"], "--jobs: 1.5 must be a whole number"),
    (["--seed", "-1"], "--seed: -1 is no whole number"),
    (["--seed", "1.5"], "--seed: 1.5 is no whole number"),
    (["--seed", "123456789012345678901234567890"], "--seed: 123456789012345678901234567890 is no whole number"),
    (["--seed", "1e300"], "--seed: '1e300'"),
    (["--seed", ""], "--seed: ''"),
    (["--tpot", "p42:2s"], "--tpot: 'p42' is no statistic; choose mean, p50, p90, p95, p99, such as p95:2s"),
    (["--tpot", "2"], "--tpot: '2' has no unit"),
    (["--e2e", "p95:"], "--e2e: '' is not a quantity"),
    (["--itl", "-2s"], "--itl: -2s must be greater than 0"),
    (["--itl", "1s", "--itl", "2s"], "--itl is given 2 times"),
    (["--csv", "--json"], "exclude each other"),
    (["--view", "fun"], "--view"),
    (["--nonsense"], "No such option '--nonsense'"),
]
BAD_SIMULATE: list[tuple[list[str], str]] = [
    (["--prefill-servers", "1"], "give both, or --replicas"),
    (["--decode-servers", "1"], "give both, or --replicas"),
    ([*APART, "--replicas", "2"], "--replicas are servers that do both phases"),
    ([*APART, "--policy", "chunked"], "--policy: servers of one phase"),
    ([*APART, "--prefill-slice", "v9:1"], "unknown chip 'v9'"),
    (["--prefill-slice", "v5e:4x4"], "--prefill-slice: no prefill server stands there"),
    (["--replicas", "1000000000"], "--replicas: 1,000,000,000 is more than the 10,000"),
    (["--max-num-batched-tokens", "512"], "prefill-first cuts no prompts; add --policy chunked"),
    (["--servers", "split"], "No such option '--servers'"),
    (["--seed", "1", "--seed", "1"], "--seed: none is given, or one twice"),
    (["--rate", "5.0"], "--rate: none is given, or one twice"),
    (["--seed", "1", "--seed", "2", "--explain"], "ask with one --rate and one --seed"),
    (["--seed", "1", "--seed", "2", "--out", "x.csv"], "--out is of one run; give one --rate and one --seed"),
    (["--rate", "6", "--timeline", "x.json"], "--timeline is of one run"),
    (["--seed", "1", "--seed", "2", "--policy", "fun"], "--policy 'fun' is not offered"),
]
BAD_SIZE: list[tuple[list[str], str]] = [
    (["--replicas", "2"], "No such option '--replicas'"),
    (["--prefill-slice", "v9:1"], "unknown chip 'v9'"),
    (["--servers", "fun"], "--servers 'fun' is not offered; choose shared, split, both"),
    (["--servers", "shared", "--prefill-slice", "v5e:4x4"], "leave it out, or give --servers split"),
    (["--rate", "6"], "--rate is given 2 times"),
    (["--seed", "1", "--seed", "2"], "--seed is given 2 times"),
]
BAD = [
    *((["simulate", *PLACE, *words], said) for words, said in BAD_LOADS),
    *((["size", *PLACE, "--ttft", "1s", *words], said) for words, said in BAD_LOADS),
    *(([*base, *words], said) for base in (SIMULATE, SIZE) for words, said in BAD_WORDS),
    *(([*SIMULATE, *words], said) for words, said in BAD_SIMULATE),
    *(([*SIZE, *words], said) for words, said in BAD_SIZE),
    (["size", *PLACE, *LOAD], "there is no limit to size for: give --ttft, --tpot, --itl or --e2e"),
    (["simulate", "no-such-model", *LOAD], "unknown model 'no-such-model'"),
    (["size", "no-such-model", *LOAD, "--ttft", "1s"], "unknown model 'no-such-model'"),
    (["simulate"], "Missing argument 'MODEL'"),
]


@pytest.mark.parametrize(("words", "fix"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_bad_input_is_one_line_with_the_fix(run: Run, words: list[str], fix: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert fix in err


PLACES = [
    (["--out", "nowhere/x.csv"], "cannot write to the folder 'nowhere'"),
    (["--out", "x.pdf"], "end it in .html, .svg, .png, .csv or .json"),
    (["--out", "."], "it is a folder"),
    (["--timeline", "nowhere/x.json"], "cannot write to the folder 'nowhere'"),
    (["--timeline", "x.csv"], "end it in .json or .trace"),
    (["--out", "x.json", "--timeline", "x.json"], "--out and --timeline name one file"),
]


@pytest.mark.parametrize(("words", "fix"), PLACES, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_places_are_refused_before_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], fix: str
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("slicewise.traffic.run.simulate", never)
    code, out, err = run(*SIMULATE, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert fix in err


def test_files_are_written_and_named_on_stderr(run: Run) -> None:
    code, out, err = run(*SIMULATE, "--out", "run.csv", "--timeline", "run.json", "--json")
    assert code == 0
    assert err.splitlines() == ["wrote run.csv", "wrote run.json"]
    data = strictly(out)
    rows = list(csv.DictReader(io.StringIO(Path("run.csv").read_text(encoding="utf-8"))))
    assert len(rows) == data["metrics"]["arrived"] == 30
    assert max(float(row["ttft_s"]) for row in rows) == pytest.approx(data["metrics"]["ttft_s"]["most"])
    assert strictly(Path("run.json").read_text(encoding="utf-8"))["traceEvents"]


def test_what_does_not_fit_writes_nothing(run: Run) -> None:
    code, _, err = run("simulate", "llama-3-70b", "--slice", "v5e:1x1", *LOAD, "--out", "run.csv")
    assert (code, err) == (1, "")
    assert not Path("run.csv").exists()


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have Ctrl-C come when progress is told the nth time."""

    def after(n: int) -> None:
        left = n

        def told(done: int, of: int) -> None:
            nonlocal left
            del done, of
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)

        @contextmanager
        def bar(what: str) -> Any:
            del what
            yield told

        monkeypatch.setattr(progress, "bar", bar)

    return after


@pytest.mark.parametrize("after", [2, 15, 40])
@EACH
def test_ctrl_c_shows_what_is_known(run: Run, interrupted: Callable[[int], None], words: list[str], after: int) -> None:
    n = min(after, 3) if words in (CURVE, SIZE) else after
    interrupted(n)
    code, text, err = run(*words)
    assert (code, err) == (130, "slicewise: stopped\n")
    assert "topped" in text
    interrupted(n)
    code, out, err = run(*words, "--json")
    assert (code, err) == (130, "slicewise: stopped\n")
    data = strictly(out)
    assert data["is_whole"] is False
    rows = data["rows"] if words is CURVE else data["tried"] if words is SIZE else [data]
    assert rows
    assert all(row["metrics"] for row in rows)
    for form in ("--csv", "--md"):
        interrupted(n)
        code, out, err = run(*words, form)
        assert (code, err) == (130, "slicewise: stopped\n")
        assert out


def test_ctrl_c_before_anything_is_known_says_stopped(run: Run, interrupted: Callable[[int], None]) -> None:
    interrupted(1)
    code, out, err = run(*SIMULATE, "--warm-up", "3s")
    assert (code, out, err.strip()) == (130, "", "slicewise: stopped")


def test_a_size_that_is_stopped_early_claims_nothing(run: Run, interrupted: Callable[[int], None]) -> None:
    interrupted(1)
    code, text, _ = run(*SIZE[:-2], "--ttft", "p95:20ms")
    assert code == 130
    text = " ".join(text.split())
    assert "stopped before a fleet met TTFT p95 within 20 ms" in text
    assert "no fleet meets" not in text
