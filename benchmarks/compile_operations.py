"""Makes the tables of compiled operations, `catalog/data/efficiency/*.toml`, with the TPU's compiler and no TPU.

Each point of the grid is a small program (see `_operations.py`); its cycles are kept in a folder, so that a run that is
broken off goes on where it was. `_fits.py` makes a table's few numbers of them. Needs the extra `verify`.

Run: python benchmarks/compile_operations.py [CHIP ...]          compile what is missing, and write the tables
     python benchmarks/compile_operations.py --check [CHIP ...]  compile a handful of points again, and compare
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from slicewise.verify.toolchain import QUIET

# jax reads the environment when it is loaded.
os.environ.update({"JAX_PLATFORMS": "cpu", **{name: value for name, value in QUIET.items() if name not in os.environ}})

from _fits import matmul_table, table_of
from _operations import CORES, ONE_CHIP, Attention, Decode, Matmul, Point, Prefill, read

TABLES = Path(__file__).parents[1] / "src/slicewise/catalog/data/efficiency"
KEPT = Path(os.environ.get("SLICEWISE_CACHE", Path.home() / ".cache/slicewise")) / "operations"
CHECKED = (Matmul(8, "bf16", "bf16"), Matmul(8, "int8", "bf16"), Matmul(512, "int8", "int8"))
"""The ends of a table are as the compiler gave them; what lies between may have been raised to rise evenly."""
SAME = 0.02
"""Cycles that differ by less are the same: a table keeps three digits."""
VERSIONS = f"libtpu {version('libtpu')}, jax {version('jax')}"

ROWS = (8, 32, 64, 128, 256, 512)
MORE_ROWS = {"tpu7x": (2048,)}
"""Where an element and row still take less at more rows."""
PAIRS = (("bf16", "bf16"), ("int8", "bf16"), ("int4", "bf16"), ("int8", "int8"))
FP8_PAIRS = (("fp8", "bf16"), ("fp8", "fp8"))
FP8_CHIPS = ("v5p", "v6e", "tpu7x")
CACHE_DTYPES = ("bf16", "int8", "int4")
CACHE_SHAPES = (
    (16, 1, 8, 1024, 128),
    (16, 1, 8, 4096, 128),
    (32, 1, 8, 4096, 128),
    (64, 1, 8, 512, 128),
    (4, 4, 4, 1024, 128),
    (8, 2, 16, 1024, 128),
)
DECODES = (
    (8, 4096, 2048, 8, 2, 1024),
    (32, 4096, 2048, 8, 2, 1024),
    (128, 4096, 2048, 8, 2, 512),
    (32, 8192, 1792, 8, 1, 2048),
    (128, 8192, 1792, 8, 1, 1024),
    (16, 8192, 1792, 16, 2, 4096),
    (32, 2048, 2048, 8, 2, 2048),
    (64, 4096, 3584, 8, 2, 4096),
    (16, 8192, 7168, 8, 1, 8192),
)
PREFILLS = (
    (1024, 4096, 2048, 8, 2),
    (1024, 8192, 3584, 8, 1),
    (2048, 8192, 3584, 8, 1),
)


def points(chip: str) -> list[Point]:
    """The grid of a chip."""
    narrow = chip in FP8_CHIPS
    pairs = (*PAIRS, *(FP8_PAIRS if narrow else ()))
    caches = (*CACHE_DTYPES, *(("fp8",) if narrow else ()))
    return [
        *(Matmul(rows, *pair) for pair, rows in product(pairs, (*ROWS, *MORE_ROWS.get(chip, ())))),
        *(Attention(*shape, dtype) for dtype, shape in product(caches, CACHE_SHAPES)),
        *(Decode(*shape, dtype) for dtype, shape in product(("bf16", "int8"), DECODES)),
        *(Prefill(*shape) for shape in PREFILLS),
    ]


def reading(chip: str, point: Point, said: str, *, fresh: bool = False) -> Any:
    """What the compiler says of a point, now or before; None where it makes no program of it."""
    name = "-".join(map(str, (chip, type(point).__name__.lower(), *point)))
    place = KEPT / VERSIONS.replace(", ", "-").replace(" ", "-") / f"{name}.json"
    if place.exists() and not fresh:
        return json.loads(place.read_text(encoding="utf-8"))
    start = time.monotonic()
    try:
        found = read(chip, point)
    except Exception as error:  # a compiler fails as it likes, and its other points are wanted
        print(f"{said} {name}: {str(error).splitlines()[0][:120]}", file=sys.stderr, flush=True)
        found = None
    else:
        print(f"{said} {name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    if not fresh:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found), encoding="utf-8")
    return found


def readings(chip: str) -> dict[Point, Any]:
    """What the compiler says of a chip's grid."""
    grid = points(chip)
    found = {point: reading(chip, point, f"{at}/{len(grid)}") for at, point in enumerate(grid, start=1)}
    return {point: said for point, said in found.items() if said}


