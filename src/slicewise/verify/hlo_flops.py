"""The FLOPs of a compiled program's matrix multiplications, which XLA:TPU writes as convolutions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

from slicewise.verify.hlo import Module, labels
from slicewise.verify.hlo_text import Computation, Instruction, arrays

_CONTRACTED = re.compile(r"\blhs_contracting_dims=\{([\d,]*)\}")
_DIM_LABELS = re.compile(r"\bdim_labels=([\w?]+)_([\w?]+)->([\w?]+)")
_WINDOW = re.compile(r"\bwindow=\{([^}]*)\}")
_FEATURE_GROUPS = re.compile(r"\bfeature_group_count=(\d+)")
_BATCH_GROUPS = re.compile(r"\bbatch_group_count=(\d+)")
_MATMUL = re.compile(r'\bcustom_call_target="[^"]*(?:matmul|gemm)[^"]*"', re.IGNORECASE)


def flops(module: Module, scope: Callable[[str], str]) -> dict[str, float]:
    """FLOPs that one device spends on dots and convolutions, over all executions, by label. [FLOP]

    Args:
        module: the program.
        scope: gives the label of an op_name, and "other" where it has none.
    """
    label = labels(module, scope)
    total: dict[str, float] = {}
    for name, times in module.times.items():
        computation = module.computations[name]
        for instruction in computation.instructions.values():
            spent = instruction_flops(computation, instruction)
            if spent:
                where = label[name][instruction.name]
                total[where] = total.get(where, 0.0) + float(spent * times)
    return total


def instruction_flops(computation: Computation, instruction: Instruction) -> int:
    """FLOPs of one execution of a dot, in any of the forms that XLA gives it; 0 for all else. [FLOP]

    The forms: a dot, a convolution, the reduction of a product where one side of a dot is a vector, and the call of a
    library.
    """
    if instruction.opcode == "dot":
        return _dot(computation, instruction)
    if instruction.opcode == "convolution":
        return _convolution(computation, instruction)
    if instruction.opcode == "reduce" and instruction.op_name.endswith("/dot_general"):
        return _vector_product(computation, instruction)
    if instruction.opcode == "custom-call" and _MATMUL.search(instruction.attributes):
        return _library_call(computation, instruction)
    return 0


def _dims(computation: Computation, instruction: Instruction) -> tuple[tuple[int, ...], ...]:
    """Dimensions of the first two operands and of the result."""
    shapes = [computation.instructions[name].shape for name in instruction.operands[:2]]
    return tuple(arrays(shape)[0].dims for shape in (*shapes, instruction.shape))


def _dot(computation: Computation, instruction: Instruction) -> int:
    left, _, out = _dims(computation, instruction)
    contracted = _CONTRACTED.search(instruction.attributes)
    dims = [int(dim) for dim in contracted[1].split(",") if dim] if contracted else []
    return 2 * math.prod(out) * math.prod(left[dim] for dim in dims)


def _vector_product(computation: Computation, instruction: Instruction) -> int:
    """A multiply and an add for each element of the product that is reduced."""
    made = computation.instructions[instruction.operands[0]]
    return 2 * math.prod(arrays(made.shape)[0].dims) if made.opcode == "multiply" else 0


def _library_call(computation: Computation, instruction: Instruction) -> int:
    """2 B M K N of a batched matmul, whichever operands are transposed: B M K times B K N is B M N times B K^2."""
    left, right, out = _dims(computation, instruction)
    squared = math.prod(left) * math.prod(right) // max(1, math.prod(out) * math.prod(out[:-2]))
    return 2 * math.prod(out) * math.isqrt(squared)


def _convolution(computation: Computation, instruction: Instruction) -> int:
    """2 per product of an element of the input and one of the kernel, without those that meet padding or gaps.

    A batch dimension of a dot becomes a spatial one with a kernel of the same size, so strided and dilated that each
    position of the output meets one position of the kernel.
    """
    found = _DIM_LABELS.search(instruction.attributes)
    if not found:
        return 0
    left, kernel, out = (
        dict(zip(names, dims, strict=False))
        for names, dims in zip(found.groups(), _dims(computation, instruction), strict=True)
    )
    window = _window(instruction.attributes)
    products: int = left["f"] // _groups(_FEATURE_GROUPS, instruction) * out["f"]
    products *= left["b"] // _groups(_BATCH_GROUPS, instruction)
    for spatial in filter(str.isdigit, kernel):
        at = int(spatial)
        products *= _meetings(
            left[spatial],
            kernel[spatial],
            out[spatial],
            int(window["stride"][at]) if "stride" in window else 1,
            int(window["pad"][at].split("_")[0]) if "pad" in window else 0,
            int(window["lhs_dilate"][at]) if "lhs_dilate" in window else 1,
            int(window["rhs_dilate"][at]) if "rhs_dilate" in window else 1,
        )
    return 2 * products


def _groups(pattern: re.Pattern[str], instruction: Instruction) -> int:
    found = pattern.search(instruction.attributes)
    return int(found[1]) if found else 1


def _window(attributes: str) -> dict[str, list[str]]:
    """Values of a window by name, one for each spatial dimension."""
    found = _WINDOW.search(attributes)
    pairs = (part.partition("=") for part in found[1].split()) if found else ()
    return {name: values.split("x") for name, _, values in pairs}


@lru_cache(maxsize=1 << 12)
def _meetings(left: int, kernel: int, out: int, stride: int, low: int, left_step: int, kernel_step: int) -> int:
    """Pairs of a position of the output and one of the kernel that meet an element along one spatial dimension.

    Position o of the output and k of the kernel look at o stride + k kernel_step - low of the input, whose elements lie
    left_step apart.
    """
    shared = math.gcd(stride, left_step)
    period = left_step // shared
    count = 0
    for at in range(kernel):
        offset = at * kernel_step - low
        if offset % shared:
            continue
        phase = -offset // shared * pow(stride // shared, -1, period) % period
        first = max(0, -(offset // stride))
        last = min(out - 1, ((left - 1) * left_step - offset) // stride)
        if last >= first:
            count += (last - phase) // period - (first - 1 - phase) // period
    return count
