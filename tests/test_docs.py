"""The pages: what they say is what the code does, and every name that it uses is explained in them."""

import doctest
import importlib.util
import inspect
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from slicewise.catalog.families import FAMILIES
from slicewise.catalog.families.llama import llama
from slicewise.cli.main import COMMANDS, app
from slicewise.cli.main import main as command_line

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def _make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_docs"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make_docs = _make_docs()


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    """A page without its fences."""
    return re.sub(r"^```.*?^```$", "", _text(page), flags=re.MULTILINE | re.DOTALL)


# --- Freshness --------------------------------------------------------------------------------------------------------


COMPILED_PAGE = pytest.param(DOCS / "verify.md", marks=pytest.mark.xla)
"""Its outputs are compiled anew, which takes a minute."""


@pytest.mark.parametrize(
    "page", [*(page for page in PAGES if page.name != "verify.md"), COMPILED_PAGE], ids=lambda page: page.name
)
def test_page_is_what_make_docs_writes(page: Path) -> None:
    fresh = make_docs.formulas_page() if page.name == "formulas.md" else make_docs.with_outputs(_text(page))
    assert _text(page) == fresh, "run `make docs`, and read what it changed"


@pytest.mark.parametrize("name", ["frontier.svg", "breakdown.svg"])
def test_figure_says_what_a_fresh_drawing_says(name: str) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    _, spec = make_docs.figures()[name]
    drawn, stored = vl_convert.vegalite_to_svg(spec), _text(DOCS / name)
    assert _said(stored) == _said(drawn), "run `python scripts/make_docs.py --figures`"


def _said(svg: str) -> list[str]:
    """The texts of a figure and the labels of its marks, numbers to six digits."""
    found = re.findall(r'aria-label="([^"]*)"|<text[^>]*>([^<]*)', svg)
    return [re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.6g}", label or text) for label, text in found]


def test_python_example_of_the_readme() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_words_to_keep_must_be_printed() -> None:
    page = "<!-- keep: no such words -->\n```console\n$ slicewise --version\nold\n```\n"
    with pytest.raises(ValueError, match="no such words"):
        make_docs.with_outputs(page)


def test_output_is_written_again_and_shortened() -> None:
    page = "<!-- keep: v5e:1x1,1 -->\n```console\n$ slicewise catalog slices --csv\nold\n```\n"
    fresh = make_docs.with_outputs(page)
    lines = fresh.split("\n")
    assert lines[2:4] == ["$ slicewise catalog slices --csv", "..."]
    assert lines[4].startswith("v5e:1x1,1,1,1,one chip,v5litepod-1,")
    assert make_docs.with_outputs(fresh) == fresh


def _fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", _text(page), flags=re.MULTILINE | re.DOTALL)


def test_adapter_on_the_page_is_that_of_the_code() -> None:
    (shown,) = _fences(ROOT / "CONTRIBUTING.md", "python")
    assert shown == inspect.getsource(llama)


def test_model_on_the_page_is_that_of_the_catalog() -> None:
    (shown,) = _fences(DOCS / "models.md", "toml")
    stored = tomllib.loads((ROOT / "src/slicewise/catalog/data/models/deepseek-v3.toml").read_text(encoding="utf-8"))
    parts = tomllib.loads(shown)
    assert parts == {key: stored[key] for key in parts}


def test_families_are_listed_again() -> None:
    fresh = make_docs.with_outputs("<!-- families -->\n`gone`\n\nProse.\n")
    assert set(re.findall(r"`([\w-]+)`", fresh)) == set(FAMILIES)
    assert fresh.endswith("`\n\nProse.\n")
    assert make_docs.with_outputs(fresh) == fresh


# --- Names ------------------------------------------------------------------------------------------------------------


def _terms() -> dict[str, list[str]]:
    """The rows of the tables of terms: names in the first cell, the other cells."""
    rows = [line.strip("|").split("|") for line in _text(DOCS / "terms.md").split("\n") if line.startswith("| `")]
    return {name: [cell.strip() for cell in rest] for first, *rest in rows for name in re.findall(r"`([^`]+)`", first)}


def _formula_names() -> set[str]:
    return set(re.findall(r"^### (\w+)$", _text(DOCS / "formulas.md"), flags=re.MULTILINE))


