"""Shared by all tests: hypothesis' profile, how hypothesis makes the package's own types, and devices for jax."""

import math
import os
import signal
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.vendor.pretty import for_type_by_name

from slicewise.catalog.load import chips, models
from slicewise.catalog.slices import standard_slices
from slicewise.planner.conventions import CHOICES, Conventions
from slicewise.planner.deployment import Deployment
from slicewise.planner.engines import ENGINES, Engine
from slicewise.spec.arrays import vector
from slicewise.spec.chip import Chip
from slicewise.spec.feed_forward import FeedForward, dense, experts
from slicewise.spec.feed_forward import linear_map as linear_feed_forward
from slicewise.spec.latent import latent_attention
from slicewise.spec.legality import legal_layouts
from slicewise.spec.mixers import Mixer, attention, linear_map
from slicewise.spec.model import Layer, Model, dense_model
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.spec.provenance import chosen
from slicewise.spec.quantisation import Quantisation, Scheme
from slicewise.spec.ranks import Ranks
from slicewise.spec.recurrences import recurrence
from slicewise.spec.sparse import block_sparse_attention
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Workload

# jax reads these when a test first imports it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()

# A shell's background job ignores Ctrl-C, and so would the programs that tests start and stop with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("repeatable")
# Written out, a model is as long as its layers are many, and a chip as its sources.
for _name in ("Model", "Chip"):
    for_type_by_name(
        f"slicewise.spec.{_name.lower()}", _name, lambda named, printer, _: printer.text(f"<{named.name}>")
    )

MADE_UP = MappingProxyType({"": chosen("made up")})
KV_HEADS, GROUPS, HEAD_DIMS = st.sampled_from([1, 2, 3, 4, 5, 8, 16, 40]), st.integers(1, 8), [64, 80, 128, 256]
WIDTHS = st.integers(1, 128).map(lambda n: n * 128)


@st.composite
def _made_up_models(draw: st.DrawFn) -> Model:
    n_kv_heads, group = draw(KV_HEADS), draw(GROUPS)
    return dense_model(
        name="made-up",
        provenance=MADE_UP,
        n_layers=draw(st.integers(1, 128)),
        d_model=draw(WIDTHS),
        d_ff=draw(st.integers(1, 256)) * 128,
        n_heads=n_kv_heads * group,
        n_kv_heads=n_kv_heads,
        head_dim=draw(st.sampled_from(HEAD_DIMS)),
        vocab_size=draw(st.integers(1, 2**18)),
        tied_embeddings=draw(st.booleans()),
        qkv_bias=draw(st.booleans()),
        out_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        norm_weights=draw(st.booleans()),
        attention_window=draw(st.just(math.inf) | st.integers(1, 2**16)),
    )


@st.composite
def _heads(draw: st.DrawFn, d_model: int) -> dict[str, Any]:
    n_kv_heads, head_dim = draw(KV_HEADS), draw(st.sampled_from(HEAD_DIMS))
    return {
        "d_model": d_model, "n_heads": n_kv_heads * draw(GROUPS), "n_kv_heads": n_kv_heads, "head_dim": head_dim,
    }  # fmt: skip


@st.composite
def _windowed(draw: st.DrawFn, d_model: int) -> Mixer:
    """Attention over heads: full or windowed, values of their own width, the keys or an earlier layer's read again."""
    return attention(
        **draw(_heads(d_model)),
        window=draw(st.just(math.inf) | st.integers(1, 2**16)),
        chunked=draw(st.booleans()),
        value_dim=draw(st.sampled_from([0, 0, 64, 192])),
        gated=draw(st.booleans()),
        shared_kv=draw(st.booleans()),
        earlier_kv=draw(st.integers(0, 4)) == 4,
        qkv_bias=draw(st.booleans()),
    )


