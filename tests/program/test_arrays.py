"""Declared arrays: their bytes against the plan's count, padding, packing, and what is refused."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

from slicewise.costs.kv_cache import kv_elements_per_token
from slicewise.costs.weights import n_params
from slicewise.errors import InputError
from slicewise.program.arrays import (
    CACHE,
    CACHE_SCALES,
    DTYPES,
    SCALED,
    WEIGHT_SCALES,
    WEIGHTS,
    Array,
    Arrays,
    cache_arrays,
    checked_dtypes,
    pack,
    packed,
    padded,
    weight_arrays,
)
from slicewise.program.family import llama_of
from slicewise.spec.model import Model, dense_model
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.spec.tensors import caches, weight_tensors

MESHES = st.builds(lambda y, z: {"y": y, "z": z}, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3, 4]))
ONE = {"y": 1, "z": 1}
SIZES = st.fixed_dictionaries(
    {
        "n_layers": st.integers(1, 4),
        "d_model": st.integers(1, 64),
        "d_ff": st.integers(1, 200),
        "n_kv_heads": st.integers(1, 8),
        "head_dim": st.sampled_from([8, 16]),
        "vocab_size": st.integers(1, 300),
        "tied_embeddings": st.booleans(),
        "qkv_bias": st.booleans(),
        "norm_weights": st.booleans(),
    }
)
KEPT = st.sampled_from(sorted(DTYPES))


def made_up(sizes: Mapping[str, Any], group: int = 2) -> Model:
    return dense_model(name="made-up", **sizes, n_heads=sizes["n_kv_heads"] * group)


def all_arrays(model: Model, dtype: str, mesh: Mapping[str, int], *, scaled: bool = True) -> list[Array]:
    """Every array of the weights, a layer's as often as there are layers."""
    llama = llama_of(model)
    layer = packed(weight_arrays(llama.layer.values(), dtype, mesh, scaled=scaled))
    outside = weight_arrays(llama.outside.values(), dtype, mesh, scaled=scaled)
    return [*outside.values(), *(list(layer.values()) * llama.n_layers)]


def n_bytes(arrays: list[Array], line: str, mesh: Mapping[str, int]) -> float:
    """On all devices together."""
    return sum(array.bytes_per_device(mesh) for array in arrays if array.line == line) * math.prod(mesh.values())


def vectors(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.role in ("norm", "bias"))


@given(sizes=SIZES, group=st.integers(1, 4), dtype=KEPT)
def test_on_one_device_arrays_are_the_plans_parameters(sizes: dict[str, Any], group: int, dtype: str) -> None:
    model = made_up(sizes, group)
    element, narrow = BYTES_PER_ELEMENT[dtype], dtype in SCALED
    vector = 2.0 if narrow else element
    matrices = n_params(weight_tensors(model)) - vectors(model)
    assert n_bytes(all_arrays(model, dtype, ONE), WEIGHTS, ONE) == matrices * element + vectors(model) * vector


@given(sizes=SIZES, group=st.integers(1, 4), dtype=KEPT, mesh=MESHES)
def test_devices_together_hold_no_less_and_nothing_more_where_all_divides(
    sizes: dict[str, Any], group: int, dtype: str, mesh: dict[str, int]
) -> None:
    model, n_devices = made_up(sizes, group), math.prod(mesh.values())
    held = n_bytes([array for array in all_arrays(model, dtype, mesh) if not array.is_vector], WEIGHTS, mesh)
    matrices = (n_params(weight_tensors(model)) - vectors(model)) * BYTES_PER_ELEMENT[dtype]
    assert held >= matrices
    cut = (sizes["d_ff"], sizes["vocab_size"], sizes["n_kv_heads"] * sizes["head_dim"])
    divides = all(size % n_devices == 0 for size in cut)
    assert (held == matrices) is divides


@given(sizes=SIZES, dtype=KEPT, mesh=MESHES)
def test_norms_are_whole_on_every_device(sizes: dict[str, Any], dtype: str, mesh: dict[str, int]) -> None:
    norms = [array for array in all_arrays(made_up(sizes), dtype, mesh) if array.axes == ("",)]
    element = 2.0 if dtype in SCALED else BYTES_PER_ELEMENT[dtype]
    assert all(array.bytes_per_device(mesh) == sizes["d_model"] * element for array in norms)
    assert len(norms) == (2 * sizes["n_layers"] + 1) * sizes["norm_weights"]


