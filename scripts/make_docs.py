"""Writes what the code can say itself: docs/formulas.md, and the output under every command in the pages.

    python scripts/make_docs.py              the pages; the same code gives the same text
    python scripts/make_docs.py --figures    docs/frontier.svg and docs/breakdown.svg, too (needs the extra `figures`)

A page shows a command and its output in a fence named `console`, one command a fence. Above it, a comment
`<!-- keep: words | other words -->` keeps only the lines of the output that hold some of those words, however they are
spaced; `...` marks where lines are left out. Words that no line holds are an error, so that a page cannot go on about
what is no longer printed. What `slicewise verify` prints is compiled anew, whatever was kept before, and left as it
stands where the TPU's compiler cannot be had. Below `<!-- families -->` stands every `model_type` that is read.

Figures are not part of the pages: another version of the drawing library may place them differently, so that they are
drawn on request, and a test compares only what they say.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from slicewise.catalog.families import FAMILIES
from slicewise.catalog.load import sources
from slicewise.cli.main import main as command_line
from slicewise.costs import (
    collectives,
    compiled,
    compiled_layered,
    compiled_prefill,
    decode,
    expected,
    experts,
    fitted,
    fitted_ranks,
    gathered_experts,
    hybrid_paging,
    kv_cache,
    layered_cache,
    layered_step,
    limits,
    memory,
    money,
    paging,
    prefill,
    ranks,
    serving,
    shared_prefill,
    spread_experts,
    weights,
)
from slicewise.derive import Formula
from slicewise.errors import InputError
from slicewise.planner.conventions import CHOICES, Conventions
from slicewise.planner.wiring import Traits, graph
from slicewise.units import show
from slicewise.verify.toolchain import find_compiler

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CALLED = (paging, hybrid_paging)
"""Formulas that no graph wires: the planner calls them for what an engine logs."""
PLAIN = (weights, kv_cache, memory, decode, collectives, prefill, expected, serving, money, limits)
MODULES = (
    *PLAIN,
    layered_cache,
    layered_step,
    experts,
    spread_experts,
    gathered_experts,
    ranks,
    shared_prefill,
    fitted,
    fitted_ranks,
    compiled,
    compiled_prefill,
    compiled_layered,
    *CALLED,
)
NOTHING = 1e-9
COMMON = {"HOUR_S": "Seconds in an hour.", "MILLION": "A million."}

# --- Formulas: which function serves which quantity, in which setting -------------------------------------------------

Setting = tuple[Any, ...]
AXES: dict[str, tuple[Any, ...]] = {
    **CHOICES,
    "book": (False, True),
    "reserve": (False, True),
    "network": ("torus", "switch", "none"),
    "splits_batch": (True, False),
    "is_layered": (False, True),
    "as_stored": (False, True),
    "has_ranks": (False, True),
    "has_experts": (False, True),
    "spreads_experts": (False, True),
    "gathers_experts": (False, True),
    "gathers": (True, False),
    "is_compiled": (False, True),
    "mfu_is_given": (False, True),
}
"""What decides which function serves a quantity, the plain case first."""
TOGETHER = (
    ("is_layered", "as_stored", "has_ranks", "has_experts", "spreads_experts", "gathers_experts"),
    ("network", "ici", "kv_split", "splits_batch", "spreads_experts", "gathers_experts", "gathers"),
    ("split", "kv_split", "has_ranks"),
    ("book", "reserve", "view", "is_layered", "has_experts", "is_compiled", "mfu_is_given"),
)
"""Axes that may decide about one quantity between them: all their combinations are tried, the others plain."""
WORDS: dict[tuple[str, Any], str] = {
    ("book", True): "with `--book`",
    ("book", False): "without `--book`",
    ("reserve", True): "where a reserve is kept (`--engine`, `--reserve`)",
    ("reserve", False): "without a reserve",
    ("network", "torus"): "on a TPU slice",
    ("network", "switch"): "on several GPUs",
    ("network", "none"): "on one chip",
    ("splits_batch", True): "where chips are left beyond the KV heads",
    ("splits_batch", False): "where no chips are left beyond the KV heads",
    ("is_layered", True): "where layers differ, with experts or with ranks",
    ("is_layered", False): "where all layers are alike, without experts or ranks",
    ("as_stored", True): "for weights as the checkpoint stores them",
    ("as_stored", False): "for weights of one dtype",
    ("has_ranks", True): "with ranks (`--tp`, `--pp`, `--dp`, `--ep`, `--engine`)",
    ("has_ranks", False): "without ranks",
    ("has_experts", True): "for mixtures of experts",
    ("has_experts", False): "without experts",
    ("spreads_experts", True): "where whole experts are spread over chips (`--ep`)",
    ("spreads_experts", False): "where experts are cut, not spread",
    ("gathers_experts", True): "where experts are cut over data-parallel groups",
    ("gathers_experts", False): "where one group has all experts, or they are spread",
    ("gathers", True): "where a tensor-parallel group has several chips",
    ("gathers", False): "with `--tp 1`",
    ("is_compiled", True): "where a TPU's compiler was asked",
    ("mfu_is_given", True): "with `--mfu`",
    ("mfu_is_given", False): "without `--mfu`",
    ("is_compiled", False): "where figures are fitted to measurements",
}


@dataclass(frozen=True)
class Entry:
    """A quantity, and every function that may compute it with the settings in which it does."""

    name: str
    variants: tuple[tuple[Formula, str], ...]

    @property
    def module(self) -> str:
        """Where its functions live."""
        return self.variants[0][0].function.__module__


def entries() -> list[Entry]:
    """Every quantity of every graph that the planner can wire, and the formulas of pages, in the order of the files."""
    wired = [Entry(name, tuple(_variants(name, axes))) for name, axes in _axes_by_name().items()]
    called = [
        Entry(function.__name__, ((Formula(function.__name__, function), ""),))
        for module in CALLED
        for function in _functions(module)
    ]
    return sorted([*wired, *called], key=lambda entry: min(_place(formula.function) for formula, _ in entry.variants))


def _served(setting: Mapping[str, Any]) -> Mapping[str, Formula]:
    """The formulas of one setting, axes that it does not name being plain."""
    words = {axis: setting.get(axis, values[0]) for axis, values in AXES.items()}
    is_book, keeps = words.pop("book"), words.pop("reserve")
    counted = Conventions(
        **{axis: words.pop(axis) for axis in CHOICES},
        reserve_bytes_per_chip=float(keeps),
        activations=not is_book,
        prefill_attention=not is_book,
    )
    return graph(counted, Traits(**words)).formulas


def _axes_by_name() -> dict[str, tuple[str, ...]]:
    """The axes that decide about each quantity."""
    found: dict[str, set[str]] = {}
    for together in TOGETHER:
        for values in product(*(AXES[axis] for axis in together)):
            setting = dict(zip(together, values, strict=True))
            here = _served(setting)
            for axis in together:
                there = _served({**setting, axis: AXES[axis][0]})
                for name in here | there:
                    deciding = found.setdefault(name, set())
                    if _function(here, name) is not _function(there, name):
                        deciding.add(axis)
    return {name: tuple(axis for axis in AXES if axis in deciding) for name, deciding in found.items()}


def _function(served: Mapping[str, Formula], name: str) -> Callable[..., Any] | None:
    return served[name].function if name in served else None


def _place(function: Callable[..., Any]) -> tuple[int, int]:
    modules = [module.__name__ for module in MODULES]
    return modules.index(function.__module__), function.__code__.co_firstlineno


def _variants(name: str, axes: tuple[str, ...]) -> Iterator[tuple[Formula, str]]:
    """Each function with its settings in words; what takes the most words is served "otherwise"."""
    settings: dict[Callable[..., Any] | None, set[Setting]] = {}
    for values in product(*(AXES[axis] for axis in axes)):
        function = _function(_served(dict(zip(axes, values, strict=True))), name)
        settings.setdefault(function, set()).add(values)
    settings.pop(None, None)
    every = _cubes(set().union(*settings.values()), len(axes))
    only = [words for words in (_words(cube, axes) for cube in every) if words]
    cubes = {function: _cubes(found, len(axes)) for function, found in settings.items() if function}
    last = max(cubes, key=lambda function: (len(cubes[function]), _place(function)))
    for function in sorted(cubes, key=lambda function: (function is last, _place(function))):
        words = "; or ".join(_words(cube, axes) for cube in cubes[function])
        if function is last and len(cubes[function]) > 1:
            words = ", ".join(["otherwise", *only])
        yield Formula(name, function), words


def _cubes(settings: set[Setting], n_axes: int) -> list[tuple[frozenset[Any], ...]]:
    """The settings as few products of choices: those that differ along one axis only are joined."""
    cubes = [tuple(frozenset({value}) for value in setting) for setting in sorted(settings, key=str)]
    merged = True
    while merged:
        merged = False
        for i in range(n_axes):
            groups: dict[Any, frozenset[Any]] = {}
            for cube in cubes:
                rest = (*cube[:i], *cube[i + 1 :])
                groups[rest] = groups.get(rest, frozenset()) | cube[i]
            merged |= len(groups) < len(cubes)
            cubes = [(*rest[:i], values, *rest[i:]) for rest, values in groups.items()]
    return cubes


def _words(cube: tuple[frozenset[Any], ...], axes: tuple[str, ...]) -> str:
    said = []
    for axis, chosen in zip(axes, cube, strict=True):
        if len(chosen) < len(AXES[axis]):
            flag = axis.replace("_", "-")
            said.append(" or ".join(WORDS.get((axis, v), f"with `--{flag} {v}`") for v in AXES[axis] if v in chosen))
    return ", ".join(said).replace(" or with ", " or ")


# --- The page of formulas -------------------------------------------------------------------------------------------

HEAD = """\
<!-- Written by `make docs` (scripts/make_docs.py) from the formulas themselves. Do not edit. -->

