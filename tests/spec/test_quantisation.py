"""Quantisation: scales of a matrix counted by hand, and which rule decides where several could."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.spec.arrays import Tensor, matrix, vector
from slicewise.spec.quantisation import Quantisation, Scheme, place, sides
from slicewise.spec.tensors import over_layers

FP8, INT4 = Scheme(dtype="fp8"), Scheme(dtype="int4", block=(128, 1), scale_bytes=2.0)


def a_matrix(role: str, module: str) -> Tensor:
    return over_layers(matrix("w", ("in", 512), ("out", 256), ("", ""), role, module=module), (0, 1, 2))


def a_scheme(quantisation: Quantisation, role: str, module: str, layer: int = 0) -> Scheme | None:
    return quantisation.scheme_of(a_matrix(role, module))(layer)


@pytest.mark.parametrize(
    ("scheme", "overhead"),
    [
        pytest.param(Scheme(dtype="fp8"), 4, id="one-a-matrix"),
        pytest.param(Scheme(dtype="int8", block=(0, 1)), 576 * 4, id="one-an-output"),
        # DeepSeek-V3: kv_a_proj_with_mqa.weight_scale_inv is [5, 56] float32 for a weight of [576, 7168].
        pytest.param(Scheme(dtype="fp8", block=(128, 128)), 5 * 56 * 4, id="blocks-of-128"),
        pytest.param(INT4, 56 * 576 * 2, id="groups-of-128"),
        pytest.param(
            Scheme(dtype="int4", block=(128, 1), scale_bytes=2.0, zero_point_bits=4.0), 56 * 576 * 2.5, id="zero-points"
        ),
        pytest.param(Scheme(dtype="fp4", block=(16, 1), scale_bytes=1.0, tensor_bytes=4.0), 448 * 576 + 4, id="nvfp4"),
        pytest.param(Scheme(dtype="int4", block=(0, 1), input_bytes=4.0), 576 * 4 + 7168 * 4, id="index-of-inputs"),
    ],
)
def test_scales_of_a_matrix_of_7168_inputs_and_576_outputs(scheme: Scheme, overhead: float) -> None:
    assert scheme.overhead_bytes(7168, 576) == overhead


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 256), st.integers(1, 256))
def test_blocks_cover_the_matrix_and_no_more(n_in: int, n_out: int, rows: int, columns: int) -> None:
    n_scales = Scheme(dtype="fp8", block=(rows, columns)).scales(n_in, n_out)
    assert n_scales * rows * columns >= n_in * n_out
    assert n_scales <= (n_in / rows + 1) * (n_out / columns + 1)


def test_the_first_rule_that_matches_decides() -> None:
    mixed = Quantisation(method="m", rules=((r"\.experts\.", INT4), ("", FP8)))
    assert a_scheme(mixed, "experts", "mlp.experts.{expert}.up_proj") == INT4
    assert a_scheme(mixed, "shared_experts", "mlp.shared_experts.up_proj") == FP8
    assert a_scheme(mixed, "attention", "self_attn.q_proj") == FP8


def test_what_is_ignored_stays_as_it_was_layer_by_layer() -> None:
    some = Quantisation(method="m", rules=(("", FP8),), ignored=(r"^layers\.(?:0|2)\.mlp\.",))
    assert [a_scheme(some, "mlp", "mlp.up_proj", layer) for layer in range(3)] == [None, FP8, None]


@pytest.mark.parametrize(
    ("role", "module"), [("router", "mlp.gate"), ("head", "lm_head"), ("embedding", "embed_tokens")]
)
def test_routers_heads_and_embeddings_are_quantised_only_by_name(role: str, module: str) -> None:
    name = module.rpartition(".")[2]
    for wide in ("", ".*", r"^layers\..*", rf"(?:{name}_x|other)_proj"):
        assert a_scheme(Quantisation(method="m", rules=((wide, FP8),)), role, module) is None
    assert a_scheme(Quantisation(method="m", rules=((rf"(?:^|\.){name}(?:\.|$)", FP8),)), role, module) == FP8


@pytest.mark.parametrize("role", ["norm", "bias", "tower"])
def test_norms_biases_and_towers_are_never_quantised(role: str) -> None:
    assert a_scheme(Quantisation(method="m", rules=(("w", FP8), ("", FP8))), role, "w") is None


def test_only_matrices_are_quantised() -> None:
    decay = over_layers(vector("decay", ("heads", 8), "state_space", module="mixer.decay"), (0, 1))
    assert Quantisation(method="m", rules=(("", FP8),)).scheme_of(decay)(0) is None
    assert sides(decay) == 1


def test_experts_alone_where_the_method_is_for_them() -> None:
    experts = Quantisation(method="mxfp4", rules=(("", FP8),), experts_only=True)
    assert a_scheme(experts, "experts", "mlp.experts.{expert}.up_proj") == FP8
    assert a_scheme(experts, "mlp", "mlp.up_proj") is None


def test_places_begin_below_the_model() -> None:
    assert place(a_matrix("experts", "mlp.experts.{expert}.up_proj"), 3) == "layers.3.mlp.experts.0.up_proj"
    assert place(a_matrix("head", "lm_head"), None) == "lm_head"


def test_the_dtype_of_a_mixed_checkpoint_is_the_narrowest() -> None:
    assert Quantisation(method="m", rules=(("a", INT4), ("", FP8))).dtype == "int4"
    assert Quantisation(method="m", rules=(("a", FP8), ("", INT4))).dtype == "int4"
