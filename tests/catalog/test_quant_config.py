"""Quantization configs: bytes of published checkpoints, and one line for all that is absurd or unknown."""

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog import quant_config
from slicewise.catalog.hf import model_from_config, read_config
from slicewise.catalog.quant_config import METHODS, quantisation
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.quantisation import Scheme
from slicewise.spec.stored import StoredTensor, as_checkpoint
from slicewise.units import GIB

CONFIGS = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "model_configs"
needs_data = pytest.mark.skipif(not CONFIGS.is_dir(), reason="../shared/data/model_configs is not there")

LLAMA_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_hidden_layers": 80,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
LLAMA_405B = {
    **LLAMA_70B,
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "num_attention_heads": 128,
    "num_hidden_layers": 126,
}
QWEN_MOE = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
FLOAT8 = {**INT8, "type": "float"}
FLOAT4 = {"num_bits": 4, "type": "float"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}


def read(config: dict[str, Any], **quantised: Any) -> Model:
    return model_from_config({**config, "quantization_config": quantised}, "a-model", "config.json")


def groups(weights: dict[str, Any], form: str, **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group}, **more}


def n_bytes(model: Model) -> float:
    return sum(weight.n_bytes for weight in as_checkpoint(model))


def engine_bytes(model: Model, ranks: int = 1) -> float:
    """What an engine loads on each of some ranks: matrices are cut, norms and the rotary table are not."""
    stored = as_checkpoint(model)
    norms = sum(weight.n_bytes for weight in stored if weight.tensor.role == "norm")
    positions, width = model.rope_table
    return (n_bytes(model) - norms) / ranks + norms + positions * width * 2


def stored(model: Model) -> dict[str, StoredTensor]:
    return {weight.tensor.module or weight.tensor.name: weight for weight in as_checkpoint(model)}


def dtypes(model: Model) -> dict[str, str]:
    return {name: weight.dtype for name, weight in stored(model).items()}


def schemes(config: dict[str, Any], **quantised: Any) -> list[Scheme]:
    found = read(config, **quantised).quantisation
    assert found
    return [scheme for _, scheme in found.rules]


# -- published sizes -------------------------------------------------------------------------------------------------


def test_int8_of_llama_70b_is_what_vllm_loads() -> None:
    # vllm-project/vllm#12569 prints 67.7229 GiB.
    model = read(LLAMA_70B, **groups(INT8, "int-quantized", ignore=["lm_head"]))
    assert engine_bytes(model) / GIB == pytest.approx(67.7229, abs=2e-4)


def test_fp8_of_llama_70b_over_four_ranks_is_what_vllm_loads() -> None:
    # Printed: 16.96 GiB a rank.
    model = read(LLAMA_70B, **groups(FLOAT8, "float-quantized", ignore=["lm_head"]))
    assert engine_bytes(model, ranks=4) / GIB == pytest.approx(16.956, abs=5e-4)


def test_fp8_of_llama_405b_leaves_attention_and_the_outer_layers_alone() -> None:
    # Printed: 56.7677 GiB on each of eight ranks, for which the count comes to 56.759.
    kept = [f"model.layers.{layer}.self_attn.{name}" for layer in range(126) for name in PROJECTIONS]
    kept += [f"model.layers.{layer}.mlp.{name}_proj" for layer in (0, 125) for name in ("gate", "up", "down")]
    model = read(LLAMA_405B, quant_method="fbgemm_fp8", activation_scale_ub=1200.0, modules_to_not_convert=kept)
    assert engine_bytes(model, ranks=8) / GIB == pytest.approx(56.759, abs=5e-4)
    assert engine_bytes(model, ranks=8) / GIB == pytest.approx(56.7677, rel=2e-4)


def test_awq_of_llama_70b_has_scales_and_zero_points() -> None:
    # Printed: 37.09 GiB, for which the count comes to 37.07.
    assert engine_bytes(read(LLAMA_70B, **AWQ)) / GIB == pytest.approx(37.07, abs=5e-3)


@needs_data
@pytest.mark.parametrize(
    ("name", "published"),
    [
        # total_size of model.safetensors.index.json.
        pytest.param("openai__gpt-oss-20b", 13_761_264_768),
        pytest.param("openai__gpt-oss-120b", 65_248_815_744),
        # Elements by dtype as Hugging Face counts them: 1,558,406,144 of BF16 and 31,205,621,760 of F8_E4M3.
        pytest.param("Qwen__Qwen3-32B-FP8", 2 * 1_558_406_144 + 31_205_621_760),
    ],
)
def test_checkpoints_are_counted_to_the_byte(name: str, published: int) -> None:
    assert n_bytes(read_config(CONFIGS / f"{name}.json")) == published


