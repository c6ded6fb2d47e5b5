"""Plans taken to the TPU's compiler: what it says of real models on real slices. It needs libtpu and no TPU."""

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from slicewise.catalog.load import find_chip
from slicewise.cli.main import main
from slicewise.errors import InputError
from slicewise.spec.model import Model, dense_model
from slicewise.spec.provenance import chosen
from slicewise.verify import job as job_module
from slicewise.verify import verify
from slicewise.verify.job import LOOP
from slicewise.verify.rows import NOT_EXPLAINED, Row
from slicewise.verify.verification import Verification

pytestmark = [
    pytest.mark.xla,
    pytest.mark.skipif(find_spec("libtpu") is None or find_spec("jax") is None, reason="libtpu is not installed"),
]

INT8, INT4, BF16 = ({"weights": dtype, "kv": dtype} for dtype in ("int8", "int4", "bf16"))
LARGE = {"slice": "v5e:4x4", **INT8, "batch": 32, "context": 8192, "memory_fraction": 1}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests of the file, so that each program is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the file, in place of one for each test."""
    monkeypatch.setenv("SLICEWISE_CACHE", str(kept))
    return kept


def row_of(found: Verification, name: str) -> Row:
    return next(row for row in found.rows if row.name == name)


def hbm_bytes(found: Verification) -> float:
    return found.step.deployment.slice.chip.usable_hbm_bytes


# -- plans that fit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        pytest.param("llama-3-70b", {"slice": "v5e:2x4", **INT8, "batch": 32}, id="70b-int8-v5e-8"),
        pytest.param("llama-3-70b", {"slice": "v5e:4x4", **BF16, "batch": 42}, id="70b-bf16-v5e-16"),
        pytest.param("llama-3-70b", {"slice": "v5e:2x2", **INT4, "batch": 43}, id="70b-int4-v5e-4"),
        pytest.param(
            "llama-3-405b", {"slice": "v5e:8x8", **INT8, "batch": 56, "context": 28_488}, id="405b-int8-v5e-64"
        ),
    ],
)
def test_the_compiler_needs_moves_and_multiplies_what_the_plan_says(model: str, words: dict[str, Any]) -> None:
    found = verify(model, **{"context": 8192, "memory_fraction": 1, **words})
    assert (found.fits, found.plan_fits, found.judged) == (True, True, True)
    assert row_of(found, "all of it").ratio == pytest.approx(1, abs=0.01)
    assert found.reading.temporary_bytes < 0.03 * hbm_bytes(found)
    assert found.reading.peak_bytes == pytest.approx(found.reading.total_bytes, rel=0.01)
    moved = [row for row in found.rows if row.part == "collectives"]
    assert moved
    assert NOT_EXPLAINED not in {row.why for row in found.rows}
    assert moved[0].ratio == pytest.approx(1, abs=5e-4)
    # Of N query heads' columns two trips, and of 2 K heads' one.
    heads = found.step.deployment.model.mixers[0]
    assert all(row.ratio == pytest.approx(1 + heads.n_kv_heads / heads.n_heads) for row in moved[1:] if row.plan)
    assert row_of(found, "matmuls").ratio == pytest.approx(1, abs=0.02)
    assert row_of(found, "attention").ratio == pytest.approx(1, abs=0.02)
    assert row_of(found, "KV cache").ratio == pytest.approx(1, abs=1e-3)


def test_the_book_has_no_scales() -> None:
    found = verify("llama-3-70b", **LARGE, book=True)
    assert not [row for row in found.rows if "scales" in row.name]
    assert {line for line, size in found.reading.line_bytes.items() if size} == {"weights", "KV cache", "inputs"}
    assert row_of(found, "all of it").ratio == pytest.approx(1, abs=0.01)


# -- other chips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("llama-3.2-1b", {"slice": "v5e:1x1", "batch": 16, "context": 2048}),
        ("llama-3.2-1b", {"slice": "v5p:2x2x2", "batch": 16, "context": 2048}),
        ("llama-3.2-1b", {"slice": "v6e:2x4", "batch": 16, "context": 2048}),
        ("qwen3-0.6b", {"slice": "tpu7x:2x2x1", "batch": 8, "context": 8192}),
    ],
    ids=lambda value: value["slice"] if isinstance(value, dict) else "",
)
def test_every_chip_that_the_compiler_describes_takes_a_plan(model: str, words: dict[str, Any]) -> None:
    found = verify(model, **words)
    assert (found.fits, found.judged) == (True, True)
    assert row_of(found, "all of it").ratio == pytest.approx(1, abs=0.02)
    assert row_of(found, "matmuls").ratio == pytest.approx(1, abs=0.02)
    assert found.available_bytes_per_chip == hbm_bytes(found)


@pytest.mark.parametrize("slice_", ["v5e:1x1", "v5p:2x2x2", "v6e:2x4", "tpu7x:2x2x1"])
def test_the_catalogs_usable_hbm_is_what_the_compiler_offers(tiny: Model, slice_: str) -> None:
    found = verify(tiny, slice=slice_, batch=2**20, context=8192)
    chip = find_chip(slice_.partition(":")[0])
    assert (found.fits, found.plan_fits) == (False, False)
    assert found.reading.refusal is not None
    assert found.reading.refusal.available_bytes is not None
    offered = found.reading.refusal.available_bytes * chip.devices_per_chip
    assert chip.usable_hbm_bytes == offered == found.available_bytes_per_chip


def test_a_chip_of_two_devices_that_the_catalog_counts_as_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"--slice v4:2x2x1: the TPU compiler sees 8 devices in its 4 chips"):
        verify("llama-3.2-1b", slice="v4:2x2x1", batch=8, context=1024)


def many(**sizes: int) -> Model:
    """A small model of other heads, or of other sizes."""
    plain = {"n_layers": 2, "d_model": 512, "d_ff": 1024, "n_heads": 16, "n_kv_heads": 4, "head_dim": 64}
    words = {**plain, "vocab_size": 1024, **sizes}
    return dense_model(name="made-up", provenance=MappingProxyType({"": chosen("made up")}), **words)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        pytest.param(many(n_kv_heads=1), {"slice": "v5e:2x2", "batch": 8, "context": 512}, id="one KV head"),
        pytest.param(many(n_kv_heads=2), {"slice": "v5e:2x4", "batch": 6, "context": 512}, id="rows to fill up"),
        pytest.param(many(n_kv_heads=16), {"slice": "v5e:4x4", "batch": 5, "context": 300}, id="a head a chip"),
        pytest.param(many(head_dim=96), {"slice": "v5e:2x2", "batch": 8, "context": 1000}, id="no power of two"),
        pytest.param(many(d_ff=1000, vocab_size=1001), {"slice": "v5e:4x4", "batch": 8, "context": 512}, id="uneven"),
        pytest.param(many(), {"slice": "v6e:2x4", "batch": 4, "context": 256, "kv": "int8"}, id="a loop that kills"),
        pytest.param(many(), {"slice": "tpu7x:2x2x1", "batch": 3, "context": 256, "kv": "int8"}, id="two devices"),
        pytest.param(many(), {"slice": "v5e:2x2", "batch": 4, "context": 256, "weights": "fp16"}, id="fp16"),
        pytest.param(many(n_kv_heads=1), {"slice": "v5e:2x2", "isl": 512, "prefill": True}, id="prefill, one KV head"),
        pytest.param(many(), {"slice": "v5e:2x4", "isl": 1500, "prefill": True}, id="prefill in uneven blocks"),
    ],
)
def test_models_and_meshes_of_all_kinds_are_explained(model: Model, words: dict[str, Any]) -> None:
    found = verify(model, **words)
    assert found.fits
    assert NOT_EXPLAINED not in {row.why for row in found.rows}
    rows, mesh = {row.name: row for row in found.rows}, found.kv_batch_shards
    filled = 1.0 if "prefill" in words else -(-found.batch // mesh) * mesh / found.batch
    layer = [row for row in found.rows if row.name.startswith("a layer")]
    assert layer[0].ratio == pytest.approx(filled, rel=1e-3)
    assert "AllReduce" in layer[0].name
    assert all("AllReduce" not in row.name for row in layer[1:])
    assert (len(layer) == 2) == (mesh > 1)
    if model.d_ff == 1024:
        assert rows["matmuls"].ratio == pytest.approx(filled, rel=1e-3)


# -- plans that do not -----------------------------------------------------------------------------------------------


def test_what_is_too_large_is_exit_code_1_with_both_ledgers(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--slice", "v5e:2x4", "--weights", "bf16", "--kv", "bf16", "--batch", "32", "--context", "8192"]
    with pytest.raises(SystemExit) as stop:
        main(["verify", "llama-3-70b", *words])
    out, err = capfd.readouterr()
    assert (stop.value.code, err) == (1, "")
    text = " ".join(out.split())
    assert text.startswith("llama-3-70b on v5e:2x4, batch 32, 8,192 tokens, bf16 weights, bf16 cache: does not fit")
    # 70,553,706,496 parameters and 32 caches of 8,192 tokens at 327,680 B, both over 8 chips.
    assert re.search(r"weights 17\.638 GB", text)
    assert re.search(r"KV cache 10\.737 GB", text)
    planned, needed, ratio = re.search(r"all of it ([\d.]+) GB ([\d.]+) GB ([\d.]+)", text).groups()
    assert (float(planned), float(needed), float(ratio)) == pytest.approx((28.378, 28.5, 1), rel=0.01)
    assert "16.911 GB (15.75 GiB)" in text
    assert re.search(r"\(2\d\.\d+G\) exceeds available HBM \(15\.75G\)", text)


# -- the cache -------------------------------------------------------------------------------------------------------


def test_a_program_is_compiled_once_unless_a_fresh_one_is_asked_for(tiny: Model) -> None:
    words = {"slice": "v5e:2x4", "batch": 8, "context": 512}
    first = verify(tiny, **words)
    again = verify(tiny, **words)
    fresh = verify(tiny, **words, fresh=True)
    assert (first.was_kept, again.was_kept, fresh.was_kept) == (False, True, False)
    assert again.reading == first.reading
    assert again.rows == first.rows == fresh.rows


@pytest.mark.parametrize("slice_", ["v5e:2x4", "v5p:2x2x2"])
def test_the_text_is_that_of_the_program_that_is_reported(tiny: Model, tmp_path: Path, slice_: str) -> None:
    place = tmp_path / "program.txt"
    found = verify(tiny, slice=slice_, batch=8, context=1024, hlo=place)
    text = place.read_text(encoding="utf-8")
    assert text.startswith("HloModule")
    assert "all-reduce" in text
    assert (" while(" in text) == (found.reading.form == LOOP)


def test_a_program_that_is_written_out_after_its_loop_was_not_kept(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_one: Callable[..., Any] = job_module.run
    forms: list[str] = []
    monkeypatch.setattr(
        job_module, "run", lambda job, *words, **more: forms.append(job.form) or run_one(job, *words, **more)
    )
    found = verify(tiny, slice="v5p:2x2x2", batch=16, context=1024)
    assert len(forms) == 2
    assert not found.was_kept


# -- the estimate ----------------------------------------------------------------------------------------------------


def test_the_estimate_is_no_less_than_the_bounds_that_it_contains(tiny: Model) -> None:
    found = verify(tiny, slice="v5e:2x4", batch=8, context=1024, estimate=True)
    assert found.estimate is not None
    assert found.estimate.estimate_s >= found.estimate.parts[0].ici_s
    assert found.estimate.estimate_s == sum(part.estimate_s for part in found.estimate.parts)
    assert list(found.estimate.scopes.values()) == sorted(found.estimate.scopes.values(), reverse=True)
    assert {"attention", "mlp", "dot_product", "head"} <= set(found.estimate.scopes)
    assert found.estimate.largest
