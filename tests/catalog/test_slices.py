"""Slices by the names that people use, and every bad name refused in one line."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import google_name, load_slice, standard_slices
from slicewise.errors import InputError
from slicewise.spec.topology import Slice


# Names count TensorCores on v4, v5p and TPU7x, chips on v5e and v6e; TPU7x has two devices a chip. Hosts of four chips.
# https://github.com/GoogleCloudPlatform/cluster-toolkit/issues/6128, https://github.com/vllm-project/tpu-inference/issues/903
@pytest.mark.parametrize(
    ("name", "topology", "n_chips", "n_hosts", "n_devices"),
    [
        ("v5p-8", "v5p:2x2x1", 4, 1, 4),
        ("v5p-16", "v5p:2x2x2", 8, 2, 8),
        ("v4-8", "v4:2x2x1", 4, 1, 4),
        ("v4-2048", "v4:8x8x16", 1024, 256, 1024),
        ("v5litepod-8", "v5e:2x4", 8, 1, 8),
        ("v5e-8", "v5e:2x4", 8, 1, 8),
        ("v5litepod-64", "v5e:8x8", 64, 16, 64),
        ("v6e-8", "v6e:2x4", 8, 1, 8),
        ("v6e-256", "v6e:16x16", 256, 64, 256),
        ("tpu7x:2x2x1", "tpu7x:2x2x1", 4, 1, 8),
        ("tpu7x 2x2x1", "tpu7x:2x2x1", 4, 1, 8),
        ("tpu7x-8", "tpu7x:2x2x1", 4, 1, 8),
        ("tpu7x-standard-4t", "tpu7x:2x2x1", 4, 1, 8),
        ("ct5lp-hightpu-8t", "v5e:2x4", 8, 1, 8),
        ("ct6e-standard-4t", "v6e:2x2", 4, 1, 4),
        ("ct5p-hightpu-4t", "v5p:2x2x1", 4, 1, 4),
        ("ct4p-hightpu-4t", "v4:2x2x1", 4, 1, 4),
        ("tpu-v5-lite-podslice:4x4", "v5e:4x4", 16, 4, 16),
        ("h100:8", "h100:8", 8, 1, 8),
        ("h100-8", "h100:8", 8, 1, 8),
        ("a100-80g:16", "a100:16", 16, 2, 16),
        ("h100:3", "h100:3", 3, 1, 3),
        ("8xH100", "h100:8", 8, 1, 8),
        ("4 x a100-80gb", "a100:4", 4, 1, 4),
        ("h100:96", "h100:96", 96, 12, 96),
        ("v5e:16", "v5e:4x4", 16, 4, 16),
    ],
)
def test_names_mean_chips_hosts_and_devices(
    name: str, topology: str, n_chips: int, n_hosts: int, n_devices: int
) -> None:
    slice_ = load_slice(name)
    assert (slice_.name, slice_.n_chips, slice_.n_hosts) == (topology, n_chips, n_hosts)
    assert slice_.n_chips * slice_.chip.devices_per_chip == n_devices


@pytest.mark.parametrize(
    ("either", "order"),
    [("v5e:4x2", "v5e:2x4"), ("v5e:16x8", "v5e:8x16"), ("v5p:8x4x4", "v5p:4x4x8"), ("v4:1x2x2", "v4:2x2x1")],
)
def test_topologies_are_taken_in_either_order(either: str, order: str) -> None:
    assert load_slice(either) == load_slice(order)
    assert load_slice(either).name == order


@given(...)
def test_every_standard_slice_is_found_by_its_own_name(slice_: Slice) -> None:
    assert load_slice(slice_.name) == slice_
    assert load_slice(slice_.name.upper()) == slice_
    assert load_slice(slice_) is slice_


@given(...)
def test_googles_name_leads_back_to_as_many_chips(slice_: Slice) -> None:
    name = google_name(slice_)
    assert not name or load_slice(name).n_chips == slice_.n_chips


def test_standard_slices_go_up() -> None:
    for name in ("v4", "v5e", "v5p", "v6e", "tpu7x", "h100", "l40s"):
        sizes = [slice_.n_chips for slice_ in standard_slices(find_chip(name))]
        assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v5e:3x3", "v5e has no 3x3; standard slices: 1x1, 2x2, 2x4"),
        ("v5e:0", "at least 1 chip"),
        ("v5e-3", "no standard v5e slice has 3 chips; offered: 1, 4, 8"),
        ("v5p-7", "v5p names count TensorCores, 2 a chip; 7 is not whole chips"),
        ("v5e", "write chip and topology, such as v5e:"),
        ("v5e:", "write chip and topology, such as v5e:"),
        ("v5e:4x", "write chip and topology, such as v5e:"),
        ("v5:4x4", "unknown chip 'v5': did you mean"),
        ("v9-8", "unknown chip 'v9-8'"),
        ("h100:12", "no standard h100 slice has 12 chips; offered: 1, 2, 4, 8, 16, 32, 64; any up to 8, whole nodes"),
        ("l40s:16", "no standard l40s slice has 16 chips; offered: 1, 2, 4, 8; any up to 8"),
        ("", "write chip and topology, such as v5e:4x4"),
    ],
)
def test_bad_names_are_refused_with_the_fix(name: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        load_slice(name)
    assert said in str(refused.value)


CHIP = st.sampled_from(["v5e", "v5p", "v4", "tpu7x", "h100", "v5litepod", "ct5lp", "ct5lp-hightpu"])
NEARLY = st.tuples(CHIP, st.sampled_from([":", "-", " ", "x"]), st.text("0123456789x²٣-:t ", max_size=8)).map("".join)


@given(st.text() | NEARLY)
@example("v5e-²")
@example("v5e:²")
@example("v5e:2x" + "9" * 5000)
@example("v5e-" + "9" * 5000)
@example("v5e:" + "9" * 5000)
@example("ct5lp-hightpu-" + "9" * 5000 + "t")
@example("v5e:4x4\n")
@example("v5e:4\nx4")
def test_any_text_is_a_slice_or_refused_in_one_line(name: Any) -> None:
    try:
        assert load_slice(name).n_chips >= 1
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right
