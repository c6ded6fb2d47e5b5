"""What the families' configs have in common: widths, heads, dtype, and stacks of layers of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slicewise.catalog.config import Config, run_lengths
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8"}
_DTYPE_KEYS = ("torch_dtype", "dtype")
FULL, SLIDING, CHUNKED = "full", "sliding", "chunked"
LAYER_TYPES = {"full_attention": FULL, "sliding_attention": SLIDING, "chunked_attention": CHUNKED}
"""The words of `layer_types` for layers that attend."""


def nested(config: Config, name: str = "text_config") -> Config:
    """The language model in a config of several models, with what the whole says of it: tied embeddings, and dtype.

    Raises:
        InputError: there is none.
    """
    part = config.part(name)
    if part is None:
        raise config.missing(name)
    for around in (config, part):
        around.ignore("tie_word_embeddings", *_DTYPE_KEYS)
    tied = {key: config.keys[key] for key in ("tie_word_embeddings",) if config.keys.get(key) is not None}
    stated = any(part.keys.get(key) is not None for key in _DTYPE_KEYS)
    dtypes = {} if stated else {key: config.keys[key] for key in _DTYPE_KEYS if key in config.keys}
    return Config({**part.keys, **dtypes, **tied}, part.origin, part.family)


def shape(config: Config, *, tied: bool = False, vocab_size: int | None = None, max_context: int = 0) -> dict[str, Any]:
    """The parts of a record that every config gives alike.

    Args:
        config: the config.
        tied: what transformers takes where `tie_word_embeddings` is missing.
        vocab_size: what transformers takes where `vocab_size` is missing; None where it must be there.
        max_context: what transformers takes where the most positions are missing; 0 where the model then has no limit.
    """
    limit = config.size("max_position_embeddings", "n_positions", "seq_length", "model_max_length", default=max_context)
    return {
        "d_model": config.size("hidden_size", "n_embd", "d_model"),
        "vocab_size": config.size("vocab_size", default=vocab_size),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "checkpoint_dtype": dtype(config),
        **({"max_context_tokens": limit} if limit else {}),
    }


def dtype(config: Config) -> str:
    """The dtype of the weights that are not quantised.

    Raises:
        UnsupportedModelError: none that is known.
    """
    named = next((config.keys[key] for key in _DTYPE_KEYS if config.has(key)), "bfloat16")
    config.ignore(*_DTYPE_KEYS)
    word = str(named).removeprefix("torch.")[:40]
    if word not in DTYPES:
        raise UnsupportedModelError(
            f"{config.origin}: torch_dtype {word} is not supported; supported: {', '.join(DTYPES)}"
        )
    # What an fp8 checkpoint does not quantise is kept in 16 bits.
    return "bf16" if DTYPES[word] == "fp8" else DTYPES[word]


def heads(
    config: Config,
    *,
    must_have_kv_heads: bool = False,
    head_dim: int | None = None,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
) -> dict[str, int]:
    """Query heads, KV heads and their width.

    Args:
        config: the config.
        must_have_kv_heads: the family states `num_key_value_heads`; others have one for each query head without it.
        head_dim: what transformers takes where `head_dim` is missing; None for d_model / n_heads.
        n_heads: what transformers takes where `num_attention_heads` is missing; None where it must be there.
        n_kv_heads: what transformers takes where `num_key_value_heads` is missing; None for one a query head.

    Raises:
        InputError: a key is missing, or the width does not divide.
    """
    n_heads = config.size("num_attention_heads", "n_head", default=n_heads)
    if must_have_kv_heads and "num_key_value_heads" not in config.keys:
        raise config.missing("num_key_value_heads", f"{config.family} models state it")
    n_kv_heads = config.size("num_key_value_heads", default=n_kv_heads or n_heads)
    d_model = config.size("hidden_size", "n_embd")
    if not config.has("head_dim") and head_dim is None and d_model % n_heads:
        raise InputError(
            f"{config.origin}: head_dim is missing and hidden_size {d_model} does not divide by {n_heads} heads"
        )
    width = config.size("head_dim", default=head_dim or d_model // n_heads)
    if n_heads % n_kv_heads:
        raise InputError(
            f"{config.origin}: {n_heads} query heads do not divide over {n_kv_heads} KV heads;"
            " check num_attention_heads and num_key_value_heads"
        )
    return {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "head_dim": width}


def rotary_share(config: Config, default: float = 1.0) -> float:
    """The part of a head's width that is rotated."""
    parts = (config, config.part("rope_parameters"), config.part("rope_scaling"))
    found = next((part for part in parts if part and part.has("partial_rotary_factor")), None)
    return default if found is None else found.number("partial_rotary_factor", most=1.0)


def rope_table(record: dict[str, Any], width: int) -> dict[str, Any]:
    """The rotary table that an engine keeps: one row a position of the stated limit, of the rotated width."""
    limit = record.get("max_context_tokens")
    return {"rope_table": [limit, width]} if limit else {}


