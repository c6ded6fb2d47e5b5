"""Logs of serving engines in the project's own form: what was printed follows from the model and the start."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.catalog.load import load_model
from slicewise.catalog.model_record import ModelRecord
from slicewise.planner.engine_log import engine_log
from slicewise.planner.engine_record import EngineLog, EngineRun
from slicewise.planner.engines import Engine, engine_named
from slicewise.spec.model import Model
from slicewise.spec.ranks import Ranks, rope_table_bytes, weight_bytes_per_chip
from slicewise.spec.stored import as_checkpoint
from slicewise.units import GIB

GOLDEN = tomllib.loads((Path(__file__).parent / "golden" / "engine_logs.toml").read_text(encoding="utf-8"))
CONFIGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "model_configs"
TOLERANCE = 0.0005
LOGS = [pytest.param(entry, id=entry["name"]) for entry in GOLDEN["log"]]
BYTES = [pytest.param(entry, id=entry["name"]) for entry in GOLDEN["bytes"]]


def model_of(entry: dict[str, Any]) -> Model:
    own = GOLDEN["models"].get(entry["model"])
    return load_model(entry["model"]) if own is None else ModelRecord(**own).to_spec(entry["model"], {})


def engine_of(entry: dict[str, Any]) -> Engine:
    named = engine_named(entry.get("engine", "vllm"))
    return Engine(name=named.name, version=named.version, prefix_caching=entry.get("prefix_caching"))


def log_of(entry: dict[str, Any], model: Model) -> EngineLog:
    """The predicted log; a pool that is given in blocks has just the bytes of these."""
    ranks = Ranks(tp=entry.get("tp", 1), pp=entry.get("pp", 1), dp=entry.get("dp", 1))
    given = {key: entry[key] for key in ("max_num_batched_tokens", "block_tokens", "windows") if key in entry}
    run: dict[str, Any] = {
        "engine": engine_of(entry),
        "ranks": ranks,
        "kv_dtype": entry.get("kv_dtype", "auto"),
        "max_model_len": entry.get("max_model_len", 8192),
        **given,
    }
    pool = entry.get("pool_bytes", float(entry.get("pool_gib", "1000")) * GIB)
    if "blocks" in entry:
        block_bytes = engine_log(model, EngineRun(pool_bytes_per_chip=pool, **run)).block_bytes
        assert block_bytes is not None
        pool = entry["blocks"] * block_bytes
    return engine_log(model, EngineRun(pool_bytes_per_chip=pool, **run))


def check(entry: dict[str, Any], model: Model) -> None:
    log, logged = log_of(entry, model), entry["logged"]
    exact = {
        "kv_gib": f"{log.kv_bytes_per_chip / GIB:.2f}",
        "block_tokens": f"{log.block_tokens}",
        "blocks": f"{log.blocks}",
        "concurrency": f"{log.max_concurrency:.2f}",
        "request_gib": f"{(log.request_bytes or 0) / GIB:.2f}",
        "k_gb": f"{(log.key_bytes_per_chip or 0) / GIB:.2f}",
        "v_gb": f"{(log.value_bytes_per_chip or 0) / GIB:.2f}",
        **({"tokens": f"{log.tokens}"} if "blocks" in entry or "blocks" in logged else {}),
    }
    printed = {key: value for key, value in logged.items() if key in exact}
    assert {key: exact[key] for key in printed} == printed
    rounding = 0.005 * GIB / log.marginal_bytes_per_token if log.marginal_bytes_per_token else 0.0
    for key, found in (("tokens", log.tokens), ("longest", log.longest_request_tokens)):
        if key in logged:
            allowed = TOLERANCE * int(logged[key]) + log.block_tokens + (rounding if "pool_gib" in entry else 0.0)
            assert found is not None
            assert abs(found - int(logged[key])) <= allowed
    if "padding" in logged:
        assert any(line.startswith(logged["padding"]) for line in log.lines)
    if "weights" in logged:
        (weights,) = weight_bytes_per_chip(as_checkpoint(model), model, Ranks())
        assert (weights + rope_table_bytes(model)) / GIB == pytest.approx(float(logged["weights"]), rel=TOLERANCE)


@pytest.mark.parametrize("entry", LOGS)
def test_log(entry: dict[str, Any]) -> None:
    check(entry, model_of(entry))


@pytest.mark.parametrize("entry", BYTES)
def test_bytes_of_a_token(entry: dict[str, Any]) -> None:
    found = log_of(entry, model_of(entry)).marginal_bytes_per_token
    assert found == entry["per_token"]
    least, most = entry["logged"]
    assert least * (1 - TOLERANCE) <= found <= most * (1 + TOLERANCE)


@pytest.mark.parametrize("entry", [part for part in LOGS + BYTES if "config" in part.values[0]])
def test_the_published_config_gives_the_same(entry: dict[str, Any]) -> None:
    path = CONFIGS / f"{entry['config']}.json"
    if not path.exists():
        pytest.skip(f"../shared/data/model_configs/{path.name} is not there")
    model = model_from_config(json.loads(path.read_text(encoding="utf-8")), path.stem, path.name)
    if "per_token" in entry:
        assert log_of(entry, model).marginal_bytes_per_token == entry["per_token"]
    else:
        check(entry, model)


def test_every_log_has_a_source_and_a_date() -> None:
    assert [entry["name"] for entry in GOLDEN["log"] if not (entry["source"] and entry["date"])] == []
    assert sum(entry["source"].startswith("https://") for entry in GOLDEN["log"]) >= 12


def test_every_model_is_used() -> None:
    assert set(GOLDEN["models"]) <= {entry["model"] for entry in GOLDEN["log"] + GOLDEN["bytes"]}
