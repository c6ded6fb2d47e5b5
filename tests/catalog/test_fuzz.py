"""Configs damaged at random: each is refused in a line or read as a sane model, and refused where the damage matters.

`benchmarks/fuzz_configs.py` does the damage; here it runs for a few seconds, and, as a slow test, for longer.
"""

import importlib
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from slicewise.catalog.config import Config
from slicewise.catalog.families import FAMILIES

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
CONFIGS = ROOT / ".." / "shared" / "data" / "model_configs"
FEW, MANY = 4_000, 25_000


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("fuzz_configs")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def mutations(fuzzer: ModuleType) -> ModuleType:
    return sys.modules["_mutations"]


@pytest.fixture(scope="module")
def damage(fuzzer: ModuleType) -> ModuleType:
    return sys.modules["_damage"]


def small(fuzzer: ModuleType) -> list[Any]:
    """The first of the configs, whose keys nobody has looked at yet."""
    return [fuzzer.Subject(name, keys, ("head_dim", "num_experts")) for name, keys in fuzzer.SMALL.items()]


def test_small_configs_damaged_are_refused_or_sane(fuzzer: ModuleType) -> None:
    tally = fuzzer.fuzz(fuzzer.subjects([]), FEW, seed=1)
    assert not tally.wrong
    every = {kind for kind, _ in tally.counts}
    assert every >= {*fuzzer.KINDS, "whole answer", "file cut off", "file nested deeply", "large file", "long number"}
    refused = sum(count for (_, outcome), count in tally.counts.items() if outcome == fuzzer.REFUSED)
    assert FEW / 2 < refused < sum(tally.counts.values())


@pytest.mark.slow
def test_all_configs_damaged_are_refused_or_sane(fuzzer: ModuleType) -> None:
    folders = [CONFIGS] if CONFIGS.is_dir() else []
    tally = fuzzer.fuzz(fuzzer.subjects(folders), MANY, seed=2)
    assert not tally.wrong
    assert sum(tally.counts.values()) > MANY


def test_every_family_s_refusals_lead_to_a_config(fuzzer: ModuleType) -> None:
    # A refusal names the key that is missing: who gives one key after the other ends at a config that is read.
    lost = FAMILIES.keys() - fuzzer.made().keys()
    assert not lost, f"give {', '.join(sorted(lost))} values in benchmarks/_made_configs.py"
    assert len(fuzzer.SMALL) >= 12


# -- the fuzzer itself: it must notice a reader that is too kind -----------------------------------------------------


def too_kind(kept: Any) -> Any:
    """A reader of sizes that makes the best of what it finds."""

    def whole(self: Config, value: Any, name: str, least: int = 1) -> int:
        try:
            return kept(self, value, name, least)
        except Exception:
            return least

    return whole


def test_a_reader_that_takes_any_size_is_noticed(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Config, "whole", too_kind(Config.whole))
    tally = fuzzer.fuzz(small(fuzzer), 400, seed=1)
    assert any("negative: " in wrong and "was read; allowed: nothing" in wrong for wrong in tally.wrong)


def test_a_reader_that_overlooks_misspelt_keys_is_noticed(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for check in ("misspelt", "done"):
        monkeypatch.setattr(Config, check, lambda _: None)
    tally = fuzzer.fuzz(small(fuzzer), 1_000, seed=1)
    assert any("misspelt: " in wrong and "allowed: the model that it was" in wrong for wrong in tally.wrong)


def test_a_reader_that_breaks_is_noticed(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    found = small(fuzzer)
    monkeypatch.setattr(Config, "listed", lambda self, name, *_: self.keys[name] + [])
    tally = fuzzer.fuzz(found, 200, seed=1)
    assert any("KeyError" in wrong or "TypeError" in wrong for wrong in tally.wrong)


def test_an_answer_that_is_no_number_is_noticed(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer:
        def to_dict(self) -> dict[str, Any]:
            return {"free_bytes": -1.0, "lines": [{"n_bytes": -1.0, "share": math.nan}], "kv_bytes": -2.0}

    monkeypatch.setattr(fuzzer.slicewise, "memory", lambda *_, **__: Answer())
    outcome, _, wrong = fuzzer.answer(Path("config.json"), "a config")
    assert (outcome, wrong) == (fuzzer.OTHER, "memory: .lines.0.share, kv_bytes is no number that can be")


@pytest.mark.parametrize("message", ["two\nlines", "Traceback (most recent call last)", "x" * 5000])
def test_words_that_are_not_for_people_are_noticed(mutations: ModuleType, message: str) -> None:
    assert mutations.wrong_words(message)
    assert not mutations.wrong_words("config.json: hidden_size is 'x'; it must be a whole number of at least 1")


def test_what_matters_is_found_by_reading(mutations: ModuleType, fuzzer: ModuleType) -> None:
    subject = mutations.Subject("llama", fuzzer.SMALL["llama"])
    assert all(subject.matters((name,)) for name in ("hidden_size", "num_key_value_heads", "tie_word_embeddings"))
    assert not subject.matters(("rms_norm_eps",))
    nested = mutations.Subject("gemma3", fuzzer.SMALL["gemma3"])
    assert nested.matters(("text_config", "sliding_window"))
    assert nested.matters(("vision_config", "patch_size"))


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_done_in_one_place_and_leaves_the_config_as_it_was(
    mutations: ModuleType, damage: ModuleType, fuzzer: ModuleType, seed: int
) -> None:
    rng = random.Random(seed)
    for name, keys in fuzzer.SMALL.items():
        subject, before = mutations.Subject(name, keys, ("head_dim", "num_experts")), repr(keys)
        for kind in damage.KINDS:
            mutation = subject.mutation(kind, rng)
            assert repr(keys) == before
            if mutation is not None and kind not in ("misspelt", damage.FURTHER):
                changed = {key for key in keys if repr(mutation.keys.get(key, damage.GONE)) != repr(keys[key])}
                assert changed <= {mutation.path[0]}


def test_the_same_seed_does_the_same_damage(fuzzer: ModuleType) -> None:
    first, second = (fuzzer.fuzz(small(fuzzer), 300, seed=7) for _ in range(2))
    assert first.counts == second.counts


def test_the_script_prints_a_table_and_says_how_far_it_is(
    fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz_configs.py", "--mutations", "60"])
    monkeypatch.setattr(fuzzer, "QUIET_S", -1.0)
    monkeypatch.setattr(fuzzer, "LINE_S", -1.0)
    assert fuzzer.main() == 0
    said = capsys.readouterr()
    assert "| damage | refused | read, the same | read, another |" in said.out
    assert "0 of them should not have been." in said.out
    assert "60 of 60" in said.err