def table_text(chip: str, found: dict[Point, Any]) -> str:
    """A chip's table as TOML, and what it is off by where it was read."""
    table, off = table_of(found)
    parts = [
        f"{name}: {statistics.median(map(abs, each)):.1%} in the median, {max(map(abs, each)):.1%} at worst"
        for name, each in off.items()
    ]
    day = datetime.now(UTC).date().isoformat()
    lines = [
        f"# Cycles that XLA:TPU expects of operations on {chip}, on one device. Written by",
        f"# benchmarks/compile_operations.py on {day} from {len(found)} compiled programs: do not edit.",
        "# What the numbers mean is said in spec/compiled.py. Nothing is fitted to measurements.",
        "# What they are off by from the compiler's cycles that they were made of:",
        *(f"#   {part}" for part in parts),
        "",
        f'versions = "{VERSIONS}"',
        f'date = "{day}"',
        *([f"devices_per_chip = {CORES[chip]}"] if chip in CORES else []),
    ]
    for name, values in table.items():
        plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
        if plain:
            lines += ["", f"[{name}]", *(f"{key} = {value}" for key, value in plain.items())]
        for key, value in values.items():
            if isinstance(value, dict):
                lines += ["", f"[{name}.{key}]", *(f"{inner} = {each}" for inner, each in value.items())]
    return "\n".join(lines) + "\n"


def check(chip: str) -> bool:
    """Compile a handful of points again; whether the compiler still says what the shipped table was made of."""
    place = TABLES / f"{chip}.toml"
    shipped = tomllib.loads(place.read_text(encoding="utf-8"))
    element_cycles, rows = shipped["matmul"]["element_cycles"], shipped["matmul"]["rows"]
    good = True
    for point in CHECKED:
        found = matmul_table({point: reading(chip, point, "check", fresh=True)}, shipped["matmul"]["operation_cycles"])
        now = found[f"{point.weights}-{point.compute}"][point.rows]
        then = element_cycles[f"{point.weights}-{point.compute}"][rows.index(point.rows)]
        good = good and abs(now / then - 1) < SAME
        print(f"{chip} {point}: {then:.3g} cycles an element in the table, {now:.3g} by {VERSIONS}")
    return good


def main() -> None:
    """Make the tables, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chips", nargs="*", metavar="CHIP", help=f"of {', '.join(ONE_CHIP)}; all where none is given")
    parser.add_argument("--check", action="store_true", help="compile a handful of points again, and compare")
    words = parser.parse_args()
    chips = words.chips or list(ONE_CHIP)
    if words.check:
        differ = [chip for chip in chips if not check(chip)]
        sys.exit(
            f"the compiler says otherwise than the tables of {', '.join(differ)}: write them anew" if differ else 0
        )
    TABLES.mkdir(exist_ok=True)
    for chip in chips:
        text = table_text(chip, readings(chip))
        (TABLES / f"{chip}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
