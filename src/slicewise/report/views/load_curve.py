"""The document of a load curve."""

from __future__ import annotations

from slicewise.report.document import Document, Heading, Line, Table
from slicewise.report.views.simulate import WITHIN, fleet_words, run_by
from slicewise.report.views.words import assumed, ms, rate, usd
from slicewise.traffic.curves import LoadCurve, LoadPoint
from slicewise.traffic.summary import Summary


def load_curve_document(found: LoadCurve) -> Document:
    """A row a run: what users feel and what it costs as the load grows."""
    if not found.points:
        return [Heading("Stopped before any run was done.")]
    first = found.points[0].run
    if first.metrics is None:
        return [Heading(f"{fleet_words(first)}: does not fit"), Line(f"{first.reason}.")]
    header = [
        "requests/s", "seed", "load", "TTFT p50", "p99", "TPOT p50", "p99", "output tokens/s", "waiting", "within",
        "$ per million output",
    ]  # fmt: skip
    stopped = [] if found.is_whole else [Line("Stopped: these are the runs that were done by then.")]
    within = [Line(f"Within: the share of requests within the limits on {WITHIN}.")] if first.verdict else []
    return [
        Heading(f"{fleet_words(first)}, under {len(found.points):,} loads"),
        Line(f"The first of them: {first.requests.source}."),
        run_by(first.design.deployment),
        *stopped,
        Table("Load curve", header, [_row(point) for point in found.points], left=()),
        *within,
        assumed(first.assumptions),
    ]


def _row(point: LoadPoint) -> list[str]:
    run = point.run.metrics
    assert run is not None
    assert point.run.shares is not None
    load = f"{point.run.steady.load:.0%}" if point.run.steady else "–"
    good = "–" if run.goodput_share is None else f"{run.goodput_share:.1%}"
    latencies = [cell for time in (run.ttft_s, run.tpot_s) for cell in _ends(time)]
    cost = usd(run.usd_per_million_output_tokens)
    return [
        rate(point.rate),
        f"{point.seed}",
        load,
        *latencies,
        rate(run.output_tokens_per_s),
        rate(point.run.shares.queued),
        good,
        cost,
    ]


def _ends(time: Summary | None) -> list[str]:
    return ["–", "–"] if time is None else [ms(time.p50), ms(time.p99)]
