"""Workloads and limits are data, and nothing is limited unasked."""

from slicewise.spec.workload import Limits


def test_nothing_is_limited_unasked() -> None:
    assert Limits().tpot_s is Limits().ttft_s is None
