"""Layers that only draft further tokens, which transformers leaves out of a model: their size, and what to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.model_record import ModelRecord


def layer_size(record: ModelRecord, mixer: str, feed: str, mixers: Mapping[str, dict[str, Any]] | None = None) -> int:
    """Parameters of one layer of these kinds, norms and all.

    Args:
        record: the model.
        mixer: one of its mixers; "" for none.
        feed: one of its feed-forwards; "" for none.
        mixers: arguments of mixers that its other layers need not have.
    """
    alone = replace(record, mixers={**record.mixers, **(mixers or {})}, layers=[[mixer, feed, 1]])
    (layer,) = alone.to_spec("", {}).layers
    return sum(tensor.size for tensor in layer.weights)


def drafted(config: Config, record: ModelRecord, size: int, key: str, *, about: bool = False) -> ModelRecord:
    """The record, saying what its drafting layers would add.

    Beside a layer, each has one matrix that joins a token's embedding to the state before it, and three norms. They
    read the model's own embeddings.

    Args:
        config: the config.
        record: the model without them.
        size: parameters of the layers of one drafting step.
        key: the key of how many there are.
        about: how they are made is not wholly known from the config.

    Raises:
        InputError: the key is no whole number.
    """
    count = config.size(key, default=0, least=0)
    if not count:
        return record
    more = count * (size + 2 * record.d_model**2 + 3 * record.d_model)
    layers = "1 layer, which only drafts tokens, is" if count == 1 else f"{count} layers, which only draft tokens, are"
    said = f"{key}: {layers} not counted: {'about ' if about else ''}{more:,} parameters."
    return replace(record, left_out=[*record.left_out, said])
