"""What an answer assumes, in sentences."""

from __future__ import annotations

from collections.abc import Collection

from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import granting
from slicewise.units import show

BOUND = (
    "Times are bounds: launches, norms, sampling, the host and imperfect bandwidth are neglected;"
    " published steps took 1.1 to 6.3 times the roofline, 1.9 in the median (docs/benchmarks.md)."
)

SERIAL = (
    "Times are bounds of a step that overlaps nothing (--view serial): a real one may hide collectives, and undercut"
    " them; launches, norms, sampling, the host and imperfect bandwidth are neglected."
)


def assumptions(
    deployment: Deployment, *, batch: int | None = None, kinds: Collection[str] | None = None
) -> tuple[str, ...]:
    """Every assumption that a reader of the numbers should know.

    Args:
        deployment: what the numbers are of.
        batch: sequences in a step, where there is one.
        kinds: only these: bound, context, memory, weights, network, model, params, book, shards, price; all when None.
    """
    told = _told(deployment, batch)
    return tuple(sentence for kind, sentence in told if kinds is None or kind in kinds)


def _told(deployment: Deployment, batch: int | None) -> list[tuple[str, str]]:
    counted = deployment.conventions
    sentences = [
        ("bound", SERIAL if counted.view == "serial" else BOUND),
        ("context", _context(deployment)),
        ("memory", f"Memory granted: {granting(deployment)}."),
        ("weights", "All weights are read in each step, the input embedding too."),
        *(("network", sentence) for sentence in _network(deployment)),
        *(("model", sentence) for sentence in model_notes(deployment)),
    ]
    if deployment.params is not None:
        sentences.append(("params", f"{deployment.params:,.0f} parameters are given, not the exact count."))
    if counted.book:
        sentences.append(("book", "The book's conventions: see `docs/terms.md`."))
    if deployment.precision.weights in ("int8", "fp8", "int4", "fp4") and deployment.params is None:
        words = "Quantised weights are counted without scales, embeddings and head at the same width."
        sentences.append(("weights", words))
    if deployment.layout.batch_shards > 1 and batch is not None:
        sentences.append(("shards", _shards(deployment, batch)))
    if deployment.price:
        sentences.append(("price", f"Price: {deployment.price}."))
    return sentences


def _context(deployment: Deployment) -> str:
    lengths = deployment.workload
    if lengths.context_tokens == lengths.capacity_context_tokens:
        return f"Every sequence holds {lengths.context_tokens:,.0f} tokens, for memory and bandwidth alike."
    return (
        f"Memory is counted at {lengths.capacity_context_tokens:,.0f} tokens a sequence (prompt plus output),"
        f" bandwidth at the mean of {lengths.context_tokens:,.0f}."
    )


def _network(deployment: Deployment) -> list[str]:
    if deployment.slice.n_chips == 1:
        return []
    if deployment.conventions.ici == "none":
        return ["No network is counted (--ici none)."]
    if deployment.conventions.ici == "ring" and not deployment.slice.domain:
        return ["Every mesh axis is taken as a full ring, without hops or AllToAlls (--ici ring)."]
    if deployment.slice.domain:
        known = deployment.slice.chip.node_bytes_per_s is not None
        across = (
            ""
            if known or deployment.slice.n_chips <= deployment.slice.domain.domain_chips
            else (" The network between nodes is not known and left out.")
        )
        latency = "no latency" if deployment.conventions.ici == "ring" else show(deployment.slice.chip.hop_s, "s")
        return [f"Network: {deployment.slice.domain}, {latency} a collective.{across}"]
    axes = " and ".join(str(axis) for axis in deployment.slice.axes)
    return [f"Network: {axes}, {show(deployment.slice.chip.hop_s, 's')} a hop."]


def model_notes(deployment: Deployment) -> list[str]:
    """Where the model does not suit the slice or the context."""
    model, n_chips, longest = deployment.model, deployment.slice.n_chips, deployment.workload.capacity_context_tokens
    found = []
    if model.attention_window < longest:
        found.append(
            f"{model.name} attends to the last {model.attention_window:,.0f} tokens: a sequence holds no more."
        )
    if deployment.slice.domain and n_chips > deployment.slice.domain.domain_chips:
        found.append(f"{deployment.slice.name} spans {n_chips // deployment.slice.domain.domain_chips} nodes.")
    if longest > model.max_context_tokens:
        found.append(f"{longest:,.0f} tokens exceed the {model.max_context_tokens:,.0f} that {model.name} states.")
    if n_chips > 1 and model.n_heads % n_chips:
        found.append(
            f"{model.n_heads} query heads over {n_chips} chips: an even split of their matrices is assumed,"
            " which needs heads to be cut or padded."
        )
    return found


def _shards(deployment: Deployment, batch: int) -> str:
    layout = deployment.layout
    what = "split the batch" if deployment.conventions.kv_split == "batch" else "hold a copy each"
    even = deployment.conventions.split == "ideal" or batch % layout.batch_shards == 0
    uneven = "" if even or deployment.conventions.kv_split == "copy" else "; the fullest chip decides"
    return (
        f"The KV cache is split over {layout.head_shards} head shards; {layout.batch_shards} ways beyond them {what}"
        f"{uneven}."
    )
