"""Checkpoints whose config groups modules, each group with its bits: compressed-tensors, and what is like it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slicewise.catalog import quant_schemes as schemes
from slicewise.catalog.config import Config
from slicewise.catalog.config_keys import is_nothing, shown
from slicewise.catalog.quant_names import place_patterns
from slicewise.catalog.quant_rules import EVERY_LINEAR, Found, names_of
from slicewise.catalog.quant_schemes import MX_GROUP, NVFP4_GROUP, bits_of, group_of, unknown
from slicewise.errors import InputError
from slicewise.spec.quantisation import Scheme

_CLASS = re.compile(r"^[A-Z]\w*$")
_SIDE = re.compile(r"^[0-9]{1,6}$")
_CLASSES = {"Linear": EVERY_LINEAR, "Embedding": "^embed_tokens$", "ParallelLMHead": "^lm_head$"}
_FORMATS = (
    "float-quantized", "int-quantized", "pack-quantized", "naive-quantized", "nvfp4-pack-quantized",
    "mxfp4-pack-quantized", "mxfp8-quantized", "mixed-precision", "",
)  # fmt: skip
_PLAIN = "dense"
"""What is stored as it was, whatever its bits."""
_STORED_IN_BYTES = ("int-quantized", "naive-quantized")
_MX_SCALES = ("torch.uint8", "uint8", "torch.float8_e8m0fnu")
_ORDERS = ("group", "dynamic", "weight", "static", True, False)
_BLOCK = 128


def compressed_tensors(part: Config) -> Found | None:
    """Groups of targets, each with a scheme; None where no weight is quantised.

    Raises:
        InputError: a value is absurd.
        UnsupportedModelError: a format or a scheme is not known.
    """
    sparsity = part.part("sparsity_config")
    if sparsity is not None and (word := sparsity.text("format", _PLAIN)) != _PLAIN:
        raise unknown(sparsity, f"format {word[:40]}", f"{_PLAIN} is")
    overall = part.text("format", "")
    found = Found(rules=[], ignored=ignored_of(part, "ignore"), kv_dtype=kv_dtype_of(part))
    for name, group in groups_of(part):
        weights, form = group.part("weights"), group.text("format", overall)
        if weights is None or form == _PLAIN:
            continue
        if form not in _FORMATS:
            raise unknown(part, f"{name}: format {form[:40]}", f"supported: {', '.join(filter(None, _FORMATS))}")
        inputs = group.part("input_activations")
        is_static = inputs is not None and _word_of(inputs, "dynamic", (True, False, "local")) in (False, "local")
        scheme = group_scheme(weights, form, is_static=is_static)
        found.rules += [(pattern, scheme) for pattern in targets_of(group)]
    found.rules.sort(key=lambda rule: rule[0] == EVERY_LINEAR)
    return found if found.rules else None


def groups_of(part: Config) -> list[tuple[str, Config]]:
    """The groups by name.

    Raises:
        InputError: there are none.
    """
    groups = part.part("config_groups")
    if groups is None:
        raise InputError(f"{part.origin}: config_groups is missing; mend the file, or {schemes.FIX}")
    return [(name, group) for name in groups.keys if (group := groups.part(name)) is not None]


def targets_of(group: Config) -> list[str]:
    """Patterns of a group's targets, which are names or classes."""
    names = names_of(group, "targets") or ["Linear"]
    found = place_patterns([name for name in names if not _CLASS.match(name)], group.origin)
    for name in filter(_CLASS.match, names):
        if name not in _CLASSES:
            raise unknown(group, f"target {name[:40]}", f"classes that are: {', '.join(_CLASSES)}")
        found.append(_CLASSES[name])
    return found


def ignored_of(part: Config, key: str) -> list[str]:
    """Patterns of a list of exceptions; classes among them are none of linear matrices."""
    return place_patterns([name for name in names_of(part, key) if not _CLASS.match(name)], part.origin)


