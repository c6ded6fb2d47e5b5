"""A job: which form of the program is reported, and what is compiled, kept and saved for it."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.spec.model import Model
from slicewise.verify import job as job_module
from slicewise.verify.claims import Declared
from slicewise.verify.job import COPIES, LOOP, WRITTEN_OUT, Job, Outcome, run, run_best
from slicewise.verify.process import CompilerDiedError
from slicewise.verify.reading import Held, Reading
from slicewise.verify.toolchain import Compiler

TPU = Compiler("tpu", "XLA:TPU")
CPU = Compiler("cpu", "XLA:CPU", environment={"JAX_PLATFORMS": "cpu"})
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

    def make(loop: float | None, written_out: float | None, declared: float = FITS) -> list[str]:
        compiled: list[str] = []
        beside = {LOOP: loop, WRITTEN_OUT: written_out}

        def compile_one(job: Job, hlo: Path | None = None, *, fresh: bool = False) -> Outcome:
            compiled.append(job.form)
            n_bytes = beside[job.form]
            if hlo and n_bytes is not None:
                hlo.write_text(job.form, encoding="utf-8")
            reading = (
                replace(refused, form=job.form)
                if n_bytes is None
                else reading_of(form=job.form, argument_bytes=ARGUMENTS, temporary_bytes=n_bytes)
            )
            lines = {"weights": declared / 2, "KV cache": declared / 2}
            return Outcome(declared=declared_of(line_bytes=lines), reading=reading, was_kept=False)

        monkeypatch.setattr(job_module, "run", compile_one)
        return compiled

    return make


@pytest.mark.parametrize(
    ("loop", "written_out", "declared", "reported", "compiled"),
    [
        pytest.param(PLAIN, 0.0, FITS, LOOP, [LOOP], id="a loop without copies"),
        pytest.param(PLAIN, 0.0, TOO_LARGE, LOOP, [LOOP], id="a loop that fits against all odds"),
        pytest.param(COPYING, 0.0, FITS, WRITTEN_OUT, [LOOP, WRITTEN_OUT], id="copies, written out needs less"),
        pytest.param(COPYING, LARGE_COPYING, FITS, LOOP, [LOOP, WRITTEN_OUT], id="copies, written out needs more"),
        pytest.param(COPYING, COPYING, FITS, LOOP, [LOOP, WRITTEN_OUT], id="copies, written out needs as much"),
        pytest.param(COPYING, None, FITS, LOOP, [LOOP, WRITTEN_OUT], id="copies, written out is refused"),
        pytest.param(None, COPYING, FITS, WRITTEN_OUT, [LOOP, WRITTEN_OUT], id="refused, written out fits"),
        pytest.param(None, None, FITS, LOOP, [LOOP, WRITTEN_OUT], id="both refused"),
        pytest.param(None, 0.0, TOO_LARGE, LOOP, [LOOP], id="refused, and too large as declared"),
    ],
)
def test_the_form_that_serves_best_is_reported(
    job: Job,
    forms: Callable[..., list[str]],
    tmp_path: Path,
    loop: float | None,
    written_out: float | None,
    declared: float,
    reported: str,
    compiled: list[str],
) -> None:
    found = forms(loop, written_out, declared)
    outcome = run_best(job)
    assert (outcome.reading.form, found, outcome.was_kept) == (reported, compiled, False)
    place = tmp_path / "program.txt"
    assert run_best(job, place) == outcome
    assert not outcome.reading.fits or place.read_text(encoding="utf-8") == reported


def test_the_cpu_has_one_form(job: Job, forms: Callable[..., list[str]]) -> None:
    for loop in (COPYING, None):
        found = forms(loop, 0.0)
        assert run_best(replace(job, compiler=CPU)).reading.form == LOOP
        assert found == [LOOP]


def test_prefill_is_written_out_only_where_the_loop_is_refused(job: Job, forms: Callable[..., list[str]]) -> None:
    prompt = replace(job, kind="prefill")
    assert forms(COPYING, 0.0) == []
    assert run_best(prompt).reading.form == LOOP
    forms(None, COPYING)
    assert run_best(prompt).reading.form == WRITTEN_OUT


def test_a_loop_that_copies_each_layers_cache_is_written_out(
    job: Job, monkeypatch: pytest.MonkeyPatch, reading_of: Callable[..., Reading], declared_of: Callable[..., Declared]
) -> None:
    n_layers = job.deployment.model.n_layers
    declared = declared_of(line_bytes={"KV cache": 2.0 * n_layers * 1000, "weights": 0.0})
    for scope, size, form in (
        ("dot_product", 1000.0, WRITTEN_OUT),
        ("dot_product", 999.0, LOOP),
        ("head", 1e6, LOOP),
    ):
        held = (Held(scope=scope, n_bytes=size),)

        def answer(job: Job, *_: object, held: tuple[Held, ...] = held, fresh: bool = False) -> Outcome:
            reading = reading_of(form=job.form, argument_bytes=ARGUMENTS, held=held if job.form == LOOP else ())
            less = replace(reading, temporary_bytes=reading.temporary_bytes - (job.form != LOOP))
            return Outcome(declared=declared, reading=less, was_kept=fresh)

        monkeypatch.setattr(job_module, "run", answer)
        outcome = run_best(job)
        assert outcome.reading.form == form
        told = "as a loop the program keeps an array of 1,000 B beside its arguments"
        assert outcome.about_form == (told if form == WRITTEN_OUT else "")


def test_a_loop_that_kills_the_compiler_is_written_out(
    job: Job,
    monkeypatch: pytest.MonkeyPatch,
    reading_of: Callable[..., Reading],
    refused: Reading,
    declared_of: Callable[..., Declared],
) -> None:
    def answer(job: Job, *_: object, fresh: bool = False) -> Outcome:
        if job.form in dead:
            raise CompilerDiedError("the compiler died")
        return outcome

    monkeypatch.setattr(job_module, "run", answer)
    outcome = Outcome(declared=declared_of(), reading=reading_of(form=WRITTEN_OUT), was_kept=False)
    dead = [LOOP]
    assert run_best(job).about_form == "as a loop they are too much for the compiler"
    dead = [LOOP, WRITTEN_OUT]
    with pytest.raises(CompilerDiedError):
        run_best(job)
    dead = [WRITTEN_OUT]
    outcome = replace(outcome, reading=reading_of(temporary_bytes=1e6))
    assert run_best(job).about_form == "written out they are too much for the compiler"
    outcome = replace(outcome, reading=refused)
    with pytest.raises(CompilerDiedError):
        run_best(job)
    dead = [LOOP]
    with pytest.raises(CompilerDiedError):
        run_best(replace(job, compiler=CPU))


def test_fresh_reaches_both_forms(job: Job, monkeypatch: pytest.MonkeyPatch, forms: Callable[..., list[str]]) -> None:
    forms(COPYING, 0.0)
    compile_one, told = job_module.run, []
    monkeypatch.setattr(
        job_module, "run", lambda job, hlo=None, *, fresh=False: told.append(fresh) or compile_one(job, hlo)
    )
    run_best(job, fresh=True)
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
def answered(
    monkeypatch: pytest.MonkeyPatch,
    reading_of: Callable[..., Reading],
    declared_of: Callable[..., Declared],
    deployment_of: Callable[..., Deployment],
) -> Job:
    """A job for a compiler that answers at once."""

    def answer(_recipe: object, _task: str, _environment: object, hlo: Path | None) -> dict[str, Any]:
        if hlo:
            hlo.write_text("HloModule of a compiler", encoding="utf-8")
        return {"declared": asdict(declared_of()), "reading": reading_of().to_dict()}

    monkeypatch.setattr(job_module, "compiled", answer)
    deployment = deployment_of("llama-3.2-1b", slice="v5e:2x2", context=128, weights="int8", kv="int8")
    return Job(deployment=deployment, kind="decode", form=LOOP, size=4, scaled=True, compiler=CPU)


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


@pytest.mark.parametrize("damage", ["", "{}", "[]", "null", '{"reading": {}, "declared": {}}', '{"reading": 7}'])
def test_what_cannot_be_read_is_compiled_again(answered: Job, cache: Path, damage: str) -> None:
    run(answered)
    (kept,) = (cache / "verify").iterdir()
    kept.write_text(damage, encoding="utf-8")
    assert [run(answered).was_kept for _ in range(2)] == [False, True]


def test_other_programs_are_not_mistaken_for_it(answered: Job, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_(**words: Any) -> Job:
        return replace(answered, deployment=answered.deployment.with_(**words))

    model, precision = answered.deployment.model, answered.deployment.precision
    # Queries, keys and values are one matrix: this model has the same shapes in other heads.
    (cache_of_a_layer,) = model.mixers[0].caches
    wider = replace(cache_of_a_layer, head_dim=128, value_dim=128)
    mixer = replace(model.mixers[0], n_heads=16, n_kv_heads=4, head_dim=128, caches=(wider,))
    others = [
        replace(answered, size=5),
        replace(answered, form=WRITTEN_OUT),
        replace(answered, scaled=False),
        replace(answered, compiler=Compiler("cpu", "XLA:CPU of another jax")),
        replace(answered, compiler=Compiler("tpu", answered.compiler.versions)),
        with_(precision=replace(precision, weights="bf16")),
        with_(precision=replace(precision, kv="bf16")),
        with_(precision=replace(precision, compute="int8")),
        with_(slice=load_slice("v5e:2x4")),
        with_(slice=load_slice("v6e:2x2")),
        with_(model=replace(model, layers=tuple(replace(layer, mixer=mixer) for layer in model.layers))),
    ]
    others += [replace(each, kind="prefill", size=128) for each in (answered, *others)]
    # Two prompts differ in nothing that is left.
    n_programs = len({str(each.recipe()) for each in (answered, *others)})
    assert [run(each).was_kept for each in (answered, *others)].count(True) == 1 + len(others) - n_programs
    assert len(list((cache / "verify").iterdir())) == n_programs
    for name in ("LIBTPU_INIT_ARGS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "--xla_of_the_user=1")
        assert not run(answered).was_kept


@pytest.mark.parametrize(("cause", "is_kept"), [("SIGSEGV", True), ("SIGKILL", False)])
def test_a_death_is_kept_but_for_one_of_memory(
    answered: Job, monkeypatch: pytest.MonkeyPatch, cause: str, is_kept: bool
) -> None:
    asked = []

    def dies(*_: object) -> None:
        asked.append(cause)
        raise CompilerDiedError(f"the compiler died ({cause})", may_live=not is_kept)

    monkeypatch.setattr(job_module, "compiled", dies)
    for _ in range(2):
        with pytest.raises(CompilerDiedError, match=cause):
            run(answered)
    assert len(asked) == (1 if is_kept else 2)
    with pytest.raises(CompilerDiedError):
        run(answered, fresh=True)
    assert len(asked) == (2 if is_kept else 3)


def test_a_cache_that_cannot_be_written_costs_compiling_again(answered: Job, cache: Path) -> None:
    cache.write_text("a file in its place", encoding="utf-8")
    assert [run(answered).was_kept for _ in range(2)] == [False, False]


def test_the_text_is_saved_even_of_what_was_kept(answered: Job, tmp_path: Path) -> None:
    run(answered)
    place = tmp_path / "program.txt"
    assert not run(answered, place).was_kept
    assert place.read_text(encoding="utf-8") == "HloModule of a compiler"


def test_a_place_that_cannot_be_written_is_named(small: Job, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--hlo .*missing/program.txt: cannot be written \(No such file"):
        run(small, tmp_path / "missing" / "program.txt")