@needs_data
def test_experts_of_gpt_oss_have_four_and_a_quarter_bits() -> None:
    experts = [w for w in as_checkpoint(read_config(CONFIGS / "openai__gpt-oss-120b.json")) if w.scheme]
    assert {weight.tensor.role for weight in experts} == {"experts"}
    assert sum(weight.n_bytes for weight in experts) / GIB == pytest.approx(56.73, abs=5e-3)


@needs_data
@pytest.mark.parametrize("name", ["deepseek-ai__DeepSeek-V3", "deepseek-ai__DeepSeek-R1"])
def test_deepseek_is_counted_but_for_its_prediction_layer(name: str) -> None:
    # The safetensors files of the repository have 688,586,727,753 bytes: tensors, 163 headers of some 70 kB, and a
    # layer that predicts one token more, with a copy of both embeddings and a projection of its own.
    model = read_config(CONFIGS / f"{name}.json")
    last = sum(w.n_bytes / len(w.tensor.layers) for w in as_checkpoint(model) if 60 in w.tensor.layers)
    embedding = 129280 * 7168 * 2
    predicting = last + 2 * embedding + 2 * 7168 * 7168 * 2
    assert n_bytes(model) + predicting == pytest.approx(688_586_727_753, rel=2e-5)


@needs_data
@pytest.mark.parametrize(
    ("name", "published_gb", "rel"),
    [
        # Sizes as the pages of the repositories round them; what is not counted is said.
        pytest.param("Qwen__Qwen3-235B-A22B-FP8", 236, 3e-3),
        pytest.param("MiniMaxAI__MiniMax-M2.5", 230, 3e-3),
        pytest.param("moonshotai__Kimi-K2-Instruct", 1030, 2e-3),
        pytest.param("moonshotai__Kimi-K2.5", 595, 2e-3),
        # A checkpoint of 1.56 TB, its vision tower of under 1 GB included.
        pytest.param("moonshotai__Kimi-K3", 1560, 1e-3),
        # 22 GB with a layer that predicts a further token and a vision tower, which have 1.8 GB in 16 bits.
        pytest.param("nvidia__Qwen3.6-27B-NVFP4", 22 - 1.8, 1e-2),
        # Its index says 159.61 GB, of which one of 44 layers predicts a further token.
        pytest.param("deepseek-ai__DeepSeek-V4-Flash", 159.61 * 43 / 44, 3e-3),
    ],
)
def test_checkpoints_come_near_their_repositories(name: str, published_gb: float, rel: float) -> None:
    assert n_bytes(read_config(CONFIGS / f"{name}.json")) == pytest.approx(published_gb * 1e9, rel=rel)


@needs_data
@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_every_published_quantization_config_is_read(path: Path) -> None:
    keys = json.loads(path.read_text())
    quantised = keys.get("quantization_config") or keys.get("text_config", {}).get("quantization_config")
    found = quantisation(keys, path.name)
    assert (found is None) == (quantised is None)
    # Lists of hundreds of names become few patterns, or each layer's matrices would be held to all of them.
    assert found is None or len(found["ignored"]) + len(found["rules"]) < 20


# -- which matrices --------------------------------------------------------------------------------------------------


@needs_data
def test_a_list_of_712_names_keeps_norms_routers_and_an_indexer_projection() -> None:
    found = dtypes(read_config(CONFIGS / "zai-org__GLM-5-FP8.json"))
    kept = {"embed_tokens", "lm_head", "mlp.gate", "self_attn.indexer.weights_proj"}
    matrices = {name: dtype for name, dtype in found.items() if "." in name or name in kept}
    assert {name for name, dtype in matrices.items() if dtype == "bf16"} == kept
    assert matrices["self_attn.indexer.wq_b"] == matrices["mlp.experts.{expert}.up_proj"] == "fp8"


@needs_data
def test_globs_of_a_language_model_keep_its_attention() -> None:
    found = dtypes(read_config(CONFIGS / "nvidia__Gemma-4-31B-IT-NVFP4.json"))
    assert {found[f"self_attn.{name}"] for name in PROJECTIONS} == {"bf16"}
    assert {found[f"mlp.{name}_proj"] for name in ("gate", "up", "down")} == {"fp4"}


