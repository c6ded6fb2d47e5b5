"""What a TPU's compiler gives its own operations: cycles of the core, by what is read and by how many rows meet it.

The figures are the compiler's expectation and no measurement; nothing is fitted to one. Those of a cache's or a
matrix's elements are of the core's work on what lies in vector memory, without the transfer from HBM.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledOperations:
    """The operations of one generation of TPUs, for one set of dtypes. Cycles are those of one device.

    A matmul of [rows, K] and [K, N] takes `operation_cycles`, and for each of its K N elements what stands at its rows:
    at few rows the cycles in which elements get into the matrix unit, at many those of the FLOPs.

    Attributes:
        chip: name of the generation.
        versions: of the compiler.
        weights: dtype of the matrices that was compiled.
        compute: dtype that they are multiplied in.
        kv: dtype of the cache.
        operation_cycles: of a matmul, beside its elements. [cycles]
        rows: numbers of rows, rising. []
        element_cycles: of a matrix's element at each number of rows, never falling, and never rising faster than the
            rows. [cycles]
        kv_element_cycles: of a cache's element, in the scores or the weighted values. [cycles]
        score_cycles: of a score's softmax. [cycles]
        few_score_cycles: the same where fewer than 8 queries share a KV head, and fill no register. [cycles]
        softmax_cycles: of a layer's attention, beside its elements and scores. [cycles]
        write_cycles: of writing a layer's new tokens, whatever their number. [cycles]
        row_cycles: of a sequence's KV head: its softmax, and narrowing and writing its new token. [cycles]
        layer_cycles: of a layer's norms, residuals and rotary embedding, however small. [cycles]
        activation_cycles: of an element of the residual stream in them. [cycles]
        fetched_bytes: most of a layer's matrices that the compiler fetches to vector memory ahead of their use. [B]
        prefill_activation_cycles: of an element of the prompt's residual stream, in all that a layer does beside
            matmuls and attention. [cycles]
        prefill_score_cycles: of a score of a prompt, its products and its softmax. [cycles]
    """

    chip: str
    versions: str
    weights: str
    compute: str
    kv: str
    operation_cycles: float
    rows: tuple[float, ...]
    element_cycles: tuple[float, ...]
    kv_element_cycles: float
    score_cycles: float
    few_score_cycles: float
    softmax_cycles: float
    write_cycles: float
    row_cycles: float
    layer_cycles: float
    activation_cycles: float
    fetched_bytes: float
    prefill_activation_cycles: float
    prefill_score_cycles: float

    def __post_init__(self) -> None:
        """Hold what makes times rise with the rows, and with the elements that they are spread over."""
        points = list(zip(self.rows, self.element_cycles, strict=True))
        for (rows, cycles), (more_rows, more_cycles) in pairwise(points):
            assert rows < more_rows, f"{self.chip}: rows {rows:g}, {more_rows:g}: must rise"
            assert cycles <= more_cycles, f"{self.chip}: cycles fall from {cycles:g} to {more_cycles:g}"
            most = cycles * more_rows / rows
            assert more_cycles <= most * (1 + _ROUNDED), (
                f"{self.chip}: cycles rise faster than rows, to {more_cycles:g}"
            )

    @property
    def last_row_cycles(self) -> float:
        """Cycles of an element and row at the most rows that were compiled, and beyond. [cycles]"""
        return self.element_cycles[-1] / self.rows[-1]

    def __str__(self) -> str:
        return (
            f"{self.chip}: {self.weights} weights, {self.compute} FLOPs, {self.kv} cache, by XLA:TPU of {self.versions}"
        )


_ROUNDED = 0.01
"""A table's figures have three digits."""
