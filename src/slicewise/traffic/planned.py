"""A planned deployment as a server: the planner's own times as tables, and its ledger's room in blocks."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.traffic.fleets import PrefillPool
from slicewise.traffic.requests import Floats, Ints, Requests
from slicewise.traffic.server import Policy, Server
from slicewise.traffic.times import Times

N_KNOTS = 48
"""Contexts at which steps are computed; where another term becomes the largest between two of them, one is added."""


MOST_TOKENS = 2**24
"""Of a request: tables have an entry for each token, and no model reads so much."""

DECIDING = ("step_s", "prefill_s")
"""Quantities of a step and of a prefill in the view that decides."""


def server_of(deployment: Deployment, policy: Policy, requests: Requests, names: tuple[str, str] = DECIDING) -> Server:
    """The server that a deployment is, for requests of such lengths.

    Args:
        deployment: one replica.
        policy: its rules.
        requests: whose lengths the tables must hold.
        names: the quantities that a step and a prefill take, in the order of `DECIDING`.

    Raises:
        InputError: the deployment is of several groups or pipeline stages, or holds not even a block.
    """
    if deployment.ranks and deployment.ranks.pp * deployment.ranks.dp > 1:
        raise InputError(
            f"{deployment.layout_name}: traffic is simulated on servers of one group; leave out --pp and --dp, and give"
            " --replicas instead"
        )
    n_blocks = blocks_of(deployment, policy, requests)
    shards = shards_of(deployment)
    longest = longest_of(requests, n_blocks // shards * policy.block_tokens)
    return Server(
        times=times_of(deployment, policy.max_num_seqs, longest, names),
        n_blocks=n_blocks,
        policy=policy,
        shards=shards,
    )


def longest_of(requests: Requests, room_tokens: int) -> int:
    """The longest request that tables have to hold: what has no room in a server's cache is dropped.

    Raises:
        InputError: it is longer than tables go.
    """
    longest = min(int((requests.prompt_tokens + requests.output_tokens).max()), room_tokens)
    if longest > MOST_TOKENS:
        raise InputError(
            f"a request of {longest:,} tokens is longer than the {MOST_TOKENS:,} that are simulated; leave it out"
        )
    return longest


def times_of(
    deployment: Deployment, most_sequences: int, longest_tokens: int, names: tuple[str, str] = DECIDING
) -> Times:
    """Tables of a deployment's steps and prefills; in the view that decides, where no other names are given."""
    batches = np.arange(1.0, most_sequences + 1)

    def rows(knots: Floats) -> Floats:
        found = deployment.value(names[0], batch=batches[:, None], context_tokens=knots[None, :])
        return np.broadcast_to(np.asarray(found, dtype=float), (most_sequences, len(knots)))

    windows = {float(cache.window) for cache in deployment.holding.caches if cache.window < longest_tokens}
    spaced = np.geomspace(1.0, float(longest_tokens), N_KNOTS)
    knots = np.unique(np.concatenate([[0.0], spaced, sorted(windows)]))
    knots = np.union1d(knots, _hidden_kinks(knots, rows(knots)))
    steps_s = np.vstack([np.zeros(len(knots)), rows(knots)])
    lines = _straight(knots, steps_s)
    prompt_tokens = np.maximum(np.arange(longest_tokens + 1.0), 1.0)
    prefills_s = np.asarray(deployment.value(names[1], prompt_tokens=prompt_tokens), dtype=float)
    return Times(
        knots=knots[lines],
        steps_s=steps_s[:, lines],
        prefills_s=prefills_s,
        works_s=np.minimum(_works_s(deployment, names[1], prompt_tokens), prefills_s),
    )


def _works_s(deployment: Deployment, name: str, prompt_tokens: Floats) -> Floats:
    """A prefill without what prompts of an iteration share: loading weights, and launches. [s] Shape (t + 1,).

    The same formulas, with nothing to load. Where a TPU's compiler is the source, only what its core waits for is left
    out, since its matrices are told by the load as well.
    """
    served = deployment.graph.formulas
    is_expected = name in _EXPECTED or (name == DECIDING[1] and deployment.conventions.view == "expected")
    is_compiled = is_expected and "prefill_waiting_s" in served
    shared = ("prefill_waiting_s",) if is_compiled else ("param_load_s", "prefill_param_load_s", "overhead_s")
    given: dict[str, Any] = {each: 0.0 for each in shared if each in served}
    bounds = deployment.evaluate(["prefill_peak_s", "prefill_ici_s"], prompt_tokens=prompt_tokens)
    given["prefill_bound_s"] = np.maximum(bounds["prefill_peak_s"], bounds["prefill_ici_s"])
    found = given[name] if name in given else deployment.value(name, prompt_tokens=prompt_tokens, **given)
    works_s = np.array(np.broadcast_to(np.asarray(found, dtype=float), prompt_tokens.shape))
    works_s[0] = 0.0
    return works_s