@st.composite
def _latent(draw: st.DrawFn, d_model: int) -> Mixer:
    """A latent that all heads share, read in full or where an indexer chooses."""
    return latent_attention(
        d_model=d_model,
        n_heads=draw(st.sampled_from([8, 16, 64, 128])),
        q_lora_rank=draw(st.sampled_from([512, 1536])),
        kv_lora_rank=draw(st.sampled_from([256, 512])),
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        value_dim=draw(st.sampled_from([128, 192])),
        index_heads=draw(st.sampled_from([0, 64])),
        index_head_dim=128,
        index_tokens=draw(st.integers(1, 2**13)),
    )


@st.composite
def _sparse(draw: st.DrawFn, d_model: int) -> Mixer:
    """Attention over heads that reads the blocks that an indexer chose."""
    tokens = draw(st.integers(1, 2**13))
    return block_sparse_attention(**draw(_heads(d_model)), index_heads=4, index_head_dim=128, index_tokens=tokens)


@st.composite
def _recurrent(draw: st.DrawFn, d_model: int) -> Mixer:
    """A state of fixed size."""
    n_heads, head_dim = draw(st.sampled_from([4, 16, 64])), draw(st.sampled_from([64, 128]))
    inner = n_heads * head_dim
    return recurrence(
        form=draw(st.sampled_from(["linear", "state-space"])),
        n_heads=n_heads,
        head_dim=head_dim,
        state_elements=inner * 128,
        conv_elements=3 * inner,
        matrices=(("in_proj", [d_model, 2 * inner], "state_space"),),
        out=("out_proj", [inner, d_model], "state_space"),
        more=(("conv", [inner, 4], "other"),),
    )


@st.composite
def _feed_forwards(draw: st.DrawFn, d_model: int) -> FeedForward:
    kind, bias, gated = (
        draw(st.sampled_from(["dense", "experts", "experts", "linear"])),
        *draw(st.tuples(st.booleans(), st.booleans())),
    )
    if kind == "linear":
        return linear_feed_forward(d_model=d_model)
    d_ff = draw(st.integers(1, 64)) * 128
    if kind == "dense":
        return dense(d_model=d_model, d_ff=d_ff, gated=gated, bias=bias)
    n_experts = draw(st.sampled_from([1, 2, 8, 60, 64, 128, 256]))
    return experts(
        d_model=d_model,
        d_ff=d_ff,
        n_experts=n_experts,
        n_active=draw(st.integers(1, min(n_experts, 16))),
        shared_d_ff=draw(st.sampled_from([0, 0, 512, 2048])),
        gated=gated,
        bias=bias,
        latent_dim=draw(st.sampled_from([0, 0, 256])),
    )


_SCHEMES = (
    Scheme(dtype="fp8", block=(128, 128)),
    Scheme(dtype="int8", block=(0, 1)),
    Scheme(dtype="int4", block=(128, 1), scale_bytes=2.0, zero_point_bits=4.0),
    Scheme(dtype="fp4", block=(16, 1), scale_bytes=1.0, tensor_bytes=4.0),
)


@st.composite
def _layered_models(draw: st.DrawFn) -> Model:
    """Layers of up to three kinds in a pattern that comes again and again; the first one keeps something."""
    d_model = draw(WIDTHS)
    norm = vector("norm", ("d_model", d_model), "norm")
    keeping = _windowed(d_model) | _latent(d_model) | _sparse(d_model) | _recurrent(d_model)
    mixing, forward = st.none() | keeping | st.just(linear_map(d_model=d_model)), st.none() | _feed_forwards(d_model)
    first = draw(keeping.filter(lambda mixer: all(not cache.reread_elements_per_token for cache in mixer.caches)))
    pattern = [(first, draw(_feed_forwards(d_model))), *draw(st.lists(st.tuples(mixing, forward), max_size=2))]
    kinds = [Layer(mixer=mixer, feed_forward=feed, norms=(norm,)) for mixer, feed in pattern]
    layers = [layer for layer in kinds for _ in range(draw(st.integers(1, 4)))] * draw(st.integers(1, 8))
    quantised = st.builds(
        Quantisation,
        method=st.just("made up"),
        rules=st.sampled_from(_SCHEMES).map(lambda scheme: (("", scheme),)),
        experts_only=st.booleans(),
    )
    return Model(
        name=f"made-up of {' and '.join(dict.fromkeys(layer.kind for layer in layers))}",
        d_model=d_model,
        vocab_size=draw(st.integers(1, 2**18)),
        layers=tuple(layers),
        tied_embeddings=draw(st.booleans()),
        outside=draw(st.sampled_from([(), (replace(norm, name="final_norm"),)])),
        towers=MappingProxyType(draw(st.sampled_from([{}, {}, {"vision tower": 400_000_000}]))),
        quantisation=draw(st.none() | quantised),
        rope_table=(draw(st.sampled_from([0, 131_072])), 128),
        provenance=MADE_UP,
    )


