"""Where each input of a deployment's formulas comes from, in words, with its document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from slicewise.derive import Origins
from slicewise.planner.conventions import Conventions
from slicewise.planner.holding import layered_words
from slicewise.spec.chip import Price
from slicewise.spec.layout import KvLayout
from slicewise.spec.model import Model
from slicewise.spec.precision import Precision
from slicewise.spec.ranks import Ranks
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Workload
from slicewise.units import show

MODEL_SIZES = (
    "n_layers",
    "n_blocks",
    "d_model",
    "d_ff",
    "n_heads",
    "n_kv_heads",
    "head_dim",
    "vocab_size",
    "attention_window",
)
STRUCTURES = ("weight_tensors", "caches", "stored_weights", "held_weights", "expert_groups", "kv_segments")
"""Inputs that formulas sum over; their words are their entries, a line each."""

_UNKNOWN = ("not known here", "")


def origins(
    *,
    model: Model,
    slice_: Slice,
    precision: Precision,
    workload: Workload,
    counted: Conventions,
    ranks: Ranks | None,
    price: Price | None,
    layout: KvLayout,
    rate: str,
    inputs: Mapping[str, Any],
) -> Origins:
    """The origin of every input.

    Args:
        model: what is served.
        slice_: where.
        precision: the dtypes.
        workload: the lengths.
        counted: how things are counted.
        ranks: the layout of ranks; None for an even cut.
        price: the quote; None where none is known.
        layout: how the cache lies over the chips.
        rate: the chip's fact of its peak rate.
        inputs: the values.
    """
    facts = slice_.chip.provenance
    shape = model.provenance[""].origin if "" in model.provenance else ("the model", "")
    links, held = facts["link_bytes_per_s"], "--context" if workload.context_is_set else ""
    words = {
        **{name: "\n".join(map(str, inputs[name])) or "none" for name in STRUCTURES if name in inputs},
        "weight_bytes_per_param": f"{precision.weights} weights{_stored(precision)}",
        "kv_bytes_per_element": f"{precision.kv} cache",
        "activation_bytes_per_element": "activations travel in 16 bits",
        "n_chips": f"chips of {slice_.name}",
        **layered_words(model, ranks),
        **_shards(model, slice_, ranks),
        "kv_batch_axes": ", ".join(str(axis) for axis in layout.batch_axes) or "none",
        "prompts_in_flight": "prompts that the slice works on at once",
        "prompt_tokens": "prompt length (ISL)",
        "output_tokens": "output length (OSL)",
        "context_tokens": _context(counted, held, "prompt plus half the output: the mean of a sequence"),
        "capacity_context_tokens": _context(counted, held, "prompt plus output"),
        "memory_fraction": "share of HBM that may be used",
        "table_bytes": "rotary tables of the engine, a row a position",
        "reserve_bytes_per_chip": "given by --reserve, or the middle of what logs of the engine show",
        "mfu": "peak"
        if counted.view == "expected" and inputs["mfu"] == 1
        else "prefill FLOPs utilisation, an assumption",
        **dict.fromkeys(("n_params", "n_active_params", "matmul_params"), "given by --params"),
        "handoff_bytes_per_s": "given by --network",
        "requests_per_s": "given by --rate",
        "batch": "sequences in a decode step, as asked or as planned",
    }
    window = "full attention" if model.attention_window == math.inf else "the model's window"
    return {
        **{name: (text, shape[1] if name in STRUCTURES else "") for name, text in words.items()},
        **dict.fromkeys(MODEL_SIZES, shape),
        **{name: fact.origin for name, fact in model.provenance.items() if name},
        "attention_window": (window, shape[1]),
        "hbm_bytes_per_chip": _hbm(slice_, counted),
        "hbm_bytes_per_s": facts["hbm_bytes_per_s"].origin,
        "flops_per_s": (f"{precision.compute}: {facts[rate].words}", facts[rate].document),
        **{
            name: (_axes(inputs.get(name, ()), slice_, counted), links.document) for name in ("ici_axes", "expert_axes")
        },
        **{name: (f"{inputs.get(name)}, {links.words}", links.document) for name in ("domain", "expert_domain")},
        "hop_s": facts["hop_s"].origin,
        "dcn_bytes_per_s_per_chip": facts["dcn_bytes_per_s"].origin if "dcn_bytes_per_s" in facts else _UNKNOWN,
        "usd_per_chip_hour": price.provenance.origin if price else _UNKNOWN,
    }


def _stored(precision: Precision) -> str:
    return " as stored, on average over a token's matrices" if precision.as_stored else ""


def _shards(model: Model, slice_: Slice, ranks: Ranks | None) -> dict[str, str]:
    if ranks:
        together = f"pipeline stages × data-parallel ranks of {ranks}"
        return {
            "kv_head_shards": f"{model.n_kv_heads} KV heads over the tensor-parallel ranks of {ranks}",
            "kv_batch_shards": f"data-parallel ranks of {ranks}, which share the batch",
            "pipeline_stages": f"pipeline stages of {ranks}",
            "prompts_in_flight": together,
            "batch_groups": together,
        }
    return {
        "kv_head_shards": f"{model.n_kv_heads} KV heads over {slice_.n_chips} chips, heads first",
        "kv_batch_shards": "the ways that are left after the heads",
        "pipeline_stages": "no pipeline",
    }


def _hbm(slice_: Slice, counted: Conventions) -> tuple[str, str]:
    if counted.hbm_bytes_per_chip is not None:
        return f"given by --hbm: {show(counted.hbm_bytes_per_chip, 'B')}", ""
    return slice_.chip.provenance["hbm_bytes" if counted.nominal_hbm else "usable_hbm_bytes"].origin


def _axes(axes: tuple[object, ...], slice_: Slice, counted: Conventions) -> str:
    joined = " × ".join(map(str, axes)) or "one chip, no axes"
    why = " (--ici ring takes every axis as a ring)" if counted.ici == "ring" else ""
    return f"{joined}{why}; one link one way: {slice_.chip.provenance['link_bytes_per_s'].words}"


def _context(counted: Conventions, given: str, otherwise: str) -> str:
    if given:
        return f"given by {given}"
    return "the prompt's length, as the book counts" if counted.prompt_is_context else otherwise
