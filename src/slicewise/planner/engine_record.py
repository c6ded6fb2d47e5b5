"""How a serving engine is started, and what it will log about its cache, as data.

All sizes are of one chip; tokens are those of one replica, for every chip of it holds its share of each token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slicewise.errors import InputError
from slicewise.planner.engines import SGLANG, WINDOW_POOL_SHARE, Engine
from slicewise.planner.record import record
from slicewise.spec.ranks import Ranks

BATCHED_TOKENS = 8192
"""Tokens of a batch where nobody sets them: vLLM's server on chips of 70 GiB or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """How an engine is started.

    Attributes:
        engine: which, in which version.
        ranks: how the model is divided. Tokens are of one of the dp replicas; SGLang's --tp counts those of its
            data-parallel attention too, so that 4 with dp 2 are tp 2 here.
        pool_bytes_per_chip: what is left for the cache on a chip; or on a chip of each pipeline stage. [B]
        max_model_len: longest request. [tokens]
        kv_dtype: dtype of the cache; "auto" for what the checkpoint asks for, or else its own 16 bits.
        weight_bytes_per_chip: what loading took. [B]
        max_num_batched_tokens: most tokens of a batch.
        block_tokens: tokens of a block, where they are set.
        layer_split: layers of each pipeline stage, where they are set.
        windows: the engine frees what a window has passed. Old versions do not, nor vLLM without its hybrid manager.
        state_slots: sequences whose recurrent states SGLang keeps; 0 where it is not known.
        window_pool_share: SGLang's pool of layers with a window over that of full attention.

    Raises:
        InputError: a length or a block below 1, or pools that are not one a stage.
    """

    engine: Engine
    ranks: Ranks = field(default_factory=Ranks)
    pool_bytes_per_chip: float | tuple[float, ...]
    max_model_len: int
    kv_dtype: str = "auto"
    weight_bytes_per_chip: float | None = None
    max_num_batched_tokens: int = BATCHED_TOKENS
    block_tokens: int | None = None
    layer_split: tuple[int, ...] = ()
    windows: bool = True
    state_slots: int = 0
    window_pool_share: float = WINDOW_POOL_SHARE

    def __post_init__(self) -> None:
        for key in ("max_model_len", "max_num_batched_tokens", "block_tokens"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise InputError(f"{key} is {value}; it must be at least 1")
        if isinstance(self.pool_bytes_per_chip, tuple) and len(self.pool_bytes_per_chip) != self.ranks.pp:
            given = len(self.pool_bytes_per_chip)
            raise InputError(f"{given} pools for pp {self.ranks.pp}; give one, or one for each pipeline stage")

    @property
    def pools(self) -> tuple[float, ...]:
        """The pool on a chip of each pipeline stage, none below zero. [B]"""
        given = self.pool_bytes_per_chip
        return tuple(max(0.0, pool) for pool in (given if isinstance(given, tuple) else (given,) * self.ranks.pp))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """What an engine logs of its cache, and what that means.

    Attributes:
        engine: name and version.
        weight_bytes_per_chip: what loading took; None where it was not given. [B]
        kv_bytes_per_chip: the pool of the pipeline stage that decides. [B]
        key_bytes_per_chip: of the tokens in the pool, the keys; None where the engine does not say. [B]
        value_bytes_per_chip: the values. [B]
        block_tokens: tokens of the smallest block.
        block_bytes: bytes of a block on a chip of that stage, over a group of layers. [B]
        blocks: blocks of the pool; None where the engine counts tokens alone.
        tokens: the token count that is printed; None where the engine's pages are not described here.
        tokens_are_capacity: whether sequences of any length may fill that many tokens.
        window_tokens: tokens of the pool of layers with a window, where it is one of its own.
        max_model_len: longest request.
        max_concurrency: requests of that length that fit; None where it is not described here.
        request_bytes: bytes on a chip that one such request needs. [B]
        longest_request_tokens: longest request that fits; None where no length fills the pool, or it is not described.
        fixed_bytes: of one long request on a chip, what does not grow with its length: windows and states. [B]
        marginal_bytes_per_token: what each further token adds. [B]
        groups: groups of layers that share the pool.
        padding: (layers, share of the kind) that kinds are padded by, where they are.
        state_pool_bytes: SGLang's pool of recurrent states; None where there is none, or its slots are not known. [B]
        notes: what to know before comparing, in sentences.
        lines: the lines of the log.
    """

    engine: str
    weight_bytes_per_chip: float | None = None
    kv_bytes_per_chip: float
    key_bytes_per_chip: float | None = None
    value_bytes_per_chip: float | None = None
    block_tokens: int
    block_bytes: float | None = None
    blocks: int | None = None
    tokens: int | None = None
    tokens_are_capacity: bool = False
    window_tokens: int | None = None
    max_model_len: int
    max_concurrency: float | None = None
    request_bytes: float | None = None
    longest_request_tokens: int | None = None
    fixed_bytes: float = 0.0
    marginal_bytes_per_token: float = 0.0
    groups: int = 1
    padding: tuple[tuple[int, float], ...] = ()
    state_pool_bytes: float | None = None
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def starts(self) -> bool:
        """Whether the engine starts: vLLM wants one request of the longest length to fit, SGLang a single token."""
        if self.engine.startswith(SGLANG):
            return self.tokens is None or self.tokens > 0
        return self.max_concurrency is None or self.max_concurrency >= 1

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**record(self, without=("padding",)), "padding": [list(pair) for pair in self.padding]}
