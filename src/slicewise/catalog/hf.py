"""Reads a Hugging Face config.json of any family that has an adapter.

What is not understood is refused by the name of its key, and so is a key that is misspelt. A missing key takes the
default of transformers where the family's published configs leave it out, and is refused elsewhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families import ARCHITECTURES, FAMILIES, adapter
from slicewise.catalog.json_file import read_json
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.quant_config import QUANTISATION, quantisation, without_quantisation
from slicewise.catalog.safetensors import read_checkpoint
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.provenance import Provenance
from slicewise.spec.stored import as_checkpoint
from slicewise.spec.tensors import weight_tensors
from slicewise.units import show_gib

MOST_PARAMETERS = 10**14
"""Each size of a config may be within reason, and all together not."""
SIDECAR = "hf_quant_config.json"
"""Where modelopt says how a checkpoint is quantised."""
_KV_HEADS = re.compile(
    r"(?:kv_heads|kv_n_heads|key_value_heads|head_kv|query_group_num|attention_groups|^block_configs)$"
)
"""Keys that say how many KV heads a model has, by their endings."""
_LONGEST_NAME, _FEW = 60, 6
_QUANTISED_NAME = re.compile(r"(?:nv|mx)?fp[48]|int[48]|awq|gptq|w[48]a(?:4|8|16)|bnb-[48]bit", re.IGNORECASE)


def read_config(path: Path) -> Model:
    """The model that a config.json describes, with what lies beside it: modelopt's config, and safetensors files.

    A config of another name is read by itself, for the files beside it may be those of another model.

    Raises:
        InputError: a file is malformed, or a size is missing or no whole number.
        UnsupportedModelError: it describes what is not understood.
    """
    if path.name != "config.json":
        return _noted(model_from_config(read_json(path), path.stem, str(path)), path)
    # The folder is resolved and the file is not: in a cache of Hugging Face's, the file is a link to elsewhere.
    folder = path.parent.resolve()
    sidecar = folder / SIDECAR
    beside = read_json(sidecar) if sidecar.is_file() else None
    model = model_from_config(read_json(path), folder.name, str(path), beside)
    return _weighed(_noted(model, path), folder)


def model_from_config(keys: dict[str, Any], name: str, origin: str, beside: dict[str, Any] | None = None) -> Model:
    """The model that the keys of a config describe.

    Args:
        keys: the object of a config.json.
        name: what to call the model.
        origin: where the config was read, for messages and derivations.
        beside: the object of a hf_quant_config.json beside it.

    Raises:
        InputError: a size is missing or no whole number.
        UnsupportedModelError: it describes what is not understood.
    """
    record = record_from_config(keys, origin, beside)
    facts = {"": Provenance(printed=f"read from {origin}")}
    if _own_kv_heads(record) and not _states_kv_heads(keys):
        printed = f"{origin} states no num_key_value_heads, so every query head has its own"
        facts["n_kv_heads"] = Provenance(printed=printed)
    try:
        model = record.to_spec(name, MappingProxyType(facts))
    except InputError as error:
        raise InputError(f"{origin}: {error}") from error
    n_params = sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)
    if n_params > MOST_PARAMETERS:
        raise InputError(
            f"{origin}: its sizes make {n_params:,} parameters, more than any model has; check hidden_size and the like"
        )
    return model


def record_from_config(keys: dict[str, Any], origin: str, beside: dict[str, Any] | None = None) -> ModelRecord:
    """The model in the project's own form.

    Args:
        keys: the object of a config.json.
        origin: where the config was read, for messages.
        beside: the object of a hf_quant_config.json beside it.

    Raises:
        InputError: a size is missing or no whole number.
        UnsupportedModelError: it describes what is not understood.
    """
    family = _family(keys, origin)
    config = Config(without_quantisation(keys), origin, family)
    config.ignore("model_type", "architectures", "expert_dtype", *QUANTISATION)
    record = adapter(family)(config)
    config.done()
    return replace(record, quantisation=quantisation({"model_type": family, **keys}, origin, beside))


def _noted(model: Model, path: Path) -> Model:
    """The model, with a word where its name promises a quantised checkpoint and nothing says how it is."""
    named = _QUANTISED_NAME.search(model.name)
    if named is None or model.quantisation is not None:
        return model
    note = (
        f"{model.name} sounds quantised ({named[0]}), but {path.name} has no quantization_config: weights are counted"
        f" as {model.checkpoint_dtype}; put the repository's {SIDECAR} beside config.json, or give --weights"
    )
    return replace(model, notes=(*model.notes, note))


def _weighed(model: Model, folder: Path) -> Model:
    """The model, with the bytes that the weights' files beside its config say, and how the count compares."""
    found = read_checkpoint(folder)
    if found is None:
        return model
    counted = sum(weight.n_bytes for weight in as_checkpoint(model))
    note = (
        f"{found.source} says {show_gib(found.n_bytes)} of weights; the count from config.json gives"
        f" {show_gib(counted)} ({counted / found.n_bytes - 1:+.2%})"
    )
    return replace(model, checkpoint_bytes=float(found.n_bytes), notes=(*model.notes, note))


def _family(keys: dict[str, Any], origin: str) -> str:
    """The model_type; where it is missing, the one that the architecture's name stands for.

    Raises:
        InputError: it is missing, or no word.
        UnsupportedModelError: no adapter reads it.
    """
    config = Config(keys, origin, "Hugging Face")
    named = config.text("model_type", "")
    if named in FAMILIES:
        return named
    if named:
        raise _unknown(origin, "model_type", named, FAMILIES)
    listed = keys.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, str):
        raise config.missing("model_type")
    if first not in ARCHITECTURES:
        raise _unknown(origin, "architectures", first, ARCHITECTURES)
    return ARCHITECTURES[first]


def _unknown(origin: str, key: str, named: str, known: Collection[str]) -> UnsupportedModelError:
    """The refusal of a family or an architecture that no adapter reads, with the nearest that one does."""
    near = difflib.get_close_matches(named[:_LONGEST_NAME], known, n=1)
    offer = f"did you mean {near[0]}?" if near else f"{len(known)} are, such as {', '.join([*known][:_FEW])}"
    return UnsupportedModelError(f"{origin}: {key} {named[:_LONGEST_NAME]} is not supported yet; {offer}")


def _states_kv_heads(keys: dict[str, Any]) -> bool:
    """Whether a config, or the part of its language model, says how many KV heads there are."""
    parts = [keys, *(part for part in keys.values() if isinstance(part, dict))]
    return any(_KV_HEADS.search(name) and value is not None for part in parts for name, value in part.items())


def _own_kv_heads(record: ModelRecord) -> bool:
    """Whether every query head of every layer that attends has a KV head of its own."""
    attending = [words for words in record.mixers.values() if words["kind"] == "attention"]
    return bool(attending) and all(words["n_heads"] == words["n_kv_heads"] for words in attending)


__all__ = ["model_from_config", "read_config", "record_from_config"]
