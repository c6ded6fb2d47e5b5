"""One document with everything that the page shows of a question, so that a change of a control is one round trip."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from slicewise.errors import InputError
from slicewise.planner.assumptions import model_notes
from slicewise.planner.figures import TERM, UP_TO_BOUND, expected_terms
from slicewise.planner.knee import knee_batch
from slicewise.planner.plan import Rejected
from slicewise.planner.search import round_of
from slicewise.planner.vocabulary import TAKES
from slicewise.report.explorer.breakdown_chart import breakdown_chart
from slicewise.report.explorer.commands import commands, doors
from slicewise.report.explorer.controls import controls
from slicewise.report.explorer.curves import Curve, Part, batches, columns, curves, dominant, parts
from slicewise.report.explorer.found import Found, find
from slicewise.report.explorer.frontier_chart import Point, frontier_chart
from slicewise.report.explorer.memory_bar import memory_bar
from slicewise.report.explorer.mesh import mesh
from slicewise.report.explorer.numbers import ANSWER, KNEE, MOST, PLAN, number, row
from slicewise.report.explorer.others import MOST_LISTED, other_plans
from slicewise.report.explorer.resources import resource_of, to_dicts
from slicewise.report.explorer.sentence import HOVERS, sentence
from slicewise.report.explorer.servers import cost, figures_of, fleet_of, servers
from slicewise.report.views.expected import TERMS as EXPECTED_WORDS
from slicewise.report.views.words import BOUNDS, TERM_WORDS
from slicewise.spec.model import Model
from slicewise.units import plain

EXPLORED = (*TAKES["plan"], "prefill_slice")
"""The words that it takes."""
_ROWS = (
    ("step_s", "decode step"),
    ("ttft_s", "time to the first token"),
    ("tokens_per_s", "tokens of the slice"),
    ("tokens_per_s_per_chip", "tokens per chip"),
    ("requests_per_s_shared", "requests of a replica"),
    ("tpot_shared_s", "a token, prefills in between"),
)
Document = dict[str, Any]


def explore(model: Model, words: Mapping[str, Any], *, called: str = "") -> Document:
    """Everything that is shown of a question.

    Args:
        model: the model.
        words: the question's words: those of `plan`, and `prefill_slice`.
        called: how the command line names the model, where that is not its name.

    Raises:
        InputError: a word is off.
    """
    return document(find(model, words, called=called))


def document(found: Found) -> Document:
    """Everything that is shown of an answer."""
    errors: list[dict[str, str]] = []

    def part(name: str, make: Callable[[Found], Any]) -> Any:
        """A part of the document; where it has no answer it says why, and the rest stands."""
        try:
            return make(found)
        except InputError as error:
            errors.append({"part": name, "text": str(error)})
            return None

    step, model = found.step, found.question.model
    dtypes = "/".join(dict.fromkeys((step.weight_dtype, step.kv_dtype)))
    others, ways_to = other_plans(found)
    return {
        "state": {"model": model.name, **found.words},
        "title": f"{model.name} on {step.slice}, {dtypes}",
        "model": _model(found),
        "fits": found.option is not None,
        "reason": found.reason,
        "sentence": sentence(found),
        "answer": _answer(found),
        "memory": part("memory", memory_bar),
        "frontier": part("frontier", _frontier),
        "breakdown": part("breakdown", _breakdown),
        "mesh": part("mesh", lambda found: mesh(found.deployment)),
        "servers": part("servers", servers),
        "fleet": part("fleet", fleet_of),
        "cost": part("cost", cost),
        **others,
        "rejected": [_rejected(item) for item in found.rejected[:MOST_LISTED]],
        "assumptions": list(step.assumptions),
        "controls": controls(found),
        "resources": to_dicts(),
        "doors": {**doors(found), **ways_to},
        **_commands(found),
        "errors": errors,
    }


def _commands(found: Found) -> Document:
    lines = commands(found)
    return {"command": lines["plan"], "commands": lines}


def _model(found: Found) -> Document:
    model = found.question.model
    return {
        "name": model.name,
        "params": number("n_params", found.step.n_params, door=ANSWER),
        "source": model.provenance[""].document or model.provenance[""].printed,
        "notes": model_notes(found.deployment),
        "max_context_tokens": plain(model.max_context_tokens),
    }


def _answer(found: Found) -> Document:
    step, option = found.step, found.option
    figures = figures_of(option) if option else dict(step.figures or {})
    rows = []
    for name, words in _ROWS:
        value = getattr(step, name, None) if hasattr(step, name) else getattr(option, name, None)
        if value is not None:
            rows.append(row(words, number(name, value, door=ANSWER), figures.get(name)))
    return {
        "slice": step.slice,
        "chip": found.deployment.slice.chip.name,
        "n_chips": step.n_chips,
        "layout": step.layout,
        "batch": step.batch,
        "max_batch": number("max_batch", step.max_batch, door=ANSWER),
        "critical_batch": number("critical_batch", step.critical_batch, door=ANSWER),
        "knee_batch": number("knee_batch", step.knee_batch, door=ANSWER),
        "context_tokens": number("context_tokens", step.context_tokens, door=ANSWER),
        "weight_dtype": step.weight_dtype,
        "kv_dtype": step.kv_dtype,
        "compute_dtype": step.compute_dtype,
        "view": step.view,
        "is_expected": found.is_expected,
        "expected_engine": step.expected_engine,
        "bound": _bound(step.bound),
        "why": option.why if option else None,
        "rows": rows,
    }


def _bound(key: str | None) -> Document | None:
    if key is None:
        return None
    return {"key": key, "text": BOUNDS[key], "resource": resource_of(f"{key}_s"), "hover": HOVERS[key]}


def _frontier(found: Found) -> Document | None:
    drawn = curves(found)
    if not drawn:
        return None
    step, limit_s = found.step, found.question.limits.tpot_s
    chosen: Point | None = None
    if step.step_s is not None and step.tokens_per_s_per_chip is not None:
        chosen = (step.batch, step.step_s, step.tokens_per_s_per_chip)
    knee = _knee(found)
    alt = f"Time per token against tokens/s per chip, over the batch, for {', '.join(curve.slice for curve in drawn)}."
    return {
        "slices": [columns(curve) for curve in drawn],
        "chosen": _point(chosen, ("batch", PLAN if found.option else ANSWER), ANSWER),
        "knee": _point(knee, ("knee_batch", ANSWER), KNEE),
        "limit": number("tpot_s", limit_s),
        "refused": _refused(found, drawn),
        "chart": frontier_chart(drawn, chosen=chosen, knee=knee, limit_s=limit_s, alt=alt),
    }


def _knee(found: Found) -> Point | None:
    """The knee, where it lies within what fits."""
    deployment = found.deployment
    knee = knee_batch(deployment)
    if not knee or knee > found.step.max_batch:
        return None
    values = deployment.evaluate(["step_s", "tokens_per_s_per_chip"], batch=knee)
    return knee, float(values["step_s"]), float(values["tokens_per_s_per_chip"])


def _point(point: Point | None, of_batch: tuple[str, str], door: str) -> Document | None:
    """A point of the frontier.

    Args:
        point: batch, step and throughput.
        of_batch: the quantity that the batch is, and the door behind it.
        door: behind the rest.
    """
    if point is None:
        return None
    batch, step_s, rate = point
    name, way = of_batch
    return {
        "batch": number(name, batch, door=way),
        "step": number("step_s", step_s, door=door),
        "tokens": number("tokens_per_s_per_chip", rate, door=door),
    }


def _refused(found: Found, drawn: list[Curve]) -> list[Document]:
    names = {curve.slice for curve in drawn}
    refused = {item.slice: item for item in found.rejected if item.slice not in names}
    return [{"slice": name, "reason": item.detail} for name, item in refused.items()][:MOST_LISTED]


def _breakdown(found: Found) -> Document | None:
    step, deployment = found.step, found.deployment
    batch = batches(max(step.max_batch, 0), round_of(deployment), extra=[step.batch])
    if not batch.size:
        return None
    made_of = parts(deployment, batch)
    at = int(np.searchsorted(batch, min(step.batch, batch[-1])))
    alt = f"The time of a decode step of {step.slice} over the batch, as {', '.join(part.label for part in made_of)}."
    chart = breakdown_chart(batch, made_of, now=step.batch, critical_batch=step.critical_batch, alt=alt)
    return {
        "slice": step.slice,
        "note": None if step.fits else f"At {batch[at]:,.0f} at a time, the most that fit:",
        "columns": {
            "batch": [int(each) for each in batch],
            "step_s": np.sum([part.seconds for part in made_of], axis=0).tolist(),
            **{part.key: part.seconds.tolist() for part in made_of},
        },
        "critical_batch": number("critical_batch", step.critical_batch, door=ANSWER),
        "terms": _terms(found, made_of, at, int(batch[at])),
        "chart": chart,
    }


def _terms(found: Found, made_of: list[Part], at: int, batch: int) -> list[Document]:
    """The terms of a step; one that hides behind a longer one is told, and not counted.

    They are of the step that is shown, or where it does not fit of the largest that does.
    """
    seconds = {part.key: float(part.seconds[at]) for part in made_of}
    deployment, door = found.deployment, ANSWER if found.step.fits else MOST
    if found.is_expected:
        told = expected_terms(deployment, batch)
        rest = {UP_TO_BOUND: seconds[UP_TO_BOUND]} if seconds.get(UP_TO_BOUND) else {}
        return [
            _term(name, EXPECTED_WORDS.get(name, name), dominant(deployment, name, batch), value, f"{TERM}{name}", door)
            for name, value in told.items()
            if value
        ] + [_term(name, "up to the bound", "other", value, f"{TERM}{name}", door) for name, value in rest.items()]
    values = deployment.evaluate([*TERM_WORDS], batch=batch)
    return [
        {
            **_term(name, words, resource_of(name) or "other", float(values[name]), name, door),
            "counted": seconds.get(name, 0.0) > 0,
        }
        for name, words in TERM_WORDS.items()
    ]


def _term(name: str, label: str, resource: str, value: float, called: str, door: str) -> Document:
    return {
        "key": name,
        "label": label,
        "resource": resource,
        "number": number(called, value, resource=resource, label=name, door=door),
        "counted": True,
    }


def _rejected(item: Rejected) -> Document:
    return {"slice": item.slice, "layout": item.layout, "reason": item.reason, "detail": item.detail}
