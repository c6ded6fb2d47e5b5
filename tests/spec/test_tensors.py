"""Tensors: exact counts of published models, and what each part adds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs.kv_cache import kv_elements_per_token
from slicewise.costs.weights import head_params, matmul_params, n_params
from slicewise.spec.arrays import MATMUL_ROLES, ROLES
from slicewise.spec.model import Model, dense_model
from slicewise.spec.tensors import caches, weight_tensors

SIZES = st.fixed_dictionaries(
    {
        "n_layers": st.integers(1, 128),
        "d_model": st.integers(1, 128).map(lambda n: n * 128),
        "d_ff": st.integers(1, 256).map(lambda n: n * 128),
        "n_kv_heads": st.sampled_from([1, 2, 3, 4, 5, 8, 16, 40]),
        "head_dim": st.sampled_from([64, 80, 128, 256]),
        "vocab_size": st.integers(1, 2**18),
        "tied_embeddings": st.booleans(),
        "qkv_bias": st.booleans(),
        "out_bias": st.booleans(),
        "mlp_bias": st.booleans(),
        "norm_weights": st.booleans(),
    }
)


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
    assert kv_elements_per_token(caches(load_model(name))) == elements


@given(sizes=SIZES, group=st.integers(1, 8))
def test_the_count_is_the_closed_form(sizes: dict[str, int], group: int) -> None:
    m = SimpleNamespace(**sizes, n_heads=sizes["n_kv_heads"] * group)
    model = dense_model(name="made-up", **vars(m))
    queries, keys = m.n_heads * m.head_dim, m.n_kv_heads * m.head_dim
    attention, mlp = 2 * m.d_model * (queries + keys), 3 * m.d_model * m.d_ff
    norms = m.norm_weights * m.d_model
    biases = m.qkv_bias * (queries + 2 * keys) + m.out_bias * m.d_model + m.mlp_bias * (2 * m.d_ff + m.d_model)
    vocab = m.vocab_size * m.d_model
    layers = m.n_layers * (attention + mlp + 2 * norms + biases)
    assert n_params(weight_tensors(model)) == layers + norms + vocab * (1 if m.tied_embeddings else 2)
    assert matmul_params(weight_tensors(model)) == m.n_layers * (attention + mlp) + vocab
    assert head_params(weight_tensors(model)) == vocab
    assert kv_elements_per_token(caches(model)) == 2 * m.n_layers * keys


@given(...)
def test_tying_the_head_saves_its_storage_and_no_multiplication(model: Model) -> None:
    tied, untied = (weight_tensors(replace(model, tied_embeddings=tied)) for tied in (True, False))
    assert n_params(untied) - n_params(tied) == model.vocab_size * model.d_model
    assert matmul_params(untied) == matmul_params(tied)


@given(...)
def test_every_tensor_names_its_dims_and_their_logical_axes(model: Model) -> None:
    for tensor in weight_tensors(model):
        assert len(tensor.dims) == len(tensor.axes)
        assert all(size >= 1 for _, size in tensor.dims)
        assert tensor.role in ROLES
    assert set(MATMUL_ROLES) <= set(ROLES)


def test_a_tensor_reads_as_its_shape() -> None:
    tensors = {tensor.name: str(tensor) for tensor in weight_tensors(load_model("chapter-7-exercise"))}
    assert tensors["w_up"] == "w_up [n_layers 64, d_model 4,096, d_ff 16,384] = 4,294,967,296"
    assert tensors["lm_head"].endswith("(shared with the embedding)")
