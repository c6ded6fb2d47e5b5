"""What an engine will log of a deployment's memory, and what a figure that it did log implies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.engine_implied import Implied, implied
from slicewise.planner.engine_log import engine_log
from slicewise.planner.engine_record import BATCHED_TOKENS, EngineLog, EngineRun
from slicewise.planner.reserve import Reserve, reserve
from slicewise.spec.model import Model
from slicewise.units import parse_count, parse_positive, show_gib


@dataclass(frozen=True, kw_only=True)
class Started:
    """How the engine is started, as far as it matters for memory, and what it logged. None: not given.

    Attributes:
        max_model_len: longest request; the context that is held where it is not given. [tokens]
        max_num_batched_tokens: most tokens of a batch.
        block_size: tokens of a block.
        logged_kv_bytes: the pool that it logged, on a chip. [B]
        logged_kv_tokens: the tokens that it logged.
    """

    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    logged_kv_bytes: float | None = None
    logged_kv_tokens: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether any of it was."""
        return self != Started()


@dataclass(frozen=True, kw_only=True)
class EngineMemory:
    """What an engine will log.

    Attributes:
        log: with the pool that is counted: the logged one, or what the typical reserve leaves.
        least: the log where it keeps the most for itself; None where the pool is known.
        most: the log where it keeps the least.
        reserve: what it keeps of a chip; None where it was given.
        implied: what a logged figure says; None where none was given.
    """

    log: EngineLog
    least: EngineLog | None
    most: EngineLog | None
    reserve: Reserve | None
    implied: Implied | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "log": self.log.to_dict(),
            "least": self.least.to_dict() if self.least else None,
            "most": self.most.to_dict() if self.most else None,
            "reserve_low_bytes_per_chip": self.reserve.low_bytes if self.reserve else None,
            "reserve_high_bytes_per_chip": self.reserve.high_bytes if self.reserve else None,
            "implied": self.implied.to_dict() if self.implied else None,
        }


def started(words: Mapping[str, Any]) -> Started:
    """How the engine is started, read from flags.

    Raises:
        InputError: a value is no whole number of tokens, or no size above zero.
    """
    counts = {"max_model_len": "tokens", "max_num_batched_tokens": "tokens", "block_size": "tokens"}
    found: dict[str, Any] = {
        name: parse_count(words[name], _flag(name), unit)
        for name, unit in counts.items()
        if words.get(name) is not None
    }
    if words.get("logged_kv_tokens") is not None:
        found["logged_kv_tokens"] = parse_count(words["logged_kv_tokens"], "--logged-kv-tokens", "tokens")
    if words.get("logged_kv_gib") is not None:
        text = str(words["logged_kv_gib"]).lower().removesuffix("gib").strip()
        found["logged_kv_bytes"] = parse_positive(f"{text}GiB", "B", "--logged-kv-gib")
    return Started(**found)


def engine_memory(deployment: Deployment, asked: Started, *, reserve_is_given: bool) -> EngineMemory:
    """What the engine of a deployment will log.

    Args:
        deployment: with an engine and its ranks.
        asked: how it is started, and what it logged.
        reserve_is_given: the reserve is the user's own figure, not a range.

    Raises:
        InputError: no engine, or a logged figure that cannot be.
    """
    engine, ranks = deployment.engine, deployment.ranks
    if engine is None or ranks is None:
        raise InputError("what an engine logs depends on the engine; give --engine vllm, sglang or tpu-inference")
    chip_bytes, share = deployment.hbm_bytes_per_chip, deployment.conventions.memory_fraction
    if asked.logged_kv_bytes is not None and asked.logged_kv_bytes > chip_bytes:
        raise InputError(
            f"--logged-kv-gib: {show_gib(asked.logged_kv_bytes)} is more than the {show_gib(chip_bytes)} of a chip;"
            " give the figure of one chip"
        )
    stages = _weights_by_stage(deployment)
    kept_bytes = deployment.conventions.reserve_bytes_per_chip
    longest = deployment.workload.capacity_context_tokens
    run = EngineRun(
        engine=engine,
        ranks=ranks,
        pool_bytes_per_chip=_pools(chip_bytes * share - kept_bytes, stages),
        max_model_len=asked.max_model_len or math.ceil(longest),
        kv_dtype=deployment.precision.kv,
        weight_bytes_per_chip=max(stages),
        max_num_batched_tokens=asked.max_num_batched_tokens or BATCHED_TOKENS,
        block_tokens=asked.block_size,
    )
    kept = None if reserve_is_given else reserve(engine, deployment.model, ranks)
    said = None
    if asked.logged_kv_bytes is not None or asked.logged_kv_tokens is not None:
        said = implied(
            deployment.model,
            run,
            kv_bytes_per_chip=asked.logged_kv_bytes,
            tokens=asked.logged_kv_tokens,
            hbm_bytes_per_chip=chip_bytes,
            memory_fraction=share,
        )
    if asked.logged_kv_bytes is not None:
        known = replace(run, pool_bytes_per_chip=asked.logged_kv_bytes)
        return EngineMemory(log=engine_log(deployment.model, known), least=None, most=None, reserve=kept, implied=said)
    log = _noted(engine_log(deployment.model, run), deployment.model)
    if kept is None or kept.high_bytes == kept.low_bytes:
        return EngineMemory(log=log, least=None, most=None, reserve=kept, implied=said)
    least, most = (
        engine_log(deployment.model, replace(run, pool_bytes_per_chip=_pools(chip_bytes * share - end, stages)))
        for end in (kept.high_bytes, kept.low_bytes)
    )
    return EngineMemory(log=log, least=least, most=most, reserve=kept, implied=said)


def _noted(log: EngineLog, model: Model) -> EngineLog:
    """The log, with a word where the longest request is beyond what the model states."""
    if log.max_model_len <= model.max_context_tokens:
        return log
    note = f"{log.max_model_len:,} tokens exceed the {model.max_context_tokens:,.0f} that {model.name} states"
    return replace(log, notes=(*log.notes, f"{note}: an engine wants to be told that this is meant"))


def _weights_by_stage(deployment: Deployment) -> tuple[float, ...]:
    """Bytes of weights on a chip of each pipeline stage, rotary tables included. [B]"""
    return tuple(part.held_bytes + deployment.table_bytes for part in deployment.holdings)


def _pools(chip_bytes: float, stages: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(chip_bytes - held for held in stages)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
