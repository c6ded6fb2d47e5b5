"""config.json: what every family has in common. Keys become sizes, what is not understood is refused by its key."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slicewise.catalog.families import ARCHITECTURES, FAMILIES, adapter
from slicewise.catalog.hf import model_from_config, read_config, record_from_config
from slicewise.costs.weights import n_params
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def read(changes: dict[str, Any]) -> Model:
    return model_from_config({**LLAMA, **changes}, "a-model", "config.json")


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in LLAMA.items() if key not in names}


def sizes(model: Model) -> dict[str, int]:
    """Elements of each array, of one layer where there are many."""
    return {tensor.name: tensor.size // (len(tensor.layers) or 1) for tensor in weight_tensors(model)}


# -- keys ------------------------------------------------------------------------------------------------------------


def test_keys_become_sizes_with_their_origin() -> None:
    model = read({})
    assert n_params(weight_tensors(model)) == 8_030_261_248
    assert (model.n_layers, model.d_model, model.d_ff, model.vocab_size) == (32, 4096, 14336, 128256)
    assert (model.n_heads, model.n_kv_heads, model.head_dim) == (32, 8, 128)
    assert (model.max_context_tokens, model.rope_table) == (131072, (131072, 128))
    assert model.provenance[""].printed == "read from config.json"


def test_head_dim_is_read_where_it_is_given() -> None:
    # Mistral Nemo: 32 heads of 128 at a width of 5120. https://github.com/vllm-project/vllm/issues/2622
    assert read({"hidden_size": 5120, "head_dim": 128}).head_dim == 128
    assert read({"hidden_size": 5120}).head_dim == 160


def test_missing_keys_take_the_defaults_of_transformers() -> None:
    model = read({"num_key_value_heads": None, "torch_dtype": None, "max_position_embeddings": None})
    assert (model.n_kv_heads, model.checkpoint_dtype, model.max_context_tokens) == (32, "bf16", math.inf)
    assert model.rope_table == (0, 0)


@pytest.mark.parametrize(("named", "dtype"), [("float16", "fp16"), ("float32", "fp32"), ("torch.bfloat16", "bf16")])
def test_the_checkpoint_says_its_dtype(named: str, dtype: str) -> None:
    assert read({"torch_dtype": named}).checkpoint_dtype == dtype
    assert read({"torch_dtype": None, "dtype": named}).checkpoint_dtype == dtype


@pytest.mark.parametrize("named", ["int3", 7, "", False, ["bfloat16"]])
def test_a_dtype_that_is_none_is_refused(named: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=r"torch_dtype.* is not supported; supported: bfloat16"):
        read({"torch_dtype": named})


@pytest.mark.parametrize(
    ("changes", "biases"),
    [
        ({}, set()),
        ({"attention_bias": True}, {"bq", "bk", "bv", "bo"}),
        ({"mlp_bias": True}, {"b_gate", "b_up", "b_down"}),
        ({"model_type": "qwen2"}, {"bq", "bk", "bv"}),
        ({"model_type": "mistral"}, set()),
    ],
)
def test_biases_are_those_of_the_family(changes: dict[str, Any], biases: set[str]) -> None:
    found = sizes(read(changes))
    assert {name for name in found if name.startswith("b")} == biases
    widths = {"bq": 4096, "bk": 1024, "bv": 1024, "bo": 4096, "b_gate": 14336, "b_up": 14336, "b_down": 4096}
    assert {name: found[name] for name in biases} == {name: widths[name] for name in biases}


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({}, {math.inf}),
        ({"model_type": "mistral", "sliding_window": 4096}, {4096}),
        ({"model_type": "mistral", "sliding_window": None}, {math.inf}),
        ({"model_type": "mistral"}, {4096}),
        ({"model_type": "qwen2", "sliding_window": 131072, "use_sliding_window": False}, {math.inf}),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True}, {4096}),
        (
            {"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True, "max_window_layers": 28},
            {64, math.inf},
        ),
    ],
)
def test_windows_are_those_of_the_family(changes: dict[str, Any], windows: set[float]) -> None:
    assert {cache.window for cache in caches(read(changes))} == windows


# -- families --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_an_adapter(family: str) -> None:
    assert adapter(family).__doc__


def test_the_architecture_stands_for_a_missing_family() -> None:
    keys = without("model_type")
    found = model_from_config({**keys, "architectures": ["Qwen2ForCausalLM"]}, "a-model", "config.json")
    assert "bq" in sizes(found)
    assert set(ARCHITECTURES.values()) <= FAMILIES.keys()
    with pytest.raises(
        UnsupportedModelError, match="architectures LlamaCausalLM is not supported yet; did you mean Llama"
    ):
        model_from_config({**keys, "architectures": ["LlamaCausalLM"]}, "a-model", "config.json")
    for unknown in ([], None, [7], "LlamaForCausalLM", [["LlamaForCausalLM"]]):
        with pytest.raises(InputError, match=r"model_type is missing; a Hugging Face config\.json must give it"):
            model_from_config({**keys, "architectures": unknown}, "a-model", "config.json")


@pytest.mark.parametrize("slip", ["model_typ", "modeltype", "model_types"])
def test_a_misspelt_family_key_is_refused_with_the_right_one(slip: str) -> None:
    with pytest.raises(InputError, match=f"{slip} is no key of a config.json; did you mean model_type"):
        model_from_config({**without("model_type"), slip: "llama"}, "a-model", "config.json")


@pytest.mark.parametrize(("named", "meant"), [("lama", "llama"), ("qwen_3", "qwen3"), ("deepseekv3", "deepseek_v3")])
def test_an_unknown_family_is_refused_with_the_nearest(named: str, meant: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"model_type {named} is not supported yet; did you mean {meant}"):
        read({"model_type": named})


def test_an_unknown_family_that_is_like_none_is_refused_with_some_that_are_known() -> None:
    known = rf"{len(FAMILIES)} are, such as llama, mistral, qwen2"
    with pytest.raises(
        UnsupportedModelError, match=rf"^config\.json: model_type t5 is not supported yet; {known}"
    ) as refused:
        read({"model_type": "t5"})
    assert len(str(refused.value)) < 160
    with pytest.raises(UnsupportedModelError) as refused:
        read({"model_type": "t5" * 10_000})
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("named", [["llama"], 7, {}, math.nan, True])
def test_a_family_that_is_no_word_is_refused(named: Any) -> None:
    with pytest.raises(InputError, match=r"model_type is .*; it must be a word"):
        read({"model_type": named})


# -- KV heads --------------------------------------------------------------------------------------------------------

NOTE = "states no num_key_value_heads, so every query head has its own"
FALCON = {
    "model_type": "falcon",
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_hidden_layers": 2,
    "vocab_size": 32,
}
GPT_2 = {"model_type": "gpt2", "n_embd": 256, "n_head": 8, "n_layer": 2, "n_positions": 64, "vocab_size": 32}
PHI = {**GPT_2, "model_type": "phi-msft"}
BLOCK = {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 2.0}}


@pytest.mark.parametrize("family", ["mistral", "qwen2", "qwen3", "mixtral", "gemma", "starcoder2"])
def test_kv_heads_that_are_missing_are_refused_where_the_family_states_them(family: str) -> None:
    with pytest.raises(InputError, match=f"num_key_value_heads is missing; {family} models state it"):
        model_from_config({**without("num_key_value_heads", "hidden_act"), "model_type": family}, "m", "config.json")


@pytest.mark.parametrize(
    ("keys", "n_kv_heads", "is_noted"),
    [
        (GPT_2, 8, True),
        ({**PHI, "n_head_kv": 8}, 8, False),
        (PHI, 8, True),
        (without("num_key_value_heads"), 32, True),
        ({**LLAMA, "num_key_value_heads": None}, 32, True),
        (LLAMA, 8, False),
        ({**LLAMA, "num_key_value_heads": 32}, 32, False),
        # One KV head for all, though the config states no number.
        ({**FALCON, "multi_query": True}, 1, False),
        ({**FALCON, "multi_query": False}, 8, True),
        ({**FALCON, "multi_query": False, "num_kv_heads": 8}, 8, False),
        # Heads that share a KV head by block.
        ({**LLAMA, "model_type": "nemotron-nas", "num_key_value_heads": None, "block_configs": [BLOCK] * 32}, 4, False),
    ],
)
def test_a_kv_head_for_each_query_head_is_noted_where_it_is_a_default(
    keys: dict[str, Any], n_kv_heads: int, is_noted: bool
) -> None:
    model = model_from_config(keys, "a-model", "config.json")
    assert model.n_kv_heads == n_kv_heads
    assert ("n_kv_heads" in model.provenance) is is_noted
    if is_noted:
        assert model.provenance["n_kv_heads"].printed == f"config.json {NOTE}"


def test_a_part_of_a_config_may_state_the_kv_heads() -> None:
    text = {**without("hidden_act"), "sliding_window": 512, "num_key_value_heads": 32}
    model = model_from_config({"model_type": "gemma3", "text_config": text}, "a-model", "config.json")
    assert "n_kv_heads" not in model.provenance


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"quantization_config": {"quant_method": "made-up"}}, "quantization_config: quant_method made-up"),
        ({"num_local_experts": 8}, "num_local_experts"),
        ({"n_routed_experts": 256}, "n_routed_experts"),
        ({"n_shared_experts": 1}, "n_shared_experts"),
        ({"kv_lora_rank": 512}, "kv_lora_rank"),
        ({"num_kv_heads": 1}, "num_kv_heads"),
        ({"layer_types": ["full_attention"] * 32}, "layer_types"),
        ({"model_type": "qwen3", "layer_types": ["full_attention"] * 31 + ["another"]}, "layer_types holds 'another'"),
        ({"text_config": {"hidden_size": 1}}, "text_config"),
        ({"vision_config": {"depth": 1}}, "vision_config"),
        ({"vision_config": True}, "vision_config"),
        ({"hidden_act": "gelu"}, "hidden_act gelu is not supported"),
        ({"sliding_window": 4096}, "sliding_window"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_key(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedModelError, match=named) as refused:
        read(changes)
    assert str(refused.value).startswith("config.json: ")


SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")


@pytest.mark.parametrize("key", SIZES)
@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 1.5, 32.0, "32", True, [32], {"of": 32}, math.nan, math.inf, 1e30, 10**12,
     pytest.param(10**400, id="huge"), pytest.param(-(10**5000), id="hugely-negative")],
)  # fmt: skip
def test_sizes_are_whole_numbers_that_a_model_can_have(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=key) as refused:
        read({key: value, "head_dim": 128, "num_key_value_heads": None})
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 200


def test_sizes_within_reason_may_make_a_model_beyond_it() -> None:
    with pytest.raises(InputError, match=r"config\.json: its sizes make [0-9,]+ parameters, more than any model has"):
        read({"hidden_size": 8_000_000})


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="32 query heads do not divide over 5 KV heads; check num_attention_heads"):
        read({"num_key_value_heads": 5})
    with pytest.raises(InputError, match="head_dim is missing and hidden_size 4095"):
        read({"hidden_size": 4095})


def test_layers_beyond_any_model_are_refused() -> None:
    with pytest.raises(InputError, match=r"num_hidden_layers is 100,000, more than any model has"):
        read({"num_hidden_layers": 100_000})


@pytest.mark.parametrize("missing", SIZES)
def test_a_size_that_is_missing_is_refused_by_its_key(missing: str) -> None:
    with pytest.raises(InputError, match=f"{missing} is missing; a llama config.json must give it"):
        model_from_config(without(missing), "a-model", "config.json")


# -- files -----------------------------------------------------------------------------------------------------------


def test_the_model_is_called_what_its_folder_or_its_file_is(tmp_path: Path) -> None:
    for place, name in (("a-model/config.json", "a-model"), ("llama-8b.json", "llama-8b")):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(LLAMA), encoding="utf-8")
        model = read_config(path)
        assert model.name == name
        assert model.provenance[""].printed == f"read from {path}"


def test_a_folder_is_called_what_it_is_wherever_its_path_leads(tmp_path: Path) -> None:
    (tmp_path / "a-model").mkdir()
    (tmp_path / "a-model" / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "a-model")
    assert read_config(tmp_path / "link" / "config.json").name == "a-model"
    assert read_config(tmp_path / "a-model" / ".." / "a-model" / "config.json").name == "a-model"


def test_a_name_that_promises_what_the_config_does_not_say_is_noted(tmp_path: Path) -> None:
    folder = tmp_path / "Llama-3-8B-FP8"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    (note,) = read_config(folder / "config.json").notes
    assert "sounds quantised (FP8)" in note
    assert "hf_quant_config.json" in note


# -- anything --------------------------------------------------------------------------------------------------------

KEYS = (
    *LLAMA, "head_dim", "attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "layer_types", "dtype",
    "quantization_config", "num_experts", "text_config", "architectures", "block_configs", "vision_config",
    "kv_lora_rank", "q_lora_rank", "linear_attn_config", "hybrid_override_pattern", "moe_layer_freq",
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*FAMILIES, "full_attention", 10**30, 10**400, -1, 0, 1, 8, 128])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def model_or_refusal(config: Any) -> None:
    try:
        model = model_from_config(config, "a-model", "config.json")
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right
        return
    assert isinstance(model, Model)
    assert 0 < n_params(weight_tensors(model)) < 10**15


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=4), st.sets(st.sampled_from(KEYS), max_size=2))
@example({"model_type": "a\nb"}, set())
@example({"hidden_act": "a\nb"}, set())
@example({"a\nb_size": 5}, set())
def test_a_config_with_any_keys_changed_or_missing_is_a_model_or_refused(
    changes: dict[str, Any], gone: set[str]
) -> None:
    model_or_refusal({key: value for key, value in {**LLAMA, **changes}.items() if key not in gone})


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), ANYTHING), st.sampled_from(sorted(FAMILIES)))
def test_any_object_is_a_model_or_refused(config: dict[str, Any], family: str) -> None:
    model_or_refusal(config)
    model_or_refusal({**config, "model_type": family})


def test_a_config_is_not_changed_by_reading_it() -> None:
    keys = {**LLAMA, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    beside = {"quantization": {"quant_algo": "FP8"}}
    before = json.dumps([keys, beside])
    assert record_from_config(keys, "config.json") == record_from_config(keys, "config.json")
    assert record_from_config(LLAMA, "config.json", beside) == record_from_config(LLAMA, "config.json", beside)
    assert json.dumps([keys, beside]) == before
