"""`slicewise simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.traffic_options import LIMITS, LOAD, RULES, SWEPT, TRAFFIC
from slicewise.errors import InputError
from slicewise.planner.vocabulary import COUNTED, PLACE

if TYPE_CHECKING:
    from slicewise.traffic.simulation import Simulation


@command()
@model
@options(*PLACE, *LOAD, "rates", "seeds", *LIMITS, "price", "network", "replicas", more=TRAFFIC)
@options("prefill_servers", "decode_servers", "prefill_slice", "policy", *RULES, *COUNTED, "no_range", more=TRAFFIC)
@options(*SWEPT, "run_out", "timeline", *SHOWN, more=TRAFFIC)
def simulate(
    model: str,
    *,
    out: Path | None,
    timeline: Path | None,
    explain: str | None,
    as_json: bool,
    as_md: bool,
    as_csv: bool,
    **words: Any,
) -> None:
    """Behaviour under load: what users feel when a trace of requests meets planned servers.

    With several --rate or --seed, a load curve. Exit code 1 also where a limit is missed.
    """
    from slicewise.cli.progress import bar
    from slicewise.cli.show import one_form, show_result
    from slicewise.report.views.load_curve import load_curve_document
    from slicewise.report.views.simulate import simulate_document
    from slicewise.traffic.curves import is_curve, load_curve
    from slicewise.traffic.run import simulate as answer

    one_form(as_json, as_md, as_csv)
    asked = given(words)
    _refuse_places(out, timeline, is_curve=is_curve(asked))
    shown: dict[str, Any] = {"explain": explain, "as_json": as_json, "as_md": as_md, "as_csv": as_csv}
    with bar("simulating") as told:
        if is_curve(asked):
            curve = load_curve(model, progress=told, **asked)
        else:
            result = answer(model, progress=told, **{name: _one(value) for name, value in asked.items()})
    if is_curve(asked):
        show_result(curve, load_curve_document, is_whole=curve.is_whole, **shown)
    else:
        for path in _written(result, out, timeline):
            click.echo(f"wrote {path}", err=True)
        show_result(result, simulate_document, is_whole=result.is_whole, **shown)


def _one(value: Any) -> Any:
    """A word that may be given several times, and is given once."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _refuse_places(out: Path | None, timeline: Path | None, *, is_curve: bool) -> None:
    """Refuse files that could not be written, before the run and not after it.

    Raises:
        InputError: of many runs, a place that cannot be written, or one place for both files.
    """
    for flag, path in (("--out", out), ("--timeline", timeline)):
        if path and is_curve:
            raise InputError(f"{flag} is of one run; give one --rate and one --seed, or leave it out")
    if out is None and timeline is None:
        return
    from slicewise.report.runs import check_out, check_timeline

    if out and timeline and out.absolute() == timeline.absolute():
        raise InputError("--out and --timeline name one file; give each its own")
    if out:
        check_out(out)
    if timeline:
        check_timeline(timeline)


def _written(result: Simulation, out: Path | None, timeline: Path | None) -> list[Path]:
    from slicewise.report.runs import write_run, write_timeline

    if result.outcome is None:
        return []
    written = write_run(out, result) if out else []
    return [*written, *([write_timeline(timeline, result)] if timeline else [])]
