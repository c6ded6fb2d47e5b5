"""What the TPU compiler says of a program that is too large, in each of the forms that it has."""

import pytest

from slicewise.verify.refusals import refusal

GIB = 2**30
BEFORE = "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries"
OLDER = "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm."
BREAKDOWN = """
Total hbm usage >= 17.34G:
    reserved        258.00M
    program          16.08G
    arguments         1.01G
"""


@pytest.mark.parametrize(
    ("message", "needed", "available"),
    [
        (f"{BEFORE} (26.56G) exceeds available HBM (15.75G).", 26.56 * GIB, 15.75 * GIB),
        (f"{BEFORE} (2.14T) exceeds available HBM (95.74G).", 2.14 * 2**40, 95.74 * GIB),
        (f"{BEFORE} (16.1G) exceeds available HBM (512.5M).", 16.1 * GIB, 512.5 * 2**20),
        (f"{BEFORE} (900.0K) exceeds available HBM (1024).", 900 * 2**10, 1024),
        (f"{OLDER} Used 17.34G of 15.75G hbm. Exceeded hbm capacity by 1.59G.{BREAKDOWN}", 17.34 * GIB, 15.75 * GIB),
    ],
)
def test_needed_and_available_bytes_are_read(message: str, needed: float, available: float) -> None:
    found = refusal(message)
    assert found is not None
    assert found.needed_bytes == pytest.approx(needed)
    assert found.available_bytes == pytest.approx(available)
    assert found.message == message.splitlines()[0]


@pytest.mark.parametrize(
    "message",
    [
        "RESOURCE_EXHAUSTED: Attempting to allocate more than there is.",
        f"{OLDER}\n{BREAKDOWN}",
        f"\n  {BEFORE} (a lot) exceeds available HBM (15.75G).",
    ],
)
def test_a_refusal_in_other_words_is_one_without_bytes(message: str) -> None:
    found = refusal(message)
    assert found is not None
    assert (found.needed_bytes, found.available_bytes) == (None, None)
    assert found.message.startswith("RESOURCE_EXHAUSTED")
    assert "\n" not in found.message


@pytest.mark.parametrize(
    "message",
    ["", "INTERNAL: Mosaic failed to compile TPU kernel", "UNIMPLEMENTED: (26.56G) exceeds available HBM (15.75G)."],
)
def test_other_errors_are_no_verdict(message: str) -> None:
    assert refusal(message) is None