def _hidden_kinks(knots: Floats, table: Floats) -> Floats:
    """Contexts between two knots at which a row turns from one line to the next, as another term becomes the largest.

    Where a row's slope changes at both knots, the lines before and after meet between them.
    """
    slopes = np.diff(table, axis=1) / np.diff(knots)
    kinks = _kinks(slopes)
    row, at = np.nonzero(kinks[:, :-1] & kinks[:, 1:])
    at += 1
    before, within, after = slopes[row, at - 1], slopes[row, at], slopes[row, at + 1]
    width = np.diff(knots)[at]
    # Two kinks between the same knots meet elsewhere, or nowhere.
    meet = np.divide(within - after, before - after, out=np.full(len(row), -1.0), where=before != after)
    return np.asarray((knots[at] + width * meet)[(meet > 0) & (meet < 1)])


def _straight(knots: Floats, table: Floats) -> Ints:
    """Indices of the knots at which some row has a kink; on a line there is nothing to look up. Shape (j,)."""
    kinks = _kinks(np.diff(table, axis=1) / np.diff(knots)).any(axis=0)
    return np.concatenate([[0], 1 + np.flatnonzero(kinks), [len(knots) - 1]])


def _kinks(slopes: Floats) -> NDArray[np.bool_]:
    """Whether a row's slope changes at an inner knot, by more than rounding."""
    scale = np.abs(slopes).max(axis=1, keepdims=True) + np.finfo(float).tiny
    return np.asarray(np.abs(np.diff(slopes, axis=1)) > scale * _SAME_SLOPE)


_EXPECTED = ("prefill_expected_s", "prefill_low_s", "prefill_high_s")
_SAME_SLOPE = 1e-7
"""Difference of slopes, over the steepest, that is rounding."""


def shards_of(deployment: Deployment) -> int:
    """Parts of the chips among which whole sequences are spread; 1 where each lies on all of them. []"""
    counted = deployment.conventions
    whole = counted.split == "whole" and counted.kv_split == "batch" and deployment.ranks is None
    return deployment.layout.batch_shards if whole else 1


def blocks_of(deployment: Deployment, policy: Policy, requests: Requests) -> int:
    """Blocks of the cache that the ledger leaves room for, beside the activations of the largest batch.

    Where a sequence's bytes do not grow with each token alike (windows, states), a block is an even share of those of a
    request of mean length.

    Raises:
        InputError: there is no room for a block.
    """
    mean = float(np.mean(requests.prompt_tokens + requests.output_tokens))
    tokens = max(ceil(mean), 1)
    sized = deployment.with_(workload=replace(deployment.workload, capacity_context_tokens=tokens))
    names = ("kv_budget_bytes", "kv_bytes_per_sequence", "activation_bytes_per_sequence", "kv_replication")
    value = {name: float(each) for name, each in sized.evaluate(names, batch=policy.max_num_seqs).items()}
    room = value["kv_budget_bytes"] - policy.max_num_seqs * value["activation_bytes_per_sequence"]
    sequence = value["kv_bytes_per_sequence"] * value["kv_replication"]
    found = int(room * tokens / sequence / policy.block_tokens) if sequence else 0
    if found < 1:
        raise InputError(
            f"{deployment.model.name} on {deployment.slice.name}: no room for a block of the cache beside the weights;"
            " take a larger --slice, or narrower --weights"
        )
    return found


def pool_of(
    prefill: Deployment,
    decode: Deployment,
    n_servers: int,
    longest_tokens: int,
    names: tuple[str, str] = DECIDING,
    cache_tokens: int = 0,
    typical_tokens: int | None = None,
) -> PrefillPool:
    """Prefill servers of a deployment, which hand their caches to those of another.

    Args:
        prefill: one of them.
        decode: one that takes the caches in.
        n_servers: how many prefill servers.
        longest_tokens: of a prompt that one takes.
        names: the quantities that a step and a prefill take.
        cache_tokens: of prompts that one has room to keep; 0 where prefixes are not cached.
        typical_tokens: of a prompt at whose length a token's share of the hand-off is taken, which other lengths have
            too but where layers have windows; None for the longest.

    Raises:
        InputError: the rate of the hand-off is not known.
    """
    typical = typical_tokens or longest_tokens
    prompts = replace(prefill.workload, prompt_tokens=typical)
    handoff_s = float(prefill.with_(workload=prompts).value("handoff_s", **receiving(decode)))
    price = prefill.price
    return PrefillPool(
        n_servers=n_servers,
        prefills_s=times_of(prefill, 1, longest_tokens, names).prefills_s,
        handoff_s_per_token=handoff_s / typical,
        cache_tokens=cache_tokens,
        n_chips=prefill.slice.n_chips,
        usd_per_hour=None if price is None else price.usd_per_chip_hour * prefill.slice.n_chips,
    )


def receiving(decode: Deployment) -> dict[str, float]:
    """What the decode slice takes in, as an input of the hand-off.

    Raises:
        InputError: the network that leaves its slice is not known.
    """
    if decode.slice.chip.dcn_bytes_per_s is None and decode.handoff_bytes_per_s is None:
        raise InputError(f"what leaves {decode.slice.name} is not known; give --network, such as 400Gb/s")
    return (
        {}
        if decode.handoff_bytes_per_s
        else {"handoff_receive_bytes_per_s": float(decode.value("handoff_receive_bytes_per_s"))}
    )
