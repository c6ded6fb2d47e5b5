"""Parameters and their bytes. Counts every declared tensor; scales and padding are not counted."""

from __future__ import annotations

from slicewise.costs.real import Real
from slicewise.spec.tensors import MATMUL_ROLES, Tensor


def n_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters P: the elements of every stored tensor. []"""
    return sum(tensor.size for tensor in weight_tensors if tensor.stored)


def matmul_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters that each cost a multiply and an add a token: all but the input embedding, norms and biases. []"""
    return sum(tensor.size for tensor in weight_tensors if tensor.role in MATMUL_ROLES)


def head_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters of the LM head, which prefill needs for the last token only. []"""
    return sum(tensor.size for tensor in weight_tensors if tensor.role == "head")


def weight_bytes(n_params: Real, weight_bytes_per_param: Real) -> Real:
    """Bytes of all weights. [B]

    Neglects: scales of quantised weights; padding of small dimensions.
    """
    return n_params * weight_bytes_per_param


def weight_bytes_per_chip(weight_bytes: Real, n_chips: Real) -> Real:
    """Bytes of weights on each chip, sharded over the whole slice. [B]"""
    return weight_bytes / n_chips
