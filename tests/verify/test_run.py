"""`verify` in Python: what it refuses before it compiles, and what it makes of what the compiler says."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.verify import max_batch as max_batch_module
from slicewise.verify import run as run_module
from slicewise.verify.claims import Declared
from slicewise.verify.job import LOOP, WRITTEN_OUT, Job, Outcome
from slicewise.verify.reading import Reading, Refusal
from slicewise.verify.run import verify
from slicewise.verify.toolchain import Compiler

TPU = Compiler("tpu", "XLA:TPU of libtpu 0, jax 0")
CPU = Compiler("cpu", "XLA:CPU of jax 0", "libtpu, the TPU's compiler, is not installed: pip install it")
INT8 = {"weights": "int8", "kv": "int8"}
BOOK = {"slice": "v5e:4x4", **INT8, "batch": 32, "context": 8192}


@pytest.fixture
def compiler(
    monkeypatch: pytest.MonkeyPatch,
    reading_of: Callable[..., Reading],
    refused: Reading,
    declared_of: Callable[..., Declared],
) -> Callable[..., list[Job]]:
    """Makes a compiler that takes batches up to a limit; what it gives is the list of jobs that it is given."""

    def make(found: Compiler = TPU, most: float = float("inf")) -> list[Job]:
        jobs: list[Job] = []

        def answer(job: Job, *_: Any, fresh: bool = False) -> Outcome:
            jobs.append(job)
            reading = reading_of(form=job.form, argument_bytes=1e6 * job.size) if job.size <= most else refused
            return Outcome(declared=declared_of(), reading=replace(reading, form=job.form), was_kept=fresh)

        monkeypatch.setattr(run_module, "find_compiler", lambda *_: found)
        monkeypatch.setattr(run_module, "run", answer)
        for module in (run_module, max_batch_module):
            monkeypatch.setattr(module, "run_best", answer)
        return jobs

    return make


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"tp": 8}, "--tp: the compiled program cuts every matrix evenly over the slice; leave it out"),
        ({"pp": 2}, "--pp: the compiled program cuts"),
        ({"dp": 2}, "--dp: the compiled program cuts"),
        ({"ep": 2}, "--ep: the compiled program cuts"),
        ({"engine": "vllm"}, "--engine: the compiled program cuts"),
        ({"reserve": "1GiB"}, "--reserve: the compiled program cuts"),
        ({"kv_split": "heads"}, "--kv-split: the compiled program cuts"),
        ({"slice": "h100:8"}, "--slice h100:8: verify compiles for TPU slices; `slicewise step` plans this one"),
        ({"prefill": True, "estimate": True}, "--prefill goes with neither --estimate nor --max-batch"),
        ({"prefill": True, "max_batch": True}, "--prefill goes with neither --estimate nor --max-batch"),
        ({"prefill": True, "batch": 8}, "--batch: --prefill compiles one prompt; leave --batch out"),
        ({"slice": "v6e:2x4", "estimate": True, "clock": "0Hz"}, "--clock: 0Hz must be greater than 0"),
        ({"slice": "v6e:2x4", "estimate": True, "clock": "1.75"}, "--clock: '1.75' has no unit"),
        ({"slice": ["v5e:4x4", "v5e:4x8"]}, "--slice: this answers about one slice"),
        ({"weigths": "int8"}, "unknown word 'weigths': did you mean weights"),
    ],
    ids=lambda value: " ".join(f"{name}={word}" for name, word in value.items()) if isinstance(value, dict) else "",
)
def test_words_that_no_program_serves_are_refused_before_compiling(
    compiler: Callable[..., list[Job]], words: dict[str, Any], line: str
) -> None:
    jobs = compiler()
    with pytest.raises(InputError) as caught:
        verify("llama-3-8b", **{"slice": "v5e:4x4", **words})
    assert str(caught.value).startswith(line)
    assert jobs == []


def test_a_chip_whose_clock_is_not_known_has_no_estimate_without_one(
    compiler: Callable[..., list[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, known = compiler(), load_slice("v5e:4x4")
    unknown = replace(known, chip=replace(known.chip, clock_hz=None))
    monkeypatch.setattr("slicewise.planner.question.load_slice", lambda *_: unknown)
    with pytest.raises(
        InputError, match=r"--estimate: the clock of v5e is not known here; give --clock, such as 1\.75GHz"
    ):
        verify("llama-3-8b", slice="v5e:4x4", estimate=True)
    assert jobs == []


@pytest.mark.parametrize("word", ["estimate", "max_batch"])
@pytest.mark.parametrize(("found", "fix"), [(CPU, CPU.why_not_tpu), (replace(CPU, why_not_tpu=""), "leave --compiler")])
def test_the_cpus_compiler_neither_estimates_nor_refuses(
    compiler: Callable[..., list[Job]], word: str, found: Compiler, fix: str
) -> None:
    jobs = compiler(found)
    with pytest.raises(InputError) as caught:
        verify("llama-3-8b", slice="v5e:4x4", **{word: True})
    assert str(caught.value).startswith(f"--{word.replace('_', '-')}: only the TPU's compiler ")
    assert f"; {fix}" in str(caught.value)
    assert jobs == []


def test_a_place_that_cannot_be_written_is_found_out_before_compiling(
    compiler: Callable[..., list[Job]], tmp_path: Path
) -> None:
    jobs = compiler()
    for place in (tmp_path, tmp_path / "missing" / "program.txt"):
        with pytest.raises(InputError, match=r"^--hlo .*: cannot be written; give another place$"):
            verify("llama-3-70b", **BOOK, hlo=place)
    assert jobs == []


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("mixtral-8x7b", "it has layers of full + experts"),
        ("deepseek-v3", "it has layers of latent + dense and of latent + experts"),
        ("gemma-2-2b", "it has layers of sliding + dense"),
    ],
)
def test_models_of_other_families_are_one_line(monkeypatch: pytest.MonkeyPatch, model: str, why: str) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr(run_module, "find_compiler", lambda *_: TPU)
    with pytest.raises(InputError) as caught:
        verify(model, slice="v5e:4x4")
    line = str(caught.value)
    assert line.startswith(f"{model}: the program is that of the LLaMA family")
    assert why in line
    assert line.endswith("; plan it without verify")


def test_the_function_is_had_from_its_package_without_jax() -> None:
    code = "import sys\nfrom slicewise.verify import verify\nassert callable(verify)\nassert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the verdict -----------------------------------------------------------------------------------------------------


def test_the_compilers_verdict_counts(compiler: Callable[..., list[Job]]) -> None:
    compiler()
    taken = verify("llama-3-70b", **BOOK)
    assert (taken.fits, taken.plan_fits, taken.judged, taken.reason) == (True, True, True, None)
    assert taken.needed_bytes_per_chip == taken.reading.total_bytes == 32e6 + 20 + 12
    assert taken.available_bytes_per_chip == 15.75 * 2**30
    compiler(most=31)
    refused = verify("llama-3-70b", **BOOK)
    assert (refused.fits, refused.plan_fits, refused.judged) == (False, True, True)
    assert refused.reason == "RESOURCE_EXHAUSTED: too large"
    assert (refused.needed_bytes_per_chip, refused.available_bytes_per_chip) == (17e9, 16e9)


def test_the_cpus_compiler_leaves_the_verdict_to_the_plan(compiler: Callable[..., list[Job]]) -> None:
    compiler(CPU)
    for batch, fits in ((32, True), (3200, False)):
        found = verify("llama-3-70b", **{**BOOK, "batch": batch})
        assert (found.fits, found.plan_fits, found.judged) == (fits, fits, False)
        assert (found.reason is None) == fits
        assert any(CPU.why_not_tpu in line for line in found.assumptions)


def test_bytes_of_a_chip_are_those_of_its_devices(compiler: Callable[..., list[Job]]) -> None:
    compiler(most=0)
    refused = verify("llama-3-8b", slice="tpu7x:2x2x1", batch=8, context=1024)
    assert (refused.needed_bytes_per_chip, refused.available_bytes_per_chip) == (34e9, 32e9)


def test_a_refusal_without_bytes_leaves_those_of_the_catalog(
    compiler: Callable[..., list[Job]], monkeypatch: pytest.MonkeyPatch, refused: Reading, declared_of: Callable
) -> None:
    compiler()
    silent = replace(refused, refusal=Refusal(needed_bytes=None, available_bytes=None, message="too large"))
    outcome = Outcome(declared=declared_of(), reading=silent, was_kept=False)
    monkeypatch.setattr(run_module, "run_best", lambda *_, **__: outcome)
    found = verify("llama-3-70b", **BOOK)
    assert (found.needed_bytes_per_chip, found.available_bytes_per_chip) == (None, 15.75 * 2**30)


def test_the_json_is_the_result_and_the_plan(compiler: Callable[..., list[Job]]) -> None:
    compiler(most=100)
    data = verify("llama-3-70b", **BOOK, estimate=True, max_batch=True).to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["batch"], data["context_tokens"], data["program"]) == (32, 8192, "decode")
    assert data["plan"]["batch"] == 32
    assert {row["part"] for row in data["rows"]} == {"memory", "collectives", "flops"}
    assert {"reading", "step"} & set(data) == set()
    assert data["collectives"][0]["kind"] == "all-reduce"


# -- the job ---------------------------------------------------------------------------------------------------------


def test_the_job_is_the_plan(compiler: Callable[..., list[Job]]) -> None:
    jobs = compiler()
    verify("llama-3-70b", **BOOK)
    (job,) = jobs
    assert (job.kind, job.form, job.size, job.context, job.scaled) == ("decode", LOOP, 32, 8192, True)
    verify("llama-3-70b", **BOOK, book=True, params="70e9")
    assert not jobs[-1].scaled
    verify("llama-3-70b", slice="v5e:4x4", **INT8, isl=4096, prefill=True)
    assert (jobs[-1].kind, jobs[-1].size) == ("prefill", 4096)
    verify("llama-3-70b", **BOOK, estimate=True)
    assert jobs[-1].form == WRITTEN_OUT


def test_without_a_batch_it_is_the_plans_largest(compiler: Callable[..., list[Job]]) -> None:
    jobs = compiler()
    found = verify("llama-3-70b", slice="v5e:4x4", **INT8, context=8192)
    assert jobs[0].size == found.batch == found.step.batch == found.step.max_batch


def test_the_cache_has_room_for_the_whole_conversation_and_is_read_in_full(compiler: Callable[..., list[Job]]) -> None:
    jobs = compiler()
    found = verify("llama-3-70b", slice="v5e:4x4", **INT8, batch=8, isl=1000, osl=500)
    assert jobs[0].context == found.context_tokens == found.step.context_tokens == 1500
    attention = next(row for row in found.rows if row.name == "attention")
    assert attention.plan == pytest.approx(4 * 8 * 1500 * 64 * 128 * 80 / 16)
    assert any("1,500 tokens a sequence" in line for line in found.assumptions)


# -- the largest batch -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 2, 3, 40, 99, 100, 150, 1000])
def test_the_largest_batch_is_the_last_whole_round_that_compiles(compiler: Callable[..., list[Job]], most: int) -> None:
    jobs = compiler(most=most)
    found = verify("llama-3-70b", slice="v5e:4x4", **INT8, context=8192, max_batch=True)
    assert found.max_batch is not None
    assert found.max_batch.batch == most // 2 * 2
    assert [each.batch for each in found.max_batch.tried] == [job.size for job in jobs]
    assert all(each.batch % 2 == 0 and each.fits == (each.batch <= most) for each in found.max_batch.tried)
    assert all(each.needed_bytes_per_chip for each in found.max_batch.tried)
    assert found.batch == (found.max_batch.batch or 2)
    assert found.fits == (found.max_batch.batch > 0)


def test_a_batch_that_was_given_stays(compiler: Callable[..., list[Job]]) -> None:
    compiler(most=100)
    found = verify("llama-3-70b", **BOOK, max_batch=True)
    assert found.max_batch is not None
    assert (found.max_batch.batch, found.batch) == (100, 32)


def test_the_plans_own_is_counted_at_full_usable_hbm(compiler: Callable[..., list[Job]]) -> None:
    compiler(most=100)
    found = [
        verify("llama-3-70b", **BOOK, max_batch=True, memory_fraction=fraction).max_batch for fraction in (0.5, 0.9, 1)
    ]
    assert len({each.plan_batch for each in found if each}) == 1
    plan = verify("llama-3-70b", **BOOK, memory_fraction=1).step
    assert found[0] is not None
    assert found[0].plan_batch == plan.max_batch


# -- the estimate ----------------------------------------------------------------------------------------------------


def test_a_published_step_is_shown_beside_the_estimate_of_the_very_same(compiler: Callable[..., list[Job]]) -> None:
    compiler()
    same = verify("llama-3-70b", **BOOK, estimate=True).estimate
    assert same is not None
    assert same.measured_s == pytest.approx(1 / 93.8)
    assert same.measured_where
    for other in ({"batch": 31}, {"context": 8191}, {"kv": "bf16"}, {"slice": "v5e:4x8"}):
        found = verify("llama-3-70b", **{**BOOK, **other}, estimate=True).estimate
        assert found is not None
        assert (found.measured_s, found.measured_where) == (None, "")


def test_the_clock_is_the_catalogs_unless_given(compiler: Callable[..., list[Job]]) -> None:
    compiler()
    catalog = verify("llama-3-70b", **BOOK, estimate=True).estimate
    given = verify("llama-3-70b", **BOOK, estimate=True, clock="750MHz").estimate
    assert catalog is not None
    assert given is not None
    assert (catalog.clock_hz, given.clock_hz) == (1.5e9, 750e6)
    assert given.parts[0].core_s == pytest.approx(2 * catalog.parts[0].core_s)


def test_bounds_are_those_of_the_plan_at_that_context(compiler: Callable[..., list[Job]]) -> None:
    compiler()
    found = verify("llama-3-70b", **BOOK, estimate=True)
    assert found.estimate is not None
    assert found.estimate.roofline_s == pytest.approx(found.step.step_roofline_s)
    assert found.estimate.overlapped_s == pytest.approx(found.step.step_overlapped_s)
    assert found.estimate.parts[0].ici_s == pytest.approx(found.step.ici_s)


def test_what_is_refused_has_no_estimate(compiler: Callable[..., list[Job]]) -> None:
    compiler(most=31)
    assert verify("llama-3-70b", **BOOK, estimate=True).estimate is None


# -- with jax, for one device of the CPU -----------------------------------------------------------------------------


def test_the_cpus_program_is_the_plans(tiny: Model, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    words = {"slice": "v5e:1x1", "batch": 4, "context": 128, "compiler": "cpu"}
    place = tmp_path / "program.txt"
    found = verify(tiny, **words, hlo=place)
    rows = {row.name: row for row in found.rows}
    for name in ("weights", "KV cache", "matmuls", "attention"):
        assert rows[name].ratio == pytest.approx(1)
    assert not found.was_kept
    assert place.read_text(encoding="utf-8").startswith("HloModule")
    again = verify(tiny, **words)
    assert again.was_kept
    assert (again.rows, again.compile_s) == (found.rows, found.compile_s)


def test_one_chip_of_the_cpu_moves_nothing(tiny: Model) -> None:
    pytest.importorskip("jax")
    found = verify(tiny, slice="v5e:1x1", batch=4, context=128, compiler="cpu")
    assert [row for row in found.rows if row.part == "collectives"] == []


def test_prefill_attends_in_blocks(tiny: Model) -> None:
    pytest.importorskip("jax")
    found = verify(tiny, slice="v5e:1x1", isl=2048, prefill=True, compiler="cpu")
    rows = {row.name: row for row in found.rows}
    assert rows["matmuls"].ratio == pytest.approx(1)
    assert rows["attention"].ratio == pytest.approx(1 + 1 / 2)
    assert "2 blocks of queries" in rows["attention"].why
