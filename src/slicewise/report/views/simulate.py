"""The document of `simulate`."""

from __future__ import annotations

from collections.abc import Mapping

from slicewise.planner.deployment import Deployment
from slicewise.planner.figures import Figures
from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.report.views.words import assumed, ms, rate, usd
from slicewise.traffic.metrics import Metrics
from slicewise.traffic.profile import Profile
from slicewise.traffic.simulation import Simulation
from slicewise.traffic.steady import Steady
from slicewise.traffic.summary import Summary
from slicewise.units import show

LATENCIES = {
    "ttft_s": ("TTFT", "arrival to first token"),
    "queueing_s": ("  of it waiting", "until its prompt is worked on"),
    "tpot_s": ("TPOT", "mean gap of a request's tokens"),
    "itl_s": ("ITL", "gap between two tokens"),
    "end_to_end_s": ("end to end", "arrival to last token"),
}
"""Latencies in words."""
WITHIN = "TTFT/TPOT/end to end"
"""What goodput is by: a limit on the ITL is of tokens, and no request keeps or breaks it."""
_RANGED = {
    "ttft_s_p50": "TTFT p50",
    "ttft_s_p99": "TTFT p99",
    "tpot_s_p50": "TPOT p50",
    "tpot_s_p99": "TPOT p99",
    "end_to_end_s_mean": "end to end, mean",
    "output_tokens_per_s": "output tokens/s",
    "usd_per_million_output_tokens": "$ per million output tokens",
}


def simulate_document(found: Simulation) -> Document:
    """What users feel, what the servers do, and why the closed form says something else."""
    blocks: list[Block] = [Heading(f"{fleet_words(found)}: {_answer(found)}"), Line(load_words(found.requests))]
    if found.metrics is None:
        return [*blocks, Line(f"{found.reason}.")]
    if not found.is_whole:
        blocks.append(Line(_stopped(found)))
    if found.verdict:
        kept = "Every limit is kept" if found.verdict.kept else f"Limits are missed: {found.reason}"
        blocks.append(Line(f"{kept}."))
    blocks += [latency_table(found.metrics), _work(found)]
    if found.figures:
        blocks.append(_ranges(found.figures))
    else:
        blocks.append(run_by(found.design.deployment))
    if found.steady:
        blocks += [_beside(found.metrics, found.steady), Items("Why they differ", found.gap)]
    return [*blocks, assumed(found.assumptions)]


def _stopped(found: Simulation) -> str:
    if found.outcome is None or found.outcome.is_whole:
        return "Stopped: the run is whole, but was not repeated with the times of the bound and of the range."
    judged = f" Limits: {found.reason}." if found.reason else ""
    return f"Stopped: what follows is of the requests that had arrived by then.{judged}"


def fleet_words(found: Simulation) -> str:
    """Model, servers and rules."""
    batch = f"up to {found.max_num_seqs:,} sequences"
    if found.split:
        servers = (
            f"{_many(found.n_prefill_servers or 0, 'prefill server')} ({found.prefill_slice}) and"
            f" {_many(found.n_servers, 'decode server')} ({found.slice})"
        )
        return f"{found.model} on {servers}, {batch}"
    cached = ", prefixes cached" if found.prefix_cache else ""
    return f"{found.model} on {_many(found.n_servers, 'replica')} of {found.slice}, {found.policy}, {batch}{cached}"


def run_by(deployment: Deployment) -> Line:
    """Which of the three figures the times of a run are, and how the others are got."""
    counted = deployment.conventions
    if counted.book:
        return Line("Steps and prefills take what the book's conventions bound them to.")
    if counted.view == "expected":
        return Line(
            "Steps and prefills take what is expected. `--view overlapped --mfu 1` runs at the bound; `simulate` at one"
            " rate with one seed tells bound, expected and range."
        )
    return Line(
        f"Steps and prefills take what the view {counted.view} says, prefill at {deployment.mfu:.0%} of peak FLOPs;"
        " `--view expected`, the default, runs with what is expected."
    )


def load_words(load: Profile) -> str:
    """What the load is like, in a sentence."""
    pace = f", {rate(load.requests_per_s)} a second" if load.requests_per_s else ""
    bursts = f", {load.busiest_minute_ratio:.2g} times that in the busiest minute" if load.busiest_minute_ratio else ""
    prompt, output = (
        f"{show(each.mean, '', 4)} (p99 {show(each.p99, '', 4)})" for each in (load.prompt_tokens, load.output_tokens)
    )
    return (
        f"Load: {load.source}; {_many(load.n_requests, 'request')} in {show(load.span_s, 's', 4)}{pace}{bursts};"
        f" prompts of {prompt} tokens, outputs of {output}."
    )


