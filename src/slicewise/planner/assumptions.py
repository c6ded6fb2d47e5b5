"""What an answer assumes, in sentences."""

from __future__ import annotations

from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import granting
from slicewise.units import show

BOUND = (
    "Times are bounds: launches, norms, sampling, the host and imperfect bandwidth are neglected;"
    " measured steps take 1.1 to 8 times as long."
)


def assumptions(deployment: Deployment, *, batch: int | None = None) -> tuple[str, ...]:
    """Every assumption that a reader of the numbers should know."""
    counted = deployment.conventions
    sentences = [
        BOUND,
        _context(deployment),
        f"Memory granted: {granting(deployment)}.",
        "All weights are read in each step, the input embedding too.",
        *_network(deployment),
        *model_notes(deployment),
    ]
    if deployment.params is not None:
        sentences.append(f"{deployment.params:,.0f} parameters are given, not the exact count.")
    if counted.book:
        sentences.append("The book's conventions: see `docs/terms.md`.")
    if deployment.precision.weights in ("int8", "fp8", "int4", "fp4") and deployment.params is None:
        sentences.append("Quantised weights are counted without scales, embeddings and head at the same width.")
    if deployment.layout.batch_shards > 1 and batch is not None:
        sentences.append(_shards(deployment, batch))
    if deployment.price:
        sentences.append(f"Price: {deployment.price}.")
    return tuple(sentences)


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
    if deployment.conventions.ici == "ring":
        return ["Every mesh axis is taken as a full ring, without hops or AllToAlls (--ici ring)."]
    if deployment.slice.domain:
        known = deployment.slice.chip.node_bytes_per_s is not None
        across = (
            ""
            if known or deployment.slice.n_chips <= deployment.slice.domain.domain_chips
            else (" The network between nodes is not known and left out.")
        )
        return [f"Network: {deployment.slice.domain}, {show(deployment.slice.chip.hop_s, 's')} a collective.{across}"]
    axes = " and ".join(str(axis) for axis in deployment.slice.axes)
    return [f"Network: {axes}, {show(deployment.slice.chip.hop_s, 's')} a hop."]


def model_notes(deployment: Deployment) -> list[str]:
    """Where the model does not suit the slice or the context."""
    model, n_chips, longest = deployment.model, deployment.slice.n_chips, deployment.workload.capacity_context_tokens
    found = []
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
