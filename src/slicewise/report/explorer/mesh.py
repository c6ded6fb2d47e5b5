"""The slice as a mesh: its axes, which of them are rings, and what each shards."""

from __future__ import annotations

from typing import Any

from slicewise.planner.deployment import Deployment
from slicewise.report.explorer.mesh_picture import mesh_svg
from slicewise.spec.layout import head_split
from slicewise.spec.ranks import Ranks
from slicewise.units import show

_NAMES = "xyzw"


def mesh(deployment: Deployment) -> dict[str, Any]:
    """The mesh of a deployment, with its picture."""
    slice_, layout = deployment.slice, deployment.layout
    is_torus = not slice_.chip.is_gpu
    axes = _axes(deployment) if is_torus else []
    found = {
        "slice": slice_.name,
        "kind": "torus" if is_torus else "domain",
        "n_chips": slice_.n_chips,
        "shape": list(slice_.shape),
        "domain_chips": None if is_torus else min(slice_.chip.domain_chips, slice_.n_chips),
        "axes": axes,
        "head_shards": layout.head_shards,
        "batch_shards": layout.batch_shards,
        "sentence": _sentence(deployment),
    }
    return {**found, "svg": mesh_svg(found)}


def _parts(ways: int, what: str) -> str:
    return f"{what} in {ways} parts" if ways > 1 else f"{what} whole on each"


def _axes(deployment: Deployment) -> list[dict[str, Any]]:
    """Each axis of the torus, and into how many parts it cuts heads (or tensor ranks) and batch."""
    slice_, ranks = deployment.slice, deployment.ranks
    wires = {axis.length: axis for axis in slice_.axes}
    lengths = [length for length in slice_.shape if length > 1]
    cuts = head_split(slice_.axes, ranks.tp if ranks else deployment.layout.head_shards) if lengths else ()
    ways = iter(cuts)
    found = []
    for name, length in zip(_NAMES, slice_.shape, strict=False):
        head_ways = next(ways) if length > 1 else 1
        wraps = length > 1 and (wires[length].wraps or deployment.conventions.ici == "ring")
        found.append(
            {
                "name": name,
                "length": length,
                "wraps": wraps,
                "text": f"{'ring' if wraps else 'line'} of {length}" if length > 1 else "one chip",
                "head_ways": head_ways,
                "batch_ways": length // head_ways,
                "shards": _shards(head_ways, length // head_ways, ranks),
            }
        )
    return found


def _shards(head_ways: int, batch_ways: int, ranks: Ranks | None) -> str:
    """What an axis cuts, in words."""
    whole = head_ways * batch_ways
    if whole == 1:
        return ""
    if ranks is not None:
        named = [f"tensor parallel {head_ways} ways" if head_ways > 1 else "", _others(ranks, batch_ways)]
        return ", ".join(filter(None, named))
    cache = [
        f"KV heads {head_ways} ways" if head_ways > 1 else "",
        f"batch {batch_ways} ways" if batch_ways > 1 else "",
    ]
    return f"weights {whole} ways; {', '.join(filter(None, cache))}"


def _others(ranks: Ranks, ways: int) -> str:
    if ways == 1:
        return ""
    named = [word for word, count in (("data", ranks.dp), ("pipeline", ranks.pp)) if count > 1]
    return f"{' and '.join(named)} parallel {ways} ways"


def _sentence(deployment: Deployment) -> str:
    layout, n_chips, ranks = deployment.layout, deployment.slice.n_chips, deployment.ranks
    if n_chips == 1:
        return "One chip holds everything."
    if ranks is not None:
        heads, batch = _parts(layout.head_shards, "KV heads"), _parts(layout.batch_shards, "the batch")
        return f"{n_chips} chips as {ranks}: {heads}, {batch}."
    weights = f"Each of {n_chips} chips holds 1/{n_chips} of every weight"
    n_heads = deployment.model.n_kv_heads
    heads = f"{show(n_heads)} KV heads lie {layout.head_shards} ways" if n_heads > 1 else "the one KV head is whole"
    if layout.batch_shards == 1:
        return f"{weights}; {heads}."
    what = "each hold a part of the batch" if deployment.conventions.kv_split == "batch" else "each hold a copy"
    return f"{weights}; {heads}, and the {layout.batch_shards} chips that are left to each of them {what}."