@needs_data
def test_a_config_inside_the_text_model_is_found() -> None:
    model = read_config(CONFIGS / "moonshotai__Kimi-K2.5.json")
    assert {w.tensor.role for w in as_checkpoint(model) if w.dtype == "int4"} == {"experts"}


@needs_data
def test_deepseek_v4_has_experts_of_four_bits_and_scales_of_a_byte() -> None:
    found = stored(read_config(CONFIGS / "deepseek-ai__DeepSeek-V4-Flash.json"))
    assert {found[f"ffn.experts.{{expert}}.{name}"].dtype for name in ("w1", "w2", "w3")} == {"fp4"}
    assert found["ffn.shared_experts.w1"].dtype == "fp8"
    assert found["ffn.shared_experts.w1"].scale_bytes == 43 * (2048 // 128) * (4096 // 128)
    kept = ("ffn.gate", "attn.indexer.weights_proj", "attn.compressor.wkv", "attn.indexer.compressor.wgate")
    assert {found[name].dtype for name in kept} == {"bf16"}
    assert found["attn.indexer.wq_b"].dtype == "fp8"


@needs_data
def test_step_quantises_its_experts_alone_though_it_lists_no_exceptions() -> None:
    quantised = [w for w in as_checkpoint(read_config(CONFIGS / "stepfun-ai__Step-3.7-Flash-FP8.json")) if w.scheme]
    assert {weight.tensor.role for weight in quantised} == {"experts"}


@needs_data
def test_layers_that_name_their_algorithm_leave_the_rest_alone() -> None:
    found = dtypes(read_config(CONFIGS / "nvidia__Qwen3.6-35B-A3B-NVFP4.json"))
    assert {found[f"linear_attn.{name}"] for name in ("in_proj_qkv", "in_proj_z", "out_proj")} == {"fp8"}
    assert {found[f"linear_attn.{name}"] for name in ("in_proj_a", "in_proj_b")} == {"bf16"}
    assert {found["mlp.experts.{expert}.up_proj"], found["mlp.shared_expert.up_proj"], found["lm_head"]} == {"fp4"}
    assert {found["mlp.gate"], found["mlp.shared_expert_gate"], found["embed_tokens"]} == {"bf16"}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([f"model.layers.{layer}.mlp.down_proj" for layer in range(48)], id="exact"),
        pytest.param([f"model.language_model.layers.{layer}.mlp.down_proj*" for layer in range(48)], id="globs"),
        pytest.param(["language_model.model.layers.*.mlp.down_proj"], id="one-glob"),
        pytest.param(["*.down_proj"], id="leading-star"),
        pytest.param(["down_proj"], id="part"),
        pytest.param(["backbone.layers.[0-9]+.mlp.down_proj"], id="unmarked-regex"),
        pytest.param([r"re:.*\.down_proj$"], id="regex"),
        pytest.param([r"re:model\.layers\.\d+\.mlp\.down_proj"], id="regex-from-the-start"),
        pytest.param([r"re:.*\.layers\.\d+\.mlp\.(down|none)_proj"], id="regex-before-the-layers"),
        pytest.param([f"model.layers.{layer}.mlp.w2.weight" for layer in range(48)], id="other-word"),
        pytest.param([f"model.layers.{layer}.feed_forward.down_proj" for layer in range(48)], id="other-module"),
    ],
)
def test_one_kind_of_matrix_by_many_forms_of_its_name(names: list[str]) -> None:
    model = read({**LLAMA_70B, "num_hidden_layers": 48}, quant_method="fp8", modules_to_not_convert=names)
    found = dtypes(model)
    assert found["mlp.down_proj"] == "bf16"
    assert {found["mlp.up_proj"], found["self_attn.o_proj"]} == {"fp8"}


@pytest.mark.parametrize(
    "names",
    [
        ["model.layers.0.mlp.experts"],
        ["model.layers.0.mlp.experts.0.gate_proj", "model.layers.0.mlp.experts.0.up_proj",
         "model.layers.0.mlp.experts.0.down_proj", "model.layers.0.mlp.experts.1.down_proj"],
        ["model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj"],
        ["model.layers.0.mlp.experts.*"],
        [r"re:.*layers\.0\.mlp\.experts.*"],
    ],
)  # fmt: skip
def test_experts_by_many_forms_of_their_name(names: list[str]) -> None:
    model = read(QWEN_MOE, quant_method="fp8", modules_to_not_convert=names)
    experts = [weight for weight in as_checkpoint(model) if weight.tensor.role == "experts"]
    assert {w.tensor.layers for w in experts if w.dtype == "bf16"} == {(0,)}
    assert {w.tensor.layers for w in experts if w.dtype == "fp8"} == {tuple(range(1, 48))}
    assert sum(weight.dtype == "bf16" for weight in experts) == 3


