"""Start-up logs of serving engines, read in public: what they printed is what the formulas give.

One id is one log. Relations that need no model hold over every log that has the figures; the others over the logs whose
model is known and whose shape is had. What is not used, or does not hold, is listed below with the reason.
"""

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.costs import paging
from slicewise.planner.engine_implied import implied
from slicewise.planner.engine_log import engine_log
from slicewise.planner.engine_record import EngineLog, EngineRun
from slicewise.planner.engines import Engine, engine_named
from slicewise.spec.model import Model, dense_model
from slicewise.spec.ranks import Ranks, rope_table_bytes, weight_bytes_per_chip
from slicewise.spec.stored import as_checkpoint
from slicewise.units import GIB

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILE, CONFIGS = DATA / "kv_capacity.csv", DATA / "model_configs"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="../shared/data/kv_capacity.csv is not there")
TOLERANCE = 0.0005


# --- The logs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Log:
    """One log: its settings as the file has them, and the figures that were printed."""

    settings: dict[str, str]
    figures: dict[str, str]

    def number(self, metric: str) -> float:
        return float(self.figures[metric].replace(",", ""))

    def half_unit(self, metric: str) -> float:
        """Half of the last digit that was printed."""
        return 0.5 * 10.0 ** -len(self.figures[metric].partition(".")[2])

    def setting(self, name: str) -> int:
        return int(self.settings[name] or 1)

    @property
    def engine(self) -> Engine:
        name = self.settings["engine"].split()[0]
        version = re.search(r"\d+\.\d+", self.settings["engine_version"])
        known = name if name in ("sglang", "tpu-inference") else "vllm"
        # Versions were often not named; those logs are from before 2026, and of one kind of layer.
        return engine_named(known if known != "vllm" else f"vllm-{version[0] if version else '0.10'}")


def _logs() -> dict[str, Log]:
    found: dict[str, Log] = {}
    if FILE.exists():
        with FILE.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(row["id"], Log(row, {})).figures[row["metric"]] = row["value"]
    return found


LOGS = _logs()


# --- Their models -----------------------------------------------------------------------------------------------------


def config(name: str, **changes: Any) -> Callable[[], Model]:
    """A model by its config, with some of its keys changed."""

    def read() -> Model:
        path = CONFIGS / f"{name}.json"
        if not path.exists():
            pytest.skip(f"{path.name} is not there")
        return model_from_config({**json.loads(path.read_text(encoding="utf-8")), **changes}, name, path.name)

    return read


def shape(n_layers: int, n_heads: int, n_kv_heads: int, head_dim: int, **more: Any) -> Callable[[], Model]:
    """What decides a cache of a model that has no config here: published sizes of its attention."""
    sizes = {"name": "shape", "d_model": n_heads * head_dim, "d_ff": 4 * n_heads * head_dim, "vocab_size": 50_257}
    attention = {"n_layers": n_layers, "n_heads": n_heads, "n_kv_heads": n_kv_heads, "head_dim": head_dim}
    return lambda: dense_model(**{**sizes, **attention, **more})


@dataclass(frozen=True)
class Served:
    """The model of a log, and what the file does not say of its start."""

    model: Callable[[], Model]
    kv_dtype: str = "auto"
    more: dict[str, Any] = field(default_factory=dict)
    prefix_caching: bool | None = None


