"""Tables of compiled operations: all of them load, in every dtype, and the compiler still says what they say."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from slicewise.catalog.efficiency_compiled import compiled_inputs, compiled_operations, compiled_table
from slicewise.catalog.load import chips, find_chip
from slicewise.errors import CatalogError
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "src/slicewise/catalog/data/efficiency"
TPUS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
PRECISIONS = [
    Precision(weights=weights, kv=kv, compute=compute)
    for weights in BYTES_PER_ELEMENT
    for kv in BYTES_PER_ELEMENT
    for compute in ("bf16", "int8", "fp8", "fp32")
]


@pytest.mark.parametrize("name", TPUS)
def test_every_table_serves_every_precision(name: str) -> None:
    for precision in PRECISIONS:
        found = compiled_operations(name, precision)
        assert found is not None
        assert found.chip == name
        assert found.rows == tuple(sorted(found.rows))
        assert 0 < found.element_cycles[0] <= found.element_cycles[-1] < 1
        assert 0 < found.kv_element_cycles < 0.1


@pytest.mark.parametrize("name", TPUS)
def test_tables_are_small_and_say_how_they_were_made(name: str) -> None:
    lines = (TABLES / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150
    assert "benchmarks/compile_operations.py" in "\n".join(lines[:5])
    table = compiled_table(name)
    assert table is not None
    assert table["versions"].startswith("libtpu ")


@pytest.mark.parametrize("name", TPUS)
def test_narrower_weights_are_compiled_with_narrower_weights(name: str) -> None:
    def picked(**dtypes: str) -> tuple[str, str, str]:
        found = compiled_operations(name, Precision(**dtypes))
        assert found is not None
        return found.weights, found.compute, found.kv

    assert picked() == ("bf16", "bf16", "bf16")
    assert picked(weights="int8", kv="int8") == ("int8", "bf16", "int8")
    assert picked(weights="int8", kv="int8", compute="int8") == ("int8", "int8", "int8")
    assert picked(weights="nvfp4", compute="fp16") == ("int4", "bf16", "bf16")
    assert picked(weights="fp32", compute="fp32", kv="fp32") == ("bf16", "bf16", "bf16")


# FLOPs of all matrix units a cycle: MXUs x rows x columns x 2, of a device.
@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("v4", 4 * 128**2 * 2),
        ("v5e", 4 * 128**2 * 2),
        ("v5p", 8 * 128**2 * 2),
        ("v6e", 4 * 256**2 * 2),
        ("tpu7x", 4 * 256**2 * 2),
    ],
)
def test_many_rows_come_near_the_peak_and_never_above_it(name: str, flops: float) -> None:
    found = compiled_operations(name, Precision())
    assert found is not None
    assert 0.75 < 2 / found.last_row_cycles / flops < 1.01


def test_chips_without_a_table_have_no_inputs() -> None:
    assert compiled_inputs(find_chip("h100"), Precision()) is None
    assert compiled_inputs(replace(find_chip("v4"), clock_hz=None), Precision()) is None
    # Fitted efficiencies lie in the same folder, and are no table of compiled operations.
    assert compiled_table("hopper") is None


def test_inputs_are_those_of_the_formulas() -> None:
    found = compiled_inputs(chips()["v5e"], Precision(weights="int8", kv="int8"))
    assert found is not None
    assert set(found) == {"compiled", "clock_hz", "devices_per_chip"}
    assert (found["clock_hz"], found["devices_per_chip"]) == (1.5e9, 1)
    assert str(found["compiled"]).startswith("v5e: int8 weights, bf16 FLOPs, int8 cache, by XLA:TPU of libtpu")


def test_v4_is_compiled_as_two_devices_that_have_all_flops_of_a_chip() -> None:
    """Its chip is one device to programs, and two to its compiler."""
    v4 = find_chip("v4")
    found = compiled_inputs(v4, Precision())
    assert found is not None
    assert (v4.devices_per_chip, found["devices_per_chip"]) == (1, 2)
    assert found["clock_hz"] * found["devices_per_chip"] * 4 * 128**2 * 2 == pytest.approx(
        v4.flops_per_s["bf16"], rel=0.01
    )


def test_a_table_whose_figures_fall_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = compiled_table("v5e")
    assert table is not None
    broken = {**table, "matmul": {**table["matmul"], "element_cycles": {"bf16-bf16": [2.0, 1.0, 1.0, 1.0, 1.0, 1.0]}}}
    monkeypatch.setattr("slicewise.catalog.efficiency_compiled.compiled_table", lambda _: broken)
    with pytest.raises(CatalogError, match=r"efficiency/broken\.toml: broken: cycles fall from 2 to 1"):
        compiled_operations("broken", Precision())


@pytest.mark.xla
@pytest.mark.skipif(find_spec("libtpu") is None or find_spec("jax") is None, reason="libtpu is not installed")
def test_the_compiler_still_says_what_the_table_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/compile_operations.py", "--check", "v5e"],
        capture_output=True,
        text=True,
        env={**os.environ, "SLICEWISE_CACHE": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.count("cycles an element in the table") == 3
