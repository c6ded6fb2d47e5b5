"""A job: which form of the program is reported, and what is compiled, kept and saved for it."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.spec.model import Model
from slicewise.verify import job as job_module
from slicewise.verify.claims import Declared
from slicewise.verify.job import COPIES, LOOP, WRITTEN_OUT, Job, Outcome, run, run_best
from slicewise.verify.reading import Reading
from slicewise.verify.toolchain import Compiler

TPU, CPU = Compiler("tpu", "XLA:TPU"), Compiler("cpu", "XLA:CPU")
FITS, TOO_LARGE = 15e9, 17e9
ARGUMENTS = 10e9
PLAIN, COPYING, LARGE_COPYING = COPIES / 2 * ARGUMENTS, 0.3 * ARGUMENTS, 0.4 * ARGUMENTS


@pytest.fixture
def job(deployment_of: Callable[..., Deployment]) -> Job:
    deployment = deployment_of("llama-3-8b", slice="v5e:2x2", context=8192)
    return Job(deployment=deployment, kind="decode", form=LOOP, size=16, scaled=True, compiler=TPU)


@pytest.fixture
def forms(
    monkeypatch: pytest.MonkeyPatch,
    reading_of: Callable[..., Reading],
    refused: Reading,
    declared_of: Callable[..., Declared],
) -> Callable[..., list[str]]:
    """Makes a compiler that needs so many bytes beside the arguments of each form, None where it refuses it.

    What it gives is the list of forms that are compiled.
    """

    def make(loop: float | None, written_out: float | None) -> list[str]:
        compiled: list[str] = []
        beside = {LOOP: loop, WRITTEN_OUT: written_out}

        def compile_one(job: Job, hlo: Path | None = None, *, fresh: bool = False) -> Outcome:
            compiled.append(job.form)
            if hlo:
                hlo.write_text(job.form, encoding="utf-8")
            n_bytes = beside[job.form]
            reading = (
                replace(refused, form=job.form)
                if n_bytes is None
                else reading_of(form=job.form, argument_bytes=ARGUMENTS, temporary_bytes=n_bytes)
            )
            return Outcome(declared=declared_of(), reading=reading, was_kept=False)

        monkeypatch.setattr(job_module, "run", compile_one)
        return compiled

    return make


@pytest.mark.parametrize(
    ("loop", "written_out", "plan_bytes", "reported", "compiled"),
    [
        pytest.param(PLAIN, 0.0, FITS, LOOP, [LOOP], id="a loop without copies"),
        pytest.param(PLAIN, 0.0, TOO_LARGE, LOOP, [LOOP], id="a loop that fits where the plan does not"),
        pytest.param(COPYING, 0.0, FITS, WRITTEN_OUT, [LOOP, WRITTEN_OUT], id="copies, written out needs less"),
        pytest.param(COPYING, LARGE_COPYING, FITS, LOOP, [LOOP, WRITTEN_OUT], id="copies, written out needs more"),
        pytest.param(COPYING, COPYING, FITS, LOOP, [LOOP, WRITTEN_OUT], id="copies, written out needs as much"),
        pytest.param(COPYING, None, FITS, LOOP, [LOOP, WRITTEN_OUT], id="copies, written out is refused"),
        pytest.param(None, COPYING, FITS, WRITTEN_OUT, [LOOP, WRITTEN_OUT], id="refused, written out fits"),
        pytest.param(None, None, FITS, LOOP, [LOOP, WRITTEN_OUT], id="both refused"),
        pytest.param(None, 0.0, TOO_LARGE, LOOP, [LOOP], id="refused, as the plan says"),
    ],
)
def test_the_form_that_serves_best_is_reported(
    job: Job,
    forms: Callable[..., list[str]],
    tmp_path: Path,
    loop: float | None,
    written_out: float | None,
    plan_bytes: float,
    reported: str,
    compiled: list[str],
) -> None:
    found = forms(loop, written_out)
    outcome = run_best(job, plan_bytes)
    assert (outcome.reading.form, found, outcome.was_kept) == (reported, compiled, False)
    place = tmp_path / "program.txt"
    assert run_best(job, plan_bytes, place) == outcome
    assert place.read_text(encoding="utf-8") == reported


@pytest.mark.parametrize("words", [{"kind": "prefill"}, {"compiler": CPU}])
def test_prefill_and_the_cpu_have_one_form(job: Job, forms: Callable[..., list[str]], words: dict) -> None:
    for loop in (COPYING, None):
        found = forms(loop, 0.0)
        assert run_best(replace(job, **words), FITS).reading.form == LOOP
        assert found == [LOOP]


def test_fresh_reaches_both_forms(job: Job, monkeypatch: pytest.MonkeyPatch, forms: Callable[..., list[str]]) -> None:
    forms(COPYING, 0.0)
    compile_one, told = job_module.run, []
    monkeypatch.setattr(
        job_module, "run", lambda job, hlo=None, *, fresh=False: told.append(fresh) or compile_one(job, hlo)
    )
    run_best(job, FITS, fresh=True)
    assert told == [True, True]


def test_the_context_of_a_program_is_whole_tokens(job: Job) -> None:
    workload = replace(job.deployment.workload, capacity_context_tokens=8191.5)
    assert replace(job, deployment=job.deployment.with_(workload=workload)).context == 8192


# -- with jax, for one device of the CPU -----------------------------------------------------------------------------


@pytest.fixture
def small(tiny: Model, deployment_of: Callable[..., Deployment]) -> Job:
    pytest.importorskip("jax")
    deployment = deployment_of(tiny, slice="v5e:1x1", context=128, weights="int8", kv="int8")
    return Job(deployment=deployment, kind="decode", form=LOOP, size=4, scaled=True, compiler=CPU)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch, reading_of: Callable[..., Reading], small: Job) -> Job:
    """The small job, for a compiler that answers at once."""
    compiler = import_module("slicewise.verify.compiler")
    monkeypatch.setattr(compiler, "compile_and_read", lambda *_: (reading_of(), "HloModule of a compiler"))
    return small


def test_what_is_declared_is_what_the_compiler_is_given(small: Job) -> None:
    outcome = run(small)
    declared, model = outcome.declared, small.deployment.model
    layers, d_model = model.n_layers, model.d_model
    assert declared.line_bytes["KV cache"] == 2 * layers * 4 * 2 * 128 * 64
    assert declared.line_bytes["KV scales"] == 2 * layers * 4 * 2 * 128 * 2
    assert declared.vector_bytes == (2 * layers + 1) * d_model * 2
    assert (declared.sequences, declared.head_shards, declared.batch_shards) == (4, 1, 1)
    # The CPU's compiler pads nothing.
    assert dict(outcome.reading.line_bytes) == dict(declared.line_bytes)
    assert outcome.reading.argument_bytes == sum(declared.line_bytes.values())
    again = run(small)
    assert (outcome.was_kept, again.was_kept) == (False, True)
    assert (again.reading, again.declared) == (outcome.reading, declared)


def test_the_same_program_is_compiled_once(answered: Job, cache: Path) -> None:
    assert [run(answered).was_kept for _ in range(3)] == [False, True, True]
    assert not run(answered, fresh=True).was_kept
    assert len(list((cache / "verify").iterdir())) == 1


@pytest.mark.parametrize("damage", ["", "{}", "[]", "null", '{"refusal": 7}'])
def test_what_cannot_be_read_is_compiled_again(answered: Job, cache: Path, damage: str) -> None:
    run(answered)
    (kept,) = (cache / "verify").iterdir()
    kept.write_text(damage, encoding="utf-8")
    assert [run(answered).was_kept for _ in range(2)] == [False, True]


def test_other_programs_are_not_mistaken_for_it(answered: Job, cache: Path) -> None:
    deployment = answered.deployment
    others = [
        replace(answered, size=5),
        replace(answered, form=WRITTEN_OUT),
        replace(answered, scaled=False),
        replace(answered, compiler=Compiler("cpu", "XLA:CPU of another jax")),
        replace(answered, kind="prefill", size=128),
        replace(
            answered, deployment=deployment.with_(precision=replace(deployment.precision, weights="bf16", kv="int8"))
        ),
    ]
    assert not any(run(each).was_kept for each in (answered, *others))
    assert len(list((cache / "verify").iterdir())) == 1 + len(others)


def test_a_cache_that_cannot_be_written_costs_compiling_again(answered: Job, cache: Path) -> None:
    cache.write_text("a file in its place", encoding="utf-8")
    assert [run(answered).was_kept for _ in range(2)] == [False, False]


def test_the_text_is_saved_even_of_what_was_kept(answered: Job, tmp_path: Path) -> None:
    run(answered)
    place = tmp_path / "program.txt"
    assert not run(answered, place).was_kept
    assert place.read_text(encoding="utf-8") == "HloModule of a compiler"


def test_a_place_that_cannot_be_written_is_named(answered: Job, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--hlo .*missing/program.txt: cannot be written \(No such file"):
        run(answered, tmp_path / "missing" / "program.txt")
