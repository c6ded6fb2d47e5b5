"""The documents of `catalog`: models, chips, slices and prices, with their sources."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from slicewise.catalog.load import chips, model_aliases, models, prices, sources
from slicewise.catalog.slices import google_name, standard_slices
from slicewise.costs.kv_cache import kv_elements_per_token
from slicewise.costs.layered_cache import kv_bytes_per_token, kv_other_bytes_per_token
from slicewise.costs.weights import n_active_params, n_params
from slicewise.report.document import Document, Heading, Items, Line, Table
from slicewise.spec.chip import Chip
from slicewise.spec.model import Model
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.spec.provenance import Provenance
from slicewise.spec.tensors import caches, weight_tensors
from slicewise.units import plain, show


def model_rows() -> list[dict[str, Any]]:
    """Every model's counts, layers by kind, cache, limit and source."""
    names = model_aliases()
    return [{"model": name, "aliases": list(names[name]), **_model_row(model)} for name, model in models().items()]


def _model_row(model: Model) -> dict[str, Any]:
    tensors, kept = weight_tensors(model), caches(model)
    fact = model.provenance[""]
    per_token = kv_bytes_per_token(
        kv_elements_per_token(kept), BYTES_PER_ELEMENT["bf16"], kv_other_bytes_per_token(kept)
    )
    return {
        "n_params": n_params(tensors),
        "n_active_params": n_active_params(tensors),
        "tower_params": sum(model.towers.values()),
        "n_layers": model.n_layers,
        "layers": dict(model.layers_by_kind),
        "d_model": model.d_model,
        "d_ff": model.d_ff,
        "n_heads": model.n_heads,
        "n_kv_heads": model.n_kv_heads,
        "head_dim": model.head_dim,
        "n_experts": model.n_experts,
        "n_active_experts": model.n_active,
        "vocab_size": model.vocab_size,
        "weight_dtype": model.quantisation.dtype if model.quantisation else model.checkpoint_dtype,
        "kv_bytes_per_token": per_token,
        "kv_window_tokens": sorted({int(cache.window) for cache in kept if cache.window != math.inf}),
        "kv_state_bytes": sum(cache.n_layers * cache.state_bytes for cache in kept),
        "max_context_tokens": plain(model.max_context_tokens),
        "left_out": list(model.left_out),
        "source": fact.document,
        "source_key": fact.source.key if fact.source else "",
    }


def chip_rows() -> list[dict[str, Any]]:
    """Every chip's facts in base units, each as printed and with its source."""
    return [
        {
            "chip": chip.name,
            "title": chip.title,
            "aliases": list(chip.aliases),
            "hbm_bytes": chip.hbm_bytes,
            "usable_hbm_bytes": chip.usable_hbm_bytes,
            "hbm_bytes_per_s": chip.hbm_bytes_per_s,
            "flops_per_s": dict(chip.flops_per_s),
            "link_bytes_per_s": chip.link_bytes_per_s,
            "hop_s": chip.hop_s,
            "dcn_bytes_per_s": chip.dcn_bytes_per_s,
            "facts": {key: _fact(fact) for key, fact in chip.provenance.items()},
        }
        for chip in chips().values()
    ]


def slice_rows() -> list[dict[str, Any]]:
    """Every standard slice: chips, hosts, axes and Google's name."""
    return [
        {
            "slice": slice_.name,
            "n_chips": slice_.n_chips,
            "n_hosts": slice_.n_hosts,
            "n_devices": slice_.n_chips * chip.devices_per_chip,
            "axes": [str(axis) for axis in slice_.axes] or [str(slice_.domain or "one chip")],
            "google_name": google_name(slice_),
            "source": chip.provenance["shapes"].document,
        }
        for chip in chips().values()
        for slice_ in standard_slices(chip)
    ]


def price_rows() -> list[dict[str, Any]]:
    """Every quote; the first of a chip is its default."""
    return [
        {
            "chip": chip,
            "usd_per_chip_hour": quote.usd_per_chip_hour,
            "provider": quote.provider,
            "region": quote.region,
            "tier": quote.tier,
            "date": quote.date,
            "is_default": index == 0,
            "source": quote.provenance.document,
            "source_key": quote.provenance.source.key if quote.provenance.source else "",
        }
        for chip, quotes in prices().items()
        for index, quote in enumerate(quotes)
    ]


def catalog_document(what: str) -> Document:
    """The table of models, chips, slices or prices."""
    return {"models": _models, "chips": _chips, "slices": _slices, "prices": _prices}[what]()


ROWS = {"models": model_rows, "chips": chip_rows, "slices": slice_rows, "prices": price_rows}
"""What can be listed, and its JSON."""


def _fact(fact: Provenance) -> Mapping[str, str]:
    return {"printed": fact.printed, "note": fact.note, "source": fact.document}


PLAIN_LAYERS = "full + dense"
"""The layers that most models have, and that need no words."""