# Formulas

Every number that slicewise prints is computed by the functions listed here, and `--explain NAME` replays them at one
point. This page is written by reading those same functions. A name in a formula is another formula of this page or a
term of [terms.md](terms.md). Everything is in base units: s, B (bytes), FLOP, USD. *No unit* means a count or a ratio.

Where a quantity is computed differently under different conventions, each way is listed with the flags, or the
hardware, that select it. [terms.md](terms.md#conventions) says what the flags mean.
"""


def formulas_page() -> str:
    """The text of docs/formulas.md."""
    found = entries()
    known = {entry.name for entry in found}
    files = [f"- [{_title(module)}](#{_title(module)}): {_first_line(module)}" for module in MODULES]
    parts = [HEAD.strip(), "\n".join(files)]
    for module in MODULES:
        parts += [f"## {_title(module)}", f"`{module.__name__}`. {_paragraphs(inspect.getdoc(module) or '')}"]
        parts += _elsewhere(module, found)
        parts += [_entry(entry, known) for entry in found if entry.module == module.__name__]
    return "\n\n".join([*parts, _helpers(found), _constants(found), _documents()]) + "\n"


def _elsewhere(module: ModuleType, found: list[Entry]) -> list[str]:
    """The quantities that a module computes in another way, and that stand with those of another module."""
    names = [
        f"[{entry.name}](#{entry.name})"
        for entry in found
        if entry.module != module.__name__
        and any(formula.function.__module__ == module.__name__ for formula, _ in entry.variants)
    ]
    return [f"Its ways to compute these are listed with the plain ones: {', '.join(names)}."] if names else []


def _title(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _first_line(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").split("\n")[0]


def _entry(entry: Entry, known: set[str]) -> str:
    parts = [f"### {entry.name}"]
    for formula, words in entry.variants:
        unit = f"[{formula.unit}]" if formula.unit else "[no unit]"
        lead = f"{words[0].upper()}{words[1:]}: " if words else ""
        is_another = formula.function.__name__ in known - {entry.name}
        text = formula.function.__name__ if is_another else formula.text
        parts += [f"{lead}{formula.meaning}. {unit}", f"```text\n{entry.name} = {text}\n```"]
        if formula.notes and not is_another:
            parts.append(_paragraphs(formula.notes))
    return "\n\n".join(parts)


def _paragraphs(text: str) -> str:
    """Wrapped lines joined; `Neglects:`, `Valid:` and `Source:` each on their own, sources as links."""
    joined = re.sub(r"\n(?!\n|Neglects:|Valid:|Source:)(?<!\n\n)", " ", text)
    blocks = [block for block in joined.split("\n") if block.strip()]
    return "\n\n".join(re.sub(r"^Source: (.*)$", _linked, block) for block in blocks)


def _linked(match: re.Match[str]) -> str:
    return "Source: " + ", ".join(f"[{key.strip()}](#sources)" for key in match[1].split(",")) + "."


def _helpers(found: list[Entry]) -> str:
    """Functions of the same files that other formulas call; their bodies are put into the texts above."""
    served = {formula.function for entry in found for formula, _ in entry.variants}
    own = [function for module in MODULES for function in _functions(module) if function not in served]
    rows = [
        f"| `{formula.name}({', '.join(formula.parameters)})` | {formula.meaning} | {formula.unit or 'no unit'} |"
        f" `{formula.text}` |"
        for formula in (Formula(function.__name__, function) for function in own)
    ]
    return "\n".join(["## Helpers", "", "| function | meaning | unit | text |", "| :-- | :-- | :-- | :-- |", *rows])


def _functions(module: ModuleType) -> list[Callable[..., Any]]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def _constants(found: list[Entry]) -> str:
    """The constants that the texts above name."""
    values: dict[str, Any] = {}
    for entry in found:
        for formula, _ in entry.variants:
            scope = formula.function.__globals__
            names = [node.id for node in ast.walk(formula.expression) if isinstance(node, ast.Name)]
            values |= {name: scope[name] for name in names if isinstance(scope.get(name), int | float | tuple)}
    rows = [f"| `{name}` | {_value(value)} | {_said(name)} |" for name, value in sorted(values.items())]
    return "\n".join(["## Constants", "", "| name | value | meaning |", "| :-- | :-- | :-- |", *rows])


def _value(value: float | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return show(value) if value > NOTHING else f"{value:g}"


def _said(name: str) -> str:
    """The sentence below a constant where it is set."""
    for module in [module for key, module in sorted(sys.modules.items()) if key.startswith("slicewise.")]:
        body = ast.parse(inspect.getsource(module)).body
        for statement, after in pairwise(body):
            if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
                text = (
                    after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
                )
                return " ".join(str(text).split()) or COMMON.get(name, "")
    return COMMON.get(name, "")


def _documents() -> str:
    rows = [f"- {key}: [{source.title}]({source.url}), read {source.date}" for key, source in sources().items()]
    cited = {key for module in MODULES for key in re.findall(r"[a-z-]+", inspect.getsource(module))}
    return "\n".join(["## Sources", "", *(row for row, key in zip(rows, sources(), strict=True) if key in cited)])


# --- Commands and their output --------------------------------------------------------------------------------------

FENCE = re.compile(
    r"(?P<head>(?:<!-- keep: (?P<keep>[^\n]*) -->\n)?```console\n)"
    r"(?P<command>\$ [^\n]*(?:(?<=\\)\n[^\n]*)*)\n.*?^```$",
    re.MULTILINE | re.DOTALL,
)
FAMILY_LIST = re.compile(r"^(?P<mark><!-- families -->)\n(?:`.*\n)*", re.MULTILINE)
WIDTH, PROSE_WIDTH = 100, 120


def run(command: str) -> str:
    """What a command prints in the project's folder where no terminal is: output and error together."""
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] != "slicewise":
        message = f"only slicewise is run in a `console` fence, not {words[0]}"
        raise ValueError(message)
    printed = io.StringIO()
    outputs = (contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed))
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(patch.dict(os.environ, SLICEWISE_CACHE=kept))
        for context in (contextlib.chdir(ROOT), *outputs, contextlib.suppress(SystemExit)):
            stack.enter_context(context)
        command_line(words[1:])
    return printed.getvalue().strip("\n")


