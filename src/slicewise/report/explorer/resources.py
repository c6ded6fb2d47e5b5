"""One colour for each resource, everywhere: which there are, what they are called, and which a number belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """A resource's colours on one ground.

    Attributes:
        fill: of areas and lines, at least 3 : 1 against the ground, but for what is free.
        ink: of text, at least 4.5 : 1.
    """

    fill: str
    ink: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What times and bytes are spent on.

    Attributes:
        key: its name in the document.
        label: what it is called beside its colour.
        hover: what that means.
    """

    key: str
    label: str
    hover: str
    light: Ink
    dark: Ink


# The hues are Okabe-Ito's, which the colour-blind tell apart too; the dark ground takes them lighter. What is free has
# none: it is the ground that the rest lies on.
RESOURCES = (
    Resource(
        key="params", label="parameters", hover="Weights: kept on the chips, and read once in every step.",
        light=Ink(fill="#0072B2", ink="#0068A3"), dark=Ink(fill="#3D9BDC", ink="#5FB0E8"),
    ),
    Resource(
        key="kv", label="KV cache", hover="Keys and values of every token of every sequence, read in every step.",
        light=Ink(fill="#D55E00", ink="#B04E00"), dark=Ink(fill="#F0812F", ink="#F59A57"),
    ),
    Resource(
        key="flops", label="FLOPs", hover="Multiplying: matrices and attention.",
        light=Ink(fill="#009E73", ink="#007A59"), dark=Ink(fill="#1FBF90", ink="#3CCBA1"),
    ),
    Resource(
        key="network", label="network", hover="Collectives: what chips exchange within a step.",
        light=Ink(fill="#C06A99", ink="#A04A7C"), dark=Ink(fill="#D68DB6", ink="#E0A5C6"),
    ),
    Resource(
        key="activations", label="activations", hover="What a step keeps while it runs, at its peak.",
        light=Ink(fill="#B88400", ink="#8A6300"), dark=Ink(fill="#E69F00", ink="#EFB433"),
    ),
    Resource(
        key="free", label="free", hover="Memory that is granted and not used.",
        light=Ink(fill="#E4E2DD", ink="#5B5A63"), dark=Ink(fill="#35333D", ink="#A9A6B3"),
    ),
    Resource(
        key="overflow", label="too much", hover="More than the memory that is granted.",
        light=Ink(fill="#C1121F", ink="#B00020"), dark=Ink(fill="#FF6B6B", ink="#FF8A8A"),
    ),
    Resource(
        key="other", label="the rest", hover="Launches, norms, sequences: what a step takes beside the rest.",
        light=Ink(fill="#767676", ink="#5F5F5F"), dark=Ink(fill="#9A9A9A", ink="#B0B0B0"),
    ),
)  # fmt: skip
BY_KEY = {resource.key: resource for resource in RESOURCES}

_RULES = (
    (r"overhead|tokens_s$|small_core|waiting", "other"),
    (r"activation", "activations"),
    (r"free_bytes|unused_bytes", "free"),
    (r"ici|all_gather|all_to_all|gate_matmul_ici|network|handoff|dcn|link|hop_s", "network"),
    (r"(^|_)kv_|^cache|attended|attention(_core)?_s$", "kv"),
    (r"flop|matmul(_core)?_s|prefill_matmul|critical_batch|mfu", "flops"),
    (r"weight|param|experts_touched", "params"),
)
_MOST_NAMES = 4096
_WHOLE = re.compile(r"^(n_params|matmul_params|n_active_params|params_by_role)$")


@lru_cache(maxsize=_MOST_NAMES)
def resource_of(name: str) -> str | None:
    """The resource that a quantity is spent on, by its name; None where it is of none, or of several.

    >>> resource_of("param_load_s"), resource_of("kv_bytes"), resource_of("step_s")
    ('params', 'kv', None)
    """
    if _WHOLE.match(name):
        return "params"
    return next((key for rule, key in _RULES if re.search(rule, name)), None)


def to_dicts() -> list[dict[str, object]]:
    """The resources as JSON-ready data."""
    return [
        {
            "key": each.key,
            "label": each.label,
            "hover": each.hover,
            **{name: {"fill": ink.fill, "ink": ink.ink} for name, ink in (("light", each.light), ("dark", each.dark))},
        }
        for each in RESOURCES
    ]
