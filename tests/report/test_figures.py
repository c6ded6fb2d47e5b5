"""Files of pictures and columns: self-contained, exact, and one line when they cannot be written."""

import csv
import json
import re
import sys

import numpy as np
import pytest

from slicewise.errors import InputError
from slicewise.report.breakdown import breakdown_spec
from slicewise.report.charts import frontier_spec
from slicewise.report.figures import write_figures

COLUMNS = {
    "context_tokens": [2048, 2048, 2048],
    "batch": [1, 2, 4],
    "step_s": [0.1 + 0.2, 0.31, 1 / 3],
    "tokens_per_s_per_chip": [0.2, 0.4, 0.75],
    "param_load_s": [0.3, 0.3, 0.3],
    "kv_load_s": [1e-5, 2e-5, 4e-5],
    "matmul_s": [0.01, 0.02, 0.04],
    "ici_s": [0.0, 0.0, 0.0],
}


@pytest.fixture
def specs():
    return {
        "frontier": frontier_spec(COLUMNS, title="7 < 8 & </script>", subtitle="a bound"),
        "breakdown": breakdown_spec(COLUMNS, context_tokens=2048, title="Where the time goes"),
    }


def test_html_is_one_page_that_needs_no_network(tmp_path, specs):
    pytest.importorskip("vl_convert")
    path = tmp_path / "x.html"
    assert write_figures(path, COLUMNS, specs) == [path]
    page = path.read_text(encoding="utf-8")
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(src|href)=|@import|url\(|https?:", markup)
    assert "<script src" not in page
    assert page.count("<script>") == page.count("</script>") == 2
    assert page.count('id="figure-') == 2
    assert "<h1>7 &lt; 8 &amp; &lt;/script&gt;</h1>" in page
    assert 'name="viewport"' in page


def test_html_holds_the_specs_and_the_library_once(tmp_path, specs):
    pytest.importorskip("vl_convert")
    write_figures(tmp_path / "x.html", COLUMNS, specs)
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    embedded = json.loads(re.search(r"^const specs = (.*);$", page, re.MULTILINE)[1])
    assert [spec["layer"] for spec in embedded] == [spec["layer"] for spec in specs.values()]
    assert page.count("window.vegaEmbed") == 1


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".PNG", b"\x89PNG")])
def test_images_go_to_the_path_and_beside_it(tmp_path, specs, suffix, magic):
    pytest.importorskip("vl_convert")
    path = tmp_path / f"x.v2{suffix}"
    written = write_figures(path, COLUMNS, specs)
    assert written == [path, tmp_path / f"x.v2-breakdown{suffix}"]
    assert all(file.read_bytes().startswith(magic) for file in written)


def test_csv_round_trips_exactly(tmp_path, specs):
    path = tmp_path / "x.csv"
    assert write_figures(path, COLUMNS, specs) == [path]
    header, *rows = csv.reader(path.read_text().splitlines())
    assert header == list(COLUMNS)
    assert rows[0][:3] == ["2048", "1", repr(0.1 + 0.2)]
    assert [[float(cell) for cell in row] for row in rows] == [list(row) for row in zip(*COLUMNS.values(), strict=True)]


def test_json_round_trips_exactly_from_arrays_too(tmp_path, specs):
    path = tmp_path / "x.json"
    arrays = {key: np.array(column) for key, column in COLUMNS.items()}
    assert write_figures(path, arrays, specs) == [path]
    assert json.loads(path.read_text()) == COLUMNS


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.svgz"])
def test_unknown_suffix_names_the_known_ones(tmp_path, specs, name):
    with pytest.raises(InputError, match=r"\.html, \.svg, \.png, \.csv or \.json"):
        write_figures(tmp_path / name, COLUMNS, specs)


@pytest.mark.parametrize("name", ["missing/x.csv", "missing/x.html", "folder.csv"])
def test_what_cannot_be_written_is_one_line(tmp_path, specs, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot write") as error:
        write_figures(tmp_path / name, COLUMNS, specs)
    assert "\n" not in str(error.value)


def test_without_vl_convert_the_extra_is_named_and_columns_still_work(tmp_path, specs, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=r"pip install 'slicewise\[figures\]'"):
        write_figures(tmp_path / "x.svg", COLUMNS, specs)
    assert write_figures(tmp_path / "x.csv", COLUMNS, specs)
