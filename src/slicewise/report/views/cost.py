"""The document of `cost`."""

from __future__ import annotations

from slicewise.planner.cost import Cost
from slicewise.report.document import Document, Heading, Line, Table
from slicewise.report.views.words import rate, usd
from slicewise.units import MILLION, show


def cost_document(cost: Cost) -> Document:
    """What the chips cost, a million tokens, and the break-even."""
    chips = f"{cost.slice} ({cost.n_chips:,} chip{'s' * (cost.n_chips > 1)})" if cost.slice else "one chip"
    paid = f"{chips} at {cost.price}" if cost.price else "as given for a month"
    rows = [["an hour", usd(cost.usd_per_hour), paid], ["a month", usd(cost.usd_per_month), "730 hours, used or not"]]
    if cost.tokens_per_s is not None:
        busy = f"{rate(cost.tokens_per_s)} tokens/s"
        rows.append(["a million tokens", usd(cost.usd_per_million_output_tokens), f"{busy} all the time"])
        if cost.utilisation < 1:
            rows.append(["… idle hours paid for", usd(cost.usd_per_million_sustained_tokens), _idle(cost)])
    return [Heading(_headline(cost)), Table("", ["", "USD", ""], rows, left=(0, 2)), *_break_even(cost)]


def _headline(cost: Cost) -> str:
    if cost.tokens_per_s is None:
        return f"{usd(cost.usd_per_month)} a month"
    return f"{usd(cost.usd_per_million_sustained_tokens)} per million output tokens"


def _idle(cost: Cost) -> str:
    return f"busy {cost.utilisation:.3g} of the time: {rate(cost.sustained_tokens_per_s)} tokens/s on average"


def _break_even(cost: Cost) -> list[Line]:
    if cost.breakeven_tokens_per_month is None:
        return []
    millions = show(cost.breakeven_tokens_per_month / MILLION, "", 4)
    found = [
        Line(
            f"Break-even with {usd(cost.api_usd_per_million_tokens)} per million tokens: {millions} million tokens a"
            " month; with more, the chips are cheaper."
        )
    ]
    share = cost.breakeven_utilisation
    if share is not None:
        busy = f"{show(share, '', 3)} of the time" if share <= 1 else "more than all the time, which they cannot be"
        found.append(Line(f"At {rate(cost.tokens_per_s)} tokens/s the chips must be busy {busy}."))
    return found
