"""Questions asked in public, one file each: what the thread found right is what the product answers.

Each case maps the names of its right values to answers that a user gets, from Python or from the command line. What a
case gives as measured is given to the product as a user would; what is asked blind is answered blind.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import slicewise
from slicewise.cli.main import main
from slicewise.units import GB, GIB, MILLION

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "cases"
MIB = 2.0**20
NODE = 8
"""GPUs of a node."""

ELSEWHERE = {
    "33-v5e-slices-llama3-70b": "in test_acceptance.py",
    "35-prefill-8k-and-pd-ratio": "in test_acceptance.py",
    "46-pd-kv-transfer": "in test_acceptance.py",
    "39-throughput-vs-tpot": "in traffic/test_metrics.py",
    "44-prefix-cache-block-granularity": "in traffic/test_case_44.py",
}
"""Cases that are not answered here, and where they are or why."""

NOT_ANSWERED = {
    "end_to_end_speedup_8_concurrent_A100": "a speed-up measured on one engine; times here are bounds",
}
"""Right values that no bound answers, and why."""

Answers = Mapping[str, Any]
Case = Callable[[dict[str, Any], Path], Answers]
ANSWERED: dict[str, Case] = {}


@dataclass(frozen=True)
class Asked:
    """An answer with the measured terms given, and one without."""

    given: Any
    blind: Any


def case(name: str) -> Callable[[Case], Case]:
    """Declare which function answers a case."""

    def declare(answer: Case) -> Case:
        ANSWERED[name] = answer
        return answer

    return declare


def read(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        pytest.skip(f"the folder of cases is not beside this checkout: {name}")
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def right_value(name: str, quantity: str) -> Any:
    return next(item["value"] for item in read(name)["right_value"] if item["name"] == quantity)


def allowed(text: str, when: str = "") -> float:
    """The share that a tolerance allows: 0 where it says exact; of several parts, that of the part with the word."""
    part = next(part for part in text.split(";") if when in part)
    share = re.search(r"([\d.]+)\s*%", part)
    if share:
        return float(share[1]) / 100
    assert part.strip().startswith("exact"), text
    return 0.0


def same(found: Any, right: Any, share: float) -> bool:
    """Whether an answer is the right value within a share of it, element by element."""
    if isinstance(right, dict):
        return set(found) == set(right) and all(same(found[key], right[key], share) for key in right)
    if isinstance(right, list):
        return len(found) == len(right) and all(same(a, b, share) for a, b in zip(found, right, strict=True))
    return bool(found == right if share == 0 else abs(found - right) <= share * abs(right))


# -- asking ----------------------------------------------------------------------------------------------------------


def exit_code(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


def config(folder: Path, name: str, **keys: Any) -> Path:
    """A folder with a config.json, as of a model that is not in the catalog."""
    path = folder / name
    path.mkdir()
    (path / "config.json").write_text(json.dumps(keys), encoding="utf-8")
    return path


def shape(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a config.json for the sizes that a case gives."""
    named = {
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "intermediate": "intermediate_size",
        "vocab": "vocab_size",
    }
    return {key: given[short] for short, key in named.items() if short in given}


