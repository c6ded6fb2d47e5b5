"""The process that compiles: a recipe comes in, and one JSON object goes out."""

from __future__ import annotations

import json
import os
import pickle
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError
from slicewise.program.attention import PROMPT_BLOCK
from slicewise.program.build import Program, decode_program, prefill_program
from slicewise.program.lines import LINES, WEIGHTS
from slicewise.verify.claims import Declared
from slicewise.verify.compiler import GaveUpError, compile_and_read
from slicewise.verify.devices import cpu_devices, mesh_of, tpu_devices
from slicewise.verify.recipe import LOOP, Recipe


def build(recipe: Recipe) -> Program:
    """The program of a recipe.

    Raises:
        InputError: the slice cannot be described, or the model cannot be cut so.
    """
    slice_, llama = load_slice(recipe.slice_name), recipe.llama
    devices = (tpu_devices if recipe.platform == "tpu" else cpu_devices)(slice_)
    mesh = mesh_of(slice_, devices, llama.n_kv_heads)
    words: dict[str, Any] = {"scaled": recipe.scaled, "loop": recipe.form == LOOP}
    if recipe.kind == "prefill":
        return prefill_program(llama, recipe.precision, mesh, prompt_tokens=recipe.size, **words)
    return decode_program(llama, recipe.precision, mesh, batch=recipe.size, context=recipe.context, **words)


def declared_of(recipe: Recipe, program: Program) -> Declared:
    """What a program declares, of one chip."""
    mesh, devices = program.mesh.shape, load_slice(recipe.slice_name).chip.devices_per_chip
    line_bytes, vector_bytes = dict.fromkeys(LINES, 0.0), 0.0
    for array in program.arrays():
        size = devices * array.bytes_per_device(mesh)
        line_bytes[array.line] += size
        vector_bytes += size if array.line == WEIGHTS and array.is_vector else 0.0
    return Declared(
        line_bytes=line_bytes,
        vector_bytes=vector_bytes,
        sequences=-(-recipe.size // mesh["z"]) * mesh["z"] if recipe.kind == "decode" else 1,
        head_shards=mesh["y"],
        batch_shards=mesh["z"],
        block_queries=PROMPT_BLOCK,
    )


def answer(recipe: Recipe, hlo: Path | None = None) -> dict[str, Any]:
    """What a program declares, and what the compiler says of it; the text is saved where there is one.

    Raises:
        InputError: as for `build`, or the text cannot be written.
    """
    program = build(recipe)
    reading, text = compile_and_read(program, recipe.form, recipe.versions)
    if hlo and text:
        try:
            hlo.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"--hlo {hlo}: cannot be written ({error.strerror}); give another place") from None
    return {"declared": asdict(declared_of(recipe, program)), "reading": reading.to_dict()}


def main() -> None:
    """Read a recipe from standard input, and print the answer, alone, to standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # What comes in was written by the parent process itself.
    recipe, hlo = pickle.load(sys.stdin.buffer)  # noqa: S301
    try:
        found = answer(recipe, hlo)
    except GaveUpError as error:
        found = {"gave up": str(error)}
    except InputError as error:
        found = {"refused": str(error)}
    with answers:
        json.dump(found, answers)
    # The libraries have nothing more to say, and take a while to end.
    os._exit(0)


if __name__ == "__main__":
    main()