LLAMA_8B = config("meta-llama__Llama-3.1-8B-Instruct")
SERVED = {
    "L001": Served(LLAMA_8B),
    "L002": Served(LLAMA_8B),
    "L004": Served(config("Qwen__Qwen3-235B-A22B-FP8"), "bf16"),
    "L010": Served(shape(48, 32, 4, 128), "fp8"),  # As the file has it; the model was not named.
    "L011": Served(shape(48, 32, 4, 128), "fp8"),
    "L031": Served(config("Qwen__Qwen3-Coder-480B-A35B-Instruct")),
    # Before stages were told apart, the check charged one rank with every layer. Same attention as Qwen3-30B-A3B.
    "L032": Served(config("Qwen__Qwen3-30B-A3B"), more={"ranks": Ranks()}),
    "L034": Served(shape(30, 24, 2, 128, attention_window=4096)),
    # Windows were charged in full, as the log warns.
    "L035": Served(config("meta-llama__Llama-4-Scout-17B-16E-Instruct"), more={"windows": False}),
    "L037": Served(config("meta-llama__Llama-3.1-8B")),  # The shape was printed: 32 * (3168, 256, 16, 128).
    "L038": Served(config("Qwen__Qwen3-0.6B")),  # The shape was printed: (53059, 64, 8, 2, 128).
    "L041": Served(config("meta-llama__Llama-2-7b-hf")),
    "L043": Served(LLAMA_8B),
    "L044": Served(config("Qwen__Qwen2.5-7B")),  # R1-Distill-Qwen-7B has its shape.
    "L047": Served(shape(40, 40, 10, 128)),  # phi-4
    "L049": Served(shape(92, 96, 8, 128), "fp8"),  # The attention of GLM-4.7; the checkpoint asks for fp8.
    "L052": Served(config("meta-llama__Llama-3.1-70B-Instruct")),
    "L056": Served(config("Qwen__Qwen3-30B-A3B")),
    "L058": Served(LLAMA_8B),
    "L064": Served(config("google__gemma-3-1b-it")),
    "L065": Served(config("google__gemma-3-1b-it"), more={"max_num_batched_tokens": 2048}),
    "L066": Served(config("nvidia__Qwen3.6-27B-NVFP4"), "fp8"),
    "L067": Served(config("nvidia__Qwen3.6-27B-NVFP4"), "bf16"),
    "L068": Served(config("nvidia__Qwen3.6-35B-A3B-NVFP4"), "fp8", prefix_caching=True),
    "L082": Served(shape(12, 12, 12, 64)),  # GPT-2
    "L083": Served(config("Qwen__Qwen3-4B")),
    "L085": Served(config("Qwen__Qwen3-1.7B"), "fp8"),
}

W8A8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True, "dynamic": False},
            "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True},
        }
    },
}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
# Meta's own fp8: attention, the first layer and the last stay in 16 bits.
FBGEMM = {
    "quant_method": "fbgemm_fp8",
    "activation_scale_ub": 1200.0,
    "modules_to_not_convert": [
        "lm_head",
        *(f"model.layers.{layer}.self_attn.{name}_proj" for layer in range(126) for name in "qkvo"),
        *(f"model.layers.{layer}.mlp.{name}_proj" for layer in (0, 125) for name in ("gate", "up", "down")),
    ],
}
WEIGHTS = {
    "L001": LLAMA_8B,
    "L002": LLAMA_8B,
    "L008": config("deepseek-ai__DeepSeek-V2-Lite"),
    # One config of two uploads: the first had each KV head twice.
    "L014": config("meta-llama__Meta-Llama-3.1-405B", quantization_config=FBGEMM, num_key_value_heads=16),
    "L015": config("meta-llama__Meta-Llama-3.1-405B", quantization_config=FBGEMM),
    "L016": config("meta-llama__Llama-3.1-70B-Instruct", quantization_config=W8A8),
    "L037": config("meta-llama__Llama-3.1-8B"),
    "L038": config("Qwen__Qwen3-0.6B"),
    "L043": config("meta-llama__Meta-Llama-3.1-8B", max_position_embeddings=8192),  # Llama 3, before its long context.
    "L044": config("Qwen__Qwen2.5-7B"),
    "L050": LLAMA_8B,
    "L052": config("meta-llama__Llama-3.1-70B-Instruct", quantization_config=AWQ),
    "L064": config("google__gemma-3-1b-it"),
    "L086": config("mistralai__Mistral-7B-Instruct-v0.3"),
}

