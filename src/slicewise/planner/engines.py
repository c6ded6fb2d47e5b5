"""What is known of each serving engine's cache: block sizes, how a pool is shared out, and what it prints, by version.

Versions are those in which a rule was first seen in use; where none is given, the newest rules hold.

Source: vllm-project/vllm#29303 and #36684 (groups), #47728 (batches in flight), #50991 (states), #40691 (tokens)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from slicewise.errors import InputError, UnknownNameError

VLLM, SGLANG, TPU_INFERENCE = "vllm", "sglang", "tpu-inference"
ENGINES = (VLLM, SGLANG, TPU_INFERENCE)

SPARSE_BLOCK_TOKENS = 64
"""Tokens of a block where an indexer chooses what is read; its kernels know no other."""
LARGEST_PAGE_TOKENS, LEAST_PAGE_TOKENS, PAGES_PER_REQUEST = 256, 16, 16
"""tpu-inference splits a request into 16 pages of at least 16 and at most 256 tokens, which keeps few page numbers."""
LONG_MODEL_LEN = 8192
"""Above it tpu-inference begins with its least page."""
PAGE_NUMBERS = 131_072
"""Page numbers, of 4 bytes, that half of a TPU core's scalar memory holds for all sequences."""
WINDOW_POOL_SHARE = 0.8
"""SGLang's pool of layers with a window, over its pool of full attention, in tokens."""
BLOCK_MULTIPLE = 16
"""vLLM's attention kernels take blocks of a multiple of this."""
FEWEST_SEQUENCES = 256
"""Sequences that vLLM runs at most unless told otherwise."""

NEWEST = (1 << 30, 0)
_TOLERANCES = (((0, 18), 1.5), ((0, 13), 1.25), ((0, 0), 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The rules of an engine in one version, as its flags leave them.

    Attributes:
        name: one of ENGINES.
        version: (major, minor); NEWEST where none is given.
        prefix_caching: prefixes are cached beside recurrent states; None for what the version does.
        async_scheduling: the next batch is scheduled while one runs; None for what the version counts with.
    """

    name: str
    version: tuple[int, int] = NEWEST
    prefix_caching: bool | None = None
    async_scheduling: bool | None = None

    @property
    def pages(self) -> bool:
        """Whether a block holds more than one token, and groups of layers share a pool."""
        return self.name != SGLANG

    @property
    def tokens_by_concurrency(self) -> bool:
        """Whether the tokens printed are concurrency times the longest length, not blocks shared out over groups."""
        return self.name == TPU_INFERENCE or self.version >= (0, 20)

    @property
    def padding_tolerance(self) -> float:
        """How many times the smallest kind's layers the largest kind may have and still set the size of a group."""
        newest = _TOLERANCES[0][1]
        if self.name == TPU_INFERENCE:
            return newest
        return next((tolerance for since, tolerance in _TOLERANCES if self.version >= since), newest)

    @property
    def batches_in_flight(self) -> int:
        """Batches that a window keeps beside what is seen: two where the next is scheduled early, as since 0.26."""
        counted = self.name == VLLM and self.version >= (0, 26)
        return 2 if (counted if self.async_scheduling is None else self.async_scheduling) else 1

    @property
    def resident_states(self) -> int:
        """States of a sequence in a recurrent layer: two where prefixes are cached, by themselves since 0.28."""
        cached = self.name == VLLM and self.version >= (0, 28)
        return 2 if (cached if self.prefix_caching is None else self.prefix_caching) else 1

    def __str__(self) -> str:
        return self.name if self.version == NEWEST else f"{self.name} {self.version[0]}.{self.version[1]}"


def engine_named(text: str) -> Engine:
    """An engine by its name, with a version where its rules are wanted: `vllm`, `vllm-0.19`, `sglang`.

    >>> str(engine_named("vllm-0.19.1")), engine_named("vllm-0.19").tokens_by_concurrency
    ('vllm 0.19', False)

    Raises:
        UnknownNameError: no such engine.
        InputError: the version is no number.
    """
    name = next((known for known in ENGINES if text == known or text.startswith((f"{known}-", f"{known} "))), None)
    if name is None:
        raise UnknownNameError("engine", text, ENGINES, "(with a version, too: vllm-0.19)")
    rest = text.removeprefix(name).lstrip("- v")
    if not rest:
        return Engine(name=name)
    match = re.match(r"(\d+)\.(\d+)", rest)
    if not match:
        raise InputError(f"engine {text}: '{rest}' is no version; write for example {name}-0.19")
    return Engine(name=name, version=(int(match[1]), int(match[2])))


def block_tokens(engine: Engine, max_model_len: int, *, sparse: bool, max_num_seqs: int = FEWEST_SEQUENCES) -> int:
    """Tokens of a block where nobody sets them. []

    Args:
        engine: whose.
        max_model_len: longest request.
        sparse: an indexer chooses what is read.
        max_num_seqs: sequences that run at once; on TPUs the page numbers of all must fit a small memory.
    """
    if not engine.pages:
        return 1
    if engine.name == VLLM:
        return SPARSE_BLOCK_TOKENS if sparse else BLOCK_MULTIPLE
    pages = max(1, PAGE_NUMBERS // max_num_seqs)
    least = _power_of_two(-(-max_model_len // pages))
    share = _power_of_two(max_model_len) // PAGES_PER_REQUEST if max_model_len <= LONG_MODEL_LEN else LEAST_PAGE_TOKENS
    return max(least, min(LARGEST_PAGE_TOKENS, max(LEAST_PAGE_TOKENS, share)))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
