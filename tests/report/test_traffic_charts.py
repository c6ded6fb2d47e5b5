"""Pictures of a run: what they embed is the data, and names lie at the lines that they name."""

import json
from typing import Any

import numpy as np
import pytest

from slicewise.report.frame import HEIGHT
from slicewise.report.traffic_charts import COLOURS, cdf_spec, over_time_spec

RNG = np.random.default_rng(0)
LATENCIES = {"TTFT": RNG.gamma(2, 0.5, 500), "TPOT": RNG.gamma(9, 0.002, 500), "end to end": RNG.gamma(5, 2, 500)}
LIMITS = {"TTFT p95 within 2 s": 2.0, "TPOT p99 within 50 ms": 0.05}
COLUMNS = {"time_s": [0.5, 1.5, 2.5], "queued": [0.0, 4.0, 1.0], "running": [1.0, 1.0, 1.0]}
NAMES = {"queued": "waiting", "running": "in work"}


def cdf(latencies: dict[str, Any] | None = None, limits: dict[str, float] | None = None) -> dict[str, Any]:
    given = LATENCIES if latencies is None else latencies
    return cdf_spec(given, title="t", subtitle="s", limits=LIMITS if limits is None else limits)


def layers(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == mark]


def values(layer: dict[str, Any]) -> list[dict[str, Any]]:
    return layer["data"]["values"]


def test_lines_are_the_distributions() -> None:
    rows = values(layers(cdf(), "line")[0])
    for name, times in LATENCIES.items():
        line = [row for row in rows if row["name"] == name]
        assert (line[0]["time_s"], line[-1]["time_s"]) == (times.min(), times.max())
        for row in line:
            assert row["time_s"] == pytest.approx(np.quantile(times, row["share"]))
        shares = [row["share"] for row in line]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)


def test_dots_are_the_percentiles_that_the_subtitle_names() -> None:
    spec = cdf()
    dots = values(layers(spec, "circle")[0])
    assert len(dots) == 9
    for row in dots:
        assert row["time_s"] == pytest.approx(np.percentile(LATENCIES[row["name"]], 100 * row["share"]))
    assert {row["share"] for row in dots} == {0.5, 0.9, 0.99}
    assert "Dots: p50, p90 and p99." in spec["title"]["subtitle"]


def test_each_line_is_named_on_itself_in_its_colour() -> None:
    spec = cdf()
    named = [layer for layer in layers(spec, "text") if len(values(layer)) == 3]
    rows = values(layers(spec, "line")[0])
    assert {row["name"] for row in values(named[0])} == set(LATENCIES)
    assert all(row in rows for row in values(named[0]))
    scale = named[0]["encoding"]["color"]["scale"]
    assert scale == {"domain": list(LATENCIES), "range": list(COLOURS[:3])}
    assert layers(spec, "line")[0]["encoding"]["color"]["scale"] == scale


def test_limits_are_within_the_axis_and_named() -> None:
    spec = cdf()
    rules = layers(spec, "rule")
    assert [values(rule)[0]["time_s"] for rule in rules] == list(LIMITS.values())
    low, high = spec["encoding"]["x"]["scale"]["domain"]
    shown = [row["time_s"] for layer in spec["layer"] for row in values(layer)]
    assert low < min(shown)
    assert max(shown) < high
    assert set(LIMITS) <= {row.get("name") for layer in layers(spec, "text") for row in values(layer)}
    heights = [layer["encoding"]["y"]["value"] for layer in layers(spec, "text") if "y" in layer["encoding"]]
    assert len(set(heights)) == 2


@pytest.mark.parametrize(
    "latencies",
    [
        {"TTFT": np.array([np.nan, np.nan]), "TPOT": np.array([0.01, np.nan])},
        {"TTFT": np.array([0.0, 0.5])},
        {"TTFT": np.array([0.5])},
        {"TTFT": np.full(5, 0.5)},
        {"TTFT": np.array([])},
        {},
    ],
)
@pytest.mark.parametrize("limits", [{}, LIMITS])
def test_what_is_not_known_is_not_drawn(latencies: dict[str, Any], limits: dict[str, float]) -> None:
    spec = cdf(latencies, limits)
    json.dumps(spec, allow_nan=False)
    names = {row["name"] for row in values(layers(spec, "line")[0])}
    assert names == {name for name, times in latencies.items() if (np.nan_to_num(times) > 0).any()}
    pytest.importorskip("vl_convert").vegalite_to_svg(spec)


def test_lines_over_time_are_the_columns() -> None:
    spec = over_time_spec(COLUMNS, NAMES, title="t", unit="Requests")
    rows = values(layers(spec, "line")[0])
    for column, name in NAMES.items():
        assert [(row["time_s"], row["value"]) for row in rows if row["name"] == name] == list(
            zip(COLUMNS["time_s"], COLUMNS[column], strict=True)
        )
    assert spec["encoding"]["y"]["scale"]["domain"] == [0, 4.0]
    assert spec["encoding"]["y"]["axis"]["title"] == "Requests"


def test_names_at_the_ends_are_apart() -> None:
    spec = over_time_spec(COLUMNS, NAMES, title="t", unit="Requests")
    labels = layers(spec, "text")
    assert {row["name"] for layer in labels for row in values(layer)} == set(NAMES.values())
    # Both lines end at 1 of 4.
    heights = [layer["encoding"]["y"]["value"] for layer in labels]
    assert abs(heights[0] - heights[1]) >= 14
    assert np.mean(heights) == pytest.approx(HEIGHT * 3 / 4, abs=1)


def test_nothing_over_time_is_a_line_at_nothing() -> None:
    still = {"time_s": [0.5, 1.5], "queued": [0.0, 0.0], "running": [0.0, 0.0]}
    spec = over_time_spec(still, NAMES, title="t", unit="Requests")
    assert spec["encoding"]["y"]["scale"]["domain"] == [0, 1.0]
    pytest.importorskip("vl_convert").vegalite_to_svg(spec)