NOT_USED = {
    "L005": "the engine failed with a cache below zero, and how its kernels pad its weights is not known",
    "L017": "weights alone, of a model that was inferred from them",
    "L019": "a GGUF of unknown recipe on an unknown number of ranks",
    "L028": "a number of blocks alone: nothing to hold it against",
    "L029": "a concurrency alone: nothing to hold it against",
    "L040": "a number of tokens alone: nothing to hold it against",
    "L053": "a number of blocks, and weights of a model that was inferred from them",
    "L055": "a number of blocks alone: nothing to hold it against",
    "L059": "the model is a class that was inferred from the figures",
    "L061": "the model is a class that was inferred from the figures",
    "L077": "the model was inferred from the figures",
}
NO_WEIGHTS = {
    "L007": "DeepSeek-V4-Pro: what the engine repacks its weights to is not known",
    "L013": "the checkpoint is not named",
    "L046": "the model was inferred from this figure",
    "L047": "bitsandbytes quantises on loading, by a recipe that is not told",
    "L049": "the checkpoint's lists of what is not quantised are not had",
    "L056": "the experts are on the CPU",
    "L058": "SGLang prints what became unavailable, buffers of its own included",
    "L062": "the number of GPUs is not told",
    "L065": "the model was inferred from this figure",
    "L066": "an AutoRound checkpoint whose lists are not had",
}
NOT_HELD = {
    ("weights", "L008"): "0.09 % more: matrices that do not fill the allocator's segments of 2 MiB",
    ("weights", "L044"): "0.39 % more: matrices that do not fill the allocator's segments of 2 MiB, 28 layers * 2 MiB",
    ("weights", "L050"): "1.2 % more: slots for LoRA adapters",
    ("weights", "L064"): "1.1 % more: not known, and likely the same",
    ("budget", "L047"): "0.7 % less: not known",
}


def run_of(name: str, pool: float | tuple[float, ...]) -> EngineRun:
    log, served = LOGS[name], SERVED[name]
    batched = re.search(r"max_num_batched_tokens (\d+)", log.settings["note"])
    known = {"max_num_batched_tokens": int(batched[1])} if batched else {}
    given = {"ranks": Ranks(tp=log.setting("tp"), pp=log.setting("pp")), **known, **served.more}
    return EngineRun(
        engine=replace(log.engine, prefix_caching=served.prefix_caching),
        pool_bytes_per_chip=pool,
        max_model_len=int(log.settings["max_model_len"] or 8192),
        kv_dtype=served.kv_dtype,
        block_tokens=int(log.settings["block_size"]) if log.settings["block_size"] else None,
        **given,
    )


def predicted(name: str, pool: float) -> EngineLog:
    return engine_log(SERVED[name].model(), run_of(name, pool))


# --- Relations --------------------------------------------------------------------------------------------------------

POOLS = {"kv_cache_gib": GIB, "kv_cache_bytes": 1.0, "kv_cache_mib": GIB / 1024}


def _pool(log: Log) -> tuple[float, float]:
    """The logged pool and how far off its printing may be. [B]"""
    metric = next(metric for metric in POOLS if metric in log.figures)
    return log.number(metric) * POOLS[metric], log.half_unit(metric) * POOLS[metric]


def _has(*metrics: str, model: bool = False, engines: str = "", settings: tuple[str, ...] = ()) -> list[str]:
    """The logs that have the figures, of an engine whose name matches."""
    return [
        name
        for name, log in LOGS.items()
        if name not in NOT_USED
        and all(any(part in log.figures for part in metric.split("|")) for metric in metrics)
        and all(log.settings[key] for key in settings)
        and re.match(engines, log.settings["engine"])
        and (name in SERVED or not model)
    ]


NEWER = ("L062", "L068", "L070", "L071", "L073", "L074")
"""Logs of hybrids since tokens are printed as concurrency times length."""


def _one_kind(name: str) -> bool:
    """The logs of hybrids have relations of their own."""
    return name not in ("L034", "L064", "L065", "L068")


BYTES = [name for name in _has("kv_tokens|gpu_blocks", "|".join(POOLS), model=True) if _one_kind(name)]
KEYS = _has("kv_tokens", "k_size_gb", "v_size_gb", model=True)
BLOCKS = _has("kv_tokens", "gpu_blocks")
WHOLE_BLOCKS = [name for name in _has("kv_tokens", engines="vllm", settings=("block_size",)) if name not in NEWER]
CONCURRENCY = [
    name
    for name in _has("max_concurrency", "kv_tokens|gpu_blocks", settings=("block_size", "max_model_len"))
    if _one_kind(name) and name not in NEWER
]
EQUIVALENT = [name for name in _has("max_concurrency", "kv_tokens") if name in NEWER]
ONE_REQUEST = _has("kv_gib_needed_one_request", model=True)
LONGEST = _has("estimated_max_model_len", "kv_cache_gib", model=True)
HYBRIDS = [name for name in _has("kv_tokens", "kv_cache_gib", "max_concurrency", model=True) if not _one_kind(name)]
TPU = _has("kv_tokens", "gpu_blocks", "hbm_used_after_kv_gib", "weights_gib", model=True)
BUDGET = _has("weights_gib", "non_torch_gib", "activation_gib", "kv_cache_gib", settings=("gpu_mem_gib",))
WINDOW_POOLS = _has("swa_tokens", "kv_tokens")
OTHERS = {  # Logs that a test of their own reads.
    "L007": "the static fraction",
    "L008": "heads materialised",
    "L034": "every layer slides",
    "L066": "states in a pool of their own",
    "L079": "heads unsharded",
    "L080": "heads unsharded",
}


