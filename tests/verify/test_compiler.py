"""Compiling and reading: what becomes of errors, and how what is alike is counted."""

from types import SimpleNamespace

import pytest

from slicewise.errors import InputError

pytest.importorskip("jax")

import jax

from slicewise.verify.compiler import _axis, compile_and_read
from slicewise.verify.hlo_collectives import Collective


def program_that_fails(message: str) -> SimpleNamespace:
    def lower() -> None:
        raise jax.errors.JaxRuntimeError(message)

    return SimpleNamespace(name="decode", lower=lower)


def test_a_program_that_is_too_large_is_a_reading_without_a_text() -> None:
    message = "RESOURCE_EXHAUSTED: memory required (16.98G) exceeds available HBM (15.75G).\nand so on"
    reading, text = compile_and_read(program_that_fails(message), "loop", "XLA:TPU")
    assert text == ""
    assert (reading.fits, reading.total_bytes, reading.form, reading.compiler) == (False, 0.0, "loop", "XLA:TPU")
    assert reading.refusal is not None
    assert reading.refusal.message == message.splitlines()[0]


def test_another_failure_is_one_line_and_no_verdict() -> None:
    message = f"INTERNAL: {'a long story ' * 100}\nand so on"
    with pytest.raises(InputError, match=r"^the compiler gave up on decode ") as caught:
        compile_and_read(program_that_fails(message), "loop", "XLA:TPU")
    assert "no verdict on the plan" in str(caught.value)
    assert "and so on" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("mesh", "group", "expected"),
    [
        ({"y": 8, "z": 1}, range(8), "y"),
        ({"y": 1, "z": 8}, range(8), "z"),
        ({"y": 4, "z": 2}, range(8), "y × z"),
        ({"y": 4, "z": 2}, [2, 3], "z"),
        ({"y": 4, "z": 2}, [1, 3, 5, 7], "y"),
        ({"y": 4, "z": 4}, [4, 5, 6, 7], "z"),
        ({"y": 4, "z": 4}, [3, 7, 11, 15], "y"),
        ({"y": 4, "z": 4}, [15, 3, 11, 7], "y"),
    ],
)
def test_the_axis_of_a_group(mesh: dict[str, int], group: list[int], expected: str) -> None:
    found = Collective(
        kind="all-reduce",
        dtype="bf16",
        shape=(8, 128),
        n_bytes=2048,
        group_size=len(group),
        groups=(tuple(group),),
        times=1,
        op_name="",
    )
    assert _axis(found, mesh) == expected
