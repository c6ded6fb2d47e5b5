"""What an answer assumes, in sentences."""

from __future__ import annotations

from collections.abc import Collection

from slicewise.planner.deployment import Deployment
from slicewise.planner.engines import TPU_INFERENCE
from slicewise.planner.feasible import granting
from slicewise.spec.padding import tpu_padding
from slicewise.units import show

BOUND = (
    "Times are bounds: launches, norms, sampling, the host and imperfect bandwidth are neglected;"
    " published steps took 1.0 to 6.3 times the roofline, 1.8 in the median (docs/benchmarks.md)."
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
        kinds: only these: bound, expected, context, memory, weights, network, model, params, book, shards, price; all
            when None.
    """
    told = _told(deployment, batch)
    return tuple(sentence for kind, sentence in told if kinds is None or kind in kinds)


def _told(deployment: Deployment, batch: int | None) -> list[tuple[str, str]]:
    counted = deployment.conventions
    sentences = [
        *([("bound", SERIAL if counted.view == "serial" else BOUND)] if counted.view != "expected" else []),
        *([] if counted.book else [("expected", deployment.expectation.basis)]),
        ("context", _context(deployment)),
        ("memory", f"Memory granted: {granting(deployment)}."),
        *(("weights", sentence) for sentence in _weights(deployment)),
        *(("network", sentence) for sentence in _network(deployment)),
        *(("model", sentence) for sentence in model_notes(deployment)),
    ]
    if deployment.params is not None:
        sentences.append(("params", f"{deployment.params:,.0f} parameters are given, not the exact count."))
    if counted.book:
        sentences.append(("book", "The book's conventions: see `docs/terms.md`."))
    padding = _padding(deployment)
    if padding:
        sentences.append(("shards", padding))
    if (deployment.layout.batch_shards > 1 or deployment.ranks) and batch is not None:
        sentences.append(("shards", _shards(deployment, batch)))
    if deployment.price:
        sentences.append(("price", f"Price: {deployment.price}."))
    return sentences


def _padding(deployment: Deployment) -> str:
    """Where an engine on TPUs would pad the cache; "" where it would not, or is counted already."""
    chip, counted = deployment.slice.chip, deployment.conventions
    if chip.is_gpu or counted.book or deployment.engine:
        return ""
    heads, shards = deployment.model.n_kv_heads, deployment.layout.head_shards
    most = max(
        (tpu_padding(cache, deployment.precision.kv, -(-heads // shards)) for cache in deployment.holding.caches),
        default=1.0,
    )
    if most == 1:
        return ""
    return (
        f"Padding of the cache is not counted: at {_heads(-(-heads // shards))} a chip tpu-inference holds up to"
        f" {show(most, '', 3)} times the {deployment.precision.kv} bytes (--engine tpu-inference counts them)."
    )


def _heads(count: int) -> str:
    return f"{count} KV head{'' if count == 1 else 's'}"


def _weights(deployment: Deployment) -> list[str]:
    model, precision = deployment.model, deployment.precision
    found = ["All weights are read in each step, the input embedding too."]
    if model.n_experts:
        words = (
            "All weights are read in each step but the experts that no token is sent to, routed evenly: real routing"
        )
        found = [f"{words} touches fewer experts, and some far more often."]
    if model.towers:
        names = " and ".join(f"{name} ({size:,})" for name, size in model.towers.items())
        found.append(f"Parameters of {names} are held, and idle in decode.")
    if precision.as_stored and deployment.params is None:
        found.append(f"Weights weigh what the checkpoint stores ({_method(deployment)}), scales included.")
    elif precision.weights in ("int8", "fp8", "int4", "fp4") and deployment.params is None:
        found.append("Quantised weights are counted without scales, embeddings and head at the same width.")
    return [*found, *model.left_out, *model.notes]


def _method(deployment: Deployment) -> str:
    quantised = deployment.model.quantisation
    if deployment.model.checkpoint_bytes is not None:
        return "the sizes of its files"
    return f"{quantised.method}, the narrowest {quantised.dtype}" if quantised else "its own dtype"


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
    found += _windows(deployment)
    if deployment.slice.domain and n_chips > deployment.slice.domain.domain_chips:
        found.append(f"{deployment.slice.name} spans {n_chips // deployment.slice.domain.domain_chips} nodes.")
    if longest > model.max_context_tokens:
        found.append(f"{longest:,.0f} tokens exceed the {model.max_context_tokens:,.0f} that {model.name} states.")
    if n_chips > 1 and deployment.ranks is None and model.n_heads % n_chips:
        found.append(
            f"{model.n_heads} query heads over {n_chips} chips: an even split of their matrices is assumed,"
            " which needs heads to be cut or padded."
        )
    return found


def _windows(deployment: Deployment) -> list[str]:
    """Layers that keep less than the context."""
    model, longest = deployment.model, deployment.workload.capacity_context_tokens
    kept = [cache for cache in deployment.holding.caches if cache.head_dim]
    if model.attention_window < longest:
        return [f"{model.name} attends to the last {model.attention_window:,.0f} tokens: a sequence holds no more."]
    growing = {layer for cache in kept if cache.window >= longest for layer in cache.layers}
    bounded: dict[float, set[int]] = {}
    for cache in kept:
        if cache.window < longest and not growing & set(cache.layers):
            bounded.setdefault(cache.window, set()).update(cache.layers)
    found = [
        f"{len(layers)} of {model.n_layers} layers keep the last {window:,.0f} tokens only: an engine that frees"
        " nothing holds more."
        for window, layers in bounded.items()
    ]
    sparse = [cache for cache in kept if cache.read_tokens < longest]
    found += [
        f"A step reads {cache.read_tokens:,.0f} tokens that an indexer chose, of those held." for cache in sparse[:1]
    ]
    return found


def _shards(deployment: Deployment, batch: int) -> str:
    layout, ranks = deployment.layout, deployment.ranks
    if ranks:
        copies = float(deployment.value("kv_copies"))
        what = "times one unpadded copy" if deployment.engine and deployment.engine.name == TPU_INFERENCE else "copies"
        held = "" if copies == 1 else f"; the ranks hold {show(copies, '', 3)} {what} of a sequence's cache"
        devices = deployment.slice.chip.devices_per_chip
        shown = f" Ranks are chips here; an engine sees {devices} devices in each." if devices > 1 else ""
        return f"Ranks: {ranks}; the fullest stage and rank decide{held}.{shown}"
    what = "split the batch" if deployment.conventions.kv_split == "batch" else "hold a copy each"
    even = deployment.conventions.split == "ideal" or batch % layout.batch_shards == 0
    uneven = "" if even or deployment.conventions.kv_split == "copy" else "; the fullest chip decides"
    return (
        f"The KV cache is split over {layout.head_shards} head shards; {layout.batch_shards} ways beyond them {what}"
        f"{uneven}."
    )
