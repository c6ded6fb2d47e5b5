"""One pool for layers of several kinds, as vLLM shares it out: groups of as many layers, pages of as many bytes.

A page is a block of one layer. Layers of a kind are split into groups of one size, the smallest kind's, and a group
allocates a block for all its layers at once; so each block of the pool serves any group. Kinds of smaller pages take
more tokens to a block. A recurrent state is one page whatever the length, and sets how long a block of attention is.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real


def group_layers(kind_layers: tuple[int, ...], padding_tolerance: float) -> Real:
    """Layers of a group: those of the smallest kind; of the largest where that is only so many times larger. []

    A tolerance of 1 always takes the smallest. vLLM's was 1.25, and is 1.5 since 2026.
    """
    fewest = min(kind_layers)
    most = max(kind_layers)
    return np.where(most < fewest * padding_tolerance, most, fewest)


def groups_of_kind(layers_of_kind: Real, group_layers: Real) -> Real:
    """Groups of one kind of layer. []"""
    return np.ceil(layers_of_kind / group_layers)


def padding_layers(layers_of_kind: Real, groups_of_kind: Real, group_layers: Real) -> Real:
    """Layers that the groups of a kind have room for and do not have. []"""
    return groups_of_kind * group_layers - layers_of_kind


def padding_share(padding_layers: Real, layers_of_kind: Real) -> Real:
    """Padding of a kind over its layers, which vLLM prints as what it may waste at most. []"""
    return padding_layers / layers_of_kind


def state_page_bytes(
    state_elements_per_chip: Real,
    state_bytes_per_element: Real,
    conv_channels_per_chip: Real,
    conv_taps: Real,
    draft_tokens: Real,
    conv_bytes_per_element: Real,
) -> Real:
    """Bytes of one layer's recurrent state on a chip: the state, and the inputs that the convolution looks back at. [B]

    A convolution of k taps keeps k - 1 inputs, and one more for each draft token that may be taken back.
    """
    conv_elements = conv_channels_per_chip * (conv_taps - 1 + draft_tokens)
    return state_elements_per_chip * state_bytes_per_element + conv_elements * conv_bytes_per_element


def attention_block_tokens(
    state_page_bytes: Real, attention_bytes_per_token_per_chip: Real, block_multiple: Real
) -> Real:
    """Tokens of an attention block beside recurrent states: the least multiple whose page holds a state. []

    The multiple is what the attention kernels ask for, 16 unless they say otherwise.
    """
    return block_multiple * np.ceil(state_page_bytes / (block_multiple * attention_bytes_per_token_per_chip))


def state_padding_share(
    attention_block_tokens: Real, attention_bytes_per_token_per_chip: Real, state_page_bytes: Real
) -> Real:
    """What a state's page is padded by, over the state. []"""
    return attention_block_tokens * attention_bytes_per_token_per_chip / state_page_bytes - 1


def state_request_blocks(resident_states: Real, draft_tokens: Real) -> Real:
    """Blocks of one request in a layer with a recurrent state. []

    One state is resident, two where prefixes are cached (the last one kept and the running one), and one for each draft
    token.
    """
    return resident_states + draft_tokens


def paged_blocks(kv_pool_bytes: Real, page_bytes: Real, group_layers: Real) -> Real:
    """Blocks of a pool that groups of layers share. []"""
    return kv_pool_bytes // (page_bytes * group_layers)


def grouped_request_blocks(kind_groups: tuple[int, ...], kind_request_blocks: tuple[float, ...]) -> float:
    """Blocks of one request over all groups: each group takes its own. []"""
    return sum(groups * blocks for groups, blocks in zip(kind_groups, kind_request_blocks, strict=True))


def grouped_pool_tokens(pool_blocks: Real, n_groups: Real, smallest_block_tokens: Real) -> Real:
    """Tokens that vLLM logged before version 0.20: blocks shared out evenly over the groups. []

    No capacity: groups take unequal numbers of blocks.
    """
    return pool_blocks // n_groups * smallest_block_tokens


def equivalent_pool_tokens(max_concurrency: Real, max_model_len: Real) -> Real:
    """Tokens that vLLM logs since version 0.20: requests of the longest length, times that length. []

    No capacity at another length where layers keep windows or states.
    """
    return np.floor(max_concurrency * max_model_len)
