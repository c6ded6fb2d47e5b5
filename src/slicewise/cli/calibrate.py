"""`slicewise calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from slicewise.cli.options import options
from slicewise.cli.show import show_data

_DEFAULT = "efficiency.toml"


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=Path(_DEFAULT),
    show_default=True,
    help="The efficiency file to write.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@options("one_model", "one_slice", "one_weights", "one_kv", "one_compute", "one_engine")
@options("one_batch", "one_isl", "one_osl", "json", "md", "csv")
def calibrate(
    files: tuple[Path, ...], *, out: Path, force: bool, as_json: bool, as_md: bool, as_csv: bool, **words: Any
) -> None:
    """Make an efficiency file of your own measurements; --efficiency FILE then expects what you measured.

    FILE is a CSV (columns: model, slice, weights, kv, batch, isl, osl or context, phase, and a time such as ms), or
    what vllm bench latency or serve, AIPerf, GenAI-Perf or InferenceMAX wrote. Flags fill in what a file does not say.
    """
    from slicewise.calibrate.read import Given
    from slicewise.calibrate.run import calibrate as answer
    from slicewise.cli.show import one_form
    from slicewise.report.views.calibrate import calibrate_document

    one_form(as_json, as_md, as_csv)
    names = {"isl": "prompt_tokens", "osl": "output_tokens"}
    given = Given(**{names.get(name, name): value for name, value in words.items() if value is not None})
    result = answer(*files, given=given, out=out, force=force)
    show_data(result.to_dict(), lambda: calibrate_document(result), as_json=as_json, as_md=as_md, as_csv=as_csv)
