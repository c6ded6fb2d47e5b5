"""Records: figures as printed become base units with their provenance."""

import pytest

from slicewise.catalog.load import chips, read_data, sources
from slicewise.catalog.records import ChipRecord, Quantity


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        (16, "GB", 16e9),
        (15.75, "GiB", 15.75 * 2**30),
        (8.2e11, "B/s", 8.2e11),
        (820, "GB/s", 8.2e11),
        (918, "TFLOP/s", 9.18e14),
        (393, "TOP/s", 3.93e14),
        (1.97e14, "FLOP/s", 1.97e14),
        (1, "us", 1e-6),
    ],
)
def test_a_figure_is_converted_once(value: float, unit: str, base: float) -> None:
    figure = Quantity(value=value, unit=unit, source="scaling-book-tpus", also="other elsewhere")
    assert figure.base == pytest.approx(base, rel=1e-15)
    assert figure.provenance(sources()).printed == f"{value:g} {unit}".replace("e+", "e")
    assert figure.provenance(sources()).note == "other elsewhere"


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(TypeError, match="hmb"):
        ChipRecord.read({**read_data("chips.toml")["v5e"], "hmb": 16})


def test_a_missing_key_is_refused() -> None:
    with pytest.raises(TypeError, match="title"):
        ChipRecord.read({key: value for key, value in read_data("chips.toml")["v5e"].items() if key != "title"})


def test_usable_memory_falls_back_to_the_nominal_and_says_so() -> None:
    b200 = chips()["b200"]
    assert b200.usable_hbm_bytes == b200.hbm_bytes == 192e9
    assert "not known" in b200.provenance["usable_hbm_bytes"].note


def test_a_gpus_share_of_the_network_is_that_of_its_node() -> None:
    h100 = chips()["h100"]
    assert h100.node_bytes_per_s == 4.0e11
    assert h100.dcn_bytes_per_s == 5.0e10
    assert "over 8 GPUs" in h100.provenance["dcn_bytes_per_s"].printed


def test_what_no_source_says_is_unknown() -> None:
    assert chips()["l40s"].node_bytes_per_s is None
    assert chips()["l40s"].dcn_bytes_per_s is None
    assert chips()["v6e"].prices == ()
