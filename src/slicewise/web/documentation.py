"""The page of the API: the OpenAPI description as plain HTML, which needs no script and nothing from elsewhere."""

from __future__ import annotations

from html import escape
from itertools import groupby
from urllib.parse import urlencode

from slicewise.web.keys import example_of, keys_of
from slicewise.web.questions import Question, questions
from slicewise.web.schema import DESCRIPTION, meaning


def documentation_page(version: str) -> str:
    """The page."""
    listed = sorted(questions().values(), key=lambda question: _ORDER.index(question.tag))
    groups = [(tag, list(group)) for tag, group in groupby(listed, key=lambda question: question.tag)]
    contents = "".join(f"<li>{escape(tag)}: {', '.join(map(_link, group))}</li>" for tag, group in groups)
    parts = "".join(f"<h2>{escape(tag)}</h2>{''.join(map(_section, group))}" for tag, group in groups)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>slicewise API</title><link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/static/docs.css"></head><body><main>'
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
