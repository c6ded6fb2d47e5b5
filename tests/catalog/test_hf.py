"""config.json: the LLaMA family is read exactly, all else is refused by name, and nothing else ever happens."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slicewise.catalog.hf import FAMILIES, model_from_config, read_config
from slicewise.costs.weights import n_params
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import weight_tensors

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
CONFIGS = sorted((DATA / "model_configs").glob("*.json"))
needs_data = pytest.mark.skipif(not CONFIGS, reason="../shared/data/model_configs is not there")

LLAMA = {
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


# -- published configs -----------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_published_configs_are_read_exactly_or_refused_by_name(path: Path) -> None:
    with (DATA / "parameter_counts.csv").open() as file:
        counts = {row["config"]: row["n_params"] for row in csv.DictReader(file)}
    config = json.loads(path.read_text())
    named = config.get("model_type") or config["architectures"][0].removesuffix("ForCausalLM").lower()
    if named in FAMILIES and not config.get("quantization_config"):
        count = n_params(weight_tensors(read_config(path)))
        # A model that was not counted has the size of its base model, or of its forerunner, that was.
        kin = (path.stem, path.stem.removesuffix("-Instruct"), path.stem.replace("Qwen2.5", "Qwen2"))
        assert count == int(next(counts[name] for name in kin if name in counts))
        return
    with pytest.raises(InputError) as refused:
        read_config(path)
    message = str(refused.value)
    assert "\n" not in message
    assert "model_type" in message or "quantization_config" in message
    assert named in message or config["architectures"][0] in message or "quantization_config" in message


@needs_data
def test_published_configs_of_the_family_are_many() -> None:
    found = [path for path in CONFIGS if json.loads(path.read_text()).get("model_type") in FAMILIES]
    assert len(found) > 20


# -- keys ------------------------------------------------------------------------------------------------------------


def test_keys_become_sizes_with_their_origin() -> None:
    model = read({})
    assert n_params(weight_tensors(model)) == 8_030_261_248
    assert (model.n_kv_heads, model.head_dim, model.max_context_tokens) == (8, 128, 131072)
    assert model.provenance["n_layers"].printed == "32, read from config.json"


def test_head_dim_is_read_where_it_is_given() -> None:
    # Mistral Nemo: 32 heads of 128 at a width of 5120. https://github.com/vllm-project/vllm/issues/2622
    assert read({"hidden_size": 5120, "head_dim": 128}).head_dim == 128
    assert read({"hidden_size": 5120}).head_dim == 160


@pytest.mark.parametrize(
    ("slip", "key"),
    [
        ("num_key_value_head", "num_key_value_heads"),
        ("tie_word_embedding", "tie_word_embeddings"),
        ("n_um_hidden_layers", "num_hidden_layers"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_right_one(slip: str, key: str) -> None:
    config = {name: value for name, value in LLAMA.items() if name != key}
    with pytest.raises(InputError, match=f"{slip} is no key of a config.json; did you mean {key}"):
        model_from_config({**config, slip: 8}, "a-model", "config.json")


@pytest.mark.parametrize("family", ["mistral", "qwen2"])
def test_kv_heads_that_are_missing_are_refused_where_the_family_states_them(family: str) -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    with pytest.raises(InputError, match="num_key_value_heads is missing"):
        model_from_config({**config, "model_type": family}, "a-model", "config.json")
    found = model_from_config({**config, "model_type": "llama"}, "a-model", "config.json")
    assert found.n_kv_heads == 32
    assert "states no num_key_value_heads" in found.provenance["n_kv_heads"].printed


def test_the_architecture_stands_for_a_missing_family() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "model_type"}
    found = model_from_config({**config, "architectures": ["Qwen2ForCausalLM"]}, "a-model", "config.json")
    assert found.qkv_bias
    with pytest.raises(UnsupportedModelError, match="model_type PhiForCausalLM"):
        model_from_config({**config, "architectures": ["PhiForCausalLM"]}, "a-model", "config.json")


def test_missing_keys_take_the_defaults_of_transformers() -> None:
    model = read({"num_key_value_heads": None, "torch_dtype": None, "max_position_embeddings": None})
    assert (model.n_kv_heads, model.checkpoint_dtype, model.max_context_tokens) == (32, "bf16", math.inf)


@pytest.mark.parametrize(("named", "dtype"), [("float16", "fp16"), ("float32", "fp32"), ("torch.bfloat16", "bf16")])
def test_the_checkpoint_says_its_dtype(named: str, dtype: str) -> None:
    assert read({"torch_dtype": named}).checkpoint_dtype == dtype
    assert read({"torch_dtype": None, "dtype": named}).checkpoint_dtype == dtype


@pytest.mark.parametrize(
    ("changes", "qkv", "out", "mlp"),
    [
        ({}, False, False, False),
        ({"attention_bias": True}, True, True, False),
        ({"mlp_bias": True}, False, False, True),
        ({"model_type": "qwen2"}, True, False, False),
        ({"model_type": "mistral"}, False, False, False),
    ],
)
def test_biases_are_those_of_the_family(changes: dict[str, Any], qkv: bool, out: bool, mlp: bool) -> None:
    model = read(changes)
    assert (model.qkv_bias, model.out_bias, model.mlp_bias) == (qkv, out, mlp)


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({}, math.inf),
        ({"model_type": "mistral", "sliding_window": 4096}, 4096),
        ({"model_type": "mistral", "sliding_window": None}, math.inf),
        ({"model_type": "mistral"}, 4096),
        ({"model_type": "qwen2", "sliding_window": 131072, "use_sliding_window": False}, math.inf),
        ({"layer_types": ["full_attention"] * 32}, math.inf),
    ],
)
def test_the_window_is_that_of_the_family(changes: dict[str, Any], window: float) -> None:
    assert read(changes).attention_window == window


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "mixtral"}, "model_type mixtral"),
        ({"model_type": None}, "model_type"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        ({"num_local_experts": 8}, "num_local_experts"),
        ({"n_routed_experts": 256}, "n_routed_experts"),
        ({"kv_lora_rank": 512}, "kv_lora_rank"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ({"layer_types": 5}, "layer_types"),
        ({"layer_types": [[]]}, "layer_types"),
        ({"text_config": {"hidden_size": 1}}, "text_config"),
        ({"vision_config": {"depth": 1}}, "vision_config"),
        ({"vision_config": True}, "vision_config"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"torch_dtype": "int3"}, "torch_dtype"),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4096}, "use_sliding_window"),
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
    "value", [None, 0, -1, 1.5, 32.0, "32", True, [32], {"of": 32}, pytest.param(10**400, id="huge")]
)
def test_sizes_are_whole_numbers_that_a_model_can_have(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=key) as refused:
        read({key: value, "head_dim": 128, "num_key_value_heads": None})
    assert "\n" not in str(refused.value)


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="num_key_value_heads"):
        read({"num_key_value_heads": 5})
    with pytest.raises(InputError, match="head_dim is missing and hidden_size 4095"):
        read({"hidden_size": 4095})


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not valid JSON at line 1"),
        (b"{", "not valid JSON"),
        (b'{"a": 1,}', "not valid JSON"),
        (b"[]", "holds a list, not an object"),
        (b"5", "holds a int, not an object"),
        (b"null", "not an object"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"[" * 100_000, ""),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", ""),
        (b'{"model_type": "llama", "hidden_size": NaN}', ""),
        (b'{"model_type": "llama", "num_attention_heads": Infinity}', "num_attention_heads"),
    ],
    ids=["empty", "open", "comma", "list", "number", "null", "no-text", "deep", "long-number", "nan", "infinity"],
)
def test_files_that_hold_no_config_are_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_config(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path)


# -- anything --------------------------------------------------------------------------------------------------------

KEYS = (
    *LLAMA, "head_dim", "attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "layer_types", "dtype",
    "quantization_config", "num_experts", "text_config", "architectures", "block_configs",
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
        assert isinstance(model_from_config(config, "a-model", "config.json"), Model)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=4), st.sets(st.sampled_from(KEYS), max_size=2))
@example({"model_type": "a\nb"}, set())
@example({"hidden_act": "a\nb"}, set())
def test_a_config_with_any_keys_changed_or_missing_is_a_model_or_refused(
    changes: dict[str, Any], gone: set[str]
) -> None:
    model_or_refusal({key: value for key, value in {**LLAMA, **changes}.items() if key not in gone})


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), ANYTHING))
def test_any_object_is_a_model_or_refused(config: dict[str, Any]) -> None:
    model_or_refusal(config)
