"""`simulate`, from words to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.flags import Flags, truth
from slicewise.planner.question import Question, ask, chosen_by
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import step_of
from slicewise.spec.model import Model
from slicewise.traffic.design import Design
from slicewise.traffic.engine import Progress
from slicewise.traffic.fleets import Fleet
from slicewise.traffic.gap import Seen, gap_between
from slicewise.traffic.limits import Verdict, parse_limit, verdict
from slicewise.traffic.load import decode_waits_s, load_shares
from slicewise.traffic.planned import receiving
from slicewise.traffic.profile import profile_of
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, DECODE
from slicewise.traffic.simulation import Asked, Simulation, run, told
from slicewise.traffic.steady import Steady, at_means, steady
from slicewise.traffic.sweep import BACKENDS, LOCAL
from slicewise.traffic.words import LOAD, RULES, policy_of, requests_of, route_of, seed_of
from slicewise.units import parse, parse_count, parse_positive, show

LIMITS = ("ttft", "tpot", "itl", "e2e")
COUNTS = ("replicas", "prefill_servers", "decode_servers")
OWN = (
    *LOAD,
    *RULES,
    *LIMITS,
    "seed",
    "rate",
    "warm_up",
    "no_range",
    *COUNTS,
    "prefill_slice",
    "servers",
    "jobs",
    "backend",
)
"""Words that the planner is not asked with."""
MOST_SERVERS = 10_000


def simulate(model: str | Path | Model, *, progress: Progress | None = None, **words: Any) -> Simulation:
    """What users feel when a load meets planned servers.

    Without `slice`, the smallest standard slice that fits. Times are those that are expected, unless a view is given.

    Args:
        model: as for `plan`.
        progress: is told how far the run is.
        words: those of the command line's flags: of the load, the servers, the limits, and of `step`.

    Raises:
        InputError: a word is off.
    """
    rate = None if words.get("rate") is None else parse_positive(words["rate"], "request/s", "--rate")
    requests = requests_of(words, rate, seed_of(words.get("seed")))
    question = asked_of_planner(model, words)
    asked = asked_of_run(words, requests)
    places_of(words)
    n_servers, n_prefill = _counts(words)
    deployment = default_deployment(question)
    prefill = _prefill_deployment(question, deployment, words) if n_prefill else None
    design = Design(deployment=deployment, prefill=prefill, policy=policy_of(words, requests), route=route_of(words))
    refuse_unknown(design)
    reason = unfit(design, requests)
    if reason:
        return _unfit(design, requests, n_servers, n_prefill, reason)
    ran = run(design, requests, n_servers, n_prefill, asked, progress)
    fleet, outcome = ran.fleet, ran.outcome
    known = requests.first(len(outcome))
    found = told(requests, outcome, fleet, asked)
    # What is known of a stopped run is of its beginning: limits that it keeps may be missed later on.
    judged = verdict(asked.limits, found, outcome) if asked.limits and outcome.is_whole else None
    fits, missed = _fits(judged, is_stopped=bool(asked.limits) and not outcome.is_whole)
    shares = load_shares(known, outcome, fleet.server, n_servers)
    formula = steady_of(design, requests, n_servers, n_prefill)
    profile = profile_of(requests)
    seen = Seen(found, shares, decode_waits_s(outcome), n_servers)
    return Simulation(
        **_served(design, n_servers, n_prefill, fleet),
        requests=profile,
        fits=fits,
        reason=missed,
        metrics=found,
        shares=shares,
        verdict=judged,
        steady=formula,
        gap=gap_between(seen, formula, profile, design.policy) if formula and outcome.is_whole else (),
        figures=ran.figures,
        is_whole=ran.is_whole,
        assumptions=assumed(design, requests),
        design=design,
        load=requests,
        outcome=outcome,
    )


def _fits(judged: Verdict | None, *, is_stopped: bool) -> tuple[bool, str | None]:
    """Whether a run that the servers have room for keeps the limits, and why not."""
    if is_stopped:
        return False, "stopped before the end, so that the limits cannot be judged"
    if judged is None or judged.kept:
        return True, None
    return False, "; ".join(judged.reasons)


def asked_of_planner(model: str | Path | Model, words: Mapping[str, Any]) -> Question:
    """The question to the planner: its words alone, and the view that a plan is chosen by.

    Raises:
        InputError: a word is off, or servers know nothing of it.
    """
    flags = {name: value for name, value in words.items() if name not in OWN and value is not None}
    for name in sorted(words.keys() - set(OWN)):
        if name not in Flags.__annotations__:
            known = (*Flags.__annotations__, *OWN)
            raise UnknownNameError("word", name, known, "(the words are the command line's flags)")
    if "context" in flags:
        raise InputError("--context: requests have lengths of their own; leave it out")
    if "objective" in flags:
        raise InputError("--objective: nothing is chosen here; leave it out")
    for name in ("pp", "dp"):
        if name in flags and parse_count(flags[name], f"--{name}", "ranks") > 1:
            raise InputError(f"--{name}: traffic is simulated on servers of one group; leave it out, and add servers")
    return ask(model, chosen_by(flags))  # type: ignore[arg-type]  # checked above


def asked_of_run(words: Mapping[str, Any], requests: Requests) -> Asked:
    """What is asked of runs beside load and fleet.

    Raises:
        InputError: a limit or a time is off, or no request arrives after the warm-up.
    """
    given = {name: words[name] for name in LIMITS if words.get(name) is not None}
    warm_up = words.get("warm_up")
    warm_up_s = 0.0 if warm_up is None else parse(warm_up, "s", "--warm-up")
    if warm_up_s < 0:
        raise InputError(f"--warm-up: {warm_up} is below 0; write for example 60s")
    last_s = float(requests.arrival_s[-1])
    if warm_up_s > last_s:
        raise InputError(f"--warm-up: the last request arrives at {show(last_s, 's', 4)}, before {warm_up}; shorten it")
    return Asked(
        limits=tuple(parse_limit(str(text), f"--{name}") for name, text in given.items()),
        warm_up_s=warm_up_s,
        ranged=not truth(words.get("no_range"), "--no-range"),
    )


def places_of(words: Mapping[str, Any]) -> tuple[int, str]:
    """Processes that run side by side, and where.

    Raises:
        InputError: one of the two is off.
    """
    jobs, backend = words.get("jobs"), words.get("backend")
    if backend is not None and backend not in BACKENDS:
        raise InputError(f"--backend '{str(backend)[:40]}' is not offered; choose {', '.join(BACKENDS)}")
    return 1 if jobs is None else parse_count(jobs, "--jobs"), LOCAL if backend is None else str(backend)


def refuse_unknown(design: Design) -> None:
    """Refuse a layout that no server of one group has.

    Raises:
        InputError: it has several groups or stages.
    """
    for deployment in (design.deployment, design.prefill):
        if deployment and deployment.ranks and deployment.ranks.pp * deployment.ranks.dp > 1:
            raise InputError(
                f"{deployment.layout_name}: traffic is simulated on servers of one group; give --tp"
                f" {deployment.slice.n_chips}, or a smaller --slice and more --replicas"
            )


def unfit(design: Design, requests: Requests) -> str:
    """The ledger line that breaks; "" where the shortest request fits on each server: longer ones may be dropped."""
    shortest = int((requests.prompt_tokens + requests.output_tokens).min())
    for deployment in (design.deployment, design.prefill):
        if deployment is not None:
            held = replace(deployment.workload, context_tokens=float(shortest), capacity_context_tokens=float(shortest))
            found = step_of(deployment.with_(workload=held), 1)
            if not found.fits:
                return found.reason or ""
    return ""


def steady_of(design: Design, requests: Requests, n_servers: int, n_prefill: int) -> Steady | None:
    """The closed form of a fleet under a load."""
    prefill = at_means(design.prefill, requests) if design.prefill else None
    return steady(
        at_means(design.deployment, requests),
        n_servers=n_servers,
        most_sequences=design.policy.max_num_seqs,
        prefill=prefill,
        n_prefill=n_prefill,
        handoff_s=float(prefill.value("handoff_s", **receiving(design.deployment))) if prefill else 0.0,
    )


def assumed(design: Design, requests: Requests) -> tuple[str, ...]:
    """What a reader of simulated numbers should know."""
    policy, deployment = design.policy, design.deployment
    found = [
        "Servers are all alike and never fail; routing, tokenising and the way to the user take no time.",
        f"A step takes what the planner says of its batch and mean context, in the view {deployment.conventions.view}.",
        "Prompts are computed one by one.",
    ]
    if policy.kind == CHUNKED:
        found.append("A chunk adds its FLOPs and network to the step beside it, and shares its loading of weights.")
    if policy.caches_prefixes:
        found.append("A prefix that is cached costs no time; blocks are as long as the trace's hashes say.")
        found.append("A running prompt and the prefix that it leaves are held apart: engines that share them hit more.")
    if design.prefill is not None:
        found.append("A cache is handed over whole, and hand-offs do not wait for each other.")
    if requests.dropped:
        rows = ", ".join(f"{count:,} with {reason}" for reason, count in requests.dropped.items())
        found.append(f"Rows of the trace that are no requests were left out: {rows}.")
    return (*found, *assumptions(deployment, kinds=("bound", "expected", "memory", "model", "params", "book", "price")))


def _counts(words: Mapping[str, Any]) -> tuple[int, int]:
    """Servers that decode, and servers that only prefill.

    Raises:
        InputError: counts that do not go together.
    """
    if words.get("servers") is not None:
        raise InputError("--servers: kinds of fleets are tried by size; give --replicas, or prefill and decode servers")
    given = {name: words[name] for name in COUNTS if words.get(name) is not None}
    counts = {name: parse_count(value, f"--{name.replace('_', '-')}") for name, value in given.items()}
    for name, count in counts.items():
        if count > MOST_SERVERS:
            flag = name.replace("_", "-")
            raise InputError(f"--{flag}: {count:,} is more than the {MOST_SERVERS:,} that are simulated; give fewer")
    if "replicas" in counts and len(counts) > 1:
        raise InputError("--replicas are servers that do both phases; leave it out, or --prefill-servers")
    if len({"prefill_servers", "decode_servers"} & counts.keys()) == 1:
        raise InputError("--prefill-servers and --decode-servers: one is given; give both, or --replicas")
    if "prefill_servers" in counts and words.get("policy") is not None:
        raise InputError("--policy: servers of one phase have no prompts to fit in between; leave it out")
    if words.get("prefill_slice") is not None and "prefill_servers" not in counts:
        raise InputError("--prefill-slice: no prefill server stands there; add --prefill-servers and --decode-servers")
    return counts.get("replicas", counts.get("decode_servers", 1)), counts.get("prefill_servers", 0)


def _prefill_deployment(question: Question, decode: Deployment, words: Mapping[str, Any]) -> Deployment:
    named = words.get("prefill_slice")
    return decode if named is None else question.deployment(load_slice(named, "--prefill-slice"))


def _served(design: Design, n_servers: int, n_prefill: int, fleet: Fleet | None) -> dict[str, Any]:
    deployment, prefill, policy = design.deployment, design.prefill, design.policy
    n_chips = deployment.slice.n_chips
    return {
        "model": deployment.model.name,
        "slice": deployment.slice.name,
        "prefill_slice": prefill.slice.name if prefill else None,
        "layout": deployment.layout_name,
        "split": prefill is not None,
        "n_servers": n_servers,
        "n_prefill_servers": n_prefill if prefill else None,
        "n_chips": n_chips,
        "total_chips": n_servers * n_chips + (n_prefill * prefill.slice.n_chips if prefill else 0),
        "usd_per_hour": fleet.total_usd_per_hour if fleet else None,
        "weight_dtype": deployment.precision.weights,
        "kv_dtype": deployment.precision.kv,
        "policy": DECODE if prefill else policy.kind,
        "route": design.route,
        "max_num_seqs": policy.max_num_seqs,
        "max_num_batched_tokens": policy.max_num_batched_tokens if policy.kind == CHUNKED else None,
        "block_tokens": policy.block_tokens,
        "kv_blocks": fleet.server.n_blocks if fleet else None,
        "prefix_cache": policy.caches_prefixes,
        "view": deployment.conventions.view,
    }


def _unfit(design: Design, requests: Requests, n_servers: int, n_prefill: int, reason: str) -> Simulation:
    return Simulation(
        **_served(design, n_servers, n_prefill, None),
        requests=profile_of(requests),
        fits=False,
        reason=reason,
        metrics=None,
        shares=None,
        verdict=None,
        steady=None,
        gap=(),
        figures=None,
        is_whole=True,
        assumptions=assumed(design, requests),
        design=design,
        load=requests,
        outcome=None,
    )
