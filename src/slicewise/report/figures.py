"""Writes pictures and their columns to files: one page, images, CSV or JSON, by the suffix of the path."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from slicewise.errors import InputError
from slicewise.report.chart_lines import FrontierColumns
from slicewise.report.csv_rows import to_csv
from slicewise.report.frame import WIDTH, Spec
from slicewise.units import plain

SUFFIXES = (".html", ".svg", ".png", ".csv", ".json")
_PNG_SCALE = 2.0  # pixels of the file per pixel of the spec

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; max-width: 56rem; padding: 1rem; color: #222; background: #fff;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }}
h1, h2 {{ font-size: 1.25rem; line-height: 1.3; margin: 2rem 0 .25rem; }}
p {{ margin: .25rem 0; color: #595959; }}
figure {{ margin: 0; overflow-x: auto; }}
figure > div {{ width: 100%; min-width: {least}px; }}
figure svg {{ display: block; width: 100%; height: auto; }}
</style>
</head>
<body>
<main>
{figures}
</main>
<footer><p>Made by slicewise. Point at a line for its exact numbers.</p></footer>
<script>{library}</script>
<script>
const specs = {specs};
specs.forEach((spec, i) => vegaEmbed("#figure-" + i, spec, {{ renderer: "svg", actions: false }}));
</script>
</body>
</html>
"""


def write_figures(path: Path, columns: FrontierColumns, specs: Mapping[str, Spec]) -> list[Path]:
    """Write pictures or their columns, whichever the suffix of the path asks for.

    Args:
        path: .html takes every spec in one page that needs no network; .svg and .png take the first spec, and each
            further one goes to `stem-NAME.suffix` beside it; .csv and .json take the columns.
        columns: one row per (context, batch), base units.
        specs: by name, the first is the main one.

    Returns:
        The files written.

    Raises:
        InputError: an unknown suffix, a folder that is missing or closed, or vl-convert is not installed.
    """
    suffix = checked_suffix(path)
    if suffix == ".csv":
        contents = {path: to_csv(_lists(columns)).encode()}
    elif suffix == ".json":
        contents = {path: json.dumps(_lists(columns)).encode()}
    else:
        contents = pictures(path, specs)
    return write_files(contents)


def checked_suffix(path: Path, offered: Sequence[str] = SUFFIXES) -> str:
    """The suffix of a file to write, which says what goes into it.

    Raises:
        InputError: an unknown suffix, a folder that is missing or closed, or a folder of that name.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        raise InputError(f"cannot write '{path}': it is a folder; name a file")
    if suffix not in offered:
        raise InputError(f"cannot write '{path}': end it in {', '.join(offered[:-1])} or {offered[-1]}")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write to the folder '{path.parent}': create it, or choose another one")
    return suffix


def pictures(path: Path, specs: Mapping[str, Spec]) -> dict[Path, bytes]:
    """Files of pictures with their contents: one page, or an image each.

    Raises:
        InputError: vl-convert is not installed.
    """
    if path.suffix.lower() == ".html":
        return {path: _page(list(specs.values())).encode()}
    return _images(path, specs, vl_convert_module())


def write_files(contents: Mapping[Path, bytes]) -> list[Path]:
    """Write files.

    Raises:
        InputError: one cannot be written.
    """
    for file, content in contents.items():
        write_file(file, content)
    return list(contents)


def write_file(path: Path, content: bytes) -> None:
    """Write a file.

    Raises:
        InputError: it cannot be written there.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write '{path}' ({error.strerror}): choose another path") from error


def vl_convert_module() -> ModuleType:
    """What draws.

    Raises:
        InputError: it is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415  an optional extra
    except ImportError:
        message = "drawing needs vl-convert: pip install 'slicewise[figures]' (a checkout: '.[figures]'); .csv does not"
        raise InputError(message) from None
    return vl_convert


@cache
def vega_library() -> str:
    """Vega, Vega-Lite and vega-embed as one JavaScript module that needs no network. Making it takes seconds.

    Raises:
        InputError: vl-convert is not installed.
    """
    return str(vl_convert_module().javascript_bundle())


def vega_lite_svg(spec: Spec) -> str:
    """A picture as SVG.

    Raises:
        InputError: vl-convert is not installed.
    """
    return str(vl_convert_module().vegalite_to_svg(spec))


def _lists(columns: FrontierColumns) -> dict[str, list[Any]]:
    """The columns as JSON writes them: counts are whole numbers."""
    return {key: [plain(value) for value in column] for key, column in columns.items()}


def _images(path: Path, specs: Mapping[str, Spec], vl_convert: ModuleType) -> dict[Path, bytes]:
    paths = [path, *(path.with_name(f"{path.stem}-{name}{path.suffix}") for name in list(specs)[1:])]
    return {
        file: _image(spec, path.suffix.lower(), vl_convert) for file, spec in zip(paths, specs.values(), strict=True)
    }


def _image(spec: Spec, suffix: str, vl_convert: Any) -> bytes:
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE))
    return str(vl_convert.vegalite_to_svg(spec)).encode()


def _page(specs: list[Spec]) -> str:
    """One page with the library in it once; titles are text of the page, so that they wrap on a narrow screen."""
    titles = [" ".join(spec["title"]["text"]) for spec in specs]
    figures = [
        _figure(i, spec["title"]["subtitle"], title) for i, (spec, title) in enumerate(zip(specs, titles, strict=True))
    ]
    untitled = [{key: value for key, value in spec.items() if key != "title"} for spec in specs]
    return _PAGE.format(
        title=html.escape(titles[0]),
        least=WIDTH,
        figures="\n".join(figures),
        library=vega_library(),
        specs=json.dumps(untitled).replace("<", "\\u003c"),
    )


def _figure(i: int, subtitles: list[str], title: str) -> str:
    level = "h1" if i == 0 else "h2"
    notes = "".join(f"<p>{html.escape(line)}</p>" for line in subtitles)
    heading = f"<{level}>{html.escape(title)}</{level}>"
    return f'<section>{heading}{notes}<figure><div id="figure-{i}"></div></figure></section>'
