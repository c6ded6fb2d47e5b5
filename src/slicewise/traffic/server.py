"""What a server is: its times, its room for the cache, and the rules by which it takes requests."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slicewise.traffic.requests import Ints
from slicewise.traffic.times import Times

PREFILL_FIRST, CHUNKED, STATIC = "prefill-first", "chunked", "static"
POLICIES = (PREFILL_FIRST, CHUNKED, STATIC)
DECODE = "decode"
"""The rules of a decode server: prompts come with their cache, and only after a preemption are computed here."""
ROUND_ROBIN, LEAST_LOADED, PREFIX_AWARE = "round-robin", "least-loaded", "prefix-aware"
ROUTES = (ROUND_ROBIN, LEAST_LOADED, PREFIX_AWARE)
PREFIX_SLACK = 4
"""Unfinished requests that a server may have beyond the least loaded one, and still be chosen for a prefix: without
such a rule a prefix that many prompts share drowns the server that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of a server.

    Attributes:
        kind: prefill-first, chunked, static, or decode.
        max_num_seqs: most sequences in a batch.
        max_num_batched_tokens: most tokens of an iteration, where prompts are cut into chunks.
        block_tokens: tokens of a block of the cache.
        caches_prefixes: prompts find blocks that earlier ones left.
    """

    kind: str = PREFILL_FIRST
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    block_tokens: int = 16
    caches_prefixes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server, of which several alike may stand side by side.

    Attributes:
        times: what its steps and prompts take.
        n_blocks: blocks of the cache that it has room for.
        policy: its rules.
        shards: parts of the chips among which whole sequences are spread: one sequence lies in one of them.
    """

    times: Times
    n_blocks: int
    policy: Policy
    shards: int = 1

    @property
    def most_blocks(self) -> int:
        """Blocks that one request may take."""
        return self.n_blocks // self.shards


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of each request. Shape (n,) where none is told; nan where it was dropped.

    Attributes:
        server: that it was sent to; -1 where it was dropped.
        start_s: when its prompt was first worked on.
        first_token_s: when its first token was there.
        finish_s: when its last token was there.
        preemptions: how often it lost its cache and was computed anew.
        cached_tokens: of its prompt, found in the prefix cache.
        gaps: between the tokens that a user sees, a row for steps in a row: when they begin, the first gap, what each
            further one is longer by, how many, and of how many sequences. Shape (m, 5).
        decode_start_s: when a decode server began on it, nan where none did; None where each server does both phases.
        is_whole: the run was not stopped; of one that was, only the first requests are told.
    """

    server: Ints
    start_s: NDArray[np.float64]
    first_token_s: NDArray[np.float64]
    finish_s: NDArray[np.float64]
    preemptions: Ints
    cached_tokens: Ints
    gaps: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 5)))
    decode_start_s: NDArray[np.float64] | None = None
    is_whole: bool = True

    def __len__(self) -> int:
        return len(self.server)
