"""What a plan claims of a program, against arithmetic of its own."""

from collections.abc import Callable

import pytest

from slicewise.planner.deployment import Deployment
from slicewise.verify.claims import Claims, Declared, decode_claims, prefill_claims

# LLaMA 3.1 70B as its config.json has it.
L, D, F, N, K, H, V = 80, 8192, 28672, 64, 8, 128, 128256
LAYER_MATRICES = D * H * (2 * N + 2 * K) + 3 * D * F
NORMS = (2 * L + 1) * D
PARAMS = L * LAYER_MATRICES + 2 * D * V + NORMS
B, S, CHIPS = 32, 8192, 16
INT8 = {"slice": "v5e:4x4", "weights": "int8", "kv": "int8"}


@pytest.fixture
def decode(deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]) -> Claims:
    return decode_claims(deployment_of("llama-3-70b", **INT8, context=S), declared_of(), B)


@pytest.fixture
def prefill(deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]) -> Claims:
    return prefill_claims(deployment_of("llama-3-70b", **INT8, isl=S), declared_of())


def test_weights_and_cache_are_cut_evenly(decode: Claims) -> None:
    assert PARAMS == 70_553_706_496
    assert 2 * L * K * H == 163_840
    assert decode.line_bytes["weights"] == pytest.approx(PARAMS / CHIPS)
    assert decode.line_bytes["KV cache"] == pytest.approx(163_840 * S * B / CHIPS)


def test_collectives_of_a_layer(decode: Claims) -> None:
    assert decode.gather_bytes == 4 * B * D * 2
    assert decode.exchange_bytes == 2 * B * N * H * 2 / 8
    assert decode.all_axes == "y × z"


def test_flops_are_those_of_matrices_and_of_scores_and_values(decode: Claims) -> None:
    assert decode.matmul_flops == pytest.approx(2 * B * (L * LAYER_MATRICES + D * V) / CHIPS)
    assert decode.attention_flops == pytest.approx(4 * B * S * N * H * L / CHIPS)


def test_the_total_is_lines_and_what_lies_beside(decode: Claims, prefill: Claims) -> None:
    for claims in (decode, prefill):
        assert claims.total_bytes == sum(claims.line_bytes.values()) + claims.beside_bytes
    assert decode.beside_bytes > 0
    assert prefill.beside_bytes == 0


def test_scales_are_the_programs_own(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared], decode: Claims
) -> None:
    lines = {"weights": 9.0, "weight scales": 7.0, "KV cache": 5.0, "KV scales": 3.0, "inputs": 1.0}
    found = decode_claims(deployment_of("llama-3-70b", **INT8, context=S), declared_of(line_bytes=lines), B)
    assert dict(found.line_bytes) == {**decode.line_bytes, "weight scales": 7.0, "KV scales": 3.0}


def test_wider_dtypes_weigh_more_and_compute_alike(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared], decode: Claims
) -> None:
    wide = {"weights": "bf16", "kv": "bf16"}
    found = decode_claims(deployment_of("llama-3-70b", **{**INT8, **wide}, context=S), declared_of(), B)
    assert {name: size / decode.line_bytes[name] for name, size in found.line_bytes.items()} == {
        "weights": 2.0,
        "KV cache": 2.0,
    }
    assert (found.matmul_flops, found.attention_flops) == (decode.matmul_flops, decode.attention_flops)
    assert (found.gather_bytes, found.exchange_bytes) == (decode.gather_bytes, decode.exchange_bytes)


def test_one_chip_moves_nothing(deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]) -> None:
    alone = declared_of(head_shards=1, batch_shards=1)
    deployment = deployment_of("llama-3.2-1b", slice="v5e:1x1", context=1024)
    for found in (decode_claims(deployment, alone, 4), prefill_claims(deployment, alone)):
        assert (found.gather_bytes, found.exchange_bytes, found.all_axes) == (0.0, 0.0, "")


def test_without_a_cut_batch_nothing_is_exchanged(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]
) -> None:
    deployment = deployment_of("llama-3-70b", **{**INT8, "slice": "v5e:2x4"}, context=S)
    found = decode_claims(deployment, declared_of(batch_shards=1), B)
    assert found.exchange_bytes == 0
    assert found.gather_bytes == 4 * B * D * 2
    assert found.all_axes == "y"


# -- prefill ---------------------------------------------------------------------------------------------------------


def test_prefill_multiplies_every_token_and_the_head_once(prefill: Claims) -> None:
    assert prefill.matmul_flops == pytest.approx(2 * (S * L * LAYER_MATRICES + D * V) / CHIPS, rel=1e-9)


def test_prefill_attends_to_half_the_square(prefill: Claims) -> None:
    assert prefill.attention_flops == pytest.approx(4 * (S * S / 2) * N * H * L / CHIPS)
    assert "8 blocks of queries" in prefill.why["attention"]


def test_prefill_gathers_the_whole_prompt_and_keeps_no_cache(prefill: Claims) -> None:
    assert prefill.gather_bytes == 4 * S * D * 2
    assert prefill.exchange_bytes == 0
    assert dict(prefill.line_bytes) == {"weights": pytest.approx(PARAMS / CHIPS)}


# -- reasons ---------------------------------------------------------------------------------------------------------


def test_norms_and_filled_up_matrices_are_reasons_in_bytes(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]
) -> None:
    planned, norms = PARAMS / CHIPS, NORMS * 2.0
    more = norms - NORMS / CHIPS
    lines = {"weights": planned + more + 5000, "weight scales": 0.0, "KV cache": 0.0, "KV scales": 0.0}
    declared = declared_of(line_bytes=lines, vector_bytes=norms)
    found = decode_claims(deployment_of("llama-3-70b", **INT8, context=S), declared, B)
    assert found.why["weights"] == (
        f"norms are whole on every chip, and no vector narrower than 16 bits: {more:,.0f} B more; matrices that do not"
        " cut evenly are filled up: 5,000 B more"
    )


def test_a_given_count_of_parameters_is_the_reason(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]
) -> None:
    deployment = deployment_of("llama-3-70b", **INT8, context=S, params="70e9")
    for found in (decode_claims(deployment, declared_of(), B), prefill_claims(deployment, declared_of())):
        assert found.line_bytes["weights"] == 70e9 / CHIPS
        assert "70,000,000,000 parameters that were given" in found.why["weights"]
        assert "given" in found.why["matmuls"]


@pytest.mark.parametrize(("batch", "told"), [(32, False), (31, True)])
def test_room_beyond_the_batch_is_a_reason(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared], batch: int, told: bool
) -> None:
    found = decode_claims(deployment_of("llama-3-70b", **INT8, context=S), declared_of(sequences=32), batch)
    for name in ("KV cache", "gathers", "exchanges", "matmuls", "attention"):
        assert ("32 rows, whole rounds of the 2 ways that the batch is cut, for 31" in found.why[name]) == told


def test_devices_of_a_chip_exchange_too(
    deployment_of: Callable[..., Deployment], declared_of: Callable[..., Declared]
) -> None:
    finer = declared_of(batch_shards=4)
    two = decode_claims(deployment_of("llama-3-70b", slice="tpu7x:2x2x4", context=S), finer, B)
    one = decode_claims(deployment_of("llama-3-70b", slice="v5p:2x2x4", context=S), declared_of(), B)
    assert (two.devices_per_chip, one.devices_per_chip) == (2, 1)
    assert "the 2 devices of a chip exchange, too" in two.why["exchanges"]
    assert "devices of a chip" not in one.why["exchanges"]
