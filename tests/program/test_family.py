"""What the programs understand, and what they refuse by name."""

from dataclasses import replace

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.catalog.load import load_model, models
from slicewise.errors import InputError
from slicewise.program.family import Llama, llama_of
from slicewise.spec.arrays import vector
from slicewise.spec.mixers import attention
from slicewise.spec.model import Model, dense_model

SIZES = {"d_model": 32, "d_ff": 64, "n_heads": 4, "n_kv_heads": 2, "head_dim": 8, "vocab_size": 50}


def made_up(**more: object) -> Model:
    return dense_model(name="made-up", n_layers=2, **SIZES, **more)


def refusal(model: Model) -> str:
    with pytest.raises(InputError) as refused:
        llama_of(model)
    return str(refused.value)


def test_many_models_of_the_catalog_qualify() -> None:
    found: list[Llama] = []
    refused: list[str] = []
    for model in models().values():
        try:
            found.append(llama_of(model))
        except InputError as error:
            refused.append(str(error))
    assert len(found) > 40
    assert all(llama.n_heads % llama.n_kv_heads == 0 for llama in found)
    assert all(": the program is that of the LLaMA family" in line and "\n" not in line for line in refused)


def test_sizes_and_arrays_are_those_of_the_model() -> None:
    llama = llama_of(load_model("qwen3-8b"))
    assert (llama.n_layers, llama.d_model, llama.d_ff, llama.vocab_size) == (36, 4096, 12288, 151936)
    assert (llama.n_heads, llama.n_kv_heads, llama.head_dim) == (32, 8, 128)
    assert set(llama.layer) == {
        "wq", "wk", "wv", "wo", "q_norm", "k_norm", "w_gate", "w_up", "w_down", "attention_norm", "mlp_norm",
    }  # fmt: skip
    assert set(llama.outside) == {"embedding", "lm_head", "final_norm"}


def test_a_tied_head_is_no_array_of_its_own() -> None:
    assert set(llama_of(made_up(tied_embeddings=True)).outside) == {"embedding", "final_norm"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mixtral-8x7b", "it has layers of full + experts"),
        ("deepseek-v3", "it has layers of latent + dense and of latent + experts"),
        ("gemma-2-9b", "it has layers of sliding + dense"),
        ("nemotron-h-56b", "it has layers of state-space alone and of dense alone and of full alone"),
        ("gpt-j-6b", "its layers have no w_gate"),
        ("olmo-2-32b", "its layers have post_attention_layernorm, post_feedforward_layernorm"),
        ("aya-23-8b", "its layers have input_layernorm"),
    ],
)
def test_other_families_are_refused_by_what_is_not_understood(name: str, why: str) -> None:
    assert f"and {why}; plan it without verify" in refusal(load_model(name))


def test_other_arrays_of_a_layer_are_refused_by_name() -> None:
    keys = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}
    config = {**keys, "num_hidden_layers": 2, "vocab_size": 50, "attention_bias": True, "mlp_bias": True}
    assert "its layers have bo, b_gate, b_up, b_down" in refusal(model_from_config(config, "biased", "config.json"))


def test_layers_of_several_sizes_are_refused() -> None:
    other = dense_model(name="made-up", n_layers=1, **{**SIZES, "d_ff": 96})
    mixed = replace(made_up(), layers=(*made_up().layers, *other.layers))
    assert "its layers differ in their sizes" in refusal(mixed)


@pytest.mark.parametrize("more", [{"value_dim": 16}, {"window": 128.0, "chunked": False}])
def test_values_of_their_own_width_and_windows_are_refused(more: dict[str, float]) -> None:
    heads = {name: SIZES[name] for name in ("d_model", "n_heads", "n_kv_heads", "head_dim")}
    mixer = replace(attention(**heads, **more), kind="full")
    layers = tuple(replace(layer, mixer=mixer) for layer in made_up().layers)
    assert "not as wide as its keys, or its attention has a window" in refusal(replace(made_up(), layers=layers))


def test_other_arrays_outside_the_layers_are_refused_by_name() -> None:
    table = vector("positions", ("n", 8), "other")
    assert "it has positions outside its layers" in refusal(replace(made_up(), outside=(table,)))