def refusal(model: str | Path, tp: int) -> str:
    """Why an engine refuses tensor parallelism over so many GPUs; "" where it does not."""
    n_chips = tp if tp <= NODE else math.lcm(tp, NODE)
    try:
        slicewise.memory(model, slice=f"h100:{n_chips}", tp=tp, dp=n_chips // tp, ep=1, context=1)
    except slicewise.InputError as error:
        return str(error)
    return ""


# -- the cases -------------------------------------------------------------------------------------------------------


CASE_1 = "01-vllm-ledger-llama31-8b-h100"


@case(CASE_1)
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    measured = given["measured"]
    words = {
        "slice": "h100:1",
        "engine": "vllm",
        "context": 4096,
        "memory_fraction": given["gpu_memory_utilization"],
        "kv": given["kv_dtype"],
    }
    blind = slicewise.memory(given["model"], **words)
    known = slicewise.memory(
        given["model"],
        **words,
        hbm=f"{given['physical_hbm_gib']}GiB",
        reserve=f"{measured['activation_gib'] + measured['non_torch_gib']}GiB",
    )
    pool = slicewise.memory(given["model"], **words, logged_kv_gib=right_value(CASE_1, "kv_pool_gib"))
    assert blind.engine
    assert known.engine
    assert pool.engine
    assert known.engine.log.weight_bytes_per_chip == pytest.approx(measured["weights_gib"] * GIB, rel=1e-3)
    return {
        "kv_pool_gib": Asked(known.engine.log.kv_bytes_per_chip / GIB, blind.engine.log.kv_bytes_per_chip / GIB),
        "kv_tokens": Asked(pool.engine.log.tokens, blind.engine.log.tokens),
        "kv_bytes_per_token": known.ledger.kv_bytes_per_token,
    }


@case("03-fp8-kv-doubles-tokens-not-gib")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    """The pool is that of the tokens which the engine printed with its cache in 16 bits."""
    second = given["second"]

    def tokens(model: str, slice_: str, auto_tokens: int) -> Any:
        words = {"slice": slice_, "engine": "vllm", "context": 4096}
        per_token = slicewise.memory(model, **words).ledger.kv_bytes_per_token
        found = slicewise.memory(model, **words, kv="fp8", logged_kv_gib=auto_tokens * per_token / GIB)
        assert found.engine
        return found.engine.log.tokens

    def pool_gib(kv: str) -> float:
        known = read(CASE_1)["inputs"]
        reserve = f"{known['measured']['activation_gib'] + known['measured']['non_torch_gib']}GiB"
        words = {"memory_fraction": given["gpu_memory_utilization"], "hbm": f"{known['physical_hbm_gib']}GiB"}
        found = slicewise.memory(
            given["model"], slice="h100:1", engine="vllm", context=4096, kv=kv, reserve=reserve, **words
        )
        assert found.engine
        return found.engine.log.kv_bytes_per_chip / GIB

    assert pool_gib("auto") == pool_gib("fp8")
    return {
        "tokens_fp8_llama": tokens(given["model"], "h100:1", right_value(CASE_1, "kv_tokens")),
        "pool_gib_fp8_llama": pool_gib("fp8"),
        "tokens_fp8_qwen3_8b": tokens(second["model"], "a100:1", second["tokens_auto"]),
    }


@case("05-pp-stage-embedding-imbalance")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    def worst_gib(asked: dict[str, Any]) -> float:
        words = {"slice": f"h100:{asked['pp']}", "pp": asked["pp"], "tp": 1, "engine": "vllm", "context": 4096}
        found = slicewise.memory(asked["model"], **words, weights=given["weights_dtype"])
        assert found.engine
        assert found.engine.log.weight_bytes_per_chip
        return found.engine.log.weight_bytes_per_chip / GIB

    llama, qwen = map(worst_gib, given["cases"])
    return {"llama_worst_stage_gib": llama, "qwen_worst_stage_gib": qwen}


@case("07-sglang-qwen3-235b-tp4-tokens")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    found = slicewise.memory(
        given["model"],
        slice=f"h100:{given['n']}",
        tp=given["tp"],
        kv=given["kv_dtype"],
        engine="sglang",
        context=4096,
        logged_kv_gib=given["kv_bytes_per_rank_gib"],
    )
    assert found.engine
    log = found.engine.log
    assert log.key_bytes_per_chip
    assert any("K size: 8.23 GB, V size: 8.23 GB" in line for line in log.lines)
    return {
        "kv_bytes_per_token_per_rank": log.marginal_bytes_per_token,
        "tokens": log.tokens,
        "k_size_per_rank_gib": log.key_bytes_per_chip / GIB,
    }


@case("09-head-dim-not-hidden-over-heads")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    qwen_32b, qwen_4b, mistral, gemma = given["models"]
    mistral_keys = {"model_type": "mistral", "intermediate_size": 32768, "vocab_size": 131072}
    gemma_keys = {"model_type": "gemma", "intermediate_size": 24576, "vocab_size": 256000}
    models = {
        "qwen3_32b": f"Qwen/{qwen_32b['name']}",
        "qwen3_4b": f"Qwen/{qwen_4b['name']}",
        "mistral_small_24b": config(tmp_path, mistral["name"], **mistral_keys, **shape(mistral)),
        "gemma_7b": config(tmp_path, gemma["name"], **gemma_keys, **shape(gemma)),
    }
    return {
        name: slicewise.memory(model, chip="h100", kv=given["kv_dtype"], context=4096).ledger.kv_bytes_per_token
        for name, model in models.items()
    }


@case("11-llama31-405b-kv-heads-16")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    def ledger(model: str | Path, tokens: int) -> Any:
        return slicewise.memory(model, chip="h200", kv=given["kv_dtype"], context=tokens).ledger

    sizes = {**shape(given["config"]), "num_key_value_heads": 16, "intermediate_size": 53248, "vocab_size": 128256}
    doubled = ledger(config(tmp_path, "first-release", model_type="llama", **sizes), given["seq_len"][0])
    # The table's figure is that of a config with 16 KV heads: taken as it is, and its heads are in the derivation.
    assert f"{doubled.kv_bytes_per_sequence / GIB:.1f}" == "123.0"
    assert "16 KV heads" in json.dumps(doubled.explain("kv_bytes_per_token").to_dict())
    short, long = (ledger(given["model"], tokens) for tokens in given["seq_len"])
    return {
        "kv_gib_128000": short.kv_bytes_per_sequence / GIB,
        "kv_gib_131072": long.kv_bytes_per_sequence / GIB,
        "kv_bytes_per_token": short.kv_bytes_per_token,
    }


@case("13-gb-vs-gib-70b")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    slice_, hbm, fraction = f"h100:{given['n']}", f"{given['physical_hbm_gib']}GiB", given["gpu_memory_utilization"]
    found = slicewise.memory(
        given["model"], slice=slice_, hbm=hbm, memory_fraction=fraction, weights=given["weights_dtype"], context=1
    )
    code = exit_code(
        *("memory", given["model"], "--slice", slice_, "--hbm", hbm, "--gpu-memory-utilization", str(fraction)),
        *("--weights", given["weights_dtype"], "--context", "1"),
    )
    return {
        "weights_gib": found.ledger.weight_bytes / GIB,
        "weights_gb": found.ledger.weight_bytes / GB,
        "budget_gib": found.ledger.hbm_bytes / GIB,
        "weights_fit": code == 0,
    }


@case("14-mla-kv-bytes")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    found = slicewise.memory(given["model"], slice="h200:8", kv=given["kv_dtype"], context=4096)
    ranks = slicewise.memory(given["model"], slice="h200:8", kv=given["kv_dtype"], context=4096, tp=8, engine="vllm")
    # On every one of eight tensor ranks, too.
    assert ranks.engine
    assert ranks.engine.log.marginal_bytes_per_token == found.ledger.kv_bytes_per_token
    return {"kv_bytes_per_token": found.ledger.kv_bytes_per_token}


@case("16-tp-above-kv-heads")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    words = {"weights": given["weights_dtype"], "kv": given["kv_dtype"]}
    found = slicewise.memory(given["model"], chip="v5e", context=1, **words)
    assert found.smallest is not None
    smallest = slicewise.load_slice(found.smallest)

    def kv_bytes_per_chip_per_token(tp: int) -> float:
        tokens = 1024
        on = slicewise.memory(given["model"], slice=f"v5e:{tp}", tp=tp, context=tokens, batch=1, **words)
        assert on.ledger.layout == f"tp {tp}"
        return on.ledger.kv_bytes / on.ledger.n_chips / tokens

    return {
        "min_chips_for_weights": smallest.n_chips,
        "weights_per_chip_gib_at_64": found.ledger.weight_bytes / found.ledger.n_chips / GIB,
        "kv_bytes_per_chip_per_token_tp8": kv_bytes_per_chip_per_token(8),
        "kv_bytes_per_chip_per_token_tp64": kv_bytes_per_chip_per_token(64),
    }


@case("18-tpu-fp8-kv-no-gain-at-1-head-per-chip")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    """The pool holds the blocks that were counted without padding; a page is one layer's block over all chips."""
    pool = given["blocks_naive"] * given["vllm_page_bytes"] * given["config"]["layers"] / given["tp"]

    def log(engine: str, slice_: str) -> Any:
        found = slicewise.memory(
            "meta-llama/Llama-3.1-70B-Instruct",
            slice=slice_,
            tp=given["tp"],
            weights="int8",
            kv=given["kv_dtype"],
            context=4096,
            engine=engine,
            block_size=given["block_size_tokens"],
            logged_kv_gib=pool / GIB,
        )
        assert found.engine
        return found.engine.log

    # What the engine counted before it knew of the padding is what vLLM counts on a GPU, which pads nothing.
    tpu, naive = log("tpu-inference", f"v6e:{given['tp']}"), log("vllm", f"h100:{given['tp']}")
    assert naive.blocks == given["blocks_naive"]
    return {
        "blocks_actual": tpu.blocks,
        "kv_bytes_ratio_actual_over_naive": tpu.marginal_bytes_per_token / naive.marginal_bytes_per_token,
    }


@case("19-sliding-window-gemma4")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    """Uniform is what vLLM printed before 0.20: blocks shared out over groups as if each kept every token."""
    words = {"slice": "h100:2", "weights": "bf16", "kv": given["kv_dtype"]}
    model = given["model"]

    def log(engine: str) -> Any:
        longest = slicewise.load_model(model).max_context_tokens
        found = slicewise.memory(model, **words, tp=2, context=longest, engine=engine, logged_kv_gib=24.54)
        assert found.engine
        return found.engine.log

    old, new = log("vllm-0.19"), log("vllm-0.20")
    n_chips = 2
    uniform = old.block_bytes * old.groups / old.block_tokens * n_chips
    windowed = slicewise.memory(model, **words, context=given["seq_len"])
    return {
        "windowed_gb": windowed.ledger.kv_bytes_per_sequence / GB,
        "uniform_gb": uniform * given["seq_len"] / GB,
        "uniform_bytes_per_token": uniform,
        "engine_capacity_gain_when_windowed": new.tokens / old.tokens,
    }


@case("21-linear-attention-hybrid")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    """The cache of attention, which is what the log prints; the state is kept beside it, whatever the length."""

    def growing_bytes(name: str) -> float:
        words = {"chip": "h100", "kv": given["kv_dtype"], "context": given["seq_len"]}
        ledger = slicewise.memory(f"Qwen/{name}", **words).ledger
        assert ledger.kv_state_bytes
        assert ledger.kv_growth_bytes_per_token
        grown = ledger.kv_bytes_per_sequence - ledger.kv_state_bytes
        assert grown == ledger.kv_growth_bytes_per_token * given["seq_len"]
        return grown

    dense, mixture = (growing_bytes(model["name"]) for model in given["models"])
    return {"qwen36_27b_mib": dense / MIB, "qwen36_35b_a3b_gib": mixture / GIB}


@case("23-tp-divisibility-four-rules")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    sizes = {"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, **shape(given["config"])}
    model = config(tmp_path, "DeepSeek-R1-Distill-Qwen-7B", **sizes)
    refused = {tp: refusal(model, tp) for tp in range(1, 29)}
    assert "4 KV heads" in refused[7]
    assert "28 query heads" in refused[8]
    assert "feed-forward of 18,944" in refused[28]
    return {"valid_tp": [tp for tp, why in refused.items() if not why]}


@case("25-fp8-block-128-vs-tp")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    names = ("qwen3_235b", "qwen3_30b", "minimax_m27", "deepseek_r1", "deepseek_v4_pro")
    loads = {}
    for name, model in zip(names, given["models"], strict=True):
        refused = [refusal(model["name"], tp) for tp in model["tp"]]
        assert all(not why or "blocks of 128 that share a scale" in why for why in refused)
        loads[name] = [not why for why in refused]
    return {"loads": loads}


@case("27-deepseek-v3-fp8-8x80-vs-8x96")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    """An H800 has the memory of an H100, and an H20 is asked for by its memory."""
    places = {"H800-80GB": ("h100:8",), "H20-96GB": ("h100:8", "--hbm", "96GB"), "H200-141GB": ("h200:8",)}
    words = ("memory", given["model"], "--tp", str(given["tp"]), "--slice")
    ledger = slicewise.memory(given["model"], slice="h200:8", tp=given["tp"]).ledger
    assert ledger.weight_dtype == given["weights_dtype"]
    return {
        "weights_per_gpu_gb": ledger.weight_bytes / ledger.n_chips / GB,
        "fits": [exit_code(*words, *places[chip]) == 0 for chip in given["chips"]],
    }


@case("31-70b-128k-five-users")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    def ledger(kv: str) -> Any:
        words = {"weights": given["weights_dtype"], "context": given["context"], "batch": given["users"]}
        return slicewise.memory(given["model"], slice="h100:8", kv=kv, **words).ledger

    wide, narrow = (ledger(kv) for kv in given["kv_dtype"])
    # Three chips would hold the narrow one by bytes, and no engine cuts the heads over three.
    assert "64 query heads" in refusal(given["model"], 3)
    return {
        "kv_gib_bf16": wide.kv_bytes / GIB,
        "kv_gib_fp8": narrow.kv_bytes / GIB,
        "weights_gib": wide.weight_bytes / GIB,
        "total_gib": [wide.total_bytes / GIB, narrow.total_bytes / GIB],
    }


@case("37-tpu-name-cores-or-chips")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    slices = [slicewise.load_slice(name) for name in given["names"]]
    last = slices[-1]
    return {
        "chips": [slice_.n_chips for slice_ in slices],
        "hosts_4chip_vm": [slice_.n_hosts for slice_ in slices],
        "jax_devices_tpu7x_2x2x1": last.n_chips * last.chip.devices_per_chip,
    }


@case("41-cost-per-million-units")
def _(given: dict[str, Any], tmp_path: Path) -> Answers:
    asked = given["breakeven"]
    rows = [slicewise.cost(price=row["usd_per_h"], tokens_per_s=row["tok_s"]) for row in given["rows"]]
    even = slicewise.cost(usd_per_month=asked["usd_month"], api_price=asked["api_usd_per_m"])
    assert even.breakeven_tokens_per_month is not None
    return {
        "usd_per_m": [row.usd_per_million_output_tokens for row in rows],
        "breakeven_m_tokens_month": even.breakeven_tokens_per_month / MILLION,
    }


# -- what is right ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERED)
def test_case(name: str, tmp_path: Path) -> None:
    found = read(name)
    answers = ANSWERED[name](found["inputs"], tmp_path)
    wanted = {item["name"]: item for item in found["right_value"]}
    assert set(answers) == set(wanted) - set(NOT_ANSWERED)
    for quantity, answer in answers.items():
        right, tolerance = wanted[quantity]["value"], wanted[quantity]["tolerance"]
        for when in ("given", "blind") if isinstance(answer, Asked) else ("",):
            ours = getattr(answer, when) if when else answer
            assert same(ours, right, allowed(tolerance, when)), f"{quantity} {when}: {ours}, and {right} is right"


def test_every_case_is_answered_here_or_said_to_be_elsewhere() -> None:
    files = {path.stem for path in FOLDER.glob("*.yaml")}
    if not files:
        pytest.skip("the folder of cases is not beside this checkout")
    assert files == set(ANSWERED) | set(ELSEWHERE)


def test_what_is_not_answered_is_asked() -> None:
    if not FOLDER.is_dir():
        pytest.skip("the folder of cases is not beside this checkout")
    asked = {item["name"] for name in ANSWERED for item in read(name)["right_value"]}
    assert set(NOT_ANSWERED) <= asked


@pytest.mark.parametrize(
    ("text", "when", "share"),
    [
        ("1% when the measured terms are given; 8% blind", "given", 0.01),
        ("1% when the measured terms are given; 8% blind", "blind", 0.08),
        ("exact (2 x 476016)", "", 0.0),
        ("2% (embeddings may stay bf16)", "", 0.02),
        ("0.01%", "", 0.0001),
    ],
)
def test_tolerances_are_read(text: str, when: str, share: float) -> None:
    assert allowed(text, when) == share