def latency_table(run: Metrics) -> Table:
    """Latencies as users feel them."""
    rows = [[*words, *_cells(getattr(run, name))] for name, words in LATENCIES.items()]
    return Table("Latency", ["", "", "mean", "p50", "p90", "p95", "p99", "most"], rows, left=(0, 1))


def _cells(time: Summary | None) -> list[str]:
    if time is None:
        return ["–"] * 6
    return [ms(value) for value in (time.mean, time.p50, time.p90, time.p95, time.p99, time.most)]


def _answer(found: Simulation) -> str:
    run = found.metrics
    if run is None:
        return "does not fit"
    if run.ttft_s is None:
        return "no request was finished"
    kind = "" if found.view == "expected" else f" ({found.view}, a bound)"
    tpot = f", TPOT {ms(run.tpot_s.p50)} (p99 {ms(run.tpot_s.p99)})" if run.tpot_s else ""
    return f"TTFT {ms(run.ttft_s.p50)} (p99 {ms(run.ttft_s.p99)}){tpot}{kind}"


def _work(found: Simulation) -> Table:
    """What the servers do."""
    run, shares = found.metrics, found.shares
    assert run is not None
    assert shares is not None
    window = "the whole run" if run.includes_drain else f"{show(run.window_s, 's', 4)} without the drain"
    rows = [
        ["requests finished", _counted(run), f"{run.finished:,}"],
        ["requests/s", f"over {window}", rate(run.requests_per_s)],
        ["output tokens/s", "", rate(run.output_tokens_per_s)],
        ["output tokens/s per chip", f"{found.total_chips:,} chips", rate(run.output_tokens_per_s_per_chip)],
        ["output tokens/s per user", "1 / mean TPOT", rate(run.output_tokens_per_s_per_user)],
        ["requests in the system", "mean", rate(run.mean_concurrency)],
        ["requests waiting", f"at most {shares.most_queued:,}", rate(shares.queued)],
        ["servers at work", "share of the time", f"{shares.busy:.1%}"],
        ["cache held", "share, mean", f"{shares.cache_held:.1%}"],
        ["preemptions", "a request", f"{run.preemptions_per_request:.3g}"],
    ]
    if run.goodput_share is not None:
        rows.insert(
            1, [f"  of them within {WITHIN}", f"{run.goodput_share:.1%} of those that arrived", f"{run.good:,}"]
        )
    if found.prefix_cache:
        rows.append(["prompt tokens found cached", "", f"{run.cached_prompt_share:.1%}"])
    rows.append(["$ per million output tokens", "at this load", usd(run.usd_per_million_output_tokens)])
    return Table("Work", ["", "", "value"], rows, left=(0, 1))


def _counted(run: Metrics) -> str:
    others = {"dropped, as they fit no server": run.dropped, "left out as warm-up": run.left_out}
    words = [f"{count:,} {what}" for what, count in others.items() if count]
    running = run.arrived - run.finished - run.dropped
    return "; ".join([f"of {run.arrived:,}", *words, *([f"{running:,} not finished"] if running else [])])


def _ranges(figures: Mapping[str, Figures]) -> Table:
    rows = []
    for name, words in _RANGED.items():
        if name in figures:
            each = figures[name]
            shown = usd if "usd" in name else rate if "per_s" in name else ms
            rows.append([words, *(shown(value) for value in (each.bound, each.expected, each.low, each.high))])
    title = "The same load with steps and prefills at the bound, as expected, and at both ends of the range"
    return Table(title, ["", "bound", "expected", "low", "high"], rows)


def _beside(run: Metrics, formula: Steady) -> Table:
    """The simulated means beside the closed form."""

    def mean(time: Summary | None) -> str:
        return ms(time.mean) if time else "–"

    rows = [
        ["TTFT, mean", mean(run.ttft_s), ms(formula.ttft_s)],
        ["TPOT, mean", mean(run.tpot_s), ms(formula.tpot_s)],
        ["requests/s", rate(run.requests_per_s), rate(formula.requests_per_s)],
        ["output tokens/s", rate(run.output_tokens_per_s), rate(formula.output_tokens_per_s)],
        ["sequences decoding, a server", "", rate(formula.batch)],
        ["load, of what the servers can finish", "", f"{formula.load:.0%}"],
    ]
    if formula.prefill_load is not None:
        rows[-1][0] = "load of the decode servers"
        rows.append(["load of the prefill servers", "", f"{formula.prefill_load:.0%}"])
    return Table("Beside the closed form", ["", "simulated", "formula"], rows)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
