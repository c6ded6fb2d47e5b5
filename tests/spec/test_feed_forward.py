"""Feed-forwards: sizes and places of dense ones, of experts, and of one matrix in their place."""

import pytest

from slicewise.errors import InputError
from slicewise.spec.arrays import Tensor
from slicewise.spec.feed_forward import FeedForward, dense, experts, linear_map

EXPERTS = {"d_model": 64, "d_ff": 32, "n_experts": 8, "n_active": 2}


def size(forward: FeedForward) -> int:
    return sum(tensor.size for tensor in forward.weights)


def named(forward: FeedForward) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in forward.weights}


@pytest.mark.parametrize(
    ("words", "n_params"),
    [
        ({}, 3 * 64 * 32),
        ({"gated": False}, 2 * 64 * 32),
        ({"bias": True}, 3 * 64 * 32 + 2 * 32 + 64),
        ({"gated": False, "bias": True}, 2 * 64 * 32 + 32 + 64),
    ],
)
def test_a_dense_mlp_is_counted(words: dict[str, bool], n_params: int) -> None:
    assert size(dense(d_model=64, d_ff=32, **words)) == n_params


def test_matrices_are_where_they_are_said_to_be() -> None:
    plain = named(dense(d_model=64, d_ff=32, module="", places={"up": "fc1"}))
    assert [plain[name].module for name in ("w_gate", "w_up", "w_down")] == ["gate_proj", "fc1", "down_proj"]
    mixed = named(experts(**EXPERTS, shared_d_ff=16, module="", router_module="router.proj", shared_module="mlp"))
    assert mixed["router"].module == "router.proj"
    assert mixed["expert_up"].module == "experts.{expert}.up_proj"
    assert mixed["shared_down"].module == "mlp.down_proj"


def test_one_matrix_in_the_place_of_an_mlp() -> None:
    forward = linear_map(d_model=64, module="mlp.linear_mlp")
    assert (size(forward), forward.kind, forward.weights[0].module) == (64**2, "linear map", "mlp.linear_mlp")
    assert size(linear_map(d_model=64, bias=True)) == 64**2 + 64


def test_a_token_passes_through_some_experts_and_all_shared_ones() -> None:
    forward = experts(**EXPERTS, shared_d_ff=16)
    assert forward.active_d_ff == 2 * 32 + 16
    active = sum(tensor.active_size for tensor in forward.weights)
    assert active == 64 * 8 + 2 * 3 * 64 * 32 + 3 * 64 * 16


@pytest.mark.parametrize("change", [{"n_active": 9}, {"n_active": 0}, {"d_ff": 0}])
def test_sizes_that_make_no_experts_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError):
        experts(**{**EXPERTS, **change})
