"""The two pictures: what they embed equals the columns, and once drawn no label lies on another or on a line."""

import itertools
import json
import math

import pytest

from slicewise.errors import InputError
from slicewise.report.breakdown import RESOURCE_COLOURS, breakdown_spec
from slicewise.report.chart_lines import LABELLED_BATCHES, context_name
from slicewise.report.charts import frontier_spec

# Chapter 8's figures: LLaMA 3-70B in int8 on a v5e 4x4.
N_CHIPS, WEIGHT_BYTES, HBM_BYTES_PER_S, FLOPS_PER_S, KV_BYTES_PER_TOKEN = 16, 70e9, 8.2e11, 1.97e14, 163_840
MAX_BATCH = {2048: 554, 4096: 277, 8192: 138, 16384: 69, 32768: 34, 65536: 17}
CRITICAL_BATCH = FLOPS_PER_S / HBM_BYTES_PER_S / 2
CROWDED = {1024 * k: 1108 // k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)}


def book_columns(max_batch=MAX_BATCH, *, ici=True):
    rows = []
    for context, largest in max_batch.items():
        for batch in range(1, largest + 1):
            param_load = WEIGHT_BYTES / (N_CHIPS * HBM_BYTES_PER_S)
            kv_load = batch * context * KV_BYTES_PER_TOKEN / (N_CHIPS * HBM_BYTES_PER_S)
            matmul = 2 * WEIGHT_BYTES * batch / (N_CHIPS * FLOPS_PER_S)
            step = kv_load + max(param_load, matmul)
            network = 80 * 4 * 2 * 8192 * batch / 9e10 if ici else 0.0
            rows.append((context, batch, step, batch / step / N_CHIPS, param_load, kv_load, matmul, network))
    keys = (
        *("context_tokens", "batch", "step_s", "tokens_per_s_per_chip"),
        *("param_load_s", "kv_load_s", "matmul_s", "ici_s"),
    )
    return dict(zip(keys, map(list, zip(*rows, strict=True)), strict=True))


def layers_with(spec, mark):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == mark]


def line_rows(spec):
    return layers_with(spec, "line")[0]["data"]["values"]


def label_texts(spec):
    return [row["text"] for layer in layers_with(spec, "text") for row in layer["data"]["values"] if "text" in row]


CASES = {
    "six-contexts": (book_columns(), 2048, 0.015),
    "one-context": (book_columns({8192: 138}), 8192, None),
    "one-batch": (book_columns({32768: 1}), 32768, None),
    "no-network": (book_columns(ici=False), 65536, 0.0055),
    "crowded": (book_columns(CROWDED), 131072, 0.010),
    "limit-far-right": (book_columns(), 16384, 0.5),
    "limit-far-left": (book_columns(), 4096, 0.001),
}


def both(case):
    columns, context, limit = CASES[case]
    about = {"title": "LLaMA 3-70B on v5e 4x4", "subtitle": "a bound", "critical_batch": CRITICAL_BATCH}
    return (
        frontier_spec(columns, limit_s=limit, **about),
        breakdown_spec(columns, context_tokens=context, **about),
    )


@pytest.mark.parametrize("case", CASES)
def test_embedded_rows_are_rows_of_the_columns(case):
    columns, context, _ = CASES[case]
    frontier, breakdown = both(case)
    for spec, contexts in ((frontier, set(columns["context_tokens"])), (breakdown, {context})):
        keys = list(line_rows(spec)[0])
        given = set(zip(*(columns[key] for key in keys), strict=True))
        assert {tuple(row[key] for key in keys) for row in line_rows(spec)} <= given
        assert {row["context_tokens"] for row in line_rows(spec)} == contexts


@pytest.mark.parametrize("case", CASES)
def test_lines_are_thinned_but_keep_first_last_and_labelled_batches(case):
    columns, _, _ = CASES[case]
    for context in set(columns["context_tokens"]):
        own = [b for c, b in zip(columns["context_tokens"], columns["batch"], strict=True) if c == context]
        kept = [row["batch"] for row in line_rows(both(case)[0]) if row["context_tokens"] == context]
        assert kept == sorted(set(kept))
        assert len(kept) <= 80
        assert {own[0], own[-1], *(b for b in LABELLED_BATCHES if b in own)} <= set(kept)


def test_the_books_spot_values_are_embedded():
    rows = {(r["context_tokens"], r["batch"]): r for r in line_rows(both("six-contexts")[0])}
    assert rows[2048, 1]["step_s"] == pytest.approx(5.3609408780487815e-3, rel=1e-12)
    assert rows[65536, 16]["step_s"] == pytest.approx(18.429778341463415e-3, rel=1e-12)
    assert rows[65536, 16]["tokens_per_s_per_chip"] == pytest.approx(54.260012327451305, rel=1e-12)


def test_each_line_carries_its_context_and_largest_batch():
    ends = {"2k context, B = 554", "4k, B = 277", "8k, B = 138", "16k, B = 69", "32k, B = 34", "64k, B = 17"}
    assert ends <= set(label_texts(both("six-contexts")[0]))
    crowded = label_texts(both("crowded")[0])
    assert all(any(text.startswith(f"{k // 1024}k") for text in crowded) for k in CROWDED)


def test_batches_are_labelled_where_there_is_room():
    labels = label_texts(both("one-context")[0])
    assert {"B = 1", "4", "16", "64", "8k context, B = 138"} == set(labels)


def test_only_lines_that_cross_the_critical_batch_have_a_diamond():
    knees = next(layer for layer in layers_with(both("six-contexts")[0], "point"))["data"]["values"]
    assert [(row["context_tokens"], row["batch"]) for row in knees] == [(2048, 121), (4096, 121), (8192, 121)]
    assert "B > 120" in " ".join(both("six-contexts")[0]["title"]["subtitle"])
    assert "Diamonds" not in " ".join(both("one-batch")[0]["title"]["subtitle"])


