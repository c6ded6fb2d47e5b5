"""The answer as one HTML file: readable without scripts, with nothing fetched, and every text from outside escaped."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from typing import Any

from slicewise.report.explorer.explore import Document, document
from slicewise.report.explorer.folded import fold
from slicewise.report.explorer.found import Found
from slicewise.report.figures import vega_lite_svg

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Nothing is fetched and nothing runs, whatever the file holds."""
_STYLES = ("explorer.css", "figures.css")
_OWN_STYLE = """
body { background: var(--ground); }
main.report { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
.report h1 { font-size: 1rem; font-weight: 600; color: var(--quiet); margin-bottom: 1rem; }
.report h2 { margin: 2.2rem 0 .5rem; font-size: 1rem; }
.report .answer { min-height: 0; }
.report figure { margin: 0; overflow-x: auto; }
.report figure svg { max-width: 100%; height: auto; overflow: visible; }
.report section { overflow-x: auto; padding-inline: .4rem; }
.report section > ul:not([class]) { padding-left: 1.2rem; }
.report figure svg.mesh { max-width: 30rem; }
.report pre { overflow-x: auto; padding: .75rem 1rem; background: var(--faint); border-radius: 6px;
  font: .84rem/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; white-space: pre; }
.report details { margin: .3rem 0; }
.report .bar rect.fill-free { stroke: var(--line); }
.report footer { margin-top: 3rem; color: var(--quiet); }
@media print { .report details { break-inside: avoid; } }
"""


def report_of(found: Found) -> str:
    """The page of an answer, as `explore` tells it.

    Raises:
        InputError: vl-convert is not installed.
    """
    told = document(found)
    derivations = fold(found, told)
    parts = [
        f"<h1>slicewise · {_text(told['title'])}</h1>",
        _answer(told),
        _table("Numbers", told["answer"]["rows"]),
        _items("Of the model", told["model"]["notes"]),
        _memory(told["memory"]),
        _figure("Latency against throughput", told["frontier"]),
        _figure("Where a step's time goes", told["breakdown"], _terms(told["breakdown"])),
        _mesh(told["mesh"]),
        _servers(told["servers"], told["fleet"]),
        _cost(told["cost"]),
        _runner_up(told["runner_up"]),
        _candidates(told["candidates"]),
        _what_ifs(told["what_ifs"]),
        _items("Not taken", [f"{item['slice']}: {item['detail']}" for item in told["rejected"]]),
        _items("Assumed", told["assumptions"]),
        f"<section><h2>How the numbers come about</h2>{derivations}</section>",
        f"<section><h2>The same on the command line</h2><pre>{_text(told['command'])}</pre></section>",
    ]
    return (
        '<!doctype html>\n<html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_text(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(told['title'])}</title><style>{_style()}</style></head>"
        f'<body><main class="report">{"".join(parts)}'
        "<footer><p>By slicewise. Point at a number for its exact value; an underlined one leads to how it came about."
        "</p></footer></main></body></html>\n"
    )


def _style() -> str:
    """The page's own style, with the files that it names put in."""
    folder = resources.files("slicewise.report").joinpath("page")

    def inlined(match: re.Match[str]) -> str:
        name = match[1].rpartition("/")[2]
        if not name.endswith(".svg") or not folder.joinpath(name).is_file():
            return "none"
        return f"url(data:image/svg+xml;base64,{base64.b64encode(folder.joinpath(name).read_bytes()).decode()})"

    style = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _STYLES)
    return re.sub(r"url\(\s*['\"]?([^)'\"]*)['\"]?\s*\)", inlined, style).replace("</", "<\\/") + _OWN_STYLE


def _text(value: object) -> str:
    return escape(str(value), quote=True)