def _params(relation: str, names: list[str]) -> list[Any]:
    """The logs of a relation by id; those that are known not to hold must indeed not."""
    return [
        pytest.param(name, id=name, marks=pytest.mark.xfail(raises=AssertionError, reason=NOT_HELD[relation, name]))
        if (relation, name) in NOT_HELD
        else pytest.param(name, id=name)
        for name in names
    ]


@pytest.mark.parametrize("name", _params("bytes", BYTES))
def test_tokens_times_their_bytes_fill_the_pool(name: str) -> None:
    """Rows 1 to 5: layers of the stage, heads of the rank, latents whole, one byte or two."""
    log = LOGS[name]
    pool, off = _pool(log)
    found = predicted(name, pool)
    block = found.block_tokens
    tokens = log.number("kv_tokens") if "kv_tokens" in log.figures else log.number("gpu_blocks") * block
    per_token = found.marginal_bytes_per_token
    assert abs(tokens * per_token - pool) <= off + TOLERANCE * pool + block * per_token
    assert found.blocks is not None
    assert abs(found.blocks * block - tokens) <= off / per_token + TOLERANCE * tokens + block


@pytest.mark.parametrize("name", _params("keys", KEYS))
def test_keys_and_values_as_sglang_prints_them(name: str) -> None:
    log = LOGS[name]
    tokens = log.number("kv_tokens")
    found = predicted(name, 1e12)
    per_token = found.marginal_bytes_per_token
    found = predicted(name, tokens * per_token)
    assert found.tokens == tokens
    assert f"K size: {log.figures['k_size_gb']} GB, V size: {log.figures['v_size_gb']} GB" in found.lines[-1]


@pytest.mark.parametrize("name", _params("blocks", BLOCKS))
def test_tokens_are_blocks(name: str) -> None:
    """Row 6, with the block that a pool may hold back."""
    log = LOGS[name]
    block, blocks = int(log.settings["block_size"]), log.number("gpu_blocks")
    held_back = 1 if "usable blocks" in log.settings["note"] else 0
    assert paging.pool_tokens(blocks - held_back, block) == log.number("kv_tokens")


@pytest.mark.parametrize("name", _params("whole blocks", WHOLE_BLOCKS))
def test_tokens_are_whole_blocks(name: str) -> None:
    assert LOGS[name].number("kv_tokens") % int(LOGS[name].settings["block_size"]) == 0


@pytest.mark.parametrize("name", _params("concurrency", CONCURRENCY))
def test_concurrency_is_printed_to_the_digit(name: str) -> None:
    """Row 7."""
    log = LOGS[name]
    block, length = int(log.settings["block_size"]), int(log.settings["max_model_len"])
    blocks = log.number("gpu_blocks") if "gpu_blocks" in log.figures else log.number("kv_tokens") / block
    concurrency = paging.max_concurrency(blocks, paging.request_blocks(length, block))
    assert f"{concurrency:.2f}" == log.figures["max_concurrency"]


@pytest.mark.parametrize("name", _params("equivalent", EQUIVALENT))
def test_tokens_of_newer_versions_are_concurrency_times_length(name: str) -> None:
    log = LOGS[name]
    concurrency = log.number("kv_tokens") / int(log.settings["max_model_len"])
    assert f"{concurrency:.2f}" == log.figures["max_concurrency"]


