"""What is found in a quantization config, before it becomes part of a model record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.config_keys import shown
from slicewise.catalog.quant_schemes import words
from slicewise.errors import InputError
from slicewise.spec.quantisation import Scheme

EVERY_LINEAR = ""
"""The pattern of a rule for every linear matrix."""
_KEPT = (
    r"\.weights_proj$",
    r"\.compressor\.(?:.*\.)?(?:kv_proj|gate_proj|wkv|wgate)$",
    r"\.routed_expert_(?:down|up)_proj$",
)
"""Linear matrices that published checkpoints keep in 16 bits without listing them: what weighs the heads of an indexer
and what compresses keys (DeepSeek, GLM), and what takes tokens to the width of the routed experts (Kimi K3)."""


@dataclass(kw_only=True)
class Found:
    """Rules and exceptions, as `slicewise.spec.quantisation.Quantisation` explains them."""

    rules: list[tuple[str, Scheme]]
    ignored: list[str] = field(default_factory=list)
    kv_dtype: str | None = None
    experts_only: bool = False
    method: str = ""

    def words(self) -> dict[str, Any]:
        """As a record holds it."""
        kept = _KEPT if any(pattern == EVERY_LINEAR for pattern, _ in self.rules) else ()
        return {
            "method": self.method,
            "rules": [[pattern, words(scheme)] for pattern, scheme in self.rules],
            "ignored": list(dict.fromkeys([*self.ignored, *kept])),
            **({"kv_dtype": self.kv_dtype} if self.kv_dtype else {}),
            **({"experts_only": True} if self.experts_only else {}),
        }


def names_of(part: Config, key: str) -> list[str]:
    """A list of names of modules; empty where the key is missing.

    Raises:
        InputError: it is no list, or holds what is no name.
    """
    names = part.listed(key) or []
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise InputError(f"{part.origin}: {key} holds {shown(strange[0])}; names of modules are text")
    return names