def _models() -> Document:
    header = ["model", "parameters", "active", "layers", "KV/token", "", "weights", "context"]
    found = model_rows()
    rows = [
        [
            row["model"],
            f"{row['n_params']:,}",
            "all" if row["n_active_params"] == row["n_params"] else f"{row['n_active_params']:,}",
            f"{row['n_layers']:,}",
            f"{row['kv_bytes_per_token']:,.0f}",
            _bounded(row),
            row["weight_dtype"],
            "-" if row["max_context_tokens"] is None else f"{row['max_context_tokens']:,}",
        ]
        for row in found
    ]
    layers = [f"{row['model']}: {_layers(row)}" for row in found if list(row["layers"]) != [PLAIN_LAYERS]]
    left_out = [f"{row['model']}: {' '.join(row['left_out'])}" for row in found if row["left_out"]]
    names = [f"{row['model']}: {', '.join(row['aliases'])}" for row in found if row["aliases"]]
    return [
        Heading("Models"),
        Line(
            "KV/token: bytes of a token in bf16, over all layers; w: some layers keep the tokens of a window only; s:"
            " some keep a state that does not grow. Weights: the narrowest dtype of the checkpoint."
        ),
        Table("", header, rows, left=(0, 5, 6)),
        Items(f"Layers, where they are not all {PLAIN_LAYERS}", layers),
        *([Items("Not counted", left_out)] if left_out else []),
        Items("Other names; the first is the repository whose config.json was read (--json: where and when)", names),
    ]


def _layers(row: Mapping[str, Any]) -> str:
    """The layers of each kind, with their windows and experts."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in row["layers"].items())
    windows = " and ".join(f"{window:,}" for window in row["kv_window_tokens"])
    more = [f"windows of {windows} tokens"] if windows else []
    if row["n_experts"]:
        more.append(f"{row['n_active_experts']} of {row['n_experts']} experts a token")
    return "; ".join([kinds, *more])


def _bounded(row: Mapping[str, Any]) -> str:
    """Where the cache does not grow by that much for ever, or is not all there is."""
    return "w" * bool(row["kv_window_tokens"]) + "s" * bool(row["kv_state_bytes"])


def _chips() -> Document:
    header = ["chip", "HBM", "usable", "HBM B/s", "bf16", "int8", "fp8", "fp4", "link B/s", "hop", "leaves the slice"]
    rows = [
        [
            chip.name,
            show(chip.hbm_bytes, "B"),
            _printed(chip, "usable_hbm_bytes"),
            show(chip.hbm_bytes_per_s, "B/s"),
            *[
                show(chip.flops_per_s[d], "FLOP/s", 4) if d in chip.flops_per_s else "-"
                for d in ("bf16", "int8", "fp8", "fp4")
            ],
            show(chip.link_bytes_per_s, "B/s"),
            show(chip.hop_s, "s"),
            "-" if chip.dcn_bytes_per_s is None else f"{show(chip.dcn_bytes_per_s, 'B/s')}/chip",
        ]
        for chip in chips().values()
    ]
    notes = [
        f"{chip.name} {key}: {fact.words} [{fact.source.key if fact.source else 'none'}]"
        for chip in chips().values()
        for key, fact in chip.provenance.items()
        if key != "shapes"
    ]
    names = [f"{chip.name}: {chip.title}; {', '.join(chip.aliases) or 'no alias'}" for chip in chips().values()]
    blocks: Document = [Heading("Chips, per chip"), Table("", header, rows), Items("Names", names)]
    return [*blocks, Items("Facts as printed", notes), _documents("")]


def _slices() -> Document:
    header = ["slice", "chips", "hosts", "devices", "axes", "Google's name"]
    rows = [
        [
            row["slice"],
            f"{row['n_chips']:,}",
            f"{row['n_hosts']:,}",
            f"{row['n_devices']:,}",
            " × ".join(row["axes"]),
            row["google_name"],
        ]
        for row in slice_rows()
    ]
    found = [f"{chip.name}: {chip.provenance['shapes'].document}" for chip in chips().values()]
    return [Heading("Standard slices"), Table("", header, rows, left=(0, 4, 5)), Items("Sources", found)]


def _prices() -> Document:
    header = ["chip", "USD/chip-hour", "provider", "region", "tier", "date", "default", "source"]
    rows = [
        [
            row["chip"],
            f"{row['usd_per_chip_hour']:g}",
            row["provider"],
            row["region"],
            row["tier"],
            row["date"],
            "yes" if row["is_default"] else "",
            row["source_key"],
        ]
        for row in price_rows()
    ]
    found = list(dict.fromkeys(f"{row['source_key']}: {row['source']}" for row in price_rows()))
    title = Heading("Prices (the first quote of a chip is its default)")
    return [title, Table("", header, rows, left=(0, 2, 3, 4, 5, 6, 7)), Items("Sources", found)]


def _printed(chip: Chip, key: str) -> str:
    return chip.provenance[key].printed


def _documents(*prefixes: str) -> Items:
    found = [f"{key}: {source}" for key, source in sources().items() if key.startswith(prefixes)]
    return Items("Sources", found)