@pytest.mark.parametrize(
    "names",
    [
        ["visual.blocks.0.mlp.down_proj", "vision_model.model.layers.0.mlp.down_proj", "model.vision_tower*"],
        ["mtp*", "mtp.layers.0*", "model.mtp.layers.0.mlp.down_proj"],
        ["model.layers.1.mlp.down_proj.bias", "model.layers.11", "model.layers.1.mlp.down"],
    ],
)
def test_names_of_other_modules_keep_nothing(names: list[str]) -> None:
    config = {**LLAMA_70B, "num_hidden_layers": 2}
    assert dtypes(read(config, quant_method="fp8", modules_to_not_convert=names)) == dtypes(
        read(config, quant_method="fp8")
    )


def test_a_part_of_a_name_ends_at_a_dot() -> None:
    found = dtypes(read(QWEN_MOE, quant_method="fp8", modules_to_not_convert=["gate", "lm_head"]))
    assert found["mlp.gate"] == "bf16"
    assert found["mlp.experts.{expert}.gate_proj"] == "fp8"


def test_targets_by_name_come_before_classes() -> None:
    four = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
    config_groups = {
        "group_0": {"targets": ["Linear"], "weights": FLOAT8},
        "group_1": {"targets": ["re:.*mlp.*", "lm_head"], "weights": four},
    }
    model = read(LLAMA_70B, quant_method="compressed-tensors", format="mixed-precision", config_groups=config_groups)
    found = dtypes(model)
    assert (found["self_attn.q_proj"], found["mlp.up_proj"], found["lm_head"]) == ("fp8", "int4", "int4")
    assert found["embed_tokens"] == "bf16"


def test_the_router_is_quantised_only_where_it_is_targeted() -> None:
    wide = groups(FLOAT8, "float-quantized")
    assert dtypes(read(QWEN_MOE, **wide))["mlp.gate"] == "bf16"
    wide["config_groups"]["group_0"]["targets"] = [r"re:.*mlp\.gate$"]
    found = dtypes(read(QWEN_MOE, **wide))
    assert (found["mlp.gate"], found["mlp.experts.{expert}.up_proj"]) == ("fp8", "bf16")