def has_tpu_compiler() -> bool:
    """Whether `slicewise verify` can compile for a TPU here."""
    try:
        return find_compiler(None, 1).platform == "tpu"
    except InputError:
        return False


def with_outputs(text: str) -> str:
    """A page with the output under each command, and the list of families, written again."""
    return FAMILY_LIST.sub(_families, FENCE.sub(_again, text))


def _families(match: re.Match[str]) -> str:
    words = textwrap.fill(" ".join(f"`{name}`" for name in sorted(FAMILIES)), PROSE_WIDTH, break_on_hyphens=False)
    return f"{match['mark']}\n{words}\n"


def _again(match: re.Match[str]) -> str:
    command = match["command"].removeprefix("$ ")
    if command.startswith("slicewise verify") and not has_tpu_compiler():
        return match[0]
    lines = run(command).split("\n")
    if match["keep"] is not None:
        lines = list(_kept(lines, [words.strip() for words in match["keep"].split(" | ")], command))
    return "\n".join([f"{match['head']}{match['command']}", *lines, "```"])


def _kept(lines: list[str], wanted: list[str], command: str) -> Iterable[str]:
    """The lines that hold wanted words, with what belongs to them: wrapped words, a table's rule, a blank between."""
    plain = [" ".join(line.split()) for line in lines]
    missing = [words for words in wanted if not any(words in line for line in plain)]
    if missing:
        message = f"no line holds {missing}, printed by: {command}"
        raise ValueError(message)
    keep = [any(words in line for words in wanted) for line in plain]
    for i, (before, line) in enumerate(pairwise(lines), 1):
        is_wrapped = line.startswith("  ") and len(before) + 1 + len(line.split()[0]) > WIDTH
        is_rule = set(line) == {"─"}
        is_gap = not line and i + 1 < len(lines) and keep[i + 1]
        keep[i] |= keep[i - 1] and (is_wrapped or is_rule or is_gap)
    for i, line in enumerate(lines):
        if keep[i]:
            yield line
        elif i == 0 or keep[i - 1]:
            yield "..."


