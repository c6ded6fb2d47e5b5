"""Published measurements, where they lie beside the project."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / ".." / "shared" / "data" / "measured.csv"


@pytest.fixture(scope="session")
def published():
    """The script's reader of the table; skips where the table is absent."""
    if not MEASURED.is_file():
        pytest.skip("../shared/data/measured.csv is not there")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    return import_module("_published")


@pytest.fixture(scope="session")
def shared_points(published):
    """Every usable published measurement with a controlled batch on GPUs."""
    return published.points(MEASURED)[0]


@pytest.fixture(scope="session")
def published_path(published):
    """Where the table is."""
    del published  # skips where it is absent
    return MEASURED