# -- schemes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantised", "scheme"),
    [
        pytest.param(
            {"quant_method": "fp8", "weight_block_size": [64, 128]},
            Scheme(dtype="fp8", block=(128, 64)),
            id="fp8-blocks-of-64-outputs-and-128-inputs",
        ),
        pytest.param(
            {"quant_method": "fp8", "activation_scheme": "static"},
            Scheme(dtype="fp8", tensor_bytes=4.0),
            id="fp8-static",
        ),
        pytest.param(groups(FLOAT8, "float-quantized"), Scheme(dtype="fp8", block=(0, 1)), id="fp8-channel"),
        pytest.param(
            groups({"num_bits": 8, "type": "float", "strategy": "tensor"}, "naive-quantized"),
            Scheme(dtype="fp8"),
            id="fp8-tensor",
        ),
        pytest.param(
            groups({**FLOAT8, "strategy": "block", "block_structure": [128, 64]}, "float-quantized"),
            Scheme(dtype="fp8", block=(64, 128)),
            id="fp8-block",
        ),
        pytest.param(
            groups({**FLOAT4, "strategy": "tensor_group", "group_size": 16}, "nvfp4-pack-quantized"),
            Scheme(dtype="fp4", block=(16, 1), scale_bytes=1.0, tensor_bytes=4.0),
            id="nvfp4",
        ),
        pytest.param(
            groups({**FLOAT4, "strategy": "group", "group_size": 32}, "mxfp4-pack-quantized"),
            Scheme(dtype="fp4", block=(32, 1), scale_bytes=1.0),
            id="mxfp4",
        ),
        pytest.param(
            groups({"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}, "pack-quantized"),
            Scheme(dtype="int4", block=(32, 1), scale_bytes=2.0, zero_point_bits=4.0, tensor_bytes=16.0),
            id="int4-packed",
        ),
        pytest.param(
            groups({"num_bits": 4, "strategy": "group", "group_size": 64, "actorder": "group"}, "pack-quantized"),
            Scheme(dtype="int4", block=(64, 1), scale_bytes=2.0, tensor_bytes=16.0, input_bytes=4.0),
            id="int4-packed-in-another-order",
        ),
        pytest.param(
            {**AWQ, "zero_point": False, "group_size": 64},
            Scheme(dtype="int4", block=(64, 1), scale_bytes=2.0),
            id="awq",
        ),
        pytest.param(
            GPTQ,
            Scheme(dtype="int4", block=(128, 1), scale_bytes=2.0, zero_point_bits=4.0, input_bytes=4.0),
            id="gptq",
        ),
        pytest.param(
            {**GPTQ, "bits": 8, "group_size": -1},
            Scheme(dtype="int8", block=(0, 1), scale_bytes=2.0, zero_point_bits=8.0, input_bytes=4.0),
            id="gptq-8-bits-by-channel",
        ),
        pytest.param({"quant_method": "fbgemm_fp8"}, Scheme(dtype="fp8", block=(0, 1)), id="fbgemm"),
        pytest.param({"load_in_8bit": True}, Scheme(dtype="int8", block=(0, 1)), id="bitsandbytes-8-bits"),
        pytest.param(
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            Scheme(dtype="int4", block=(64, 1), tensor_bytes=64.0),
            id="bitsandbytes-4-bits",
        ),
        pytest.param({"quant_algo": "FP8"}, Scheme(dtype="fp8", tensor_bytes=4.0), id="modelopt-fp8"),
        pytest.param(
            {"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16},
            Scheme(dtype="fp4", block=(16, 1), scale_bytes=1.0, tensor_bytes=8.0),
            id="modelopt-nvfp4",
        ),
        pytest.param(
            {"quant_algo": "W4A8_AWQ", "group_size": 128},
            Scheme(dtype="int4", block=(128, 1), scale_bytes=2.0, input_bytes=2.0),
            id="modelopt-w4a8",
        ),
        pytest.param(
            {"quant_algo": "W4A8_NVFP4_FP8", "group_size": 32},
            Scheme(dtype="fp4", block=(32, 1), scale_bytes=1.0, tensor_bytes=8.0),
            id="modelopt-w4a8-nvfp4",
        ),
        pytest.param(
            {"quant_algo": "FP8_PB_WO"}, Scheme(dtype="fp8", block=(128, 128)), id="modelopt-fp8-blocks"
        ),
    ],
)  # fmt: skip
def test_methods_become_schemes(quantised: dict[str, Any], scheme: Scheme) -> None:
    assert schemes(LLAMA_70B, **quantised) == [scheme]


def test_twice_quantised_scales_of_bitsandbytes_take_a_byte_and_a_64th() -> None:
    once, twice = (
        schemes(LLAMA_70B, quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_use_double_quant=nested)[0]
        for nested in (False, True)
    )
    assert (once.scale_bytes, twice.scale_bytes) == (4.0, 1 + 1 / 64)


def test_qwen_keeps_scales_of_blocks_in_16_bits() -> None:
    quantised = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert schemes(QWEN_MOE, **quantised)[0].scale_bytes == 2
    assert schemes(LLAMA_70B, **quantised)[0].scale_bytes == 4


def test_gptq_may_leave_modules_out_or_be_for_some_alone() -> None:
    attention = read(LLAMA_70B, **GPTQ, dynamic={"-:.*mlp.*": {}})
    assert (dtypes(attention)["mlp.up_proj"], dtypes(attention)["self_attn.q_proj"]) == ("bf16", "int4")
    wider = read(LLAMA_70B, **GPTQ, dynamic={r"+:.*down_proj": {"bits": 8, "group_size": 32}}, lm_head=True)
    assert (dtypes(wider)["mlp.down_proj"], dtypes(wider)["mlp.up_proj"], dtypes(wider)["lm_head"]) == (
        "int8", "int4", "int4",
    )  # fmt: skip
    some = read(LLAMA_70B, **GPTQ, modules_in_block_to_quantize=[["self_attn.q_proj"], ["mlp.up_proj"]])
    assert {name for name, dtype in dtypes(some).items() if dtype == "int4"} == {"self_attn.q_proj", "mlp.up_proj"}


def test_auto_round_lists_what_it_keeps() -> None:
    quantised = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}
    model = read(LLAMA_70B, **quantised, extra_config={"model.layers.0.mlp.up_proj": {"bits": 16}})
    assert {w.dtype: len(w.tensor.layers) for w in as_checkpoint(model) if w.tensor.name == "w_up"} == {
        "bf16": 1, "int4": 79,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("quantised", "dtype"),
    [
        (groups(FLOAT8, "float-quantized", kv_cache_scheme={"num_bits": 8, "type": "float"}), "fp8"),
        (groups(FLOAT8, "float-quantized", kv_cache_scheme={"num_bits": 8, "type": "int"}), "int8"),
        (groups(FLOAT8, "float-quantized", kv_cache_scheme=None), None),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}, "fp4"),
        ({"quant_algo": "FP8", "kv_cache_scheme": "FP8"}, "fp8"),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "auto"}, None),
        ({"quant_method": "fp8", "kv_cache_scheme": "static"}, "fp8"),
    ],
)
def test_the_cache_has_the_dtype_that_the_checkpoint_asks_for(quantised: dict[str, Any], dtype: str | None) -> None:
    found = read(LLAMA_70B, **quantised).quantisation
    assert found
    assert found.kv_dtype == dtype


