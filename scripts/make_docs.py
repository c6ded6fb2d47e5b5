"""Writes what the code can say itself: docs/formulas.md, and the output under every command in the pages.

    python scripts/make_docs.py              the pages; the same code gives the same text
    python scripts/make_docs.py --figures    docs/frontier.svg and docs/breakdown.svg, too (needs the extra `figures`)

A page shows a command and its output in a fence named `console`, one command a fence. Above it, a comment
`<!-- keep: words | other words -->` keeps only the lines of the output that hold some of those words, however they are
spaced; `...` marks where lines are left out. Words that no line holds are an error, so that a page cannot go on about
what is no longer printed.

Figures are not part of the pages: another version of the drawing library may place them differently, so that they are
drawn on request, and a test compares only what they say.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from types import ModuleType
from typing import Any

from slicewise.catalog.load import sources
from slicewise.cli.main import main as command_line
from slicewise.costs import collectives, decode, kv_cache, limits, memory, money, prefill, serving, weights
from slicewise.derive import Formula
from slicewise.planner.conventions import CHOICES, Conventions
from slicewise.planner.wiring import graph
from slicewise.units import show

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MODULES = (weights, kv_cache, memory, decode, collectives, prefill, serving, money, limits)
NOTHING = 1e-9
PLAIN = {"HOUR_S": "Seconds in an hour.", "MILLION": "A million."}

# --- Formulas: which function serves which quantity, in which setting -------------------------------------------------

Setting = tuple[Any, ...]
AXES: dict[str, tuple[Any, ...]] = {
    **CHOICES,
    "book": (False, True),
    "network": ("torus", "switch", "none"),
    "splits_batch": (True, False),
}
WORDS: dict[tuple[str, Any], str] = {
    ("book", True): "with `--book`",
    ("book", False): "without `--book`",
    ("network", "torus"): "on a TPU slice",
    ("network", "switch"): "on several GPUs",
    ("network", "none"): "on one chip",
    ("splits_batch", True): "where chips are left beyond the KV heads",
    ("splits_batch", False): "where no chips are left beyond the KV heads",
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
    """Every quantity of every graph that the planner can wire, in the order of the files."""
    found: dict[str, dict[Callable[..., Any], set[Setting]]] = {}
    for setting in product(*AXES.values()):
        named = dict(zip(AXES, setting, strict=True))
        is_book, network, splits = named.pop("book"), named.pop("network"), named.pop("splits_batch")
        counted = Conventions(**named, activations=not is_book, prefill_attention=not is_book)
        for name, formula in graph(counted, network, splits_batch=splits).formulas.items():
            found.setdefault(name, {}).setdefault(formula.function, set()).add(setting)
    ordered = sorted(found, key=lambda name: min(map(_place, found[name])))
    return [Entry(name, tuple(_variants(name, found[name]))) for name in ordered]


def _place(function: Callable[..., Any]) -> tuple[int, int]:
    modules = [module.__name__ for module in MODULES]
    return modules.index(function.__module__), function.__code__.co_firstlineno


def _variants(name: str, serving_it: dict[Callable[..., Any], set[Setting]]) -> Iterator[tuple[Formula, str]]:
    """Each function with the settings in words; what takes the most words is served "otherwise"."""
    cubes = {function: _cubes(settings) for function, settings in serving_it.items()}
    last = max(cubes, key=lambda function: (len(cubes[function]), _place(function)))
    for function in sorted(cubes, key=lambda function: (function is last, _place(function))):
        words = " or ".join(map(_words, cubes[function])) if len(cubes[function]) == 1 or function is not last else ""
        yield Formula(name, function), "" if len(cubes) == 1 else words or "otherwise"


def _cubes(settings: set[Setting]) -> list[tuple[frozenset[Any], ...]]:
    """The settings as few products of choices: those that differ along one axis only are joined."""
    cubes = [tuple(frozenset({value}) for value in setting) for setting in sorted(settings, key=str)]
    merged = True
    while merged:
        merged = False
        for i in range(len(AXES)):
            groups: dict[Any, frozenset[Any]] = {}
            for cube in cubes:
                rest = (*cube[:i], *cube[i + 1 :])
                groups[rest] = groups.get(rest, frozenset()) | cube[i]
            merged |= len(groups) < len(cubes)
            cubes = [(*rest[:i], values, *rest[i:]) for rest, values in groups.items()]
    return cubes


def _words(cube: tuple[frozenset[Any], ...]) -> str:
    said = []
    for (axis, values), chosen in zip(AXES.items(), cube, strict=True):
        if len(chosen) < len(values):
            flag = axis.replace("_", "-")
            said.append(" or ".join(WORDS.get((axis, v), f"with `--{flag} {v}`") for v in values if v in chosen))
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
        parts += [_entry(entry, known) for entry in found if entry.module == module.__name__]
    return "\n\n".join([*parts, _helpers(found), _constants(found), _documents()]) + "\n"


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
                return " ".join(str(text).split()) or PLAIN.get(name, "")
    return PLAIN.get(name, "")


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
WIDTH = 100


def run(command: str) -> str:
    """What a command prints, as where no terminal is: output and error together."""
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] != "slicewise":
        message = f"only slicewise is run in a `console` fence, not {words[0]}"
        raise ValueError(message)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
        command_line(words[1:])
    return printed.getvalue().strip("\n")


def with_outputs(text: str) -> str:
    """A page with the output under each command written again."""
    return FENCE.sub(_again, text)


def _again(match: re.Match[str]) -> str:
    command = match["command"].removeprefix("$ ")
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