def _number(number: Mapping[str, Any] | None) -> str:
    """A number with its unit in a lighter tone, and its exact value for who points at it."""
    if number is None:
        return ""
    suffix = f' <span class="unit">{_text(number["suffix"])}</span>' if number["suffix"] else ""
    ink = f" ink-{_text(number['resource'])}" if number["resource"] else ""
    tag, way = ("a", f' href="#{number["anchor"]}"') if "anchor" in number else ("span", "")
    door = " door" if way else ""
    title = f'title="{_text(number["exact"])}"'
    return f'<{tag} class="num{ink}{door}"{way} {title}>{_text(number["figure"])}{suffix}</{tag}>'


def _answer(told: Document) -> str:
    lines = "".join(f"<p>{''.join(map(_segment, line))}</p>" for line in told["sentence"])
    return f'<section class="answer{"" if told["fits"] else " is-refusal"}">{lines}</section>'


def _segment(segment: Mapping[str, Any]) -> str:
    if "number" in segment:
        return _number(segment["number"])
    if segment.get("strong"):
        return f"<strong>{_text(segment['text'])}</strong>"
    if segment.get("resource"):
        hover = _text(segment.get("hover", ""))
        return f'<span class="ink-{_text(segment["resource"])}" title="{hover}">{_text(segment["text"])}</span>'
    return _text(segment["text"])


def _table(title: str, rows: Iterable[Mapping[str, Any]], note: Iterable[Mapping[str, Any]] = ()) -> str:
    """Numbers by name, with the bound and the range where they are told; above them a sentence in segments."""
    listed = list(rows)
    if not listed:
        return ""
    has_ends = any(row["bound"] for row in listed)
    ends = ("bound", "low", "high") if has_ends else ()
    head = "".join(f'<th class="right" scope="col">{name}</th>' for name in ("expected", *ends)) if has_ends else ""
    body = "".join(
        f'<tr><th scope="row">{_text(row["label"])}</th><td class="right">{_number(row["number"])}</td>'
        + "".join(f'<td class="right">{_number(row[end])}</td>' for end in ends)
        + "</tr>"
        for row in listed
    )
    head = f'<thead><tr><th scope="col"></th>{head}</tr></thead>' if head else ""
    lead = f'<p class="quiet">{"".join(map(_segment, note))}</p>' if note else ""
    return f'<section><h2>{_text(title)}</h2>{lead}<table class="rows">{head}<tbody>{body}</tbody></table></section>'


def _memory(memory: Mapping[str, Any] | None) -> str:
    if memory is None:
        return ""
    length = 1000
    bars = "".join(
        f'<rect class="fill-{segment["resource"]}" x="{segment["start"] * length:.2f}" y="0" height="30"'
        f' width="{segment["width"] * length:.2f}"/>'
        for segment in memory["segments"]
    )
    parts = "".join(
        f'<li><span class="swatch fill-{segment["resource"]}"></span><span>{_text(segment["label"])}</span>'
        f'{_number(segment["number"])}<span class="share">{_text(segment["share_text"])}</span></li>'
        for segment in memory["segments"]
    )
    lines = "".join(
        f'<tr><th scope="row">{_text(line["label"])}</th><td class="right">{_ends(line)}</td>'
        f'<td class="quiet">{_text(line["certainty"])}, {_text(line["why"])}</td></tr>'
        for line in memory["lines"]
    )
    refused = f'<p class="refused">{_text(memory["reason"])}</p>' if memory["reason"] else ""
    nearest = [f"{way['text']}" for way in memory["nearest"]]
    return (
        f"<section><h2>Memory of a chip of {_text(memory['slice'])}</h2>"
        f'<p class="lead">{_number(memory["total"])} of {_number(memory["granted"])} that it grants</p>'
        f'<svg class="bar" viewBox="0 0 {length} 30" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
        f'<ul class="parts">{parts}</ul>{refused}{_items("What would fit", nearest, level=3)}'
        f'<table class="rows"><tbody>{lines}</tbody></table></section>'
    )


def _cost(cost: Mapping[str, Any] | None) -> str:
    """The prices, or that none is known."""
    if cost is None:
        return ""
    return _table("Cost", cost["rows"], [{"text": cost["price"]}]) or _items("Cost", [cost["price"]])


