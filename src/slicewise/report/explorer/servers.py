"""Prefill and decode on servers of their own, what a rate takes, and what it costs: tables of the page."""

from __future__ import annotations

from typing import Any

from slicewise.errors import InputError
from slicewise.planner.disaggregate import Disaggregation, disaggregate
from slicewise.planner.figures import Figures
from slicewise.planner.fleet import fleet
from slicewise.planner.option import Option
from slicewise.report.explorer.commands import said_to
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.numbers import ANSWER, FLEET, SERVERS, number, row
from slicewise.report.explorer.prose import Printed, linked
from slicewise.report.views.expected import NUMBERS
from slicewise.units import show

_FLOW = (
    ("prefill_servers_per_decode_server", NUMBERS["prefill_servers_per_decode_server"]),
    ("prefill_s", "prefill of a prompt"),
    ("step_s", "decode step"),
    ("prefill_requests_per_s", NUMBERS["prefill_requests_per_s"]),
    ("decode_requests_per_s", NUMBERS["decode_requests_per_s"]),
    ("handoff_bytes", "cache of a prompt, handed over"),
    ("handoff_s", "time of the hand-off"),
    ("ttft_split_s", "time to the first token, on servers of their own"),
    ("tpot_shared_s", "a token where both phases share the chips"),
)
_COSTS = (
    ("usd_per_hour", "an hour of the slice"),
    ("usd_per_million_output_tokens", "a million output tokens"),
    ("usd_per_million_input_tokens", "a million input tokens"),
    ("usd_per_million_tokens", "a million tokens, all"),
    ("request_usd", "a request"),
)


def servers(found: Found) -> dict[str, Any]:
    """How many prefill servers keep a decode server busy, and whether to split at all.

    It is asked in the words of the door behind it and of the command that is shown: they cannot say otherwise.

    Raises:
        InputError: the slice of the prefill servers is not known, or does not take the layout.
    """
    if found.option is None:
        raise InputError(found.reason or "there is no plan")
    told = disaggregate(found.question.model, **said_to("disaggregate", found))
    why = f"Split prefill from decode? {told.why[:1].upper()}{told.why[1:]}."
    return {
        "fits": told.fits,
        "reason": told.reason,
        "split": told.split,
        "why": why,
        "said": linked(told.reason or "" if not told.fits else why, _printed(told)),
        "prefill_slice": told.prefill_slice,
        "decode_slice": told.slice,
        "ratio": number("prefill_servers_per_decode_server", told.prefill_servers_per_decode_server, door=SERVERS),
        "prefill_servers": number("prefill_servers", told.prefill_servers, door=SERVERS),
        "decode_servers": number("decode_servers", told.decode_servers, door=SERVERS),
        "rows": _flow(told),
    }


def _printed(told: Disaggregation) -> list[Printed]:
    """The times that the reason may print."""
    ttft_s = told.decode.deployment.ttft
    names = ("tpot_shared_s", "step_s", "handoff_s", "ttft_split_s", "prefill_s")
    values = {name: getattr(told, name) for name in names}
    if told.decode.fits:
        values["ttft_s"] = float(told.decode.deployment.value(ttft_s))
    return [
        (show(value, "s", digits), number(name, value, door=SERVERS))
        for name, value in values.items()
        if value is not None
        for digits in (3, 4)
    ]


def _flow(told: Disaggregation) -> list[dict[str, Any]]:
    figures = told.figures or {}
    return [
        row(words, number(name, getattr(told, name), door=SERVERS), figures.get(name))
        for name, words in _FLOW
        if getattr(told, name) is not None
    ]


def fleet_of(found: Found) -> dict[str, Any] | None:
    """Servers for the rate that was asked for; None where none was."""
    if found.option is None or not found.question.rate:
        return None
    servers_ = fleet(found.option, found.question.rate, found.question.limits)
    named = (
        ("replicas", "servers that do both", servers_.replicas),
        ("replicas_chips", "their chips", servers_.replicas_chips),
        ("replicas_usd_per_hour", "their price an hour", servers_.replicas_usd_per_hour),
        ("prefill_servers", "or prefill servers", servers_.prefill_servers),
        ("decode_servers", "and decode servers", servers_.decode_servers),
        ("split_chips", "their chips", servers_.split_chips),
        ("split_usd_per_hour", "their price an hour", servers_.split_usd_per_hour),
    )
    rows = [row(words, number(name, value, door=FLEET)) for name, words, value in named if value is not None]
    return {
        "requests_per_s": number("requests_per_s", servers_.requests_per_s, door=FLEET),
        "replicas_meet_limits": servers_.replicas_meet_limits,
        "split_meets_limits": servers_.split_meets_limits,
        "rows": rows,
    }


def cost(found: Found) -> dict[str, Any] | None:
    """What the answer costs: without a price that is known, a word that there is none; None where nothing fits."""
    option, price = found.option, found.deployment.price
    if option is None:
        return None
    if price is None:
        chip = found.deployment.slice.chip.name
        return {"price": f"No price of {chip} is known: give one, in $ per chip-hour (--price)", "rows": []}
    figures = figures_of(option)
    values = {name: getattr(option, name, None) or getattr(option.step, name, None) for name, _ in _COSTS}
    return {
        "price": str(price),
        "rows": [
            row(words, number(name, values[name], door=ANSWER), figures.get(name))
            for name, words in _COSTS
            if values[name] is not None
        ],
    }


def figures_of(option: Option) -> dict[str, Figures]:
    """The three figures of each number of an option; none under the book's conventions."""
    return {**(option.step.figures or {}), **(option.figures or {})}
