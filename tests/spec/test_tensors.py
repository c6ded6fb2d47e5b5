"""Tensors: exact counts of published models, and what each part adds."""

from dataclasses import replace

import pytest
from hypothesis import given

from slicewise.catalog.load import load_model
from slicewise.costs.kv_cache import kv_elements_per_token
from slicewise.costs.weights import head_params, matmul_params, n_params
from slicewise.spec.model import Model
from slicewise.spec.tensors import MATMUL_ROLES, cache_tensors, weight_tensors

ROLES = {"embedding", "attention", "mlp", "norm", "bias", "head"}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        # As transformers counts them on the meta device.
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("llama-3-405b", 405_853_388_800),
        ("llama-2-13b", 13_015_864_320),
        ("llama-2-70b", 68_976_648_192),
        # Chapter 7, worked problem 1, prints 18.4e9.
        ("chapter-7-exercise", 18_385_207_296),
    ],
)
def test_parameters_are_counted_exactly(name: str, params: int) -> None:
    assert n_params(weight_tensors(load_model(name))) == params


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("llama-3-8b", 7_504_658_432),
        ("llama-3-70b", 69_501_714_432),
        ("llama-3-405b", 403_747_897_344),
        # The tied head multiplies too, and chapter 7 counts no norms: all 18,385,207,296 of them.
        ("chapter-7-exercise", 18_385_207_296),
    ],
)
def test_matmul_parameters_leave_the_input_embedding_and_norms_out(name: str, params: int) -> None:
    assert matmul_params(weight_tensors(load_model(name))) == params


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        # Chapter 8, models used: 2 L K H.
        ("llama-3-8b", 65_536),
        ("llama-3-70b", 163_840),
        ("llama-3-405b", 258_048),
        ("llama-2-13b", 409_600),
        ("chapter-7-exercise", 262_144),
    ],
)
def test_cache_elements_of_a_token(name: str, elements: int) -> None:
    assert kv_elements_per_token(cache_tensors(load_model(name))) == elements


@given(...)
def test_the_count_is_the_closed_form(model: Model) -> None:
    m = model
    queries, keys = m.n_heads * m.head_dim, m.n_kv_heads * m.head_dim
    attention, mlp = 2 * m.d_model * (queries + keys), 3 * m.d_model * m.d_ff
    norms = m.norm_weights * m.d_model
    biases = m.qkv_bias * (queries + 2 * keys) + m.out_bias * m.d_model + m.mlp_bias * (2 * m.d_ff + m.d_model)
    vocab = m.vocab_size * m.d_model
    layers = m.n_layers * (attention + mlp + 2 * norms + biases)
    assert n_params(weight_tensors(m)) == layers + norms + vocab * (1 if m.tied_embeddings else 2)
    assert matmul_params(weight_tensors(m)) == m.n_layers * (attention + mlp) + vocab
    assert head_params(weight_tensors(m)) == vocab
    assert kv_elements_per_token(cache_tensors(m)) == 2 * m.n_layers * keys


@given(...)
def test_tying_the_head_saves_its_storage_and_no_multiplication(model: Model) -> None:
    tied, untied = (weight_tensors(replace(model, tied_embeddings=tied)) for tied in (True, False))
    assert n_params(untied) - n_params(tied) == model.vocab_size * model.d_model
    assert matmul_params(untied) == matmul_params(tied)


@given(...)
def test_every_tensor_names_its_dims_and_their_logical_axes(model: Model) -> None:
    tensors = (*weight_tensors(model), *cache_tensors(model))
    assert len({tensor.name for tensor in tensors}) == len(tensors)
    for tensor in tensors:
        assert len(tensor.dims) == len(tensor.axes)
        assert all(size >= 1 for _, size in tensor.dims)
    assert {tensor.role for tensor in weight_tensors(model)} <= ROLES
    assert set(MATMUL_ROLES) <= ROLES


def test_a_tensor_reads_as_its_shape() -> None:
    tensors = {tensor.name: str(tensor) for tensor in weight_tensors(load_model("chapter-7-exercise"))}
    assert tensors["w_up"] == "w_up [n_layers 64, d_model 4,096, d_ff 16,384] = 4,294,967,296"
    assert tensors["lm_head"].endswith("(shared with the embedding)")
