"""What transforms each token in a layer: a dense MLP, or a mixture of experts, each with its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slicewise.errors import InputError
from slicewise.spec.arrays import Tensor, matrix, under, vector
from slicewise.spec.mixers import USUAL, Extra, extras

LATENT_PLACES = {"in": "fc1_latent_proj", "out": "fc2_latent_proj"}
"""What most checkpoints call the projections to the experts' width and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """One kind of feed-forward.

    Attributes:
        kind: dense, experts or linear map.
        d_ff: F, width of the dense MLP or of one expert.
        n_experts: E, experts to choose from; 0 for a dense MLP.
        n_active: k, experts that a token is sent to.
        active_d_ff: width that one token passes through: F, or k experts and the shared ones.
        weights: its arrays, of one layer.
    """

    kind: str
    d_ff: int
    n_experts: int = 0
    n_active: int = 0
    active_d_ff: int
    weights: tuple[Tensor, ...]


def dense(
    *,
    d_model: int,
    d_ff: int,
    gated: bool = True,
    bias: bool = False,
    module: str = "mlp",
    places: Mapping[str, str] = USUAL,
    more: Sequence[Extra] = (),
) -> FeedForward:
    """A dense MLP: gate, up and down, or up and down alone.

    Args:
        d_model: D.
        d_ff: F.
        gated: there is a gate matrix.
        bias: each matrix has a bias.
        module: where it is in a checkpoint, below the layer.
        places: where gate, up and down are below the module, if not in gate_proj, up_proj and down_proj.
        more: further small arrays.
    """
    if d_ff < 1:
        raise InputError(f"d_ff is {d_ff}; it must be at least 1")
    weights = _mlp(("d_model", d_model), ("d_ff", d_ff), "mlp", module, gated=gated, places=places)
    if bias:
        weights += [vector(f"b_{name}", ("d_ff", d_ff), "bias", "ff") for name in (["gate"] if gated else []) + ["up"]]
        weights.append(vector("b_down", ("d_model", d_model), "bias"))
    return FeedForward(kind="dense", d_ff=d_ff, active_d_ff=d_ff, weights=(*weights, *extras(more, module)))


def linear_map(*, d_model: int, bias: bool = False, module: str = "mlp", more: Sequence[Extra] = ()) -> FeedForward:
    """One matrix in the place of the MLP.

    Args:
        d_model: D.
        bias: the matrix has a bias.
        module: where the matrix is in a checkpoint, below the layer.
        more: further small arrays.
    """
    sides = ("d_model", d_model), ("d_model", d_model)
    weights = [matrix("w_linear", *sides, ("embed", ""), "mlp", module=module)]
    if bias:
        weights.append(vector("b_linear", sides[1], "bias"))
    return FeedForward(kind="linear map", d_ff=d_model, active_d_ff=d_model, weights=(*weights, *extras(more)))


def experts(
    *,
    d_model: int,
    d_ff: int,
    n_experts: int,
    n_active: int,
    shared_d_ff: int = 0,
    gated: bool = True,
    bias: bool = False,
    latent_dim: int = 0,
    router: bool = True,
    module: str = "mlp",
    shared_module: str = "shared_experts",
    router_module: str = "gate",
    expert_module: str = "experts.{expert}",
    places: Mapping[str, str] = USUAL,
    more: Sequence[Extra] = (),
) -> FeedForward:
    """A mixture of experts: a router, routed experts, and shared ones that every token passes through.

    Args:
        d_model: D.
        d_ff: width of one expert.
        n_experts: E.
        n_active: k, experts that a token is sent to.
        shared_d_ff: width of the shared experts together; 0 where there are none.
        gated: experts have a gate matrix.
        bias: experts' matrices and the router have biases.
        latent_dim: width that tokens are projected to before the routed experts; 0 where they are not.
        router: the router's matrix is counted; a book's exercise may leave it out.
        module: where all of it is in a checkpoint, below the layer; "" where its parts are the layer's.
        shared_module: where the shared experts are below that.
        router_module: where the router is below that.
        expert_module: where an expert is below that.
        places: where gate, up and down are below an expert, if not in gate_proj, up_proj and down_proj; and where the
            projections to the experts' width and back are below all of it, under "in" and "out".
        more: further small arrays.

    Raises:
        InputError: more experts are active than there are.
    """
    if not 1 <= n_active <= n_experts or d_ff < 1:
        raise InputError(
            f"{n_active} of {n_experts} experts of width {d_ff}; at least 1, and no more than there are, must be active"
        )
    width, inner, hidden = ("d_model", d_model), ("d_model", d_model), ("d_ff", d_ff)
    weights = (
        []
        if not router
        else [
            matrix(
                "router", width, ("n_experts", n_experts), ("embed", ""), "router", module=under(module, router_module)
            )
        ]
    )
    if latent_dim:
        inner, ways = ("latent_dim", latent_dim), {**LATENT_PLACES, **places}
        weights += [
            matrix("latent_in", width, inner, ("embed", ""), "mlp", module=under(module, ways["in"])),
            matrix("latent_out", inner, width, ("", "embed"), "mlp", module=under(module, ways["out"])),
        ]
    count = ("n_experts", n_experts)
    routed = under(module, expert_module)
    for tensor in _mlp(inner, hidden, "experts", routed, gated=gated, places=places, prefix="expert_"):
        weights.append(_of_experts(tensor, count, n_active))
        if bias:
            side, axis = tensor.dims[1], tensor.axes[1]
            flat = vector(f"{tensor.name}_bias", side, "bias", axis if axis == "ff" else "")
            weights.append(_of_experts(flat, count, n_active))
    if bias:
        weights.append(vector("router_bias", count, "bias"))
    if shared_d_ff:
        shared = ("shared_d_ff", shared_d_ff)
        weights += _mlp(
            width, shared, "shared_experts", under(module, shared_module), gated=gated, places=places, prefix="shared_"
        )
    return FeedForward(
        kind="experts",
        d_ff=d_ff,
        n_experts=n_experts,
        n_active=n_active,
        active_d_ff=n_active * d_ff + shared_d_ff,
        weights=(*weights, *extras(more, module)),
    )


def _mlp(
    width: tuple[str, int],
    hidden: tuple[str, int],
    role: str,
    module: str,
    *,
    gated: bool,
    places: Mapping[str, str],
    prefix: str = "w_",
) -> list[Tensor]:
    def put(name: str, rows: tuple[str, int], columns: tuple[str, int], axes: tuple[str, str]) -> Tensor:
        place = under(module, places.get(name, f"{name}_proj"))
        return matrix(f"{prefix}{name}", rows, columns, axes, role, module=place)

    wide = [put(name, width, hidden, ("embed", "ff")) for name in (["gate"] if gated else []) + ["up"]]
    return [*wide, put("down", hidden, width, ("ff", "embed"))]


def _of_experts(tensor: Tensor, count: tuple[str, int], n_active: int) -> Tensor:
    return Tensor(
        name=tensor.name,
        dims=(count, *tensor.dims),
        axes=("experts", *tensor.axes),
        role=tensor.role,
        n_active=n_active,
        module=tensor.module,
    )
