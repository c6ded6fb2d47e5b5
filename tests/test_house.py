"""The house: exports, unit constants in one file, what start-up loads, and the package's own word on itself."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import slicewise
from slicewise.derive import Formula
from slicewise.units import unit_of

SOURCE = Path(slicewise.__file__).parent
SCALE = re.compile(r"(?<![\w.])(1e-?(3|6|9|12|15)|2\*\*(20|30|40)|1_?000_?000)(?![\w.])|[/*] 1000\b")


@pytest.mark.parametrize("name", [name for name in slicewise.__all__ if not name.startswith("__")])
def test_every_export_is_there_and_documented(name: str) -> None:
    assert getattr(slicewise, name).__doc__


def test_versions_agree() -> None:
    assert slicewise.__version__ == version("slicewise")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = slicewise.nothing


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_units_scales_numbers(path: Path) -> None:
    if path.name == "units.py":
        return
    code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = [line for line in code.splitlines() if SCALE.search(line.split("#")[0])]
    assert not found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


def test_start_up_of_plan_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom slicewise.cli.main import main\ntry:\n    main(['plan', 'llama-3-70b'])\nexcept SystemExit:\n"
        "    pass\nheavy = ('pydantic', 'vl_convert', 'jax', 'fastapi', 'numpy.ma')\n"
        "print(','.join(name for name in heavy if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


def formulas() -> list:
    modules = sorted(path.stem for path in (SOURCE / "costs").glob("*.py") if path.stem not in ("__init__", "real"))
    return [
        pytest.param(function, id=f"{module}.{name}")
        for module in modules
        for name, function in vars(import_module(f"slicewise.costs.{module}")).items()
        if callable(function) and getattr(function, "__module__", "") == f"slicewise.costs.{module}"
    ]


@pytest.mark.parametrize("function", formulas())
def test_every_formula_says_its_unit_and_its_name_agrees(function) -> None:
    first = function.__doc__.split("\n")[0]
    assert re.search(r"\. \[[^\]]*\]$", first), first
    formula = Formula(function.__name__, function)
    # How a formula counts follows the unit in its name.
    name = re.sub("_(neglected|book|as_stored|beside_reserve)$", "", function.__name__)
    assert unit_of(name) == formula.unit