def kv_dtype_of(part: Config) -> str | None:
    """The dtype of the cache, by a word (FP8) or by bits and type."""
    stated = [part.keys[key] for key in ("kv_cache_quant_algo", "kv_cache_scheme") if part.has(key)]
    value = next((value for value in stated if not is_nothing(value)), None)
    if value is None:
        return None
    if isinstance(value, dict):
        scheme = Config(value, f"{part.origin}: kv_cache_scheme", part.family)
        word = f"{scheme.text('type', 'float', ('float', 'int'))}{bits_of(scheme, 'num_bits')}"
    else:
        word = str(value).lower()
    known = {"fp8": "fp8", "float8": "fp8", "static": "fp8", "int8": "int8", "nvfp4": "fp4", "float4": "fp4",
             "int4": "int4", "none": None, "auto": None}  # fmt: skip
    if word not in known:
        raise unknown(part, f"a KV cache of {word[:40]}", "FP8, INT8 and NVFP4 are")
    return known[word]


def group_scheme(weights: Config, form: str, *, is_static: bool) -> Scheme:
    """The scheme of a group's `weights`: type, bits, strategy and group."""
    kind, bits = weights.text("type", "int", ("float", "int")), bits_of(weights, "num_bits", default=8)
    group = group_of(weights, "group_size")
    known = ("tensor", "channel", "group", "block", "tensor_group", "token")
    strategy = weights.text("strategy", "group" if group else "tensor", known)
    if kind == "float" and bits == 4:  # noqa: PLR2004  # bits
        is_mx = form.startswith("mx") or group == MX_GROUP
        return (
            schemes.microscaled("fp4", group or MX_GROUP)
            if is_mx
            else schemes.nvfp4(group=group or NVFP4_GROUP, static=is_static)
        )
    if strategy == "block":
        outputs, inputs = _block(weights)
        return schemes.fp8_blocks(outputs, inputs) if kind == "float" else Scheme(dtype="int8", block=(inputs, outputs))
    if kind == "float" and group:
        is_mx = form.startswith("mx") or weights.text("scale_dtype", "") in _MX_SCALES
        return Scheme(dtype="fp8", block=(group, 1), scale_bytes=1.0 if is_mx else 2.0)
    dtype = "fp8" if kind == "float" else "int8"
    by_channel = schemes.eight_bits(dtype, static=is_static)
    if strategy == "tensor":
        return replace(by_channel, block=(0, 0))
    width = 8 if form in _STORED_IN_BYTES else bits
    if kind == "float" or (width == 8 and not group and form != "pack-quantized"):  # noqa: PLR2004  # bits
        return by_channel
    zero_bits = 0.0 if weights.flag("symmetric", default=True) else float(width)
    return schemes.grouped(
        width,
        group,
        zero_bits=zero_bits,
        indexed=_word_of(weights, "actorder", _ORDERS) in ("group", "dynamic", True),
        packed=form == "pack-quantized",
    )


def _word_of(part: Config, name: str, known: Sequence[str | bool]) -> str | bool | None:
    """A word, or true or false; None where the key is missing."""
    value = part.keys[name] if part.has(name) else None
    if value is not None and not any(value is word or (isinstance(value, str) and value == word) for word in known):
        raise InputError(f"{part.origin}: {name} is {shown(value)}; known: {', '.join(map(str, known))}")
    return value


def _block(weights: Config) -> tuple[int, int]:
    """Outputs and inputs of a block."""
    sides: Any = weights.keys["block_structure"] if weights.has("block_structure") else [_BLOCK, _BLOCK]
    if isinstance(sides, str):
        sides = [int(side) if _SIDE.match(side) else side for side in sides.lower().split("x")]
    if not isinstance(sides, list) or len(sides) != 2:  # noqa: PLR2004  # a block has two sides
        raise InputError(f"{weights.origin}: block_structure is {shown(sides)}; write [128, 128]")
    return weights.whole(sides[0], "block_structure"), weights.whole(sides[1], "block_structure")
