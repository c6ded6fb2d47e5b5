"""Reads how a checkpoint is quantised: `quantization_config` of a config.json, or modelopt's hf_quant_config.json.

Methods: fp8, mxfp8, fbgemm_fp8, compressed-tensors, modelopt, awq, gptq, auto-round, mxfp4 and bitsandbytes. Others are
refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slicewise.catalog import quant_schemes as schemes
from slicewise.catalog.config import Config
from slicewise.catalog.quant_groups import compressed_tensors, kv_dtype_of
from slicewise.catalog.quant_modelopt import modelopt
from slicewise.catalog.quant_names import place_patterns
from slicewise.catalog.quant_rules import EVERY_LINEAR, Found, names_of
from slicewise.catalog.quant_schemes import bits_of, group_of, unknown
from slicewise.errors import InputError
from slicewise.spec.quantisation import Scheme

_HOLDERS = ("", "text_config", "llm_config", "language_config")
QUANTISATION = ("quantization_config", "compression_config")
"""Keys of a config that hold how it is quantised."""
_EXPERTS = r"\.experts\."
_BNB_GROUP, _BNB_TABLE_BYTES, _BNB_NESTED = 64, 64.0, 256
_FP32 = 4.0


def quantisation(keys: dict[str, Any], origin: str, beside: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The `quantisation` of a model record; None where nothing is quantised.

    Args:
        keys: the object of a config.json.
        origin: where it was read, for messages.
        beside: the object of a hf_quant_config.json beside it.

    Raises:
        InputError: a value is absurd.
        UnsupportedModelError: the method, or one of its variants, is not known.
    """
    family = str(keys.get("model_type", ""))[:60]
    part = _part(keys, origin, family)
    sidecar = _sidecar(beside, origin, family)
    if part is None and sidecar is None:
        return None
    found = _read(part or sidecar, keys)  # type: ignore[arg-type]  # one of them is there
    if found and sidecar and found.kv_dtype is None:
        found.kv_dtype = kv_dtype_of(sidecar)
    return found.words() if found else None


def without_quantisation(keys: dict[str, Any]) -> dict[str, Any]:
    """The keys of a config without what is read here, at the top and in the config of the text model."""
    kept = _without(keys)
    return {**kept, **{name: _without(kept[name]) for name in _HOLDERS if isinstance(kept.get(name), dict)}}


def _without(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key not in QUANTISATION}


def _part(keys: dict[str, Any], origin: str, family: str) -> Config | None:
    """The quantization config, at the top or in the config of the text model."""
    for holder in _HOLDERS:
        around = keys.get(holder) if holder else keys
        if not isinstance(around, dict):
            continue
        for key in QUANTISATION:
            if around.get(key) not in (None, {}):
                return Config(around, f"{origin}: {holder}" if holder else origin, family).part(key)
    return None


def _sidecar(beside: dict[str, Any] | None, origin: str, family: str) -> Config | None:
    if not beside:
        return None
    part = Config(beside, f"{origin}: hf_quant_config.json", family).part("quantization")
    return Config({"quant_method": "modelopt", **part.keys}, part.origin, family) if part else None


def _read(part: Config, keys: dict[str, Any]) -> Found | None:
    named = part.text("quant_method", _unnamed(part))
    method = named.lower().replace("-", "_").rpartition("/")[2].removesuffix("_marlin")
    if method not in _METHODS:
        raise unknown(part, f"quant_method {named[:40]}", f"supported: {', '.join(METHODS)}")
    found = _METHODS[method](part, keys)
    part.misspelt()
    if found is not None:
        found.method = named
    return found


def _unnamed(part: Config) -> str | None:
    """The method of a config that does not name it."""
    telling = {
        "quant_algo": "modelopt",
        "config_groups": "compressed-tensors",
        "load_in_4bit": "bitsandbytes",
        "load_in_8bit": "bitsandbytes",
    }
    return next((method for key, method in telling.items() if part.has(key)), None)


def _everywhere(scheme: Scheme, part: Config, *keys: str) -> Found:
    """One scheme for every linear matrix but those listed under the first of some keys that is there."""
    key = next((key for key in keys if part.keys.get(key) is not None), keys[0])
    return Found(rules=[(EVERY_LINEAR, scheme)], ignored=place_patterns(names_of(part, key), part.origin))


def _fp8(part: Config, keys: dict[str, Any]) -> Found:
    """fp8 in blocks, or with one scale a matrix; experts of DeepSeek V4 may be fp4."""
    sides = part.listed("weight_block_size")
    scaled_ahead = part.text("activation_scheme", "dynamic", ("dynamic", "static")) == "static"
    if sides is None:
        scheme = schemes.fp8(static=scaled_ahead)
    elif len(sides) != 2:  # noqa: PLR2004  # a block has two sides
        raise InputError(f"{part.origin}: weight_block_size has {len(sides)} sides; write [128, 128]")
    else:
        outputs, inputs = (part.whole(side, "weight_block_size") for side in sides)
        scheme = schemes.fp8_blocks(outputs, inputs, _block_scale_bytes(part))
    found = _everywhere(scheme, part, "modules_to_not_convert", "ignored_layers")
    found.kv_dtype = "fp8" if part.has("kv_cache_scheme") else None
    # Step's checkpoints hold fp8 for the routed experts alone, though their config lists no exceptions.
    found.experts_only = part.family.startswith("step")
    word = part.keys.get("expert_dtype") or keys.get("expert_dtype") or "fp8"
    if word not in ("fp8", "fp4"):
        raise unknown(part, f"expert_dtype {str(word)[:40]}", "fp8 and fp4 are")
    if word == "fp4":
        found.rules.insert(0, (_EXPERTS, schemes.microscaled("fp4")))
    return found