def _parameters() -> list[tuple[str, str]]:
    return sorted(
        {
            (parameter, f"{module.__name__}.{name}")
            for module in make_docs.MODULES
            for name, function in vars(module).items()
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
            for parameter in inspect.signature(function).parameters
        }
    )


def test_every_module_of_costs_is_read() -> None:
    files = {path.stem for path in (ROOT / "src" / "slicewise" / "costs").glob("*.py")} - {"__init__", "real"}
    assert files == {module.__name__.rpartition(".")[2] for module in make_docs.MODULES}


def test_every_parameter_of_a_formula_is_a_term_or_a_formula() -> None:
    known = set(_terms()) | _formula_names()
    assert [(name, where) for name, where in _parameters() if name not in known] == []


def test_terms_of_the_formulas_have_letter_unit_meaning_and_flag() -> None:
    inputs = {name for name, _ in _parameters()} - _formula_names()
    table = _terms()
    assert [name for name in inputs if len(table[name]) != 4 or not table[name][2]] == []


def test_every_term_is_used() -> None:
    used = {name for name, _ in _parameters()} | _formula_names() | _keys_of("plan") | {"n_kv_heads"}
    assert [name for name in _terms() if re.fullmatch(r"[a-z]+(_[a-z]+)+", name) and name not in used] == []


