"""`slicewise verify` as a user meets it, with the CPU's compiler: it needs jax, and neither a TPU nor libtpu."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from slicewise.cli.main import main
from slicewise.verify import toolchain
from slicewise.verify.rows import EQUAL

SMALL = ["verify", "llama-3.2-1b", "--slice", "v5e:2x4", "--compiler", "cpu", "--batch", "8", "--context", "1024"]
ALONE = ["v5e:1x1" if word == "v5e:2x4" else word for word in SMALL]
KEYS = {
    "model", "slice", "n_chips", "program", "form", "batch", "context_tokens", "weight_dtype", "kv_dtype",
    "compute_dtype", "kv_head_shards", "kv_batch_shards", "fits", "plan_fits", "reason", "available_bytes_per_chip",
    "granted_bytes_per_chip", "needed_bytes_per_chip", "compiler", "judged", "compile_s", "was_kept", "assumptions",
    "memory", "rows", "max_batch", "estimate", "collectives", "plan",
}  # fmt: skip

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all, so that the small program is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLICEWISE_CACHE", str(cache))


def run(*words: str) -> tuple[int, str, str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "slicewise", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def run_here(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@needs_jax
def test_json_has_the_plan_beside_what_the_compiler_says() -> None:
    code, out, err = run(*SMALL, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert set(found) == KEYS
    assert (found["fits"], found["plan_fits"], found["judged"], found["program"]) == (True, True, False, "decode")
    assert (found["batch"], found["context_tokens"], found["plan"]["batch"]) == (8, 1024, 8)
    rows = {row["name"]: row for row in found["rows"]}
    assert set(found["rows"][0]) == {"part", "name", "unit", "plan", "compiler", "why", "ratio"}
    assert rows["matmuls"]["ratio"] == pytest.approx(1, abs=0.02)
    assert rows["attention"]["ratio"] == pytest.approx(1, abs=0.02)
    assert rows["weights"]["ratio"] == pytest.approx(1, abs=0.01)
    assert rows["KV cache"]["ratio"] == 1
    moved = [row for row in found["rows"] if row["part"] == "collectives"]
    assert [row["name"].partition(":")[0] for row in moved] == ["a layer", "once"]
    assert all("AllReduce" in row["name"] for row in moved)
    assert all(row["why"] for row in found["rows"] if row["ratio"] is None or abs(row["ratio"] - 1) > EQUAL)
    assert {each["scope"] for each in found["collectives"]} == {"attention", "mlp", "embed"}


@needs_jax
def test_text_says_what_was_compiled_and_that_it_is_no_verdict() -> None:
    code, out, err = run(*SMALL)
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert words.startswith("llama-3.2-1b on v5e:2x4, batch 8, 1,024 tokens, bf16 weights, bf16 cache: not judged")
    for title in ("Memory of a chip", "Collectives of a chip in bytes", "FLOPs of a chip", "Assumed"):
        assert title in words
    assert "No verdict of the TPU's compiler" in words
    assert max(map(len, out.splitlines())) <= 130


@needs_jax
def test_the_second_run_finds_what_the_first_kept() -> None:
    first = "Compiled now by XLA:CPU", "Compiled earlier, and kept (--fresh compiles again) by XLA:CPU"
    words = [" ".join(run(*SMALL, "--kv", "int8", *more)[1].split()) for more in ([], [], ["--fresh"])]
    assert [[told in text for told in first] for text in words] == [[True, False], [False, True], [True, False]]


# -- in this process, for one chip -----------------------------------------------------------------------------------


@needs_jax
@pytest.mark.parametrize("form", [["--md"], ["--csv"]])
def test_other_forms(capsys: pytest.CaptureFixture[str], form: list[str]) -> None:
    code, out, err = run_here(capsys, *ALONE, *form)
    assert (code, err) == (0, "")
    assert ("| --:" in out) if form == ["--md"] else ("," in out.splitlines()[0])


@needs_jax
@pytest.mark.parametrize("name", ["weight_bytes", "kv_bytes", "matmul_flops", "step_s", ""])
def test_a_name_is_explained(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, err = run_here(capsys, *ALONE, "--explain", *([name] if name else []))
    assert (code, err) == (0, "")
    assert out.startswith(name or "step_overlapped_s")
    assert "Sources" in out


@needs_jax
def test_a_plan_that_does_not_fit_is_exit_code_1_with_the_plans_reason(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_here(capsys, *ALONE[:-4], "--batch", "20000", "--context", "1024", "--json")
    found = json.loads(out)
    assert (code, err, found["fits"], found["judged"]) == (1, "", False, False)
    assert "do not fit" in found["reason"]


@needs_jax
def test_the_program_is_saved_or_the_place_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "program.txt"
    assert run_here(capsys, *ALONE, "--hlo", str(place))[0] == 0
    assert place.read_text(encoding="utf-8").startswith("HloModule")
    missing = tmp_path / "missing" / "program.txt"
    code, out, err = run_here(capsys, *ALONE, "--hlo", str(missing))
    assert (code, out) == (2, "")
    assert err == f"slicewise: --hlo {missing}: cannot be written; give another place\n"


def test_ctrl_c_is_said_and_has_an_exit_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("slicewise.verify.run.verify", stopped)
    code, out, err = run_here(capsys, "verify", "llama-3-8b")
    assert (code, out.strip(), err.strip()) == (130, "", "slicewise: stopped")


@needs_jax
@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["verify", "mixtral-8x7b", "--slice", "v5e:4x4", "--compiler", "cpu"], "it has layers of full + experts"),
        ([*ALONE, "--max-batch"], "--max-batch: only the TPU's compiler refuses what is too large"),
        ([*ALONE, "--estimate"], "--estimate: only the TPU's compiler estimates cycles"),
        ([*ALONE[:-6], "--compiler", "gpu"], "--compiler 'gpu' is not offered; choose tpu, cpu"),
        ([*ALONE, "--json", "--md"], "exclude each other"),
        ([*ALONE, "--explain", "nonsense_s"], "unknown number 'nonsense_s'"),
        ([*ALONE, "--weights", "nvfp4"], "--weights nvfp4: the program holds fp32, bf16"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_line_with_the_fix(capsys: pytest.CaptureFixture[str], words: list[str], fix: str) -> None:
    code, out, err = run_here(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert fix in err


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["--slice", "h100:8"], "verify compiles for TPU slices; `slicewise step` plans this one"),
        (["--prefill", "--estimate"], "--prefill goes with neither --estimate nor --max-batch"),
        (["--prefill", "--max-batch"], "--prefill goes with neither --estimate nor --max-batch"),
        (["--tp", "8"], "No such option"),
    ],
)
def test_words_that_do_not_go_together_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], fix: str
) -> None:
    code, out, err = run_here(capsys, "verify", "llama-3.2-1b", *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert fix in err


def test_without_jax_there_is_one_line_that_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise toolchain.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(toolchain.metadata, "version", version)
    code, out, err = run_here(capsys, *SMALL)
    assert (code, out) == (2, "")
    assert err == "slicewise: verify needs jax, and it is not installed: pip install 'slicewise[verify]'\n"


def test_help_names_every_word_of_the_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_here(capsys, "verify", "--help")
    assert code == 0
    for flag in ("--prefill", "--max-batch", "--estimate", "--clock", "--compiler", "--hlo", "--fresh"):
        assert flag in out