# -- modelopt's own file ---------------------------------------------------------------------------------------------


def test_layers_of_their_own_algorithms() -> None:
    listed = {
        f"model.layers.{layer}.mlp.{name}_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16}
        for layer in range(80)
        for name in ("gate", "up", "down")
    }
    listed |= {f"model.layers.{layer}.self_attn.qkv_proj": {"quant_algo": "FP8"} for layer in range(80)}
    listed |= {"lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}
    listed |= {"model.layers.0.self_attn.o_proj": {"quant_algo": "UNQUANTIZED"}}
    beside = {
        "quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8", "quantized_layers": listed}
    }
    model = model_from_config(LLAMA_70B, "a-model", "config.json", beside)
    found = dtypes(model)
    assert {found[f"self_attn.{name}_proj"] for name in "qkv"} == {"fp8"}
    assert (found["self_attn.o_proj"], found["mlp.down_proj"], found["lm_head"]) == ("bf16", "fp4", "fp4")
    assert model.quantisation
    assert (model.quantisation.dtype, model.quantisation.kv_dtype) == ("fp4", "fp8")


def test_the_file_beside_gives_the_cache_where_the_config_does_not() -> None:
    keys = {**LLAMA_70B, "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}
    beside = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    found = model_from_config(keys, "a-model", "config.json", beside).quantisation
    assert found
    assert (found.dtype, found.kv_dtype) == ("fp8", "fp8")


def test_the_file_beside_a_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_70B))
    beside = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}, "producer": {"name": "modelopt"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside))
    model = read_config(tmp_path / "config.json")
    assert model.quantisation
    assert model.quantisation.method == "modelopt"
    # One float32 scale for each of seven matrices of 80 layers, and one for its inputs.
    assert sum(weight.scale_bytes for weight in as_checkpoint(model)) == 8 * 7 * 80
    # A config of another name may have nothing to do with it.
    (tmp_path / "other.json").write_text(json.dumps(LLAMA_70B))
    assert read_config(tmp_path / "other.json").quantisation is None


@pytest.mark.parametrize("name", ["Llama-70B-FP8", "llama-70b-awq", "Llama-70B-w4a16", "Llama-NVFP4"])
def test_a_name_that_promises_more_than_the_config_says_is_noted(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_70B))
    (note,) = read_config(folder / "config.json").notes
    assert "hf_quant_config.json" in note
    assert "bf16" in note
    (folder / "config.json").write_text(json.dumps({**LLAMA_70B, "quantization_config": AWQ}))
    assert read_config(folder / "config.json").notes == ()


# -- what is not understood ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["quark", "hqq", "aqlm", "nothing"])
def test_unknown_methods_are_refused_by_name_with_the_way_round(method: str) -> None:
    with pytest.raises(UnsupportedModelError, match=rf"quant_method {method} is not supported.*--weights"):
        read(LLAMA_70B, quant_method=method)


