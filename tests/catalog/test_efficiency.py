"""Efficiency files: those that ship load, what is off in a user's is told in one line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise.catalog.efficiency import efficiency_of, read_efficiency, shipped
from slicewise.catalog.load import chips
from slicewise.errors import InputError
from slicewise.spec.efficiency import GROUPS

GOOD = """
[[fit]]
name = "h100-own"
family = "hopper"
engine = "vllm 0.11"
measured = "by the user"
chips = ["h100"]
models = ["llama-3-8b"]
sources = ["m.csv"]
most_chips = 8
rows = 54
weight_read_efficiency = 0.9
kv_read_efficiency = 0.8
matmul_efficiency = 0.5
network_efficiency = 0.7
layer = "50 us"
sync = "10 us"
token_passes = 20
prefill_token_passes = 2
prefill_efficiency = { 8 = 0.5, 16 = 0.6 }
"""
GOOD += "".join(
    f'errors."{name}" = {{ rows = 9, models = 2, range_rows = 9, median = 0.05, low = 0.9, high = 1.1 }}\n'
    for name in GROUPS
)
SCALE = """
[[scale]]
name = "v5e-own"
engine = "my engine"
measured = "by the user"
chips = ["v5e"]
models = ["llama-3-8b"]
sources = ["m.csv"]
most_chips = 8
rows = 54
step_ratio = 1.2
prefill_ratio = 1.4
"""
SCALE += GOOD[GOOD.index("errors") :]


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_good_file_is_read(file):
    (found,) = read_efficiency(file(GOOD))
    assert (found.chips, found.layer_s, found.prefill_efficiency[16]) == (("h100",), 50e-6, 0.6)
    assert found.errors.keys() == set(GROUPS)


def test_a_tpus_file_is_read(file):
    found, own = read_efficiency(file(SCALE + GOOD))
    assert (found.chips, found.step_ratio, found.prefill_ratio) == (("v5e",), 1.2, 1.4)
    assert own.chips == ("h100",)


SAID = 'shared = ["layer_s"]\nshared_chips = ["h100", "a100"]\nshared_rows = 90\nas_shipped = ["sync_s"]\n'


def test_what_some_files_say_besides_is_read(file):
    (plain,), (found,) = read_efficiency(file(GOOD)), read_efficiency(file(GOOD.replace("errors", SAID + "errors", 1)))
    assert (plain.shared, plain.shared_rows, plain.as_shipped, plain.other_engine_errors) == ((), 0, (), {})
    assert (found.shared, found.shared_chips, found.shared_rows) == (("layer_s",), ("h100", "a100"), 90)
    assert found.as_shipped == ("sync_s",)
    held = read_efficiency(file(GOOD.replace("high = 1.1", "high = 1.1, held = 0.79", 1)))[0].errors
    assert [error.held for error in held.values()] == [0.79, *[None] * (len(GROUPS) - 1)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("errors", "shared_rows = 2.5\nerrors", "2.5 is no whole number"),
        ("errors", "as_shipped = 3\nerrors", "no list of names"),
        ("errors", "other_engine_errors = {}\nerrors", "other_engine_errors: must be tables"),
        ("high = 1.1", "high = 1.1, held = 1.2", "held: '1.2' is no number between 0 and 1"),
        ("high = 1.1", "high = 1.1, hold = 0.8", "must have rows"),
    ],
)
def test_what_is_off_of_that_is_one_line(file, old, new, said):
    with pytest.raises(InputError) as caught:
        read_efficiency(file(GOOD.replace(old, new, 1)))
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["ampere", "hopper", "ada", "gpus"])
def test_what_ships_loads(name):
    (found,) = shipped(name)
    assert found.errors.keys() == set(GROUPS)
    assert all(error.low < 1 < error.high for error in found.errors.values())


@pytest.mark.parametrize(("chip", "is_calibrated"), [("h100", True), ("h200", True), ("a100", True), ("l40s", True),
                                                     ("b200", False), ("mi300x", False)])  # fmt: skip
def test_a_chip_that_nobody_measured_is_not_calibrated(chip, is_calibrated):
    found = efficiency_of(chips()[chip])
    assert found.is_calibrated is is_calibrated
    assert is_calibrated or found.family == "gpus"


def test_the_range_of_a_chip_that_nobody_measured_is_the_widest():
    wide = shipped("gpus")[0].errors
    for name in ("ampere", "hopper", "ada"):
        for key, error in shipped(name)[0].errors.items():
            assert wide[key].low <= error.low
            assert wide[key].high >= error.high


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("step_ratio = 1.2", "step_ratio = 0", "'0' is no number"),
        ("step_ratio = 1.2", "", "step_ratio is missing"),
        ("step_ratio = 1.2", "step_ratio = 1.2\nlayer = 3", "layer: no such key"),
        ("[[scale]]", "[scale]", "tables [[scale]]"),
    ],
)
def test_what_is_off_of_a_tpu_is_one_line(file, old, new, said):
    assert old in SCALE
    with pytest.raises(InputError) as caught:
        read_efficiency(file(SCALE.replace(old, new, 1)))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[fit]]", "[[fot]]", "no [[fit]]"),
        ('name = "h100-own"', "", "name is missing"),
        ("matmul_efficiency = 0.5", "matmul_efficiency = 1.5", "between 1e-06 and 1"),
        ("matmul_efficiency = 0.5", "matmul_efficiency = 0", "between 1e-06 and 1"),
        ("matmul_efficiency = 0.5", "matmul_efficiency = nan", "matmul_efficiency: 'nan' is no number between"),
        ("matmul_efficiency = 0.5", 'matmul_efficiency = "half"', "'half' is no number"),
        ("matmul_efficiency = 0.5", "matmul_efficiency = true", "'True' is no number"),
        ("token_passes = 20", "token_passes = -1", "'-1' is no number between 0"),
        ("token_passes = 20", "token_passes = inf", "'inf' is no number"),
        ('layer = "50 us"', "layer = 50", "50 is no text"),
        ('layer = "50 us"', 'layer = "50"', "unit"),
        ('layer = "50 us"', 'layer = "50 s"', "below a second"),
        ('chips = ["h100"]', 'chips = ["h1000"]', "h1000"),
        ('chips = ["h100"]', 'chips = "h100"', "no list"),
        ("prefill_efficiency = { 8 = 0.5, 16 = 0.6 }", "prefill_efficiency = { 4 = 0.5 }", '"8" or "16"'),
        ('errors."prefill 1"', 'errors."prefill 3"', "must be tables decode 1, decode 1 large"),
        ("rows = 9, ", "", "must have rows, models"),
        ("rows = 9, ", "rows = -9, ", "'-9' is no number"),
        ("most_chips = 8", "most_chips = 2.5", "2.5 is no whole number"),
        ("low = 0.9", "low = 1.9", "low must be at most 1"),
        ("token_passes = 20", f"token_passes = 1{'0' * 400}", "no number between"),
        ("most_chips = 8", "most_chips = 8\nmost_chops = 8", "most_chops: no such key"),
        ("[[fit]]", "[[fit]", "no TOML"),
    ],
)
def test_what_is_off_is_one_line(file, old, new, said):
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        read_efficiency(file(GOOD.replace(old, new, 1)))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe[[fit]]", b"#" * 2_000_000, b"a = " + b"[" * 3000, b"a = " + b"9" * 5000]
)
def test_what_is_no_such_file_is_one_line(tmp_path, content):
    (tmp_path / "any.toml").write_bytes(content)
    with pytest.raises(InputError, match="--efficiency") as caught:
        read_efficiency(tmp_path / "any.toml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_device_is_read_no_further_than_a_file_is_long():
    with pytest.raises(InputError, match="--efficiency"):
        read_efficiency("/dev/zero")


def test_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError, match="--efficiency"):
            read_efficiency(path)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damage_is_refused_or_harmless(data, tmp_path_factory):
    lines = GOOD.strip().splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    value = data.draw(st.sampled_from(["", "1", "-1", '""', "[]", "{}", "[1]", "nan", "1e400", '"x"', "true", "0.5 ]"]))
    key = lines[at].split(" = ")[0]
    lines[at] = f"{key} = {value}" if value else ""
    path = tmp_path_factory.mktemp("damaged") / "mine.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        found = read_efficiency(path)
    except InputError:
        return
    assert 0 < found[0].matmul_efficiency <= 1
