"""`slicewise report` and `plan --out`: a file is written, the exit code is that of plan, and errors are one line."""

import json
from pathlib import Path

import pytest

from slicewise.cli.main import main

pytest.importorskip("vl_convert")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_report_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "answer.html"
    code, out, err = run(
        capsys, "report", "llama-3-8b", "--slice", "v5e:2x2", "--prefill-slice", "v5e:2x4", "--out", str(path)
    )
    assert (code, out, err) == (0, "", f"wrote {path}\n")
    text = path.read_text(encoding="utf-8")
    assert "llama-3-8b on v5e:2x2" in text
    assert "slicewise plan llama-3-8b --slice v5e:2x2" in text


def test_plan_writes_it_beside_its_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "answer.html"
    code, out, err = run(capsys, "plan", "llama-3-8b", "--slice", "v5e:2x2", "--out", str(path))
    assert (code, err) == (0, f"wrote {path}\n")
    assert out.startswith("Run llama-3-8b on v5e:2x2")
    assert path.exists()


def test_refusal_is_written_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "answer.html"
    code, _, _ = run(capsys, "report", "llama-3-70b", "--slice", "v5e:2x2", "--out", str(path))
    assert code == 1
    assert "do not fit" in path.read_text(encoding="utf-8")


CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize("named", ["folder", "file", "other file"])
def test_says_not_where_files_of_the_machine_lie(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str
) -> None:
    folder = tmp_path / "private place" / "my-llama-fp8"
    folder.mkdir(parents=True)
    file = folder / ("other.json" if named == "other file" else "config.json")
    file.write_text(json.dumps(CONFIG))
    out = tmp_path / "answer.html"
    model = str(folder if named == "folder" else file)
    assert run(capsys, "report", model, "--slice", "v5e:1x1", "--out", str(out))[0] == 0
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert "private place" not in text
    assert f"slicewise plan {folder.name if named == 'folder' else file.name} --slice" in text
    assert f"read from {file.name}" in text


@pytest.mark.parametrize("out", ["answer.pdf", "nowhere/answer.html"])
def test_place_that_is_off_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text, err = run(capsys, "report", "llama-3-8b", "--slice", "v5e:2x2", "--out", out)
    assert (code, text) == (2, "")
    assert err.startswith(f"slicewise: cannot write '{out}'")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["plan", "report"])
def test_place_is_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def never(*_: object, **__: object) -> object:
        raise AssertionError

    monkeypatch.setattr("slicewise.planner.plan.plan", never)
    monkeypatch.setattr("slicewise.report.explorer.found.find", never)
    (tmp_path / "folder.html").mkdir()
    for name in ("answer.pdf", "nowhere/answer.html", "folder.html"):
        out = str(tmp_path / name)
        code, text, err = run(capsys, command, "llama-3-8b", "--slice", "v5e:2x2", "--out", out)
        assert (code, text) == (2, "")
        assert err.startswith(f"slicewise: cannot write '{out}'")