def _ends(line: Mapping[str, Any]) -> str:
    """The bytes of a line: both ends of a range."""
    return " – ".join(filter(None, (_number(line["number"]), _number(line["most"]))))


def _terms(breakdown: Mapping[str, Any] | None) -> str:
    """The terms of the step, and where it is compute-bound."""
    if breakdown is None:
        return ""
    critical = {"label": "compute-bound from batch", "number": breakdown["critical_batch"]}
    note = f"<li>{_text(breakdown['note'])}</li>" if breakdown["note"] else ""
    told = [*breakdown["terms"], *([critical] if critical["number"] else [])]
    items = "".join(
        f'<li><span class="quiet">{_text(one["label"])}</span> {_number(one["number"])}</li>' for one in told
    )
    return f'<ul class="terms small">{note}{items}</ul>'


def _figure(title: str, part: Mapping[str, Any] | None, below: str = "") -> str:
    if part is None:
        return ""
    chart = part["chart"]
    drawn = vega_lite_svg({**chart["spec"]["light"], "datasets": chart["data"]})
    drawn = drawn.replace("<svg ", '<svg aria-hidden="true" ', 1)  # the figure says what it shows
    return (
        f'<section><h2>{_text(title)}</h2><figure role="img" aria-label="{_text(chart["alt"])}">{drawn}</figure>'
        f"{below}</section>"
    )


def _mesh(mesh: Mapping[str, Any] | None) -> str:
    if mesh is None:
        return ""
    return f"<section><h2>The slice</h2><p>{_text(mesh['sentence'])}</p><figure>{mesh['svg']}</figure></section>"


def _servers(servers: Mapping[str, Any] | None, fleet: Mapping[str, Any] | None) -> str:
    found = ""
    if servers is not None:
        found = _table("Prefill and decode", servers["rows"], servers["said"])
    return found + (_table("Servers for the rate", fleet["rows"]) if fleet else "")


def _candidates(candidates: list[Document]) -> str:
    if not candidates:
        return ""
    columns = (
        ("batch", "batch"), ("step", "step"), ("tokens_per_chip", "per chip"), ("ttft", "first token"),
        ("usd", "$ per million out"), ("request_usd", "$ a request"),
    )  # fmt: skip
    head = "".join(f'<th class="right" scope="col">{_text(title)}</th>' for _, title in columns)
    rows = "".join(
        f'<tr{" class=is-chosen" if one["is_chosen"] else ""}><th scope="row">{_text(one["slice"])}'
        f" {_text(one['layout'])} {_text(one['weight_dtype'])}/{_text(one['kv_dtype'])}</th>"
        + "".join(f'<td class="right">{_number(one[key])}</td>' for key, _ in columns)
        + "</tr>"
        for one in candidates
    )
    return (
        '<section><h2>Plans</h2><div class="scroll"><table class="rows"><thead><tr><th scope="col">slice</th>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _runner_up(runner_up: Mapping[str, Any] | None) -> str:
    return _table("Next best", runner_up["rows"], [{"text": runner_up["text"]}]) if runner_up else ""


def _what_ifs(what_ifs: Iterable[Mapping[str, Any]]) -> str:
    """What one change would do: the numbers of what then fits, or why it does not."""
    listed = "".join(f"<li>{_text(each['text'])}: {_change(each)}</li>" for each in what_ifs)
    return f"<section><h2>What one change would do</h2><ul>{listed}</ul></section>" if listed else ""


def _change(what_if: Mapping[str, Any]) -> str:
    numbers = what_if["numbers"]
    if numbers is None:
        return _text(what_if["reason"])
    return f"{_number(numbers['batch'])} at a time, {_number(numbers['step'])} a token, {_number(numbers['tokens'])}"


def _items(title: str, items: Iterable[str], level: int = 2) -> str:
    listed = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<section><h{level}>{_text(title)}</h{level}><ul>{listed}</ul></section>" if listed else ""
