"""Checkpoints of NVIDIA's modelopt: one algorithm for all matrices, or one for each of those that are listed."""

from __future__ import annotations

import re
from collections.abc import Callable

from slicewise.catalog import quant_schemes as schemes
from slicewise.catalog.config import Config
from slicewise.catalog.quant_groups import group_scheme, groups_of, ignored_of, kv_dtype_of, targets_of
from slicewise.catalog.quant_names import place_patterns
from slicewise.catalog.quant_rules import EVERY_LINEAR, Found
from slicewise.catalog.quant_schemes import MX_GROUP, NVFP4_GROUP, group_of, unknown
from slicewise.errors import InputError
from slicewise.spec.quantisation import Scheme

_NONE = ("", "NONE", "UNQUANTIZED", "NO_QUANT", "W16A16")
_MIXED = "MIXED_PRECISION"
_BLOCK = 128


def modelopt(part: Config) -> Found | None:
    """The rules of a modelopt config, as config.json or hf_quant_config.json has it; None where nothing is quantised.

    Raises:
        InputError: a value is absurd, or a list is missing.
        UnsupportedModelError: an algorithm is not known.
    """
    exceptions = "exclude_modules" if part.has("exclude_modules") else "ignore"
    found = Found(rules=[], ignored=ignored_of(part, exceptions), kv_dtype=kv_dtype_of(part))
    algorithm = _algorithm(part)
    listed = part.part("quantized_layers")
    if algorithm not in (*_NONE, _MIXED):
        found.rules = [(EVERY_LINEAR, _scheme(part, algorithm))]
    elif listed is not None and listed.keys:
        found.rules = _layer_by_layer(listed)
    elif part.has("config_groups"):
        found.rules = _group_by_group(part)
    elif algorithm == _MIXED:
        raise InputError(f"{part.origin}: {_MIXED} needs quantized_layers; put hf_quant_config.json beside config.json")
    return found if found.rules else None


def _layer_by_layer(listed: Config) -> list[tuple[str, Scheme]]:
    alike: dict[Scheme, list[str]] = {}
    for name in listed.keys:
        own = listed.part(name)
        if own is not None and (algorithm := _algorithm(own)) not in _NONE:
            alike.setdefault(_scheme(own, algorithm), []).append(name)
    return [(pattern, scheme) for scheme, names in alike.items() for pattern in place_patterns(names, listed.origin)]


def _group_by_group(part: Config) -> list[tuple[str, Scheme]]:
    """Rules by bits and groups, where no algorithms are given."""
    rules: list[tuple[str, Scheme]] = []
    for _, group in groups_of(part):
        weights = group.part("weights")
        if weights is not None:
            scheme = group_scheme(weights, "mixed-precision", is_static=group.has("input_activations"))
            rules += [(pattern, scheme) for pattern in targets_of(group)]
    return sorted(rules, key=lambda rule: rule[0] == EVERY_LINEAR)


def _algorithm(part: Config) -> str:
    return part.text("quant_algo", "").upper()


def _scheme(part: Config, algorithm: str) -> Scheme:
    """The scheme of a word of modelopt's, such as W4A16_NVFP4."""
    made = next((make for pattern, make in _SCHEMES if re.fullmatch(pattern, algorithm)), None)
    if made is None:
        raise unknown(part, f"quant_algo {algorithm[:40]}", "FP8, NVFP4, MXFP4, MXFP8, INT8 and AWQ variants are")
    return made(part, algorithm)


def _nvfp4(part: Config, algorithm: str) -> Scheme:
    return schemes.nvfp4(
        group=group_of(part, "group_size", default=NVFP4_GROUP),
        static=not algorithm.startswith("W4A16"),
        pre_scaled=algorithm.endswith("_AWQ"),
    )


def _microscaled(part: Config, dtype: str) -> Scheme:
    return schemes.microscaled(dtype, group_of(part, "group_size", default=MX_GROUP))


def _fp8_blocks(part: Config, _: str) -> Scheme:
    side = group_of(part, "group_size", default=_BLOCK)
    return schemes.fp8_blocks(side, side)


def _awq(part: Config, algorithm: str) -> Scheme:
    group, zero_bits = group_of(part, "group_size", default=_BLOCK), 4.0 if part.flag("has_zero_point") else 0.0
    return schemes.grouped(4, group, zero_bits=zero_bits, pre_scaled=algorithm.endswith("_AWQ"))


_SCHEMES: tuple[tuple[str, Callable[[Config, str], Scheme]], ...] = (
    (r"(?:W4A\d+_)?NVFP4(?:_\w+)?", _nvfp4),
    (
        r"(?:W4A\d+_)?MXFP4(?:_\w+)?",
        lambda part, _: schemes.microscaled("fp4", group_of(part, "group_size", default=MX_GROUP)),
    ),
    (r"MXFP8", lambda part, _: _microscaled(part, "fp8")),
    (r"FP8", lambda *_: schemes.fp8(static=True)),
    (r"FP8_PER_CHANNEL_PER_TOKEN", lambda *_: schemes.eight_bits("fp8")),
    (r"FP8_PB_WO|FP8_PB_REAL|FP8_BLOCK_SCALES", _fp8_blocks),
    (r"W8A8_SQ_PER_CHANNEL(?:_\w+)?|INT8_SQ", lambda *_: schemes.eight_bits("int8", pre_scaled=True)),
    (r"W8A16|INT8", lambda *_: schemes.eight_bits("int8")),
    (r"W4A16(?:_AWQ)?|W4A8_AWQ|INT4_AWQ", _awq),
)
"""What each algorithm stores, by a pattern of its name."""