def stack(
    config: Config,
    *,
    attention: dict[str, Any] | None = None,
    feed_forward: dict[str, Any] | None = None,
    must_have_kv_heads: bool = False,
    tied: bool = False,
    **more: Any,
) -> ModelRecord:
    """A model whose layers are all alike: attention and a dense MLP.

    Args:
        config: the config.
        attention: further arguments of the attention; they win over what the config says.
        feed_forward: further arguments of the MLP.
        must_have_kv_heads: the family states `num_key_value_heads`.
        tied: what transformers takes where `tie_word_embeddings` is missing.
        more: further fields of the record.
    """
    found = shape(config, tied=tied)
    words = {**heads(config, must_have_kv_heads=must_have_kv_heads), **(attention or {})}
    d_ff = config.size("intermediate_size")
    return ModelRecord(
        mixers={FULL: {"kind": "attention", **words}},
        feed_forwards={"dense": {"kind": "dense", "d_ff": d_ff, **(feed_forward or {})}},
        layers=[[FULL, "dense", config.layers()]],
        **{**found, **rope_table(found, int(words["head_dim"] * rotary_share(config))), **more},
    )


def layer_kinds(config: Config, n_layers: int, known: dict[str, str] | None = None) -> list[str] | None:
    """The mixer of each layer from `layer_types`; None where the key is missing.

    Args:
        config: the config.
        n_layers: layers.
        known: words that are understood, with what the record calls them.
    """
    names = known or LAYER_TYPES
    listed = config.kinds("layer_types", n_layers, tuple(names))
    return None if listed is None else [names[word] for word in listed]


def switches(config: Config, name: str, n_layers: int) -> list[bool] | None:
    """A list of 0 and 1, one a layer; None where the key is missing.

    Args:
        config: the config.
        name: the key.
        n_layers: layers.

    Raises:
        InputError: an entry is neither.
    """
    values = config.listed(name, n_layers)
    if values is not None and any(config.whole(value, name, least=0) > 1 for value in values):
        raise InputError(f"{config.origin}: {name} must hold 0 or 1 for each layer")
    return None if values is None else [bool(value) for value in values]


def first_dense(n_layers: int, n_dense: int) -> list[str]:
    """The feed-forward of each layer where the first few are dense and the rest experts."""
    return ["dense" if index < n_dense else "experts" for index in range(n_layers)]


def layers_of(mixers: list[str], feeds: list[str]) -> list[list[Any]]:
    """The layers as [mixer, feed-forward, how many]."""
    return run_lengths(zip(mixers, feeds, strict=True))


def assembled(
    found: dict[str, Any],
    mixers: dict[str, dict[str, Any]],
    feed_forwards: dict[str, dict[str, Any]],
    kinds: list[tuple[str, str]],
    *,
    rotated: int,
    **more: Any,
) -> ModelRecord:
    """A model of layers of several kinds; kinds that no layer has are left away.

    Args:
        found: what `shape` found.
        mixers: arguments of each kind of mixer.
        feed_forwards: arguments of each kind of feed-forward.
        kinds: mixer and feed-forward of each layer.
        rotated: width of the rotary tables together; 0 for none.
        more: further fields of the record.
    """
    mixing, forward = ({kind[side] for kind in kinds} for side in (0, 1))
    return ModelRecord(
        mixers={name: words for name, words in mixers.items() if name in mixing},
        feed_forwards={name: words for name, words in feed_forwards.items() if name in forward},
        layers=run_lengths(kinds),
        **{**found, **(rope_table(found, rotated) if rotated else {}), **more},
    )


def window(config: Config, *names: str, default: int | None = 0) -> dict[str, int]:
    """The window of layers that slide, as arguments of their attention; none where it is longer than the context limit.

    Args:
        config: the config.
        names: names of the key; `sliding_window` where none are given.
        default: what transformers takes where it is missing; 0 for every token, None where it must be there.
    """
    size = config.size(*(names or ("sliding_window",)), default=default)
    limit = config.size("max_position_embeddings", default=size)
    return {"window": size} if size and size <= limit else {}


def routed(
    config: Config, *, d_ff: str, count: Sequence[str] = ("num_experts",), active: str = "num_experts_per_tok"
) -> dict[str, Any]:
    """The arguments that every mixture of experts has.

    Args:
        config: the config.
        d_ff: the key of the width of one expert.
        count: names of the key of how many experts there are.
        active: the key of how many a token is sent to.

    Raises:
        InputError: more are active than there are.
    """
    n_experts, n_active = config.size(*count), config.size(active)
    if n_active > n_experts:
        raise InputError(f"{config.origin}: {active} is {n_active}, of {n_experts} experts; check the file")
    return {"kind": "experts", "d_ff": config.size(d_ff), "n_experts": n_experts, "n_active": n_active}


def layer_numbers(config: Config, name: str, n_layers: int) -> set[int]:
    """A list of layers, the first one 0; none where the key is missing.

    Raises:
        InputError: an entry is no layer of the model.
    """
    found = {config.whole(value, name, least=0) for value in config.listed(name) or ()}
    if any(number >= n_layers for number in found):
        raise InputError(f"{config.origin}: {name} holds {max(found)}; there are {n_layers} layers, the first one 0")
    return found
