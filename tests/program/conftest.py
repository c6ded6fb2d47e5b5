"""Shared by the tests of `program`: each compiles a program or two, and runs it for milliseconds."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="module")
def _hardly_optimised() -> Iterator[None]:
    """Halves the time that XLA takes."""
    if find_spec("jax") is None:
        yield
        return
    import jax  # noqa: PLC0415 - an extra

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
