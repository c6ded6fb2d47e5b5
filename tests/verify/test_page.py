"""What docs/verify.md shows is what was promised: its outputs are compiled anew by `tests/test_docs.py` (marker `xla`).

So these programs are compiled once, and not again for a test of their numbers.
"""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")


def block(*words: str) -> str:
    """The output of the command that has the last word, and of several the first that has all."""
    for found in re.findall(r"^```console\n(\$ slicewise verify .*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        command = found.partition("\n")[0]
        if all(word in command for word in words):
            return re.sub(r"[ \t]+", " ", found)
    raise AssertionError(words)


def ratio(text: str, row: str) -> float:
    found = re.search(rf"^{re.escape(row)} [\d.,]+ \S+ [\d.,]+ \S+ (\d\.\d{{4}})\b", text, flags=re.MULTILINE)
    assert found, row
    return float(found[1])


def test_a_decode_step_needs_moves_and_multiplies_what_the_plan_says() -> None:
    text = block("--batch 32")
    assert "--estimate" not in text.partition("\n")[0]
    assert text.splitlines()[1].endswith(": fits")
    for row in ("all of it", "KV cache", "weights", "weight scales"):
        assert ratio(text, row) == pytest.approx(1, abs=1e-3)
    assert ratio(text, "a layer: 2 × AllReduce bf16 over y × z") == 1
    assert ratio(text, "a layer: 2 × AllToAll bf16 over z") == 1 + 8 / 64  # new keys and values travel too
    assert ratio(text, "matmuls") == ratio(text, "attention") == 1


def test_prefill_multiplies_and_gathers_what_the_plan_says() -> None:
    text = block("--prefill")
    assert ratio(text, "matmuls") == 1
    assert ratio(text, "attention") == 1 + 1 / 8  # eight blocks of 1,024 tokens: half of each block's square is masked
    assert ratio(text, "a layer: 2 × AllReduce bf16 over y × z") == 1


def test_what_is_too_large_is_told_with_both_ledgers() -> None:
    text = block("--weights bf16")
    assert "does not fit" in text
    assert "exceeds available HBM (15.75G)" in text
    assert ratio(text, "all of it") == pytest.approx(1, abs=1e-3)


def test_the_largest_batch_is_the_plans_own_or_one_less() -> None:
    text = block("--max-batch")
    most, planned = map(int, re.search(r"compiles is (\d+); the plan's own, .*, is (\d+)\.", text).groups())
    assert 0 <= planned - most <= 1
    fits = {int(batch): verdict for batch, verdict in re.findall(r"^(\d+) (yes|no) ", text, flags=re.MULTILINE)}
    assert (fits[most], fits[most + 1]) == ("yes", "no")


def test_the_estimate_is_near_the_published_step_and_not_far_above_the_bound() -> None:
    """jax-llm-examples measured 93.8 tokens/s a sequence on v5e-16; benchmarks/estimates.py has all twelve points."""
    text = block("--estimate")
    times = {
        name: float(ms) for name, ms in re.findall(r"^(roofline|estimate|measured) ([\d.]+) ms", text, re.MULTILINE)
    }
    assert times["measured"] == pytest.approx(1000 / 93.8, rel=1e-3)
    assert times["estimate"] == pytest.approx(times["measured"], rel=0.13)
    assert 1 < times["estimate"] / times["roofline"] < 1.5
    scopes = {name: float(ms) for name, ms in re.findall(r"^(dot_product|mlp) ([\d.]+) ms$", text, re.MULTILINE)}
    (write_us,) = re.findall(r"^cache_write ([\d.]+) µs$", text, re.MULTILINE)
    assert 0 < float(write_us) / 1000 < scopes["dot_product"] / 4