@st.composite
def _workloads(draw: st.DrawFn) -> Workload:
    prompt, output = draw(st.integers(1, 2**17)), draw(st.integers(1, 2**12))
    context_is_set = draw(st.booleans())
    return Workload(
        prompt_tokens=prompt,
        output_tokens=output,
        context_tokens=prompt if context_is_set else prompt + output / 2,
        capacity_context_tokens=prompt if context_is_set else prompt + output,
        context_is_set=context_is_set,
    )


def _legal(model: Model, n_chips: int, *, as_stored: bool) -> st.SearchStrategy[Ranks | None]:
    """Weights cut evenly over the whole slice, or one of the legal layouts of ranks."""
    planned = model if as_stored else replace(model, quantisation=None)
    found = legal_layouts(planned, n_chips)
    return st.none() | st.sampled_from(found) if found else st.none()


@st.composite
def _deployments(draw: st.DrawFn) -> Deployment:
    slice_, model = draw(st.from_type(Slice)), draw(st.from_type(Model))
    dtypes = st.sampled_from(sorted(BYTES_PER_ELEMENT))
    as_stored = model.quantisation is not None and draw(st.booleans())
    ranks = draw(_legal(model, slice_.n_chips, as_stored=as_stored))
    return Deployment(
        model=model,
        slice=slice_,
        precision=Precision(
            weights=model.quantisation.dtype if as_stored and model.quantisation else draw(dtypes),
            kv=draw(dtypes),
            compute=draw(st.sampled_from(sorted(slice_.chip.flops_per_s))),
            as_stored=as_stored,
        ),
        workload=draw(st.from_type(Workload)),
        conventions=draw(st.from_type(Conventions)),
        mfu=draw(st.floats(0.05, 1.0)),
        price=draw(st.none() | st.sampled_from([quote for chip in chips().values() for quote in chip.prices])),
        # A count can be given for a dense model that is cut evenly: its vocabulary's, at least.
        params=None
        if ranks or model.n_experts
        else draw(st.none() | st.floats(model.vocab_size * model.d_model, 1e12)),
        ranks=ranks,
        engine=draw(st.none() | st.sampled_from(ENGINES).map(lambda name: Engine(name=name))) if ranks else None,
    )


st.register_type_strategy(Chip, st.sampled_from(sorted(chips().values(), key=lambda chip: chip.name)))
st.register_type_strategy(Slice, st.from_type(Chip).flatmap(lambda chip: st.sampled_from(standard_slices(chip))))
st.register_type_strategy(Model, st.sampled_from(list(models().values())) | _made_up_models() | _layered_models())
st.register_type_strategy(Workload, _workloads())
st.register_type_strategy(
    Conventions,
    st.builds(
        Conventions,
        **{name: st.sampled_from(words) for name, words in CHOICES.items()},
        memory_fraction=st.floats(0.5, 1.0),
        hbm_bytes_per_chip=st.none() | st.floats(1e9, 1e12),
        reserve_bytes_per_chip=st.sampled_from([0.0, 0.0, 5e8]),
        activations=st.booleans(),
        prefill_attention=st.booleans(),
    ),
)
st.register_type_strategy(Deployment, _deployments())
