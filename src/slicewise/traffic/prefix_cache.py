"""A prefix cache: blocks that prompts left, the least recently used thrown out first."""

from __future__ import annotations

from collections import OrderedDict

Prefix = tuple[int, ...]
"""Hashes of a prompt's blocks, the first block first."""


class PrefixCache:
    """Hashes of cached blocks.

    Attributes:
        block_tokens: tokens of a block.
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def hits(self, prefix: Prefix) -> int:
        """Leading blocks that are cached."""
        found = 0
        for each in prefix:
            if each not in self._blocks:
                break
            found += 1
        return found

    def cached_tokens(self, prefix: Prefix, tokens: int) -> int:
        """Of so many tokens, those that need not be computed: whole blocks, and never all of them."""
        return min(self.hits(prefix), (tokens - 1) // self.block_tokens) * self.block_tokens

    def remember(self, prefix: Prefix, prompt_tokens: int, room_tokens: int) -> None:
        """Leave a prompt's whole blocks, and throw out what no longer has room."""
        blocks = self._blocks
        for each in prefix[: prompt_tokens // self.block_tokens]:
            blocks[each] = None
            blocks.move_to_end(each)
        most = max(room_tokens, 0) // self.block_tokens
        while len(blocks) > most:
            blocks.popitem(last=False)
