"""Shares of ranks: the fullest chip stands for all, and groups gather what is theirs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs import decode, layered_cache, limits, ranks, weights
from slicewise.spec.ranks import HeldTensor, Ranks, rank_weights, rope_table_bytes
from slicewise.spec.stored import as_checkpoint, uniform
from slicewise.spec.tensors import caches
from slicewise.units import GB, GIB


def held(name: str, layout: Ranks, stage: int = 0, *, stored: bool = False) -> tuple[HeldTensor, ...]:
    model = load_model(name)
    return rank_weights(as_checkpoint(model) if stored else uniform(model, "bf16"), model, layout, stage)


def test_a_chip_holds_its_shares_and_a_rotary_table() -> None:
    # vLLM logs 32.89 GiB of Llama-3.1-70B on each of four chips.
    model = load_model("llama-3-70b")
    found = ranks.weight_bytes_per_chip(held("llama-3-70b", Ranks(tp=4)), rope_table_bytes(model))
    assert found / GIB == pytest.approx(32.89, rel=1e-4)
    assert ranks.weight_bytes(found, 4) == 4 * found


def test_all_experts_are_resident_on_eight_chips() -> None:
    # DeepSeek-V3 in fp8: 83 to 84 GB a chip, too much for 80 GB: https://github.com/InternLM/lmdeploy/issues/2960
    found = ranks.weight_bytes_per_chip(held("deepseek-v3", Ranks(tp=8), stored=True), 0.0)
    assert found / GB == pytest.approx(83.9, rel=0.02)
    assert found > 80 * GB
    assert ranks.weight_bytes(found, 8) >= weights.weight_bytes_as_stored(as_checkpoint(load_model("deepseek-v3")))


def test_the_worst_stage_has_an_embedding() -> None:
    # Llama-3.1-8B over four stages: 4.26 GiB in vLLM's log, where a quarter would be 3.74.
    table = rope_table_bytes(load_model("llama-3-8b"))
    stages = [ranks.weight_bytes_per_chip(held("llama-3-8b", Ranks(pp=4), stage), table) for stage in range(4)]
    assert round(max(stages) / GIB, 2) == 4.26
    assert sum(stages) - 4 * table == 2 * 8_030_261_248


@given(n_bytes=st.floats(0.0, 1e12), table=st.floats(0.0, 1e9), n_chips=st.integers(1, 512))
def test_a_slice_holds_what_its_fullest_chip_does_times_the_chips(n_bytes: float, table: float, n_chips: int) -> None:
    (first, *_) = held("llama-3-8b", Ranks())
    weight = HeldTensor(stored=first.stored, n_layers=1, share=1.0, n_bytes=n_bytes)
    chip = ranks.weight_bytes_per_chip((weight, weight), table)
    assert chip == pytest.approx(2 * n_bytes + table)
    assert ranks.weight_bytes(chip, n_chips) == chip * n_chips


@given(batch=st.integers(1, 10_000), groups=st.integers(1, 64))
def test_a_group_gathers_the_activations_of_its_own_sequences(batch: int, groups: int) -> None:
    whole = decode.all_gather_bytes(batch, 8192, 2.0)
    assert ranks.all_gather_bytes(batch, groups, 8192, 2.0) * groups == pytest.approx(whole)
    assert ranks.all_gather_bytes(batch, 1, 8192, 2.0) == whole


@given(batch=st.integers(1, 10_000), groups=st.integers(1, 64))
def test_a_step_is_as_long_as_that_of_the_busiest_group(batch: int, groups: int) -> None:
    busiest = max(len(range(group, batch, groups)) for group in range(groups))
    assert ranks.step_batch_whole(batch, groups) == busiest * groups
    assert batch <= ranks.step_batch_whole(batch, groups) < batch + groups
    assert ranks.step_batch_whole(batch, 1) == ranks.step_batch_ideal(batch) == batch


@given(batch=st.integers(1, 10_000), tokens=st.integers(1, 10**5))
def test_one_group_computes_and_reads_what_layers_of_several_kinds_do(batch: int, tokens: int) -> None:
    kept = caches(load_model("deepseek-v3.2"))
    assert ranks.matmul_flops(batch, 37e9) == decode.matmul_flops(batch, 37e9)
    assert ranks.attention_flops(batch, kept, tokens) == layered_cache.attention_flops(batch, kept, tokens)
    assert ranks.kv_read_bytes(batch, 1000.0) == layered_cache.kv_read_bytes(batch, 1000.0, 1.0)


def test_each_group_has_a_critical_batch_of_its_own() -> None:
    # Chapter 8, question 0.4: 240 on v5e in bf16; two groups read the weights twice.
    assert ranks.critical_batch(1.97e14, 8.2e11, 2.0, 1) == limits.critical_batch(1.97e14, 8.2e11, 2.0)
    assert ranks.critical_batch(1.97e14, 8.2e11, 2.0, 2) == pytest.approx(480.5, rel=1e-4)


@given(tp=st.integers(1, 64), groups=st.integers(1, 8), batch=st.integers(1, 1000))
def test_limits_of_a_group_are_those_of_a_slice_of_its_chips(tp: int, groups: int, batch: int) -> None:
    d_model, d_ff, network, rate = 8192, 28_672, 9e10, 8.2e11
    step_batch = ranks.step_batch_whole(batch, groups)
    ways = ranks.model_parallel_limit_hbm_bound(d_ff, network, rate, 2.0, 2.0, step_batch, groups)
    alone = limits.model_parallel_limit_hbm_bound(d_ff, network, rate, 2.0, 2.0, step_batch / groups)
    assert ways == pytest.approx(alone)
    read_s = ranks.gate_matmul_hbm_s(d_model, d_ff, 2.0, tp, rate)
    assert read_s == limits.gate_matmul_hbm_s(d_model, d_ff, 2.0, tp, rate)