def _flags() -> dict[str, set[str]]:
    context = click.Context(app)
    commands = {name: app.get_command(context, name) for name in COMMANDS}
    return {
        name: {"--help", *(word for option in command.params for word in option.opts if word.startswith("--"))}
        for name, command in commands.items()
        if command is not None
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_on_the_pages_exist(page: Path) -> None:
    known = set().union(*_flags().values()) | {"--figures", "--no-dev", "--version", "--alias", "--found-at"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", _prose(page))) - known == set()


def test_readme_lists_every_command() -> None:
    assert re.findall(r"^\| `slicewise (\w+)", _text(ROOT / "README.md"), flags=re.MULTILINE) == list(COMMANDS)


# --- JSON -------------------------------------------------------------------------------------------------------------

LOAD = ["--slice", "v5e:4x4", "--rate", "0.3", "--requests", "40", "--ttft", "20s"]
ASKED = {
    "plan": ["llama-3-70b", "--rate", "1"],
    "step": ["llama-3-70b"],
    "prefill": ["llama-3-70b"],
    "memory": ["llama-3-70b"],
    "disaggregate": ["llama-3-70b", "--rate", "1"],
    "simulate": ["llama-3-70b", *LOAD, "--tpot", "1s"],
    "size": ["llama-3-70b", *LOAD],
    "frontier": ["llama-3-70b", "--slice", "v5e:4x4"],
    "limits": ["llama-3-70b"],
    "compare": ["v5e", "--model", "llama-3-70b"],
    "cost": ["--slice", "v5e:4x4", "--tokens-per-s", "2000", "--api-price", "1"],
    "book": ["--question", "0.4"],
}
COMPILED = {"verify": ["llama-3.2-1b", "--slice", "v5e:2x2", "--context", "32768", "--max-batch", "--estimate"]}
"""The same, for what needs the TPU's compiler."""


def _json_of(words: list[str]) -> Any:
    text = make_docs.run(" ".join(["slicewise", *words, "--json"]))
    return json.loads(text)


def _keys(value: Any, *, below: tuple[str, ...] = ()) -> set[str]:
    if isinstance(value, list):
        return set().union(*(_keys(item, below=below) for item in value))
    if not isinstance(value, dict):
        return set()
    return set(value) | set().union(*(_keys(value[key], below=below) for key in below if key in value))


MORE = {
    "step": ["deepseek-v3", "--slice", "h200:16", "--dp", "16", "--ep", "16"],
    "memory": ["gemma-3-27b", "--slice", "h100:2", "--engine", "vllm", "--logged-kv-tokens", "900000"],
}
"""Questions whose answers have further objects."""
BELOW = (
    "rows", "workload", "slices", "fleet", "recommended", "what_ifs", "rejected_candidates", "lines", "engine", "log",
    "implied", "readings", "metrics", "shares", "verdict", "checks", "steady", "requests", "answers", "tried", "best",
)  # fmt: skip
BELOW_COMPILED = ("rows", "memory", "collectives", "max_batch", "tried", "estimate", "parts", "largest")


def _keys_of(command: str, asked: dict[str, list[str]] = ASKED, below: tuple[str, ...] = BELOW) -> set[str]:
    return _keys(_json_of([command, *asked[command]]), below=below)


def _section(name: str) -> str:
    """The part of json.md under a heading, with the parts that it points to."""
    parts = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", _text(DOCS / "json.md"), flags=re.MULTILINE | re.DOTALL))
    own = parts[name]
    others = {"step"} if name in ("prefill", "limits", "memory") or "](#step)" in own else set()
    others |= {"simulate"} if "](#simulate)" in own else set()
    return own + "".join(parts[other] for other in others | ({"plan", "step"} if "](#plan)" in own else set()))


@pytest.mark.parametrize("command", ASKED)
def test_json_keys_are_documented(command: str) -> None:
    documented = set(re.findall(r"`(\w+)`", _section(command)))
    assert _keys_of(command) - documented == set()


@pytest.mark.xla
@pytest.mark.skipif(not make_docs.has_tpu_compiler(), reason="the TPU's compiler is not here")
@pytest.mark.parametrize("command", COMPILED)
def test_json_keys_of_a_compilation_are_documented(command: str) -> None:
    documented = set(re.findall(r"`(\w+)`", _section(command)))
    assert _keys_of(command, COMPILED, BELOW_COMPILED) - documented == set()


@pytest.mark.parametrize("command", MORE)
def test_further_json_keys_are_documented(command: str) -> None:
    documented = set(re.findall(r"`(\w+)`", _section(command)))
    assert _keys_of(command, MORE) - documented == set()


@pytest.mark.parametrize("what", ["models", "chips", "slices", "prices"])
def test_json_keys_of_the_catalog_are_documented(what: str) -> None:
    row = re.search(rf"^\| {what} \|(.*)$", _text(DOCS / "json.md"), flags=re.MULTILINE)
    assert row is not None
    assert set(_json_of(["catalog", what])[0]) == set(re.findall(r"`(\w+)`", row[1])) - {"printed", "note"} - (
        {"source"} if what == "chips" else set()
    )


def test_json_keys_of_an_explanation_are_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", _section("explain")))
    found = _keys(_json_of(["step", "llama-3-70b", "--explain", "param_load_s"]), below=("parts",))
    assert found == documented - {"to_dict"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["step", "llama-3-70b", "--slice", "v5e:4x4"], 0),
        (["step", "llama-3-70b", "--slice", "v5e:2x2"], 1),
        (["plan", "llama-3-70b", "--tpot", "1ms"], 1),
        (["limits", "llama-3-70b", "--slice", "v5e:2x2"], 0),
        (["step", "llama-3-70b", "--slice", "v5e:3x3"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_exit_codes_are_as_documented(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command_line([*words, "--json"])
    out, err = capsys.readouterr()
    assert stopped.value.code == code
    assert (out == "", err != "") == (code == 2, code == 2)


# --- Links and lists --------------------------------------------------------------------------------------------------


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        path, _, anchor = link.partition("#")
        if path.startswith("https://"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_absolute_path(page: Path) -> None:
    assert re.findall(r"(?<![\w.:/~])/(?:home|root|tmp|usr|work|opt|Users)\b", _text(page)) == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))
    groups = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    named = {item for group in groups for item in group if isinstance(item, str)}
    text = _text(DOCS / "dependencies.md").lower()
    rows = {re.sub(r"[ `]", "", line.split("|")[1]) for line in text.split("\n") if line.startswith("| ")}
    wanted = {re.sub(r"\s", "", item).lower() for item in named} - {"types-pyyaml"}
    assert {item for item in wanted if not any(row.startswith(item) for row in rows)} == set()
    assert "types-pyyaml" in text


def test_architecture_names_every_folder() -> None:
    folders = [path.name for path in (ROOT / "src" / "slicewise").iterdir() if (path / "__init__.py").exists()]
    text = _text(DOCS / "architecture.md")
    assert [name for name in folders if f"`{name}/`" not in text] == []
