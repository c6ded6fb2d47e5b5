"""The command line as a user meets it: answers, forms of output, exit codes, and errors of one line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import slicewise
from slicewise.cli.main import COMMANDS, main

BOOK = ["--book", "--params", "70e9"]
STEP = ["step", "llama-3-70b", "--slice", "v5e:4x2", "--weights", "int8", "--kv", "int8"]
STEP += ["--batch", "32", "--context", "8192", *BOOK]
LOAD = ["--slice", "v5e:4x4", "--rate", "0.3", "--requests", "20"]
ANSWERS = [
    ["plan", "llama-3-70b"],
    STEP,
    ["prefill", "llama-3-70b", "--slice", "v5e:4x4"],
    ["memory", "llama-3-70b"],
    ["disaggregate", "llama-3-70b", "--slice", "v5e:4x4", "--rate", "10"],
    ["simulate", "llama-3-70b", *LOAD],
    ["size", "llama-3-70b", *LOAD, "--ttft", "p95:20s"],
    ["frontier", "llama-3-70b", "--slice", "v5e:4x4", "--context", "8k".replace("k", "192")],
    ["limits", "llama-3-70b", "--slice", "v5e:4x8"],
    ["compare", "v5e", "v5p", "h100:8", "--model", "llama-3-70b"],
    ["cost", "--slice", "v5e:4x4", "--tokens-per-s", "2000", "--utilisation", "0.4", "--api-price", "1"],
]
UNEXPLAINED = ("compare", "frontier", "plan", "simulate", "size")
"""Tables, plans that have a test of their own, and runs, whose numbers are counted."""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.mark.parametrize("words", ANSWERS, ids=lambda words: words[0])
def test_every_command_answers_in_every_form(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, text, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert text.strip()
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    assert json.loads(out)
    code, out, _ = run(capsys, *words, "--md")
    assert code == 0
    assert "| --:" in out or "| :--" in out
    code, out, _ = run(capsys, *words, "--csv")
    assert code == 0
    assert "," in out.splitlines()[0]
    code, out, _ = run(capsys, *words, "--explain")
    assert code == 0
    assert "Sources" in out


@pytest.mark.parametrize("what", ["models", "chips", "slices", "prices"])
def test_catalog_lists_with_sources(capsys: pytest.CaptureFixture[str], what: str) -> None:
    assert run(capsys, "catalog", what)[0] == 0
    rows = json.loads(run(capsys, "catalog", what, "--json")[1])
    assert rows
    assert all(row.get("source") or row["facts"] for row in rows)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert len(out.splitlines()) > 4


def test_plan_stays_short_and_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "plan", "llama-3-70b")
    lines = out.splitlines()
    assert len(lines) <= 75
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "v5e:4x4", "h100:8", "--model", "llama-3-70b"],
        ["frontier", "llama-3-70b", "--slice", "h100:8"],
        ["disaggregate", "llama-3-70b", "--slice", "h100:8"],
    ],
    ids=lambda words: words[0],
)
def test_three_figures_are_told_within_100_columns(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    for view in ("expected", "overlapped"):
        _, out, _ = run(capsys, *words, "--view", view)
        # Chips are compared with what they were chosen by beside the figures.
        assert max(map(len, out.splitlines())) <= 100 + 4 * (words[0] == "compare" and view != "expected")
        assert re.search(r"bound; low–high|\bbound +expected +low +high|\n +bound .*\n +low .*\n +high", out)
    _, out, _ = run(capsys, *words, "--book")
    assert not re.search(r"low–high|expected +low|\n +low |Expected times", out)


def test_every_figure_of_compared_plans_is_derived_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "v5e:4x4", "h100:8", "--model", "llama-3-70b"]
    code, out, _ = run(capsys, *words, "--explain", "tokens_per_s:low")
    assert code == 0
    # What is alike by name and not by value is told of both.
    assert "n_chips = 16    chips of v5e:4x4" in out
    assert "n_chips = 8    chips of h100:8" in out


@pytest.mark.parametrize("words", [["--rate", "0.2", "--rate", "0.3"], ["--rate", "0.3", "--no-range"]])
def test_a_run_of_one_figure_says_which(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    load = ["simulate", "llama-3-70b", "--slice", "v5e:4x4", "--requests", "5", *words]
    _, expected, _ = run(capsys, *load)
    assert "Steps and prefills take what is expected. `--view overlapped --mfu 1` runs at the bound" in expected
    _, bound, _ = run(capsys, *load, "--view", "overlapped")
    assert "take what the view overlapped says, prefill at 40% of peak FLOPs" in " ".join(bound.split())
    _, book, _ = run(capsys, *load, "--book")
    assert "Steps and prefills take what the book's conventions bound them to." in book


def test_the_bound_of_a_run_is_the_run_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    load = ["simulate", "llama-3-70b", "--slice", "v5e:4x4", "--rate", "0.3", "--requests", "5", "--json"]
    figures = json.loads(run(capsys, *load)[1])["figures"]
    bound = json.loads(run(capsys, *load, "--no-range", "--view", "overlapped", "--mfu", "1")[1])["metrics"]
    assert bound["ttft_s"]["p99"] == figures["ttft_s_p99"]["bound"]
    assert bound["tpot_s"]["p50"] == figures["tpot_s_p50"]["bound"]


def test_what_does_not_fit_names_the_line_that_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "llama-3-70b", "--slice", "v5e:2x2", "--weights", "bf16")
    assert code == 1
    words = " ".join(out.split())
    assert "141.11 GB (131.42 GiB) of bf16 weights do not fit 64.263 GB (59.85 GiB)" in words
    assert "4 chips" in words
    code, out, _ = run(capsys, "step", "llama-3-70b", "--slice", "v5e:4x4", "--batch", "500", "--json")
    found = json.loads(out)
    assert code == 1
    assert found["fits"] is False
    assert found["step_s"] is None
    assert "KV cache" in found["reason"]


BAD = [
    (["plan", "no-such-model"], "unknown model 'no-such-model'"),
    (["plan", "llama-3-70"], "did you mean llama-3-70b"),
    (["plan", "llama-3-70b", "--slice", "v5e:3x5"], "standard slices: 1x1, 2x2"),
    (["plan", "llama-3-70b", "--slice", "v9:4x4"], "unknown chip 'v9'"),
    (["plan", "llama-3-70b", "--chip", "tpu"], "unknown chip"),
    (["plan", "llama-3-70b", "--batch", "0"], "--batch: 0 must be greater than 0"),
    (["plan", "llama-3-70b", "--batch", "1.5"], "--batch: 1.5 must be a whole number"),
    (["plan", "llama-3-70b", "--tpot", "-1"], "--tpot: '-1' has no unit; write for example 15ms"),
    (["plan", "llama-3-70b", "--tpot", "-1ms"], "--tpot: -1ms must be greater than 0"),
    (["plan", "llama-3-70b", "--tpot", "15"], "write for example 15ms"),
    (["plan", "llama-3-70b", "--slice", "v5e:4x4", "--chip", "h100"], "leave --chip out"),
    (["plan", "llama-3-70b", "--tpot", "15 parsecs"], "no unit known here"),
    (["plan", "llama-3-70b", "--isl", "8k"], "--isl: '8k'"),
    (["plan", "llama-3-70b", "--isl", "8k"], "write 8192 or 8000"),
    (["plan", "llama-3-70b", "--isl", "1M"], "write 1048576 or 1000000"),
    (["plan", "llama-3-70b", "--tpot", "15,5ms"], "is not a quantity"),
    (["plan", "llama-3-70b", "--price", "1,2"], "is not a quantity"),
    (["frontier", "llama-3-70b", "--context", "2048,4096"], "is not a quantity"),
    (["plan", "llama-3-70b", "--tpot", "15ms", "--tpot", "20ms"], "--tpot is given 2 times"),
    (["plan", "llama-3-70b", "--price", "v6e=2.7"], "v6e is not asked about"),
    (["plan", "llama-3-70b", "--params", "70"], "write for example 70e9 or 70B"),
    (["plan", "llama-3-70b", "--objective", ""], "choose cost"),
    (["plan", "llama-3-70b", "--context", "1e29"], "beyond what anything holds"),
    (["plan", "llama-3-70b", "--slice", ""], "write chip and topology"),
    (["plan", "--explain", "llama-3-70b"], "put MODEL first"),
    (["step", "llama-3-70b", "--slice", "v5e:4x4", "--slice", "v5e:4x8"], "use plan or compare"),
    (["step", "llama-3-70b", "--slice", "v5e:1x1", "--explain", "step_s"], "no value for what does not fit"),
    (["prefill", "llama-3-70b", "--slice", "v5e:1x1", "--explain"], "no value for what does not fit"),
    (["plan", "llama-3-70b", "--weights", "int3"], "choose fp32, bf16"),
    (["plan", "llama-3-70b", "--compute", "fp8"], "v5e has no peak rate"),
    (["plan", "llama-3-70b", "--ici", "mesh"], "choose auto, ring, none"),
    (["plan", "llama-3-70b", "--objective", "fun"], "choose cost, latency, throughput"),
    (["plan", "llama-3-70b", "--memory-fraction", "1.5"], "at most 1"),
    (["plan", "llama-3-70b", "--price", "v9=1"], "unknown chip"),
    (["plan", "llama-3-70b", "--params", "nan"], "--params"),
    (["plan", "llama-3-70b", "--json", "--md"], "exclude each other"),
    (["plan", "missing/config.json"], "there is no file missing/config.json"),
    (["plan"], "Missing argument 'MODEL'"),
    (["plan", "llama-3-70b", "--nonsense"], "No such option"),
    (["nonsense"], "No such command"),
    (["step", "llama-3-70b", "--explain", "nonsense_s"], "unknown number 'nonsense_s'"),
    (["compare"], "nothing to compare"),
    (["catalog", "stars"], "slicewise catalog models|chips|slices|prices"),
    (["frontier", "llama-3-70b", "--slice", "v5e:4x4", "--out", "x.pdf"], ".svg"),
]


@pytest.mark.parametrize(("words", "fix"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_bad_input_is_one_line_with_the_fix(capsys: pytest.CaptureFixture[str], words: list[str], fix: str) -> None:
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert fix in err


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('{"model_type": "llama", ', "not valid JSON at line 1"),
        ("[]", "holds a list, not an object"),
        ('{"model_type": "t5"}', "model_type t5 is not supported yet"),
        ('{"model_type": "llama", "hidden_size": 64, "vocab_size": 96}', "num_attention_heads is missing"),
        ('{"model_type": "llama", "hidden_size": 64, "vocab_size": "96"}', "must be a whole number"),
    ],
)
def test_broken_config_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, fix: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    for given in (path, tmp_path):
        code, _, err = run(capsys, "plan", str(given))
        assert code == 2
        assert err.count("\n") == 1
        assert fix in err


def numeric(found: dict) -> list[str]:
    return [key for key, value in found.items() if isinstance(value, int | float) and not isinstance(value, bool)]


def test_every_number_of_a_step_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, *STEP, "--json")[1])
    names = numeric(found)
    assert len(names) > 30
    for name in names:
        code, out, err = run(capsys, *STEP, "--explain", name)
        assert (code, err) == (0, "")
        assert out.startswith(name)


@pytest.mark.parametrize("words", [words for words in ANSWERS if words[0] not in UNEXPLAINED])
def test_every_number_of_other_commands_is_explained(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    for name in numeric(json.loads(run(capsys, *words, "--json")[1])):
        code, _, err = run(capsys, *words, "--explain", name)
        assert (code, err) == (0, ""), name


def test_every_number_of_a_plan_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    recommended = json.loads(run(capsys, "plan", "llama-3-70b", "--json")[1])["recommended"]
    for name in numeric(recommended):
        code, _, err = run(capsys, "plan", "llama-3-70b", "--explain", name)
        assert (code, err) == (0, ""), name


def test_explanation_puts_numbers_in_and_cites(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *STEP, "--explain", "step_roofline_s")
    assert "attention_s + max(matmul_s, param_load_s)" in out
    assert "6.5472 ms + max(2.8426 ms, 10.671 ms)" in out
    assert "70 GB / (8 × 820 GB/s)" in out
    assert "[1] meta-llama/Meta-Llama-3.1-70B, config.json" in out
    assert "[2] How to Scale Your Model" in out


def test_bare_explain_before_another_flag_explains_the_headline(capsys: pytest.CaptureFixture[str]) -> None:
    bare = run(capsys, "plan", "llama-3-70b", "--explain", "--weights", "int8")
    last = run(capsys, "plan", "llama-3-70b", "--weights", "int8", "--explain")
    assert bare == last
    assert bare[1].startswith("request_usd")


@pytest.mark.parametrize(
    "words",
    [
        ["--isl", "4096", "--osl", "256", "--kv", "int8", "--batch", "8"],
        ["--prompt-tokens", "4096", "--output-tokens", "256", "--kv-cache-dtype", "int8", "--max-num-seqs", "8"],
    ],
)
def test_aliases_mean_the_same(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    _, plain, _ = run(capsys, "step", "llama-3-8b", "--slice", "v5e-8", "--memory-fraction", "0.9", *words, "--json")
    _, other, _ = run(
        capsys, "step", "llama-3-8b", "--topology", "v5e:2x4", "--gpu-memory-utilization", "0.9", *words, "--json"
    )
    assert json.loads(plain) == json.loads(other)


def test_python_api_gives_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    printed = json.loads(run(capsys, *STEP, "--json")[1])
    words = {"slice": "v5e:4x2", "weights": "int8", "kv": "int8", "batch": 32, "context": 8192, "book": True}
    assert json.loads(json.dumps(slicewise.step("llama-3-70b", **words, params="70e9").to_dict())) == printed


def test_module_runs_and_a_closed_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m slicewise frontier llama-3-70b --slice v5e:4x4 --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{")
    assert done.stderr == ""


def test_a_full_disk_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full to write to")
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m slicewise plan llama-3-70b --json > /dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be written" in done.stderr


def test_python_refuses_words_that_are_no_flags() -> None:
    with pytest.raises(slicewise.InputError, match="unknown word 'weigths': did you mean weights"):
        slicewise.step("llama-3-70b", weigths="int8")
    with pytest.raises(slicewise.InputError, match="unknown word 'tensor_parallel_size'"):
        slicewise.compare("v5e", tensor_parallel_size=8)


def test_fleets_say_whether_they_keep_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "llama-3-70b", "--slice", "v5e:4x4", "--tpot", "20ms", "--ttft", "1s", "--rate", "50"]
    words += ["--view", "overlapped"]
    _, out, _ = run(capsys, *words)
    assert " ".join(out.split()).count("which breaks the limits") == 2
    fleet = json.loads(run(capsys, *words, "--json")[1])["fleet"]
    assert fleet["replicas_tpot_s"] > 0.02 >= fleet["split_tpot_s"]
    assert fleet["split_ttft_s"] > 1
    assert not fleet["replicas_meet_limits"]
    assert not fleet["split_meets_limits"]


def test_frontiers_of_several_contexts_are_of_one_slice(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["frontier", "llama-3-8b", "--weights", "int8", "--kv", "int8", "--context", "2048", "--context", "131072"]
    found = json.loads(run(capsys, *words, "--json")[1])
    assert found["slice"] == "v5e:2x2"
    assert len(set(found["param_load_s"])) == 1


@pytest.mark.parametrize("key", ["num_key_value_head", "sliding_windw", "head_dims", "vocab_sizes"])
def test_a_misspelt_key_of_a_config_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, key: str) -> None:
    config = {
        "model_type": "mistral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
        "sliding_window": None,
        "head_dim": 128,
    }
    right = {"num_key_value_head": "num_key_value_heads", "sliding_windw": "sliding_window", "head_dims": "head_dim"}
    config[key] = config.pop(right.get(key, "vocab_size"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    code, _, err = run(capsys, "step", str(path))
    assert code == 2
    assert f"{key} is no key of a config.json; did you mean {right.get(key, 'vocab_size')}?" in err


def test_a_window_is_held_and_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {
        "model_type": "mistral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
        "sliding_window": 4096,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    words = [str(path), "--slice", "v5e:2x2", "--isl", "32768"]
    _, out, _ = run(capsys, "step", *words)
    assert "attends to the last 4,096 tokens" in out
    assert "× 4,096 tokens" in out
    found = json.loads(run(capsys, "disaggregate", *words, "--json")[1])
    assert found["handoff_bytes"] == 4096 * 131_072
