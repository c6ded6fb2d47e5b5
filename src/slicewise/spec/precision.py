"""Number formats and what they weigh."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_PER_ELEMENT: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "int8": 1.0,
    "fp8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
}
"""Bytes of one element by dtype, without scales; nvfp4 and mxfp4 with that of their 16 or 32 neighbours. [B]"""

DTYPE_ALIASES: dict[str, str] = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "f32": "fp32",
    "float32": "fp32",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}
"""Names that engines have for them."""

ACTIVATION_BYTES_PER_ELEMENT = 2.0
"""Activations travel and are kept in 16 bits, whatever the weights are. [B]"""

NARROWER: dict[str, tuple[str, ...]] = {
    "fp32": ("bf16", "int8", "int4"),
    "bf16": ("int8", "int4"),
    "fp16": ("int8", "int4"),
    "int8": ("int4",),
    "fp8": ("int4",),
}
"""What a what-if offers in place of each dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The dtypes of a deployment: stored weights, stored KV cache, and the matmuls' arithmetic.

    Attributes:
        as_stored: the weights are those of a quantised checkpoint, matrix by matrix; `weights` is the dtype of most.
    """

    weights: str = "bf16"
    kv: str = "bf16"
    compute: str = "bf16"
    as_stored: bool = False

    def __str__(self) -> str:
        stored = " as stored" if self.as_stored else ""
        return f"{self.weights} weights{stored}, {self.kv} cache, {self.compute} FLOPs"
