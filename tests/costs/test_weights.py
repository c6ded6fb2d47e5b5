"""Weights: bytes by dtype."""

import pytest

from slicewise.catalog.load import load_model
from slicewise.costs.weights import n_params, weight_bytes, weight_bytes_per_chip
from slicewise.spec.tensors import weight_tensors


# Question 0.5 of chapter 8 for the round 70e9: 140, 70 and 35 GB.
@pytest.mark.parametrize(("width", "n_bytes"), [(2.0, 140e9), (1.0, 70e9), (0.5, 35e9)])
def test_bytes_of_70e9_parameters(width: float, n_bytes: float) -> None:
    assert weight_bytes(70e9, width) == n_bytes


def test_bytes_of_70b_as_engines_log_them() -> None:
    # 131.417 GiB: https://github.com/llm-d/llm-d-benchmark/issues/381
    exact = weight_bytes(n_params(weight_tensors(load_model("llama-3-70b"))), 2.0)
    assert exact / 2**30 == pytest.approx(131.417, rel=1e-5)
    assert exact / 1e9 == pytest.approx(141.107, rel=1e-5)


def test_405b_over_64_chips() -> None:
    # 11.81 GiB a chip: https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1467
    exact = weight_bytes(n_params(weight_tensors(load_model("llama-3-405b"))), 2.0)
    assert weight_bytes_per_chip(exact, 64) / 2**30 == pytest.approx(11.81, rel=1e-3)
