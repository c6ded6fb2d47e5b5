"""The page of the API: the OpenAPI description as plain HTML, which needs no script and nothing from elsewhere."""

from __future__ import annotations

from html import escape
from itertools import groupby
from urllib.parse import urlencode

from slicewise.web.keys import example_of, keys_of
from slicewise.web.questions import Question, questions
from slicewise.web.schema import DESCRIPTION, meaning

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #59636e; --line: #d9dee4; --link: #0060a8; --ground: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebef; --quiet: #a3acb8; --line: #2f363f; --link: #6db8ee; --ground: #14171c; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--ground);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; } h3 { margin: 2rem 0 .3rem; font-size: 1.1rem; }
a { color: var(--link); } code, pre { font: .92em/1.5 ui-monospace, "Cascadia Mono", Menlo, monospace; }
pre { overflow-x: auto; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid var(--line); } th { font-weight: 600; } .quiet { color: var(--quiet); }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--link); }
"""


def documentation_page(version: str) -> str:
    """The page."""
    listed = sorted(questions().values(), key=lambda question: _ORDER.index(question.tag))
    groups = [(tag, list(group)) for tag, group in groupby(listed, key=lambda question: question.tag)]
    contents = "".join(f"<li>{escape(tag)}: {', '.join(map(_link, group))}</li>" for tag, group in groups)
    parts = "".join(f"<h2>{escape(tag)}</h2>{''.join(map(_section, group))}" for tag, group in groups)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>slicewise API</title><style>{_STYLE}</style></head><body><main>"
        f'<h1>slicewise API</h1><p class="quiet">Version {escape(version)} · <a href="/">explorer</a> ·'
        ' <a href="/openapi.json">openapi.json</a></p>'
        f"{_prose(DESCRIPTION)}<ul>{contents}</ul>{parts}</main></body></html>"
    )


_ORDER = ("Questions", "What is known", "The explorer")


def _link(question: Question) -> str:
    return f'<a href="#{question.name}">{question.name}</a>'


def _prose(text: str) -> str:
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "".join(f"<p>{_code(escape(part, quote=False))}</p>" for part in paragraphs)


def _code(text: str) -> str:
    """Words between backquotes, set as code."""
    pieces = text.split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def _section(question: Question) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(word)}</code></td><td>{_code(escape(meaning(word), quote=False))}</td>"
        f'<td class="quiet">{"repeats" if repeats else ""}</td></tr>'
        for word, repeats in question.offered.items()
    )
    table = f"<details><summary>{len(question.offered)} words</summary><table>{rows}</table></details>" if rows else ""
    answer = _answer(question)
    methods = "GET, POST" if question.takes_config else "GET"
    return (
        f'<section id="{question.name}"><h3>{methods} <code>/api/{question.name}</code></h3>'
        f"<p>{escape(question.summary)}</p>{_example(question)}{table}{answer}</section>"
    )


def _answer(question: Question) -> str:
    """The keys of the answer, with units and meanings."""
    keys = keys_of(question.name)
    rows = "".join(
        f'<tr><td><code>{escape(key.name)}</code></td><td class="quiet">{escape(key.unit or key.kind)}</td>'
        f"<td>{escape(key.meaning)}</td></tr>"
        for key in keys
    )
    what = f"{len(keys)} keys of {'each item of ' if question.is_list else ''}the answer"
    return f"<details><summary>{what}</summary><table>{rows}</table></details>" if rows else ""


def _example(question: Question) -> str:
    said = example_of(question)
    address = f"/api/{question.name}{'?' if said else ''}{urlencode(said, safe=':')}"
    return f'<pre><a href="{escape(address, quote=True)}">{escape(address)}</a></pre>'
