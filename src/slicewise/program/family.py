"""What of a model the programs understand: the LLaMA family, from the arrays that it declares."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from slicewise.errors import InputError
from slicewise.program.numerics import Numerics
from slicewise.spec.arrays import Tensor
from slicewise.spec.model import Model

MATRICES = ("wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down")
OPTIONAL = ("attention_norm", "mlp_norm", "bq", "bk", "bv", "q_norm", "k_norm")
KIND = "full + dense"


@dataclass(frozen=True, kw_only=True)
class Llama:
    """A model of the LLaMA family: every layer full attention over grouped heads, and a gated MLP.

    Attributes:
        layer: the arrays of one layer, by name.
        outside: the arrays outside the layers, by name; without an LM head where it is the embedding.
        n_heads: N, query heads.
        n_kv_heads: K.
        head_dim: H.
        numerics: what shapes do not say.
    """

    name: str
    n_layers: int
    d_model: int
    d_ff: int
    vocab_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    layer: dict[str, Tensor] = field(repr=False)
    outside: dict[str, Tensor] = field(repr=False)
    numerics: Numerics = field(default_factory=Numerics)


def llama_of(model: Model, numerics: Numerics | None = None) -> Llama:
    """The model as the programs understand it.

    Raises:
        InputError: it is of another family; the message names what is not understood.
    """
    layer = {tensor.name: tensor for tensor in model.layers[0].weights}
    strange = [kind for kind in model.layers_by_kind if kind != KIND]
    if strange:
        named = [kind if " + " in kind else f"{kind} alone" for kind in strange]
        raise _other(model, f"it has layers of {' and of '.join(named)}")
    if any(each.weights != model.layers[0].weights for each in model.layers):
        raise _other(model, "its layers differ in their sizes")
    missing = [name for name in MATRICES if name not in layer]
    if missing:
        raise _other(model, f"its layers have no {' or '.join(missing)}")
    unknown = [name for name in layer if name not in (*MATRICES, *OPTIONAL)]
    if unknown:
        raise _other(model, f"its layers have {', '.join(unknown)}")
    mixer = model.mixers[0]
    if mixer.caches[0].value_dim != mixer.head_dim or mixer.caches[0].window != math.inf:
        raise _other(model, "its values are not as wide as its keys, or its attention has a window")
    outside = {tensor.name: tensor for tensor in model.embeddings() if tensor.stored}
    unknown = [name for name in outside if name not in ("embedding", "lm_head", "final_norm")]
    if unknown:
        raise _other(model, f"it has {', '.join(unknown)} outside its layers")
    return Llama(
        name=model.name,
        n_layers=model.n_layers,
        d_model=model.d_model,
        d_ff=model.d_ff,
        vocab_size=model.vocab_size,
        n_heads=mixer.n_heads,
        n_kv_heads=mixer.n_kv_heads,
        head_dim=mixer.head_dim,
        layer=layer,
        outside=outside,
        numerics=numerics or Numerics(),
    )


def _other(model: Model, why: str) -> InputError:
    return InputError(
        f"{model.name}: the program is that of the LLaMA family (full attention over heads, a gated MLP, norms before"
        f" each), and {why}; plan it without verify"
    )
