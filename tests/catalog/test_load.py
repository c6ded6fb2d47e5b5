"""Chips and models by their names: what is known is found, what is not is refused in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slicewise.catalog.load import chips, find_chip, load_model, model_aliases, models
from slicewise.errors import InputError, UnknownNameError
from slicewise.spec.chip import Chip
from slicewise.spec.model import Model

TINY = {
    "model_type": "llama",
    "num_attention_heads": 4,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "vocab_size": 256,
}


def test_chips_are_found_by_name_and_alias_in_any_case() -> None:
    for chip in chips().values():
        for name in (chip.name, *chip.aliases):
            assert find_chip(name) is find_chip(f" {name.upper()} ") is chip


def test_models_are_found_by_name_and_alias_in_any_case() -> None:
    for name, model in models().items():
        for known in (name, *model_aliases()[name]):
            assert load_model(known) == load_model(f" {known.upper()} ") == model


# Chip figures as How to Scale Your Model, ch. 2 and ch. 12, prints them; usable HBM as compilers and engines print it.
@pytest.mark.parametrize(
    ("name", "hbm", "usable_gib", "hbm_rate", "bf16", "int8", "link"),
    [
        ("v4", 32e9, 2 * 15.25, 1.2e12, 2.75e14, 2.75e14, 4.5e10),
        ("v5e", 16e9, 15.75, 8.2e11, 1.97e14, 3.94e14, 4.5e10),
        ("v5p", 96e9, 95.74, 2.8e12, 4.59e14, 9.18e14, 9.0e10),
        ("v6e", 32e9, 31.25, 1.6e12, 9.20e14, 1.84e15, 9.0e10),
        ("tpu7x", 192e9, 2 * 94.75, 7.4e12, 2.30e15, 4.61e15, 9.0e10),
        ("a100", 80e9, 79.2, 2.0e12, 3.1e14, 6.2e14, 3.0e11),
        ("h100", 80e9, 79.1, 3.35e12, 9.9e14, 2.0e15, 4.5e11),
        ("h200", 141e9, 139.8, 4.8e12, 9.9e14, 2.0e15, 4.5e11),
        ("b200", 192e9, None, 8.0e12, 2.3e15, 4.5e15, 9.0e11),
        ("mi300x", 192e9, None, 5.3e12, 1.307e15, 2.614e15, 4.48e11),
        ("l40s", 48e9, None, 8.64e11, 3.62e14, 7.33e14, 3.2e10),
    ],
)
def test_chips_have_the_published_figures(
    name: str, hbm: float, usable_gib: float | None, hbm_rate: float, bf16: float, int8: float, link: float
) -> None:
    chip = find_chip(name)
    assert chip.hbm_bytes == hbm
    assert chip.usable_hbm_bytes == (hbm if usable_gib is None else usable_gib * 2**30)
    assert chip.hbm_bytes_per_s == hbm_rate
    assert (chip.flops_per_s["bf16"], chip.flops_per_s["int8"], chip.link_bytes_per_s) == (bf16, int8, link)


def test_default_prices_are_those_of_chapter_8() -> None:
    defaults = {name: chip.prices[0].usd_per_chip_hour for name, chip in chips().items() if chip.prices}
    assert defaults == {"v5e": 1.2, "v5p": 4.2, "h100": 10.8, "a100": 1.39}


def test_a_model_passes_through() -> None:
    model = load_model("llama-3-8b")
    assert load_model(model) is model


def test_a_config_is_read_from_a_file_or_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY))
    from_folder, from_file = load_model(folder), load_model(str(folder / "config.json"))
    assert from_folder == from_file
    assert (from_folder.name, from_folder.n_layers, from_folder.head_dim) == ("tiny", 2, 16)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no config\.json"):
        load_model(tmp_path)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*absent\.json; check the path"):
        load_model(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("find", "name", "said"),
    [
        (find_chip, "v5x", "did you mean v"),
        (find_chip, "h10", "did you mean h100"),
        (find_chip, "abacus", "known: "),
        (load_model, "llama-3-80b", "did you mean llama-3-"),
        (load_model, "llama3-70", "llama3-70b"),
        (load_model, "", "MODEL is empty"),
        (load_model, "zzz", "or give the path of a config.json"),
    ],
)
def test_unknown_names_suggest(find: object, name: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        find(name)  # type: ignore[operator]
    assert said in str(refused.value)


ANY_NAME = st.text() | st.sampled_from([*chips(), *models()]).flatmap(
    lambda name: st.tuples(st.just(name), st.text(max_size=3)).map("".join)
)


@given(ANY_NAME)
@example("v5e\nv5p")
@example("x" * 5000)
def test_any_text_is_a_chip_or_an_unknown_name(name: str) -> None:
    try:
        assert isinstance(find_chip(name), Chip)
    except UnknownNameError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right


@given(ANY_NAME)
@example("~no-such-user")
@example("x" * 5000)
@example("a\0b")
@example("a\nb")
@example("a\nb.json")
@example("/")
@example("..")
def test_any_text_is_a_model_or_refused_in_one_line(name: str) -> None:
    try:
        assert isinstance(load_model(name), Model)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right
