r"""Turns the names of modules in a quantization config into patterns of places: `layers.N.<module>`, `lm_head`.

Names come in four kinds: exact ones (`model.layers.3.mlp.gate`), parts (`gate`, `self_attn`), globs
(`model.layers.*.self_attn*`) and regular expressions (`re:.*mlp\.gate$`). What a repository puts before the layers
(`model.`, `language_model.model.`, `backbone.`) is dropped. Exact names that differ only in their layer become one
pattern, so that a list of 700 names costs no more than one of 10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from slicewise.errors import InputError

_PREFIX = r"model|language_model|text_model|backbone|transformer|decoder|llm"
_LEADING = re.compile(rf"^(?:(?:{_PREFIX})\.)+")
_LEADING_IN_REGEX = re.compile(rf"(?<![\w.])(?:(?:{_PREFIX})\\?\.(?![*+?{{]))+")
_LAYER = re.compile(r"^(?:layers|h|blocks)\.(\d+)(?:\.(.*))?$")
_OF_ANOTHER_STACK = re.compile(r"\.(?:layers|h|blocks)\.\d")
"""Layers of a vision tower or of a draft model, whose names begin with it."""
_FIRST_EXPERT = re.compile(r"(?<=\bexperts)\.0\b")
_EXPERT = r"(?:\.0)?"
_FURTHER_EXPERT = re.compile(r"\bexperts\.[1-9]\d*\b")
_REGEX_SIGNS = re.compile(r"[\\^$()\[\]+|]")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPEATS = re.compile(r"(?<!\\)[*+{]")
_LONGEST, _MOST_REPEATS = 1000, 6
_END = r"(?:\.|$)"
_EVERYTHING = r"^(?:layers|embed_tokens)\b"

_SAME = (
    ("mlp", "feed_forward", "ffn", "moe", "block_sparse_moe"),
    ("self_attn", "attention", "attn"),
    ("shared_expert", "shared_experts", "share_expert"),
    ("gate", "router"),
)
"""Words that families have for one thing."""
_PARTS = {
    "mixer": ("self_attn", "mlp", "linear_attn", "mamba"),
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "w1": ("gate_proj",),
    "w2": ("down_proj",),
    "w3": ("up_proj",),
    "fused_qkv_a_proj_with_mqa": ("q_a_proj", "kv_a_proj_with_mqa"),
    "indexers_proj": ("indexer.weights_proj",),
    "in_proj_ba": ("in_proj_b", "in_proj_a"),
    "in_proj_b": ("in_proj_ba",),
    "in_proj_a": ("in_proj_ba",),
    "in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "in_proj_qkv": ("in_proj_qkvz",),
    "in_proj_z": ("in_proj_qkvz",),
}
"""What one checkpoint puts together and another keeps apart."""


def place_patterns(names: Iterable[str], origin: str) -> list[str]:
    r"""Regular expressions of places, to be searched, that match what the names match.

    >>> print(*place_patterns(["model.layers.0.norm", "model.layers.7.norm", "lm_head"], "config.json"))
    ^layers\.(?:0|7)\.(?:norm)(?:\.|$) (?:^|\.)lm_head(?:\.|$)

    Args:
        names: of modules; a leading "re:" makes a regular expression, as do its signs.
        origin: where the names were read, for messages.

    Raises:
        InputError: a regular expression that is none.
    """
    layers: dict[str, set[int]] = {}
    found: list[str] = []
    for raw in dict.fromkeys(names):
        _refuse_endless(raw.removeprefix("re:"), origin)
        is_regex = raw.startswith("re:")
        name = raw.removeprefix("re:")
        if is_regex or _REGEX_SIGNS.search(name):
            found.append(_regex(name, origin))
            continue
        rest = _LEADING.sub("", name.strip().removesuffix(".weight"))
        if _FURTHER_EXPERT.search(rest) or _OF_ANOTHER_STACK.search(rest):
            continue
        at = _LAYER.match(rest)
        if at:
            layers.setdefault(_pattern(at[2] or "*"), set()).add(int(at[1]))
        else:
            found.append(_EVERYTHING if rest in ("", "*", "model") else _anywhere(rest))
    return [*_by_layer(layers), *dict.fromkeys(found)]


def _refuse_endless(name: str, origin: str) -> None:
    """Refuse a pattern that may take for ever to search: groups that repeat, and too many signs that do.

    Raises:
        InputError: it is one.
    """
    if len(name) > _LONGEST:
        raise InputError(f"{origin}: a pattern has {len(name):,} characters; shorten it to {_LONGEST:,}")
    if _REPEATED_GROUP.search(name) or any(len(_REPEATS.findall(part)) > _MOST_REPEATS for part in name.split("|")):
        raise InputError(f"{origin}: '{name[:60]}' repeats so much that it may take for ever to search; simplify it")


def _by_layer(layers: dict[str, set[int]]) -> list[str]:
    """One pattern for what the same layers have."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for pattern, at in layers.items():
        alike.setdefault(tuple(sorted(at)), []).append(pattern)
    return [rf"^layers\.(?:{'|'.join(map(str, at))})\.(?:{'|'.join(patterns)}){_END}" for at, patterns in alike.items()]


def _anywhere(name: str) -> str:
    """A part of a name: from one dot to another; a leading or trailing star goes beyond."""
    start = "^" if name.startswith(("layers.", "*")) else r"(?:^|\.)"
    return start + _pattern(name) + _END


def _pattern(name: str) -> str:
    """A name or glob without what is before it, its words and fused matrices widened."""
    return r"\.".join(_word(word) for word in _FIRST_EXPERT.sub("", name).split("."))


def _word(word: str) -> str:
    if "*" in word or "?" in word:
        return "".join(".*" if sign == "*" else "." if sign == "?" else re.escape(sign) for sign in word)
    if word == "experts":
        return rf"experts{_EXPERT}"
    words = (*next((same for same in _SAME if word in same), (word,)), *_PARTS.get(word, ()))
    made = re.escape(words[0]) if len(words) == 1 else f"(?:{'|'.join(map(re.escape, words))})"
    # Some families have their experts right below it.
    return made + _EXPERT if word in _SAME[0] else made


def _regex(pattern: str, origin: str) -> str:
    """A regular expression that is matched from the start of a name, without what is before the layers."""
    short = _LEADING_IN_REGEX.sub("", pattern)
    # Where nothing is left before the layers or the head, a dot that must come before them never would.
    short = re.sub(r"^(\^?)\.\*\\\.", r"\1(?:.*\\.)?", short)
    for fused in ("qkv_proj", "gate_up_proj"):
        parts = "|".join(_PARTS[fused])
        short = re.sub(rf"(?<![\w|(]){fused}\b", f"(?:{fused}|{parts})", short)
    flags = re.match(r"^\(\?i\)", short)
    made = f"^(?i:{short[flags.end() :]})" if flags else f"^(?:{short})"
    try:
        re.compile(made)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"{origin}: 're:{pattern[:60]}' is no regular expression ({error}); mend it") from error
    return made
