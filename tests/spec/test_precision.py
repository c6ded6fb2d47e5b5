"""Number formats: their bytes, and the narrower ones on offer."""

import pytest

from slicewise.spec.precision import BYTES_PER_ELEMENT, NARROWER, Precision


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("fp32", 32), ("bf16", 16), ("fp16", 16), ("int8", 8), ("fp8", 8), ("int4", 4), ("fp4", 4)],
)
def test_a_dtype_weighs_its_bits(dtype: str, bits: int) -> None:
    assert BYTES_PER_ELEMENT[dtype] * 8 == bits


def test_narrower_is_narrower() -> None:
    for dtype, others in NARROWER.items():
        sizes = [BYTES_PER_ELEMENT[name] for name in (dtype, *others)]
        assert sizes == sorted(set(sizes), reverse=True)


def test_a_precision_reads_as_a_phrase() -> None:
    assert str(Precision(weights="int8")) == "int8 weights, bf16 cache, bf16 FLOPs"
