"""Damages configs at random, and counts what is refused, what is read, and what should not have been.

A damaged config must be refused in one line, or read as a sane model; where the damaged key matters, refused. Some of
the damaged ones are asked for a whole answer of `memory`, too. Run: python benchmarks/fuzz_configs.py [--mutations N]
[--seed N] [FOLDER of configs ...]; without a folder, the small configs beside this file, and one of each family.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _damage import KINDS
from _made_configs import made
from _mutations import OTHER, REFUSED, SAME, Mutation, Subject, judge, wrong_words
from _small_configs import SMALL

import slicewise
from slicewise.catalog.hf import read_config
from slicewise.errors import InputError

SLICE = "h200:8"
ASKED_EVERY = 50
"""Of so many damaged configs, one is asked for a whole answer, and each that is read as another model."""
QUIET_S, LINE_S = 2.0, 0.5
LARGE_MB, MB = 100, b" " * 2**20
DEEP = 100_000


@dataclass
class Tally:
    """What was found.

    Attributes:
        counts: by kind and outcome.
        wrong: what should not have been, in sentences.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, outcome: str, what: str, wrong: str) -> None:
        """Count one."""
        self.counts[kind, outcome] += 1
        if wrong:
            self.wrong.append(f"{what}: {wrong}")


def subjects(folders: list[Path]) -> list[Subject]:
    """The configs of some folders, the small ones, and one of each family."""
    paths = sorted(path for folder in folders for path in folder.glob("*.json"))
    made_up = {f"{family}, made": keys for family, keys in made().items()}
    configs = {**SMALL, **made_up, **{path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}}
    levels = [level for keys in configs.values() for level in (keys, keys.get("text_config", {}))]
    names = tuple(sorted({name for level in levels for name in level}))
    return [Subject(name, keys, names) for name, keys in configs.items()]


def fuzz(found: list[Subject], n_mutations: int, seed: int, *, asked_every: int = ASKED_EVERY) -> Tally:
    """Damage configs, so many times in all, each kind as often as any other."""
    rng, tally, kinds = random.Random(seed), Tally(), list(KINDS)  # noqa: S311 - repeatable, not secret
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        for number in progress(n_mutations):
            kind = kinds[number % len(kinds)]
            subject, mutation = draw(found, kind, rng)
            verdict = judge(subject, mutation)
            tally.add(kind, verdict.outcome, f"{subject.name}: {mutation}", verdict.wrong)
            if verdict.outcome == OTHER or number % asked_every == 0:
                path.write_text(json.dumps(mutation.keys), encoding="utf-8")
                tally.add("whole answer", *answer(path, f"{subject.name}: {mutation}"))
        cut_off(found, rng, path, tally)
        huge(path, tally)
    return tally


def draw(found: list[Subject], kind: str, rng: random.Random) -> tuple[Subject, Mutation]:
    """A config that has a key which may be damaged so, and the damaged one."""
    while True:
        subject = rng.choice(found)
        mutation = subject.mutation(kind, rng)
        if mutation is not None:
            return subject, mutation


def answer(path: Path, what: str) -> tuple[str, str, str]:
    """The outcome of a whole answer about a config, what was asked, and what is wrong with it."""
    try:
        numbers = slicewise.memory(path, slice=SLICE).to_dict()
    except InputError as refusal:
        return REFUSED, what, wrong_words(str(refusal))
    except Exception as error:
        return REFUSED, what, f"memory: {type(error).__name__}: {str(error)[:80]}"
    strange = [name for name, value in leaves(numbers) if isinstance(value, float) and not math.isfinite(value)]
    # What is free may be below zero, and is so in a line of its own, too.
    plain = {name: value for name, value in numbers.items() if isinstance(value, int | float) and name != "free_bytes"}
    strange += [name for name, value in plain.items() if value < 0]
    return OTHER, what, f"memory: {', '.join(strange)} is no number that can be" if strange else ""


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word of an answer, with its name."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{name}.{key}")
    else:
        yield name, value


def cut_off(found: list[Subject], rng: random.Random, path: Path, tally: Tally) -> None:
    """Files that end too early, and files that repeat a key with another value."""
    for subject in found:
        text = json.dumps(subject.keys)
        damaged = {
            "file cut off": text[: rng.randrange(len(text))],
            "key there twice": f'{{"hidden_size": 1, "hidden_size": 2, {text[1:]}',
            "file nested deeply": text[:-1] + ', "of": ' + "[" * DEEP + "]" * DEEP + "}",
        }
        for kind, content in damaged.items():
            path.write_text(content, encoding="utf-8")
            tally.add(kind, *of_file(path, f"{subject.name}: {kind}"))


def huge(path: Path, tally: Tally) -> None:
    """A file far larger than any config, and a number longer than any."""
    with path.open("wb") as file:
        for _ in range(LARGE_MB):
            file.write(MB)
    tally.add("large file", *of_file(path, f"a file of {LARGE_MB} MB"))
    path.write_text(json.dumps(SMALL["llama"])[:-1] + f', "hidden_size": {"9" * DEEP}}}', encoding="utf-8")
    tally.add("long number", *of_file(path, "a number of many digits"))


def of_file(path: Path, what: str) -> tuple[str, str, str]:
    """The outcome of reading a file that must be refused."""
    try:
        read_config(path)
    except InputError as refusal:
        return REFUSED, what, wrong_words(str(refusal))
    except Exception as error:
        return REFUSED, what, f"{type(error).__name__}: {str(error)[:80]}"
    return SAME, what, "was read"


def progress(total: int) -> Iterator[int]:
    """Count up to a total, with a line of how far it is where it takes long."""
    begun = said = time.monotonic()
    for number in range(total):
        yield number
        now = time.monotonic()
        if now - begun > QUIET_S and now - said > LINE_S:
            said = now
            print(f"\r{number + 1:,} of {total:,}", end="", file=sys.stderr, flush=True)
    if said > begun:
        print("\r" + " " * (2 * len(f"{total:,}") + len(" of ")) + "\r", end="", file=sys.stderr)


def table(tally: Tally) -> str:
    """The counts, and what is wrong."""
    kinds = dict.fromkeys(kind for kind, _ in tally.counts)
    rows = [
        f"| {kind} | " + " | ".join(f"{tally.counts[kind, o]:,}" for o in (REFUSED, SAME, OTHER)) + " |"
        for kind in kinds
    ]
    lines = ["| damage | refused | read, the same | read, another |", "| :-- | --: | --: | --: |", *rows]
    return "\n".join([*lines, f"\n{len(tally.wrong)} of them should not have been.", *tally.wrong])


def main() -> int:
    """Print the table; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = subjects(asked.folders)
    begun = time.monotonic()
    tally = fuzz(found, asked.mutations, asked.seed)
    print(f"{asked.mutations:,} damaged copies of {len(found)} configs in {time.monotonic() - begun:.1f} s\n")
    print(table(tally))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
