"""The flags of loads, of servers' rules and of sweeps: for the commands that simulate."""

from __future__ import annotations

from pathlib import Path

import click

from slicewise.cli.options import Flag, option
from slicewise.traffic.candidates import KINDS
from slicewise.traffic.server import POLICIES, ROUTES
from slicewise.traffic.sweep import BACKENDS

TRAFFIC: dict[str, Flag] = {
    "trace": option(
        "--trace", metavar="FILE", type=click.Path(path_type=Path),
        help="Requests: Azure's CSV, Mooncake's JSONL, or a table of arrival_s, prompt_tokens, output_tokens.",
    ),
    "requests": option(
        "--requests", metavar="N",
        help="Make so many, with lengths drawn from --trace or of --isl and --osl.  [default: 2000 without a trace]",
    ),
    "sigma": option(
        "--sigma", metavar="NUMBER", help="Spread of lengths, lognormal around --isl and --osl.  [default: 0, none]"
    ),
    "burstiness": option(
        "--burstiness", metavar="NUMBER", help="Below 1 in bursts, above 1 even.  [default: 1, Poisson]"
    ),
    "on": option("--on", metavar="TIME", help="Requests come for so long, and then none for --off."),
    "off": option("--off", metavar="TIME", help="Pause between two times of --on."),
    "rates": option(
        "--rate", "--request-rate", "rate", metavar="RATE", multiple=True,
        help="Requests per second; stretches a trace. Repeatable: a load curve.  [default: the trace's]",
    ),
    "load_rate": option(
        "--rate", "--request-rate", "rate", metavar="RATE",
        help="Requests per second; stretches a trace.  [default: the trace's]",
    ),
    "seeds": option(
        "--seed", "seed", metavar="N", multiple=True, help="Of what is random. Repeatable: a run each.  [default: 0]"
    ),
    "seed": option("--seed", metavar="N", help="Of what is random.  [default: 0]"),
    "warm_up": option(
        "--warm-up", metavar="TIME", help="Requests that arrive earlier do not count.  [default: 0s]"
    ),
    "policy": option(
        "--policy", metavar="WORD", help=f"{' | '.join(POLICIES)}.  [default: {POLICIES[0]}]"
    ),
    "policies": option(
        "--policy", "policy", metavar="WORD", multiple=True,
        help=f"{' | '.join(POLICIES)}; repeatable, the cheapest is taken.  [default: the first two]",
    ),
    "most_sequences": option(
        "--batch", "--max-num-seqs", "batch", metavar="N",
        help="Most sequences of a batch.  [default: 256; size: fewer, where a step would miss the limits]",
    ),
    "most_tokens": option(
        "--max-num-batched-tokens", "max_num_batched_tokens", metavar="N",
        help="Most tokens of an iteration with --policy chunked.  [default: 8192]",
    ),
    "cache_block": option(
        "--block-size", "block_size", metavar="N", help="Tokens of a block of the cache.  [default: 16]"
    ),
    "prefix_cache": option(
        "--prefix-cache", "--enable-prefix-caching", "prefix_cache", is_flag=True,
        help="Prompts find blocks that earlier ones left (by the trace's hash_ids).",
    ),
    "route": option("--route", metavar="WORD", help=f"{' | '.join(ROUTES)}.  [default: least-loaded]"),
    "replicas": option("--replicas", metavar="N", help="Servers that do both phases.  [default: 1]"),
    "prefill_servers": option(
        "--prefill-servers", metavar="N", help="Servers that only prefill, and hand over to decode servers."
    ),
    "decode_servers": option("--decode-servers", metavar="N", help="Servers that only decode."),
    "servers": option(
        "--servers", metavar="WORD", help=f"{' | '.join(KINDS)}: the fleets to try.  [default: {KINDS[-1]}]"
    ),
    "ttft_at": option(
        "--ttft", "ttft", metavar="LIMIT", help="Limit on the time to the first token: 2s (the p99), p95:2s, mean:1s."
    ),
    "tpot_at": option("--tpot", "tpot", metavar="LIMIT", help="Limit on a request's mean gap of tokens: p99:50ms."),
    "itl_at": option("--itl", "itl", metavar="LIMIT", help="Limit on the gap between any two tokens: p99:200ms."),
    "e2e_at": option("--e2e", "e2e", metavar="LIMIT", help="Limit on the time to the last token: p99:30s."),
    "no_range": option(
        "--no-range", "no_range", is_flag=True, help="Run once, without the bound and the range beside."
    ),
    "jobs": option("--jobs", metavar="N", help="Processes that run side by side.  [default: 1]"),
    "backend": option(
        "--backend", metavar="WORD", help=f"{' | '.join(BACKENDS)}: where they run.  [default: local]"
    ),
    "run_out": option(
        "--out", metavar="FILE", type=click.Path(path_type=Path),
        help="Write charts (.html .svg .png), a row a request (.csv) or AIPerf's summary (.json).",
    ),
    "timeline": option(
        "--timeline", metavar="FILE", type=click.Path(path_type=Path),
        help="Write a timeline of the requests, which Perfetto opens (.json).",
    ),
}  # fmt: skip

LOAD = ("trace", "requests", "isl", "osl", "sigma", "burstiness", "on", "off")
RULES = ("most_sequences", "most_tokens", "cache_block", "prefix_cache", "route")
LIMITS = ("ttft_at", "tpot_at", "itl_at", "e2e_at", "warm_up")
SWEPT = ("jobs", "backend")