@pytest.mark.parametrize(
    ("quantised", "message"),
    [
        ({**GPTQ, "bits": 3000}, r"bits 3,000 is not supported \(4 and 8 are\)"),
        ({**GPTQ, "bits": 3}, r"bits 3 is not supported"),
        ({**GPTQ, "bits": "4"}, r"bits is '4'; it must be a whole number"),
        ({**GPTQ, "group_size": -5}, r"group_size is -5; it must be a whole number of at least -1"),
        ({**GPTQ, "group_size": 0}, r"group_size is 0; it must be -1 or"),
        ({**GPTQ, "group_size": 10**7}, r"group_size is 10,000,000; it must be -1 or"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, r"weight_block_size has 1 sides"),
        ({"quant_method": "fp8", "weight_block_size": [128, -1]}, r"weight_block_size is -1"),
        ({"quant_method": "fp8", "weight_block_size": {"a": 1}}, r"weight_block_size is .*; it must be a list"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, r"modules_to_not_convert is 'lm_head'"),
        ({"quant_method": "fp8", "modules_to_not_convert": [None]}, r"holds None; names of modules are text"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:("]}, r"'re:\(' is no regular expression"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:" + "a" * 2000]}, r"has 2,000 characters"),
        ({"quant_method": "fp8", "expert_dtype": "int3"}, r"expert_dtype int3 is not supported"),
        ({"quant_method": ["fp8"]}, r"quant_method is \['fp8'\]; it must be a word"),
        ({"quant_method": "bitsandbytes"}, r"neither load_in_4bit nor load_in_8bit"),
        ({"quant_method": "compressed-tensors"}, r"config_groups is missing"),
        ({"quant_method": "compressed-tensors", "config_groups": []}, r"config_groups is \[\]; it must be an object"),
        (groups([], "pack-quantized"), r"weights is \[\]; it must be an object"),  # type: ignore[arg-type]
        (groups(INT8, "marlin-24"), r"format marlin-24 is not supported"),
        (groups(INT8, "int-quantized", sparsity_config={"format": "sparse-24"}), r"format sparse-24 is not supported"),
        ({"quant_algo": "W2A2"}, r"quant_algo W2A2 is not supported"),
        ({"quant_algo": "MIXED_PRECISION"}, r"MIXED_PRECISION needs quantized_layers"),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP3"}, r"a KV cache of fp3 is not supported"),
    ],
)
def test_absurd_values_are_refused_in_a_line(quantised: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read(LLAMA_70B, **quantised)
    assert str(refused.value).startswith("config.json: quantization_config: ")


@pytest.mark.parametrize("strange", [["fp8"], "fp8", 8])
def test_a_quantization_config_is_an_object(strange: object) -> None:
    with pytest.raises(InputError, match=r"quantization_config is .*; it must be an object"):
        model_from_config({**LLAMA_70B, "quantization_config": strange}, "a-model", "config.json")


def _spoilt(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Any:
    """A value with something else in the place of one of its parts."""
    if isinstance(value, dict | list) and value and draw(st.booleans()):
        key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        changed = dict(value) if isinstance(value, dict) else list(value)
        changed[key] = _spoilt(draw, value[key])
        return changed
    leaves = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("re:(") | st.just("*")
    )
    return draw(
        st.recursive(
            leaves,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=4,
        )
    )


@st.composite
def spoilt_configs(draw: st.DrawFn) -> dict[str, Any]:
    sound = [
        {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]},
        groups({**INT8, "group_size": 32}, "pack-quantized", ignore=["re:.*mlp.*"], kv_cache_scheme=INT8),
        {"quant_algo": "MIXED_PRECISION", "quantized_layers": {"lm_head": {"quant_algo": "NVFP4", "group_size": 16}}},
        {**AWQ, "modules_to_not_convert": ["gate"]},
        {**GPTQ, "dynamic": {"+:.*mlp": {"bits": 8, "group_size": 32}}, "modules_in_block_to_quantize": [["a"]]},
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
    ]  # fmt: skip
    return _spoilt(draw, draw(st.sampled_from(sound)))


@given(spoilt_configs())
def test_a_spoilt_config_is_read_or_refused_in_a_line(quantised: object) -> None:
    keys = {**LLAMA_70B, "num_hidden_layers": 2, "quantization_config": quantised}
    with contextlib.suppress(InputError):
        model = model_from_config(keys, "a-model", "config.json")
        assert 0 < n_bytes(model) <= 4 * n_bytes(replace(model, quantisation=None))


def test_the_module_names_every_method_that_it_reads() -> None:
    assert all(re.search(rf"\b{method}\b", quant_config.__doc__ or "") for method in METHODS)
