"""Shared by all tests: hypothesis' profile, and how hypothesis makes the package's own types."""

import math
from types import MappingProxyType

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from slicewise.catalog.load import chips, models
from slicewise.catalog.slices import standard_slices
from slicewise.planner.conventions import CHOICES, Conventions
from slicewise.planner.deployment import Deployment
from slicewise.spec.chip import Chip
from slicewise.spec.model import Model
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.spec.provenance import chosen
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Workload

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("repeatable")


@st.composite
def _made_up_models(draw: st.DrawFn) -> Model:
    n_kv_heads, group = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 16, 40])), draw(st.integers(1, 8))
    sizes = ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "head_dim", "vocab_size")
    return Model(
        name="made-up",
        provenance=MappingProxyType(dict.fromkeys(sizes, chosen("made up"))),
        n_layers=draw(st.integers(1, 128)),
        d_model=draw(st.integers(1, 128)) * 128,
        d_ff=draw(st.integers(1, 256)) * 128,
        n_heads=n_kv_heads * group,
        n_kv_heads=n_kv_heads,
        head_dim=draw(st.sampled_from([64, 80, 128, 256])),
        vocab_size=draw(st.integers(1, 2**18)),
        tied_embeddings=draw(st.booleans()),
        qkv_bias=draw(st.booleans()),
        out_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        norm_weights=draw(st.booleans()),
        attention_window=draw(st.just(math.inf) | st.integers(1, 2**16)),
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


@st.composite
def _deployments(draw: st.DrawFn) -> Deployment:
    slice_ = draw(st.from_type(Slice))
    dtypes = st.sampled_from(sorted(BYTES_PER_ELEMENT))
    return Deployment(
        model=draw(st.from_type(Model)),
        slice=slice_,
        precision=Precision(
            weights=draw(dtypes), kv=draw(dtypes), compute=draw(st.sampled_from(sorted(slice_.chip.flops_per_s)))
        ),
        workload=draw(st.from_type(Workload)),
        conventions=draw(st.from_type(Conventions)),
        mfu=draw(st.floats(0.05, 1.0)),
        price=draw(st.none() | st.sampled_from([quote for chip in chips().values() for quote in chip.prices])),
        params=draw(st.none() | st.floats(1e8, 1e12)),
    )


st.register_type_strategy(Chip, st.sampled_from(sorted(chips().values(), key=lambda chip: chip.name)))
st.register_type_strategy(Slice, st.from_type(Chip).flatmap(lambda chip: st.sampled_from(standard_slices(chip))))
st.register_type_strategy(Model, st.sampled_from(list(models().values())) | _made_up_models())
st.register_type_strategy(Workload, _workloads())
st.register_type_strategy(
    Conventions,
    st.builds(
        Conventions,
        **{name: st.sampled_from(words) for name, words in CHOICES.items()},
        memory_fraction=st.floats(0.5, 1.0),
        hbm_bytes_per_chip=st.none() | st.floats(1e9, 1e12),
        activations=st.booleans(),
        prefill_attention=st.booleans(),
    ),
)
st.register_type_strategy(Deployment, _deployments())
