"""What docs/calibration.md says in words of measurements: each figure is told again from the rows."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/calibration.md"


@pytest.fixture(scope="module")
def page():
    return " ".join(PAGE.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def mixture_steps(published, published_path):
    tpu_rows = import_module("_tpu_rows")
    rows = [row for row, told in tpu_rows.classified(published.rows(published_path)) if told == "mixture steps"]
    return rows, import_module("compiled_times")


def span(shares):
    return f"{min(shares):.0%} to {max(shares):.0%}".replace("% to", " to").replace("%", " %")


def shares_of_peak(points, engine, chip="", bits=""):
    """FLOPs at peak over the measured time of prefills."""
    return [
        point.bound_s / point.measurement.seconds
        for point in points
        if point.phase == "prefill" and point.measurement.engine.startswith(engine)
        if chip in point.chip and bits in point.measurement.weights
    ]


def test_the_shares_of_the_peak_that_prefills_reach(page, shared_points):
    llama = "llama.cpp"
    assert f"llama.cpp reaches {span(shares_of_peak(shared_points, llama))} of the peak" in page
    told = {chip: span(shares_of_peak(shared_points, llama, chip, "fp16")) for chip in ("a100", "l40s")}
    assert f"({told['a100']} with 16-bit weights on A100 and {told['l40s']} on L40S," in page
    assert f"{span(shares_of_peak(shared_points, llama, bits='int4'))} with 4-bit ones" in page
    told = {chip: span(shares_of_peak(shared_points, "TensorRT-LLM", chip)) for chip in ("a100", "l40s")}
    assert f"TensorRT-LLM reaches {told['a100']} on A100 and {told['l40s']} on L40S" in page


def test_why_two_h200s_are_worse_than_two_h100s(page, shared_points):
    pairs = [point for point in shared_points if point.phase == "decode" and point.n_chips == 2]
    pairs = [point for point in pairs if point.measurement.engine.startswith("TensorRT-LLM")]
    assert {point.model for point in pairs} == {"llama-2-70b"}
    batches = [point.measurement.batch for point in pairs if point.chip == "h200"]
    assert (sum(batch >= 64 for batch in batches), len(batches), max(batches)) == (4, 10, 256)
    assert "Four of the ten rows of two H200s are batches of 64 to 256" in page
    assert max(point.measurement.batch for point in pairs if point.chip in ("a100", "l40s")) == 32


def test_what_is_said_of_mixtures(page, mixture_steps):
    rows, script = mixture_steps
    ratios = sorted(script.mixtures(rows)[1]["expected"])
    assert f"They took {ratios[0]:.1f} to {ratios[-1]:.1f} times as long as expected, {ratios[6]:.1f} times" in page
    assert f"they took {ratios[0]:.1f} to {ratios[-1]:.1f} times what is [expected]" in page
    assert f"in {len(rows)} steps of two models" in page
    assert "were not measured with a fixed batch and real routing" not in page


def test_what_is_said_of_their_growth(page, mixture_steps):
    rows, script = mixture_steps
    found = re.findall(r"\| (\S+) \| (\d+) x \S+ to (\d+) x \S+ \|(.*)\|", script.growth(rows))
    grown = [(model, first, last, [float(cell) for cell in cells.split("|")]) for model, first, last, cells in found]
    contexts = [cells for model, first, last, cells in grown if model == "DeepSeek-R1" and first == last]
    assert f"at {span([cache / cells[-1] for cells in contexts for cache in cells[1:2]])} of its bandwidth" in page
    weights, _, network, matmuls, small, _, measured = next(
        cells for *_, first, last, cells in grown if last == "128" != first
    )
    assert f"explain {weights:.0f} of {measured:.0f} ms, the network's formula {network:.1f}, the core's work" in page
    rest_s = (measured - weights - network - matmuls - small) / 1000
    assert f"The rest is some {rest_s / 120 / 58 * 1e6:.0f} µs" in page
    scout = [cells for model, *_, cells in grown if model == "Llama-4-Scout"]
    assert f"it grows by {sum(cells[-1] for cells in scout):.1f} ms" in page
    assert f"experts touched grow by {sum(cells[0] for cells in scout):.1f}." in page
