"""The charts: fixed frames whose data come by name, frames that hold still, and points within them."""

import json

import pytest

import slicewise
from slicewise.report.explorer.explore import explore
from slicewise.report.explorer.resources import RESOURCES
from slicewise.report.explorer.theme import THEMES, fills, inks

INT8 = {"weights": ["int8"], "kv": ["int8"]}
KINDS = ["frontier", "breakdown"]


def charts(**words: object) -> dict:
    found = explore(slicewise.load_model("llama-3-70b"), {**INT8, **words})
    return {kind: found[kind]["chart"] for kind in KINDS}


@pytest.fixture(scope="module")
def drawn() -> dict:
    return charts(tpot="30ms")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_spec_draws_in_both_themes(drawn: dict, kind: str, theme: str) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    chart = drawn[kind]
    svg = vl_convert.vegalite_to_svg({**chart["spec"][theme], "datasets": chart["data"]})
    assert f'width="{chart["width"]}" height="{chart["height"]}"' in svg
    assert "NaN" not in svg
    assert "undefined" not in svg


@pytest.mark.parametrize("kind", KINDS)
def test_data_come_by_name_alone(drawn: dict, kind: str) -> None:
    chart = drawn[kind]
    for spec in chart["spec"].values():
        assert spec["datasets"] == {name: [] for name in chart["data"]}
        named = {layer["data"]["name"] for layer in spec["layer"]}
        assert named == set(chart["data"])
        assert '"values": [{' not in json.dumps(spec["layer"])
    assert chart["data"]["ghost"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_frame_holds_still_while_a_batch_is_dragged(kind: str) -> None:
    keys = {charts(slice=["v5e:4x4"], batch=batch)[kind]["key"] for batch in (8, 16, 24, 40)}
    assert len(keys) == 1


def test_axes_change_when_the_data_leave_them_and_the_frame_does_not() -> None:
    near, far = (charts(slice=["v5e:4x4"], context=context)["frontier"] for context in (2048, 131072))
    assert near["signals"] != far["signals"]
    assert near["key"] == far["key"]


@pytest.mark.parametrize("kind", KINDS)
def test_axes_begin_as_their_signals_say(drawn: dict, kind: str) -> None:
    chart = drawn[kind]
    for spec in chart["spec"].values():
        assert {param["name"]: param["value"] for param in spec["params"]} == chart["signals"]
        for axis in "xy":
            ends = [chart["signals"][end["expr"]] for end in spec["encoding"][axis]["scale"]["domain"]]
            ticks = chart["signals"][spec["encoding"][axis]["axis"]["values"]["expr"]]
            assert ends[0] < ends[1]
            assert ticks == sorted(tick for tick in ticks if ends[0] <= tick <= ends[1])
            assert len(ticks) >= 2


def test_points_lie_within_the_frame(drawn: dict) -> None:
    chart = drawn["frontier"]
    x_low, x_high, y_low, y_high = (chart["signals"][f"{axis}_{end}"] for axis in "xy" for end in ("low", "high"))
    rows = [*chart["data"]["curves"], *chart["data"]["points"]]
    assert all(x_low <= row["step_s"] <= x_high for row in [*rows, *chart["data"]["limit"]])
    assert all(y_low <= row["tokens_per_s_per_chip"] <= y_high for row in rows)
    kinds = [row["kind"] for row in chart["data"]["points"]]
    assert kinds.count("chosen") == 1
    assert kinds[-1] == "chosen"  # drawn last, over the rest


def test_areas_lie_on_each_other(drawn: dict) -> None:
    data = drawn["breakdown"]["data"]
    below: dict[float, float] = {}
    for row in data["parts"]:
        assert row["low_s"] == pytest.approx(below.get(row["batch"], 0.0))
        below[row["batch"]] = row["high_s"]
    assert below == pytest.approx({row["batch"]: row["time_s"] for row in data["total"]})
    top = drawn["breakdown"]["signals"]["y_high"]
    assert max(below.values()) <= top


def test_compute_bound_region_starts_at_the_critical_batch() -> None:
    book = {"params": "70e9", "book": True, "context": 2048, "slice": ["v5e:4x4"]}
    (region,) = charts(**book)["breakdown"]["data"]["region"]
    assert region["batch"] == pytest.approx(120.12, abs=0.01)
    (short,) = [charts(**{**book, "context": 65536})["breakdown"]["data"]["region"]]
    assert short == []  # 17 sequences are all that fit


def _luminance(colour: str) -> float:
    def linear(channel: int) -> float:
        share = channel / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_stand_out_from_their_ground() -> None:
    for theme in THEMES:
        for resource in RESOURCES:
            assert contrast(inks(theme)[resource.key], theme.ground) >= 4.5
            if resource.key != "free":
                assert contrast(fills(theme)[resource.key], theme.ground) >= 3
        assert contrast(theme.ink, theme.ground) >= 7
        assert contrast(theme.quiet, theme.ground) >= 4.5