@pytest.mark.parametrize("name", _params("one request", ONE_REQUEST))
def test_bytes_of_one_request(name: str) -> None:
    """Row 8."""
    log = LOGS[name]
    found = predicted(name, GIB).request_bytes
    assert found is not None
    assert found / GIB == pytest.approx(
        log.number("kv_gib_needed_one_request"), abs=log.half_unit("kv_gib_needed_one_request"), rel=TOLERANCE
    )


@pytest.mark.parametrize("name", _params("longest", LONGEST))
def test_longest_request_that_fits(name: str) -> None:
    """Row 8, and the poorest stage of row 5."""
    log = LOGS[name]
    pool, off = _pool(log)
    found = predicted(name, pool)
    assert found.longest_request_tokens == found.tokens
    longest, per_token = log.number("estimated_max_model_len"), found.marginal_bytes_per_token
    assert abs(found.longest_request_tokens - longest) <= off / per_token + TOLERANCE * longest + found.block_tokens


@pytest.mark.parametrize("name", _params("hybrids", HYBRIDS))
def test_hybrids_to_the_last_digit(name: str) -> None:
    """Rows 10 and 11: some number of blocks that prints as the pool gives both other figures exactly."""
    log = LOGS[name]
    pool, off = _pool(log)
    model, first = SERVED[name].model(), predicted(name, pool + off)
    assert not first.tokens_are_capacity
    assert first.blocks is not None
    assert first.block_bytes is not None
    counts = range(math.floor((pool - off) / first.block_bytes), first.blocks + 1)
    tried = [engine_log(model, run_of(name, blocks * first.block_bytes)) for blocks in counts]
    wanted = (log.number("kv_tokens"), log.figures["max_concurrency"])
    assert wanted in {(found.tokens, f"{found.max_concurrency:.2f}") for found in tried}
    padding = re.search(r"Add \d+ padding layers, may waste at most [\d.]+%", log.settings["note"])
    assert padding is None or any(line.startswith(padding[0]) for line in first.lines)


def test_a_model_whose_layers_all_slide() -> None:
    """Row 9: the window counts since a fix that the log is of."""
    log, model = LOGS["L034"], SERVED["L034"].model()
    run = run_of("L034", log.number("kv_tokens") * 30 * 2 * 2 * 128 * 2)
    found, before = engine_log(model, run), engine_log(model, replace(run, windows=False))
    assert found.tokens == before.tokens == log.number("kv_tokens")
    assert f"{found.max_concurrency:.2f}" == log.figures["max_concurrency"]
    assert f"{before.max_concurrency:.2f}" == log.figures["max_concurrency_before_fix"]


@pytest.mark.parametrize("name", _params("tpu", TPU))
def test_pools_of_tpus(name: str) -> None:
    """Row 12: no reserve, and pages as the engine chooses them."""
    log = LOGS[name]
    pool = (log.number("hbm_used_after_kv_gib") - log.number("weights_gib")) * GIB
    run = replace(run_of(name, pool), block_tokens=None)
    found = engine_log(SERVED[name].model(), run)
    assert found.block_tokens == int(log.settings["block_size"])
    assert found.block_bytes is not None
    blocks = log.number("gpu_blocks")
    assert found.blocks == pytest.approx(blocks, rel=TOLERANCE, abs=1 + 0.01 * GIB / found.block_bytes)
    exact = engine_log(SERVED[name].model(), replace(run, pool_bytes_per_chip=blocks * found.block_bytes))
    assert exact.tokens == log.number("kv_tokens")
    assert f"{exact.max_concurrency:.2f}" == log.figures["max_concurrency"]


@pytest.mark.parametrize("name", _params("weights", list(WEIGHTS)))
def test_weights_of_a_rank(name: str) -> None:
    """Rows 13 and 14: cut matrices, whole norms, one rotary table, scales."""
    log, model = LOGS[name], WEIGHTS[name]()
    ranks = Ranks(tp=log.setting("tp"), pp=log.setting("pp"))
    table = 0.0 if log.engine.name == "tpu-inference" else rope_table_bytes(model)
    (weights,) = weight_bytes_per_chip(as_checkpoint(model), model, ranks)
    printed = log.number("weights_gib")
    assert abs((weights + table) / GIB - printed) <= log.half_unit("weights_gib") + TOLERANCE * printed


