"""Stored bytes: each weight once, its scales beside it, and layers that are stored alike together."""

from dataclasses import replace

import pytest

from slicewise.spec.feed_forward import experts
from slicewise.spec.mixers import attention
from slicewise.spec.model import Layer, Model, dense_model
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.spec.quantisation import Quantisation, Scheme
from slicewise.spec.stored import as_checkpoint, uniform
from slicewise.spec.tensors import weight_tensors

BY_CHANNEL = Scheme(dtype="int8", block=(0, 1))
MXFP4 = Scheme(dtype="fp4", block=(32, 1), scale_bytes=1.0)


def a_model(**changes: object) -> Model:
    sizes = {"n_layers": 4, "d_model": 256, "d_ff": 512, "n_heads": 8, "n_kv_heads": 2, "head_dim": 32}
    return dense_model(name="made-up", vocab_size=1000, **{**sizes, **changes})  # type: ignore[arg-type]


def total(model: Model) -> float:
    return sum(weight.n_bytes for weight in as_checkpoint(model))


@pytest.mark.parametrize("dtype", BYTES_PER_ELEMENT)
def test_one_dtype_for_all_is_its_width_times_the_parameters(dtype: str) -> None:
    model = a_model()
    params = sum(tensor.size for tensor in weight_tensors(model))
    assert sum(weight.n_bytes for weight in uniform(model, dtype)) == params * BYTES_PER_ELEMENT[dtype]


def test_a_tied_head_is_stored_once() -> None:
    assert total(a_model()) - total(a_model(tied_embeddings=True)) == 1000 * 256 * 2


def test_without_quantisation_the_checkpoint_has_one_dtype() -> None:
    model = a_model(checkpoint_dtype="fp32")
    assert as_checkpoint(model) == uniform(model, "fp32")


def test_linear_weights_take_a_byte_and_their_outputs_a_scale() -> None:
    model = a_model(quantisation=Quantisation(method="m", rules=(("", BY_CHANNEL),)))
    linear = 4 * (256 * (256 + 2 * 64 + 256) + 3 * 256 * 512)
    outputs = 4 * ((256 + 2 * 64 + 256) + 2 * 512 + 256)
    rest = 2 * 1000 * 256 + (2 * 4 + 1) * 256
    assert total(model) == linear + 4 * outputs + 2 * rest


def test_layers_that_are_stored_alike_are_one_entry() -> None:
    some = Quantisation(method="m", rules=(("", BY_CHANNEL),), ignored=(r"^layers\.(?:0|3)\.mlp\.",))
    found = [weight for weight in as_checkpoint(a_model(quantisation=some)) if weight.tensor.name == "w_up"]
    assert {weight.dtype: weight.tensor.layers for weight in found} == {"bf16": (0, 3), "int8": (1, 2)}
    assert {weight.dtype: weight.scheme for weight in found} == {"bf16": None, "int8": BY_CHANNEL}
    assert sum(weight.tensor.size for weight in found) == 4 * 256 * 512


def test_each_expert_has_its_own_scales() -> None:
    layer = Layer(
        mixer=attention(d_model=256, n_heads=8, n_kv_heads=2, head_dim=32),
        feed_forward=experts(d_model=256, d_ff=96, n_experts=6, n_active=2),
    )
    model = Model(name="made-up", d_model=256, vocab_size=1000, layers=(layer,) * 3)
    quantised = replace(model, quantisation=Quantisation(method="mxfp4", rules=(("", MXFP4),), experts_only=True))
    found = [weight for weight in as_checkpoint(quantised) if weight.scheme]
    assert {weight.tensor.role for weight in found} == {"experts"}
    # 4.25 bits: half a byte an element and a byte for 32.
    assert sum(weight.n_bytes for weight in found) == 3 * 6 * 3 * 256 * 96 * 4.25 / 8
    assert sum(weight.scale_bytes for weight in found) == 3 * 6 * 3 * 256 * 96 / 32


def test_an_entry_says_what_it_is() -> None:
    model = a_model(quantisation=Quantisation(method="m", rules=(("", BY_CHANNEL),)))
    words = [str(weight) for weight in as_checkpoint(model)]
    assert "w_down [n_layers 4, d_ff 512, d_model 256] = 524,288, int8 and 4,096 B of scales" in words
    assert "embedding [vocab_size 1,000, d_model 256] = 256,000, bf16" in words