def _block_scale_bytes(part: Config) -> float:
    """Bytes of a block's scale, which no config says. [B]

    Most hold float32; powers of two (ue8m0) take one byte since DeepSeek V4, and not in V3.1 and V3.2; Qwen holds bf16.
    """
    if part.text("scale_fmt", "") == "ue8m0" and part.family not in ("deepseek_v3", "deepseek_v32"):
        return 1.0
    return 2.0 if part.family.startswith("qwen") else _FP32


def _mxfp8(part: Config, _: dict[str, Any]) -> Found:
    return _everywhere(schemes.microscaled("fp8"), part, "modules_to_not_convert", "ignored_layers")


def _fbgemm_fp8(part: Config, _: dict[str, Any]) -> Found:
    return _everywhere(schemes.eight_bits("fp8"), part, "modules_to_not_convert")


def _mxfp4(part: Config, _: dict[str, Any]) -> Found:
    """gpt-oss: the experts alone."""
    found = _everywhere(schemes.microscaled("fp4"), part, "modules_to_not_convert")
    found.experts_only = True
    return found


def _awq(part: Config, _: dict[str, Any]) -> Found:
    bits = bits_of(part, "bits", "w_bit", default=4)
    zero_bits = float(bits) if part.flag("zero_point", default=True) else 0.0
    scheme = schemes.grouped(bits, group_of(part, "group_size", "q_group_size", default=128), zero_bits=zero_bits)
    return _everywhere(scheme, part, "modules_to_not_convert")


def _gptq(part: Config, _: dict[str, Any]) -> Found:
    """GPTQ keeps zero points and the group of each input whether or not they say anything."""
    bits, group = bits_of(part, "bits"), group_of(part, "group_size", default=128)
    for key in ("sym", "desc_act"):
        part.flag(key)
    scheme = schemes.grouped(bits, group, zero_bits=bits, indexed=True)
    found = _everywhere(scheme, part, "modules_to_not_convert")
    blocks = part.listed("modules_in_block_to_quantize") or []
    inside = [name for block in blocks for name in (block if isinstance(block, list) else [block])]
    if inside:
        names = names_of(Config({"inside": inside}, part.origin, part.family), "inside")
        found.rules = [(pattern, scheme) for pattern in place_patterns(names, part.origin)]
    _exceptions(part, "dynamic", found, group)
    _exceptions(part, "extra_config", found, group)
    if part.flag("lm_head"):
        found.rules.insert(0, ("^lm_head$", scheme))
    return found


def _exceptions(part: Config, key: str, found: Found, group: int) -> None:
    """Modules with bits of their own: of gptqmodel (`-:` before what is left out), and of auto-round (16 bits)."""
    listed = part.part(key)
    for name in listed.keys if listed else ():
        own = listed.part(name) if listed else None
        signed = name.startswith(("-:", "+:"))
        pattern = place_patterns([f"re:{name[2:]}" if signed else name], part.origin)
        bits = own.keys.get("bits", own.keys.get("data_type", "")) if own else ""
        if name.startswith("-:") or own is None or bits in (16, 32, "float", "fp"):
            found.ignored += pattern
        elif "bits" in own.keys:
            width = bits_of(own, "bits")
            scheme = schemes.grouped(width, group_of(own, "group_size", default=group), zero_bits=width, indexed=True)
            found.rules[:0] = [(one, scheme) for one in pattern]


def _bitsandbytes(part: Config, _: dict[str, Any]) -> Found:
    """8 bits with a scale an output; 4 bits in blocks of 64, whose scales may be quantised once more."""
    if part.flag("load_in_8bit"):
        scheme = schemes.eight_bits("int8")
    elif part.flag("load_in_4bit"):
        nested = part.flag("bnb_4bit_use_double_quant")
        scheme = Scheme(
            dtype="fp4" if part.text("bnb_4bit_quant_type", "fp4", ("fp4", "nf4")) == "fp4" else "int4",
            block=(_BNB_GROUP, 1),
            scale_bytes=1 + _FP32 / _BNB_NESTED if nested else _FP32,
            tensor_bytes=_BNB_TABLE_BYTES + (_FP32 * _BNB_NESTED if nested else 0.0),
        )
    else:
        raise InputError(f"{part.origin}: neither load_in_4bit nor load_in_8bit is true; {schemes.FIX}")
    return _everywhere(scheme, part, "llm_int8_skip_modules")


METHODS: dict[str, Callable[[Config, dict[str, Any]], Found | None]] = {
    "fp8": _fp8,
    "mxfp8": _mxfp8,
    "fbgemm_fp8": _fbgemm_fp8,
    "mxfp4": _mxfp4,
    "compressed-tensors": lambda part, _: compressed_tensors(part),
    "modelopt": lambda part, _: modelopt(part),
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _gptq,
    "bitsandbytes": _bitsandbytes,
}
"""What reads each `quant_method`."""
_METHODS = {
    **{name.replace("-", "_"): read for name, read in METHODS.items()},
    "compressed_tensors": METHODS["compressed-tensors"],
    **{f"modelopt_{kind}": METHODS["modelopt"] for kind in ("fp8", "fp4", "nvfp4", "mixed", "mxfp8")},
}
