"""Latency against throughput of each slice, and where the time of a step goes over the batch: the columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.planner.deployment import Deployment
from slicewise.planner.figures import UP_TO_BOUND, terms_of
from slicewise.planner.knee import MOST_SEQUENCES
from slicewise.planner.search import ROUNDING, round_of
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.resources import resource_of
from slicewise.report.views.expected import TERMS as EXPECTED_WORDS
from slicewise.report.views.words import TERM_WORDS
from slicewise.units import show

Column = NDArray[np.float64]

_WORK = {"matmul_core_s": "matmuls", "small_core_s": "norms, cache writes", "ici_s": "network (collectives)"}
_LONGER_OF = {"streamed_weights_s": ("matmul_core_s",), "fetched_weights_s": tuple(_WORK)}
"""Terms of a compiled step that are the longer of reading weights and of the work that goes on meanwhile."""

MOST_CURVES = 10
_POINTS = 40
_BOUND_TERMS = ("param_load_s", "kv_load_s", "matmul_s", "attention_flops_s", "ici_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One slice over the batch.

    Attributes:
        batch: sequences, from one to the most that fit. Shape (n,).
        step_s: the step, by the view that decides. [s]
        tokens_per_s_per_chip: throughput. [1/s]
        is_chosen: it is the slice that is shown.
    """

    deployment: Deployment
    max_batch: int
    batch: Column
    step_s: Column
    tokens_per_s_per_chip: Column
    is_chosen: bool

    @property
    def slice(self) -> str:
        """The slice's name."""
        return self.deployment.slice.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the step, drawn as an area.

    Attributes:
        key: the term, as `--explain` calls it.
        label: what it is, in words.
        resource: its colour.
        seconds: its share of the step at each batch. Shape (n,). [s]
    """

    key: str
    label: str
    resource: str
    seconds: Column


def curves(found: Found) -> list[Curve]:
    """The curve of the slice that is shown, and of the other candidates of its precision, the best first."""
    shown = found.deployment
    others = [searched.deployment for searched in found.in_order]
    others += [searched.deployment for searched in found.searched if not searched.batches.size]
    per_slice = {shown.slice.name: shown}
    for deployment in others:
        if deployment.precision == shown.precision:
            per_slice.setdefault(deployment.slice.name, deployment)
    drawn = [_curve(deployment, is_chosen=deployment is shown) for deployment in per_slice.values()]
    return [curve for curve in drawn if curve.max_batch][:MOST_CURVES]


def _curve(deployment: Deployment, *, is_chosen: bool) -> Curve:
    most = min(int(deployment.value("max_batch")), MOST_SEQUENCES)
    batch = batches(most, round_of(deployment))
    values = deployment.evaluate(["step_s", "tokens_per_s_per_chip"], batch=batch)
    return Curve(
        deployment=deployment,
        max_batch=most,
        batch=batch,
        step_s=values["step_s"] + 0.0 * batch,
        tokens_per_s_per_chip=values["tokens_per_s_per_chip"] + 0.0 * batch,
        is_chosen=is_chosen,
    )


def batches(most: int, shards: int = 1, extra: Iterable[int] = ()) -> Column:
    """Batches to draw: one, whole rounds of the batch shards evenly spaced on a log axis, and the most that fit."""
    if most < 1:
        return np.empty(0)
    rounds = np.geomspace(1, max(most // shards, 1), _POINTS).round() * shards
    wanted = [1.0, *rounds.tolist(), float(most), *map(float, extra)]
    return np.unique(np.array([batch for batch in wanted if 1 <= batch <= most]))


def terms(deployment: Deployment, batch: Column) -> dict[str, Column]:
    """The step and its terms at each batch. [s]"""
    names = ["step_s", *_BOUND_TERMS]
    return {name: np.asarray(value) + 0.0 * batch for name, value in deployment.evaluate(names, batch=batch).items()}


def parts(deployment: Deployment, batch: Column) -> list[Part]:
    """What the step is made of at each batch, in an order that adds up to it.

    Of terms that run side by side only the longest counts: a bound shows it, and none of those that hide behind it.
    """
    if deployment.conventions.view == "expected":
        return _expected_parts(deployment, batch)
    values = terms(deployment, batch)
    view, load, flops = deployment.conventions.view, values["param_load_s"], values["matmul_s"]
    beside = values["ici_s"] if view == "overlapped" else 0.0 * batch
    cache, attention = values["kv_load_s"], values["attention_flops_s"]
    longest = np.maximum(np.maximum(load, flops), beside)
    found = {
        "param_load_s": np.where(load >= longest, longest, 0.0),
        "matmul_s": np.where((flops >= longest) & (load < longest), longest, 0.0),
        "ici_s": np.where((load < longest) & (flops < longest), longest, 0.0)
        + (values["ici_s"] if view == "serial" else 0.0),
        "kv_load_s": np.where(cache >= attention, cache, 0.0),
        "attention_flops_s": np.where(cache >= attention, 0.0, attention),
    }
    return [
        Part(key=name, label=TERM_WORDS[name], resource=resource_of(name) or "other", seconds=seconds)
        for name, seconds in found.items()
        if np.any(seconds > 0)
    ]


def _expected_parts(deployment: Deployment, batch: Column) -> list[Part]:
    asked, scale = terms_of(deployment, "step_expected_s")
    ratio = 1.0 if scale is None else float(deployment.value(scale))
    values = deployment.evaluate([*asked, "step_expected_s"], batch=batch)
    seconds = {name: values[name] * ratio + 0.0 * batch for name in asked}
    pieces = [piece for name in asked for piece in _pieces(deployment, name, seconds[name], batch, ratio)]
    rest = np.maximum(values["step_expected_s"] - sum(seconds.values()), 0.0)
    if np.any(rest > ROUNDING * values["step_expected_s"]):
        pieces.append(Part(key=UP_TO_BOUND, label="up to the bound", resource="other", seconds=rest))
    return _joined(pieces)


def _joined(pieces: list[Part]) -> list[Part]:
    """Pieces of one key are one area; what takes no time is none."""
    found: dict[str, Part] = {}
    for piece in pieces:
        before = found.get(piece.key)
        found[piece.key] = piece if before is None else replace(before, seconds=before.seconds + piece.seconds)
    return [part for part in found.values() if np.any(part.seconds > 0)]


def _pieces(deployment: Deployment, name: str, seconds: Column, batch: Column, ratio: float) -> list[Part]:
    """A term as it is drawn: one that is the longer of a transfer and of work is of the one that takes longer."""
    if name not in _LONGER_OF:
        return [_part(name, EXPECTED_WORDS.get(name, name), seconds)]
    values = deployment.evaluate(["param_load_s", "fetched_share", *_WORK], batch=batch)
    share = values["fetched_share"] if name == "fetched_weights_s" else 1 - values["fetched_share"]
    work = {each: ratio * values[each] * (share if each == "matmul_core_s" else 1.0) for each in _LONGER_OF[name]}
    is_load = ratio * share * values["param_load_s"] >= sum(work.values())
    return [
        _part("param_load_s", TERM_WORDS["param_load_s"], np.where(is_load, seconds, 0.0)),
        *(_part(each, _WORK[each], np.where(is_load, 0.0, spent) + 0.0 * batch) for each, spent in work.items()),
    ]


def _part(key: str, label: str, seconds: Column) -> Part:
    return Part(key=key, label=label, resource=resource_of(key) or "other", seconds=seconds)


def dominant(deployment: Deployment, name: str, batch: int) -> str:
    """The resource that a term of the expected step is spent on at a batch."""
    at = np.array([float(batch)])
    pieces = _pieces(deployment, name, deployment.value(name, batch=at) + 0.0 * at, at, 1.0)
    return max(pieces, key=lambda piece: float(piece.seconds[0])).resource


def columns(curve: Curve) -> dict[str, Any]:
    """A curve as JSON-ready columns."""
    return {
        "slice": curve.slice,
        "n_chips": curve.deployment.slice.n_chips,
        "chosen": curve.is_chosen,
        "max_batch": curve.max_batch,
        "batch": [int(batch) for batch in curve.batch],
        "step_s": curve.step_s.tolist(),
        "tokens_per_s_per_chip": curve.tokens_per_s_per_chip.tolist(),
    }


def told(curve: Curve, index: int) -> dict[str, str]:
    """A point of a curve in words, for who points at it."""
    return {
        "sequences": f"{curve.batch[index]:,.0f}",
        "time": show(float(curve.step_s[index]), "s", 3),
        "throughput": f"{show(float(curve.tokens_per_s_per_chip[index]), '', 3)} tokens/s",
    }
