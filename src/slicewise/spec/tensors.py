"""Every weight and cache array of a model, declared once. Sums over these lists are its parameters and its cache."""

from __future__ import annotations

from dataclasses import replace

from slicewise.spec.arrays import Cache, Tensor
from slicewise.spec.model import Layer, Model


def weight_tensors(model: Model) -> tuple[Tensor, ...]:
    """The weights of a model: those outside the layers, and one entry for each array of each kind of layer."""
    found: dict[Tensor, list[int]] = {}
    for layer, indices in _kinds(model):
        for tensor in layer.weights:
            found.setdefault(tensor, []).extend(indices)
    towers = [
        Tensor(name=name, dims=(("parameters", size),), axes=("",), role="tower", module=name)
        for name, size in model.towers.items()
    ]
    return (*model.embeddings(), *(over_layers(tensor, tuple(at)) for tensor, at in found.items()), *towers)


def caches(model: Model) -> tuple[Cache, ...]:
    """What the layers keep of a sequence, one entry for each kind."""
    found: dict[Cache, list[int]] = {}
    for layer, indices in _kinds(model):
        for cache in layer.caches:
            found.setdefault(cache, []).extend(indices)
    return tuple(replace(cache, layers=tuple(sorted(layers))) for cache, layers in found.items())


def over_layers(tensor: Tensor, layers: tuple[int, ...]) -> Tensor:
    """One array a layer, over some layers."""
    dims, axes = (("n_layers", len(layers)), *tensor.dims), ("layers", *tensor.axes)
    return replace(tensor, dims=dims, axes=axes, layers=tuple(sorted(layers)))


def _kinds(model: Model) -> list[tuple[Layer, list[int]]]:
    """The layers that are alike, with where they are."""
    found: dict[int, tuple[Layer, list[int]]] = {}
    for index, layer in enumerate(model.layers):
        found.setdefault(id(layer), (layer, []))[1].append(index)
    return list(found.values())
