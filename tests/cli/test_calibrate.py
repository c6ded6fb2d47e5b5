"""`slicewise calibrate` on the command line: what is written, what is said, and what goes wrong in one line."""

import json

import pytest

from slicewise.cli.main import main

ROWS = """model,slice,weights,kv,phase,batch,isl,osl,ms,engine
llama-3-8b,h100:1,bf16,bf16,decode,1,1024,256,8.1,vllm 0.11
llama-3-8b,h100:1,bf16,bf16,decode,16,1024,256,9.0,vllm 0.11
llama-3-8b,h100:1,bf16,bf16,decode,64,1024,256,11.9,vllm 0.11
llama-3-8b,h100:1,bf16,bf16,prefill,1,2048,1,62,vllm 0.11
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(ROWS, encoding="utf-8")

    def call(*words):
        with pytest.raises(SystemExit) as stopped:
            main(list(words))
        done = capsys.readouterr()
        return stopped.value.code, done.out, done.err

    return call


def test_the_file_is_written_and_used(run):
    code, out, err = run("calibrate", "mine.csv")
    assert (code, err) == (0, "")
    assert "Wrote efficiency.toml" in out
    assert "To measure next" in out
    code, out, _ = run("step", "llama-3-8b", "--slice", "h100:1", "--batch", "16", "--efficiency", "efficiency.toml")
    assert code == 0
    assert "vllm 0.11" in out


def test_json(run):
    code, out, _ = run("calibrate", "mine.csv", "--json", "--out", "other.toml")
    found = json.loads(out)
    assert code == 0
    assert found["out"] == "other.toml"
    assert found["fits"][0]["n_rows"] == 4
    assert found["fits"][0]["engine"] == "vllm 0.11"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.csv"], "none.csv"),
        (["mine.csv", "--out", "none/there.toml"], "No such file or directory"),
        (["mine.csv", "--slice", "a100:1"], "--slice"),
        (["mine.csv", "--json", "--csv"], "exclude each other"),
        ([], "Missing argument"),
        (["mine.csv", "--batch", "1", "--batch", "2"], "given 2 times"),
    ],
)
def test_what_is_off_is_one_line(run, words, said):
    code, out, err = run("calibrate", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_file_that_is_there_is_kept(run, tmp_path):
    assert run("calibrate", "mine.csv")[0] == 0
    before = (tmp_path / "efficiency.toml").read_bytes()
    code, _, err = run("calibrate", "mine.csv")
    assert code == 2
    assert "--force" in err
    assert (tmp_path / "efficiency.toml").read_bytes() == before
    assert run("calibrate", "mine.csv", "--force")[0] == 0


@pytest.mark.parametrize("text", ["", "nonsense", "[[fit]]\nname = 1\n"])
def test_an_efficiency_file_that_is_off_is_one_line(run, tmp_path, text):
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    code, out, err = run("plan", "llama-3-8b", "--chip", "h100", "--efficiency", "bad.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
