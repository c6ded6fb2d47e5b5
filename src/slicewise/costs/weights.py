"""Parameters and their bytes. Counts every declared tensor; padding is not counted."""

from __future__ import annotations

from slicewise.costs.real import Real
from slicewise.spec.arrays import MATMUL_ROLES, Tensor
from slicewise.spec.stored import StoredTensor


def n_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters P: the elements of every stored tensor. []"""
    return sum(tensor.size for tensor in weight_tensors if tensor.stored)


def n_active_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters that one token uses: all but the experts that it is not sent to. []"""
    return sum(tensor.active_size for tensor in weight_tensors if tensor.stored)


def matmul_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters that each cost a multiply and an add a token: all but the input embedding, norms and biases. []

    Of a mixture's experts, those that a token is sent to.
    """
    return sum(tensor.active_size for tensor in weight_tensors if tensor.role in MATMUL_ROLES)


def head_params(weight_tensors: tuple[Tensor, ...]) -> int:
    """Parameters of the LM head, which prefill needs for the last token only. []"""
    return sum(tensor.size for tensor in weight_tensors if tensor.role == "head")


def weight_bytes(n_params: Real, weight_bytes_per_param: Real) -> Real:
    """Bytes of all weights. [B]

    Neglects: scales of quantised weights; padding of small dimensions.
    """
    return n_params * weight_bytes_per_param


def weight_bytes_as_stored(stored_weights: tuple[StoredTensor, ...]) -> float:
    """Bytes of all weights as the checkpoint stores them, scales and zero points included. [B]"""
    return sum(weight.n_bytes for weight in stored_weights)


def weight_bytes_per_chip(weight_bytes: Real, n_chips: Real) -> Real:
    """Bytes of weights on each chip, sharded over the whole slice. [B]"""
    return weight_bytes / n_chips