@pytest.mark.parametrize("name", _params("budget", BUDGET))
def test_pool_is_what_the_budget_leaves(name: str) -> None:
    log = LOGS[name]
    reserve = log.number("non_torch_gib") + log.number("activation_gib")
    share, memory = float(log.settings["gpu_memory_utilization"]), float(log.settings["gpu_mem_gib"].split()[0])
    pool = paging.fraction_pool_bytes(share, memory, log.number("weights_gib"), reserve)
    assert pool == pytest.approx(log.number("kv_cache_gib"), abs=0.02)


@pytest.mark.parametrize("name", _params("window pools", WINDOW_POOLS))
def test_pools_of_windows(name: str) -> None:
    log = LOGS[name]
    assert paging.window_pool_tokens(log.number("kv_tokens"), 0.8) == log.number("swa_tokens")


# --- Logs with a test of their own ------------------------------------------------------------------------------------


def test_a_static_fraction_that_the_weights_exceed() -> None:
    log = LOGS["L007"]
    free = log.number("weights_gib") + log.number("avail_mem_gb")
    assert paging.static_pool_bytes(float(log.settings["gpu_memory_utilization"]), free, log.number("weights_gib")) < 0


def test_a_latent_kept_head_by_head_is_recognised() -> None:
    log = LOGS["L008"]
    model = config("deepseek-ai__DeepSeek-V2-Lite")()
    pool, _ = _pool(log)
    run = EngineRun(engine=log.engine, pool_bytes_per_chip=pool, max_model_len=8192)
    tokens = int(log.number("gpu_blocks") * 16)
    (reading,) = implied(model, run, kv_bytes_per_chip=pool, tokens=tokens).readings
    assert reading.what == "materialised heads"
    assert reading.tokens == pytest.approx(tokens, rel=TOLERANCE, abs=16)


def test_heads_that_were_not_cut_are_recognised() -> None:
    before, after = LOGS["L079"], LOGS["L080"]
    model, block = config("Qwen__Qwen3-32B")(), int(after.settings["block_size"])
    ranks = Ranks(tp=after.setting("tp"))
    run = EngineRun(engine=after.engine, ranks=ranks, pool_bytes_per_chip=1e12, max_model_len=8192, block_tokens=block)
    per_token = engine_log(model, run).marginal_bytes_per_token
    run = replace(run, pool_bytes_per_chip=after.number("gpu_blocks") * block * per_token)
    (reading,) = implied(model, run, tokens=int(before.number("gpu_blocks")) * block).readings
    assert reading.what == "unsharded heads"


def test_states_have_a_pool_of_their_own() -> None:
    """One slot more than sequences; the log counts the states without the convolutions' inputs."""
    log = LOGS["L066"]
    run = replace(run_of("L066", 1e12), state_slots=8)
    found = engine_log(SERVED["L066"].model(), run).state_pool_bytes
    convolutions = 9 * 48 * (10_240 // 2) * 3 * 2
    assert found is not None
    assert f"{(found - convolutions) / GIB:.2f}" == log.figures["mamba_state_gb"]


# --- Completeness -----------------------------------------------------------------------------------------------------

USED = {
    *BYTES, *KEYS, *BLOCKS, *WHOLE_BLOCKS, *CONCURRENCY, *EQUIVALENT, *ONE_REQUEST, *LONGEST, *HYBRIDS, *TPU, *WEIGHTS,
    *BUDGET, *WINDOW_POOLS, *OTHERS,
}  # fmt: skip


def test_every_log_is_used_or_listed() -> None:
    assert set(LOGS) == USED | set(NOT_USED)
    assert not USED & set(NOT_USED)


def test_every_model_is_used() -> None:
    needing = {*BYTES, *KEYS, *ONE_REQUEST, *LONGEST, *HYBRIDS, *TPU, *OTHERS}
    assert set(SERVED) <= needing


def test_every_weight_is_used_or_listed() -> None:
    printed = {name for name, log in LOGS.items() if "weights_gib" in log.figures}
    assert printed == set(WEIGHTS) | set(NO_WEIGHTS) | (printed & set(NOT_USED))
    assert not set(WEIGHTS) & set(NO_WEIGHTS)