def test_limit_is_drawn_only_when_there_is_one():
    columns = book_columns()
    with_limit = json.dumps(frontier_spec(columns, title="t", limit_s=0.015))
    assert "TPOT limit" in with_limit
    assert "TPOT limit" not in json.dumps(frontier_spec(columns, title="t"))


@pytest.mark.parametrize(
    ("context", "critical_batch", "shaded"), [(2048, 120.1, True), (16384, 120.1, False), (2048, None, False)]
)
def test_compute_bound_region_only_where_batches_reach_it(context, critical_batch, shaded):
    spec = breakdown_spec(book_columns(), context_tokens=context, title="t", critical_batch=critical_batch)
    assert bool(layers_with(spec, "rect")) is shaded
    assert ("compute-bound matmuls, B > 120" in json.dumps(spec)) is shaded


def test_a_term_of_zeros_is_left_out():
    assert "network (ICI)" in label_texts(both("six-contexts")[1])
    assert set(label_texts(both("no-network")[1])) == {"whole step", "parameter load", "KV load", "FLOPs"}


def test_every_term_has_one_colour_of_its_own():
    assert len(set(RESOURCE_COLOURS.values())) == len(RESOURCE_COLOURS)
    for layer in both("six-contexts")[1]["layer"]:
        if "color" in layer["encoding"]:
            scale = layer["encoding"]["color"]["scale"]
            colours = {term.removesuffix("_s"): c for term, c in zip(scale["domain"], scale["range"], strict=True)}
            assert colours == {term: c for term, c in RESOURCE_COLOURS.items() if term != "step_expected"}


def test_what_is_expected_is_drawn_where_it_is_told():
    plain = book_columns()
    columns = {**plain, "step_expected_s": [1.5 * time_s for time_s in plain["step_s"]]}
    frontier = frontier_spec(columns, title="t")
    dashed = [layer for layer in layers_with(frontier, "line") if "strokeDash" in layer["mark"]]
    solid = {(row["context_tokens"], row["batch"]): row for row in line_rows(frontier)}
    for row in dashed[0]["data"]["values"]:
        bound = solid[row["context_tokens"], row["batch"]]
        assert row["step_s"] == pytest.approx(1.5 * bound["step_s"])
        assert row["tokens_per_s_per_chip"] == pytest.approx(bound["tokens_per_s_per_chip"] / 1.5)
    lines = layers_with(frontier_spec(plain, title="t"), "line")
    assert not [layer for layer in lines if "strokeDash" in layer["mark"]]
    assert "expected step" in label_texts(breakdown_spec(columns, context_tokens=2048, title="t"))


def test_batch_ticks_are_powers_of_two():
    assert both("six-contexts")[1]["encoding"]["x"]["axis"]["values"] == [2**k for k in range(10)]


def test_specs_are_plain_small_json():
    for spec in itertools.chain.from_iterable(both(case) for case in CASES):
        text = json.dumps(spec, allow_nan=False)
        assert json.loads(text) == spec
        assert len(text) < 300_000


def test_no_rows_is_an_error_with_a_fix():
    empty = {key: [] for key in book_columns({2048: 1})}
    with pytest.raises(InputError, match="--context"):
        frontier_spec(empty, title="t")
    with pytest.raises(InputError, match="draw one of 2,048, 4,096"):
        breakdown_spec(book_columns(), context_tokens=1000, title="t")


@pytest.mark.parametrize(("tokens", "name"), [(2048, "2k"), (131072, "128k"), (128000, "128,000"), (512, "512")])
def test_context_name(tokens, name):
    assert context_name(tokens) == name


def drawn(spec):
    """Texts and lines as Vega lays them out: [(text, (left, top, right, bottom))], [points of each line]. [px]"""
    vl_convert = pytest.importorskip("vl_convert")
    texts, lines = [], []

    def visit(mark, x, y):
        for item in mark["items"]:
            if mark["marktype"] == "group":
                for child in item["items"]:
                    visit(child, x + item.get("x", 0), y + item.get("y", 0))
            elif mark["marktype"] == "text" and not item.get("angle") and isinstance(item["text"], str):
                texts.append((item["text"], box(item, x, y)))
        if mark["marktype"] == "line":
            lines.append([(x + item["x"], y + item["y"]) for item in mark["items"]])

    visit(vl_convert.vegalite_to_scenegraph(spec)["scenegraph"], 0, 0)
    return texts, lines


def box(item, x, y):
    size = item["fontSize"]
    width = 0.52 * size * len(item["text"])
    left = x + item["x"] + item.get("dx", 0) - width * {"left": 0, "center": 0.5, "right": 1}[item["align"]]
    top = y + item["y"] + item.get("dy", 0) - size * {"top": 0, "middle": 0.5, "bottom": 1}[item["baseline"]]
    return left, top, left + width, top + size


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("which", [0, 1], ids=["frontier", "breakdown"])
def test_no_text_overlaps_another_or_a_line_once_drawn(case, which):
    texts, lines = drawn(both(case)[which])
    assert len(texts) > 8
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one} lies on {other}"
    for text, (left, top, right, bottom) in texts:
        for start, stop in itertools.chain.from_iterable(map(itertools.pairwise, lines)):
            steps = math.ceil(math.dist(start, stop)) + 1
            for k in range(steps + 1):
                px = start[0] + (stop[0] - start[0]) * k / steps
                py = start[1] + (stop[1] - start[1]) * k / steps
                assert not (left < px < right and top < py < bottom), f"{text} lies on a line"
