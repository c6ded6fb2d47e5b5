"""Three published traces on two kinds of servers: what the p99 costs, where splitting pays, where prefix caching does.

Reads azure_llm_2023_conv.csv, azure_llm_2023_code.csv and mooncake_conversation.jsonl from a folder, sizes fleets of
LLaMA 3-70B in int8 for them, and puts the tables into docs/traffic.md. Takes some ten minutes on two cores.
Run: python benchmarks/traces.py FOLDER [TABLE ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from _pages import placed

from slicewise.traffic.cheapest import size
from slicewise.traffic.profile import profile_of
from slicewise.traffic.read import read_trace
from slicewise.traffic.requests import Requests
from slicewise.traffic.run import simulate
from slicewise.traffic.sizing import Tried
from slicewise.units import show

PAGE = Path(__file__).parents[1] / "docs/traffic.md"
TRACES = {
    "Azure conversation": ("azure_llm_2023_conv.csv", "2s"),
    "Azure code": ("azure_llm_2023_code.csv", "2s"),
    "Mooncake conversation": ("mooncake_conversation.jsonl", "30s"),
}
"""Files, and the limit on the TTFT: prompts of Mooncake are ten times as long."""
TPOT = "100ms"
SLICES = ("v5e:4x4", "h100:8")
AT = ("mean", "p50", "p90", "p95", "p99")
MODEL = {"model": "llama-3-70b", "weights": "int8", "kv": "int8"}
JOBS = 2


def run(folder: Path, names: Sequence[str]) -> None:
    """Size fleets, and put the tables of these names (all where none is given) into the page."""
    traces = {name: read_trace(folder / file) for name, (file, _) in TRACES.items()}
    tables = {
        "traces": _traces,
        "one replica": _one,
        "percentiles": _percentiles,
        "splitting": _splitting,
        "prefixes": lambda traces: _prefixes(traces["Mooncake conversation"]),
    }
    made = {name: table(traces) for name, table in tables.items() if name in (names or tables)}
    PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    rule = [":--"] * left + ["--:"] * (len(header) - left)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def _traces(traces: dict[str, Requests]) -> str:
    rows = []
    for name, requests in traces.items():
        found = profile_of(requests)
        rows.append(
            [
                name,
                f"{found.n_requests:,}",
                f"{found.requests_per_s:.2f}",
                f"{found.busiest_minute_ratio:.1f}",
                f"{found.prompt_tokens.mean:,.0f}",
                f"{found.prompt_tokens.p99:,.0f}",
                f"{found.output_tokens.mean:,.0f}",
                f"{found.output_tokens.p99:,.0f}",
            ]
        )
    header = ["trace", "requests", "a second", "busiest minute", "prompt, mean", "p99", "output, mean", "p99"]
    return _table(header, rows)


def _one(traces: dict[str, Requests]) -> str:
    rows = []
    for name, requests in traces.items():
        for slice_ in SLICES:
            _say(f"{name} on one {slice_}")
            found = simulate(**MODEL, slice=slice_, trace=requests, no_range=True)
            run = found.metrics
            assert run is not None
            assert run.ttft_s is not None
            assert run.tpot_s is not None
            assert found.steady is not None
            rows.append(
                [
                    name,
                    slice_,
                    f"{found.steady.load:.0%}",
                    *(show(each, "s", 3) for each in (run.ttft_s.p50, run.ttft_s.p99, run.tpot_s.p50, run.tpot_s.p99)),
                    f"{run.output_tokens_per_s:,.0f}",
                    f"{run.finished:,}",
                ]
            )
    header = ["trace", "server", "load", "TTFT p50", "p99", "TPOT p50", "p99", "output tokens/s", "finished"]
    return _table(header, rows, left=2)


def _percentiles(traces: dict[str, Requests]) -> str:
    rows = []
    for name, requests in traces.items():
        ttft = TRACES[name][1]
        for slice_ in SLICES:
            costs = []
            for at in AT:
                _say(f"{name} on {slice_}: fleets for the {at}")
                found = size(
                    **MODEL, slice=slice_, trace=requests, ttft=f"{at}:{ttft}", tpot=f"{at}:{TPOT}", servers="shared",
                    policy="prefill-first", jobs=JOBS,
                )  # fmt: skip
                costs.append(_count(found.sizing.best if found.sizing else None))
            rows.append([name, slice_, str(found.steady.servers) if found.steady else "–", *costs])
    return _table(["trace", "server", "closed form", *AT], rows, left=2)


def _count(best: Tried | None) -> str:
    if best is None:
        return "none"
    assert best.usd_per_hour is not None
    return f"{best.n_servers} (${best.usd_per_hour:,.0f}/h)"


def _splitting(traces: dict[str, Requests]) -> str:
    rows = []
    for name, requests in traces.items():
        ttft = TRACES[name][1]
        for slice_ in SLICES:
            _say(f"{name} on {slice_}: together or apart")
            found = size(
                **MODEL, slice=slice_, trace=requests, ttft=f"p95:{ttft}", tpot=f"p99:{TPOT}", jobs=JOBS
            ).sizing
            assert found is not None
            by_kind = {answer.shape.split(", ")[1]: answer.best for answer in found.answers}
            together = [_count(by_kind[kind]) for kind in ("prefill-first", "chunked")]
            apart = by_kind["split"]
            shared = found.best_shared
            pays = "–" if apart is None or shared is None else f"{_saved(apart, shared):+.0%}"
            rows.append([name, slice_, *together, _pair(apart), pays])
    header = ["trace", "server", "prefill first", "chunked", "split: prefill + decode", "split over the better"]
    return _table(header, rows, left=2)


def _pair(apart: Tried | None) -> str:
    return "none" if apart is None else f"{apart.n_prefill} + {apart.n_servers} (${apart.usd_per_hour:,.0f}/h)"


def _saved(apart: Tried, shared: Tried) -> float:
    assert apart.usd_per_hour is not None
    assert shared.usd_per_hour is not None
    return apart.usd_per_hour / shared.usd_per_hour - 1


def _prefixes(requests: Requests) -> str:
    rows = []
    ttft = TRACES["Mooncake conversation"][1]
    kinds = {
        "none": {},
        "cached, least-loaded": {"prefix_cache": True},
        "cached, prefix-aware": {"prefix_cache": True, "route": "prefix-aware"},
    }
    for slice_ in SLICES:
        for name, words in kinds.items():
            _say(f"Mooncake on {slice_}: prefixes {name}")
            found = size(
                **MODEL, slice=slice_, trace=requests, ttft=f"p95:{ttft}", tpot=f"p99:{TPOT}", policy="prefill-first",
                jobs=JOBS, **words,
            ).sizing  # fmt: skip
            assert found is not None
            shared, apart = found.best_shared, found.best_split
            rows.append([slice_, name, _count(shared), _hits(shared), _pair(apart), _hits(apart)])
    header = [
        "server",
        "prefixes",
        "together",
        "prompts cached",
        "split: prefill + decode",
        "prompts cached",
    ]
    return _table(header, rows, left=2)


def _hits(row: Tried | None) -> str:
    return "–" if row is None else f"{row.metrics.cached_prompt_share:.0%}"


def _say(words: str) -> None:
    print(words, file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("traces.py: give the folder of the traces; nothing was run")
    else:
        run(Path(sys.argv[1]), sys.argv[2:])