# --- What is written ------------------------------------------------------------------------------------------------


def pages() -> dict[Path, str]:
    """Every page as it should be."""
    own = DOCS / "formulas.md"
    written = [path for path in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))) if path != own]
    return {own: formulas_page(), **{path: with_outputs(path.read_text(encoding="utf-8")) for path in written}}


def figures() -> dict[str, tuple[Any, dict[str, Any]]]:
    """The figures by file name: the frontier that they draw, and the picture."""
    from slicewise.planner.frontier import frontier  # noqa: PLC0415 - only for figures
    from slicewise.report.views.frontier import frontier_specs  # noqa: PLC0415

    found = frontier(
        "llama-3-70b",
        slice="v5e:4x4",
        weights="int8",
        kv="int8",
        book=True,
        params="70e9",
        context=[2048, 4096, 8192, 16384, 32768, 65536],
    )
    return {f"{name}.svg": (found, spec) for name, spec in frontier_specs(found).items()}


def main(words: list[str]) -> None:
    """Write the pages, and on request the figures."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    if words == ["--figures"]:
        from slicewise.report.figures import write_figures  # noqa: PLC0415 - only for figures

        for name, (found, spec) in figures().items():
            write_figures(DOCS / name, found.columns, {name: spec})
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main(sys.argv[1:])
