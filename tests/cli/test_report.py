"""`slicewise report` and `plan --out`: a file is written, the exit code is that of plan, and errors are one line."""

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


@pytest.mark.parametrize("out", ["answer.pdf", "nowhere/answer.html"])
def test_place_that_is_off_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text, err = run(capsys, "report", "llama-3-8b", "--slice", "v5e:2x2", "--out", out)
    assert (code, text) == (2, "")
    assert err.startswith(f"slicewise: cannot write '{out}'")
    assert len(err.splitlines()) == 1