@given(sizes=SIZES, dtype=st.sampled_from(SCALED))
def test_a_matrix_has_a_scale_a_column_and_the_embedding_one_a_row(sizes: dict[str, Any], dtype: str) -> None:
    model = made_up(sizes)
    arrays = all_arrays(model, dtype, ONE)
    scales = [array for array in arrays if array.line == WEIGHT_SCALES]
    assert all(array.dtype == "fp32" and len(array.shape) == 1 for array in scales)
    llama, heads = llama_of(model), model.n_heads + 2 * model.n_kv_heads
    layer = heads * model.head_dim + 2 * model.d_ff + 2 * model.d_model
    outside = model.vocab_size * len([name for name in llama.outside if name != "final_norm"])
    assert sum(array.shape[0] for array in scales) == model.n_layers * layer + outside


@given(sizes=SIZES, dtype=KEPT, mesh=MESHES)
def test_without_scales_arrays_are_as_declared(sizes: dict[str, Any], dtype: str, mesh: dict[str, int]) -> None:
    model = made_up(sizes)
    plain = all_arrays(model, dtype, mesh, scaled=False)
    assert {array.line for array in plain} == {WEIGHTS}
    assert plain == [array for array in all_arrays(model, dtype, mesh) if array.line == WEIGHTS]
    assert {array.dtype for array in plain if not array.is_vector} == {dtype}


@given(sizes=SIZES, dtype=KEPT, batch=st.integers(1, 8), slots=st.integers(1, 64), mesh=MESHES)
def test_caches_are_the_plans_elements(
    sizes: dict[str, Any], dtype: str, batch: int, slots: int, mesh: dict[str, int]
) -> None:
    model = made_up(sizes)
    arrays = list(cache_arrays(llama_of(model), dtype, batch, slots).values())
    elements = kv_elements_per_token(caches(model)) * batch * slots / model.n_layers
    assert n_bytes(arrays, CACHE, mesh) == pytest.approx(elements * BYTES_PER_ELEMENT[dtype])
    assert n_bytes(arrays, CACHE_SCALES, mesh) == pytest.approx(elements / model.head_dim * 2 * (dtype in SCALED))
    assert list(cache_arrays(llama_of(model), dtype, batch, slots, scaled=False)) == ["kv"]


@given(size=st.integers(0, 10**6), multiple=st.integers(1, 512))
def test_padding_is_to_the_next_multiple(size: int, multiple: int) -> None:
    found = padded(size, multiple)
    assert found % multiple == 0
    assert 0 <= found - size < multiple


@pytest.mark.parametrize("n_devices", [1, 2, 4])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_each_device_has_its_columns_of_every_part_side_by_side(n_devices: int, lead: tuple[int, ...]) -> None:
    parts = [np.arange(math.prod(lead) * width).reshape(*lead, width) + 1000 * width for width in (16, 8, 4)]
    found = np.split(np.asarray(pack(parts, n_devices)), n_devices, axis=-1)
    for device, columns in enumerate(found):
        own = [np.split(part, n_devices, axis=-1)[device] for part in parts]
        assert np.array_equal(columns, np.concatenate(own, axis=-1))


@given(sizes=SIZES, dtype=KEPT, mesh=MESHES)
def test_packing_keeps_every_column(sizes: dict[str, Any], dtype: str, mesh: dict[str, int]) -> None:
    plain: Arrays = weight_arrays(llama_of(made_up(sizes)).layer.values(), dtype, mesh)
    found = packed(plain)
    for parts, name in ((("wq", "wk", "wv"), "wqkv"), (("bq", "bk", "bv"), "bqkv")):
        for suffix in ("", "_scale"):
            own = [plain.pop(f"{part}{suffix}") for part in parts if f"{part}{suffix}" in plain]
            if own:
                joined = found.pop(f"{name}{suffix}")
                assert joined.shape == (*own[0].shape[:-1], sum(array.shape[-1] for array in own))
                assert (joined.dtype, joined.line) == (own[0].dtype, own[0].line)
    assert found == plain


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        (Precision(weights="fp4"), "--weights fp4: the program holds fp32, bf16, fp16, int8, fp8, int4"),
        (Precision(weights="nvfp4"), "--weights nvfp4: "),
        (Precision(kv="mxfp4"), "--kv mxfp4: "),
        (Precision(compute="fp8"), "--compute fp8: the program multiplies in bf16; leave --compute out"),
        (Precision(compute="int8"), "--compute int8: "),
        (Precision(weights="fp8", as_stored=True), "this checkpoint mixes; give one"),
    ],
)
def test_dtypes_that_are_not_understood_are_refused(precision: Precision, message: str) -> None:
    with pytest.raises(InputError) as refused:
        checked_dtypes(precision)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("compute", ["bf16", "fp32", "fp16"])
@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_with_arrays_is_taken(dtype: str, compute: str) -> None:
    checked_dtypes(Precision(weights=dtype, kv=dtype, compute=compute))
