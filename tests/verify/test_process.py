"""The compiler's process: what it answers, what is seen meanwhile, and what becomes of its death."""

import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.spec.model import Model
from slicewise.verify import process
from slicewise.verify.job import LOOP, Job
from slicewise.verify.process import CompilerDiedError, compiled
from slicewise.verify.recipe import Recipe
from slicewise.verify.toolchain import Compiler

TASK = "Compiling decode for v5e:2x4"


@pytest.fixture
def recipe(tiny: Model, deployment_of: Callable[..., Deployment]) -> Recipe:
    deployment = deployment_of(tiny, slice="v5e:1x1", context=128)
    cpu = Compiler("cpu", "XLA:CPU")
    return Job(deployment=deployment, kind="decode", form=LOOP, size=2, scaled=True, compiler=cpu).recipe()


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a script in the place of the compiler's process."""

    def make(code: str) -> None:
        start = process.subprocess.Popen
        monkeypatch.setattr(
            process.subprocess, "Popen", lambda _, **words: start([sys.executable, "-c", code], **words)
        )

    return make


def ask(recipe: Recipe, **environment: str) -> dict[str, Any]:
    return compiled(recipe, TASK, environment, None)


def test_the_answer_is_what_is_printed(child: Callable[[str], None], recipe: Recipe) -> None:
    child("import os; print('{\"reading\": \"' + os.environ['A_WORD'] + '\"}')")
    assert ask(recipe, A_WORD="heard") == {"reading": "heard"}


def test_chatter_is_kept_away(child: Callable[[str], None], recipe: Recipe, capfd: pytest.CaptureFixture[str]) -> None:
    child("import sys; sys.stderr.write('W0000 chatter'); print('{}')")
    assert ask(recipe) == {}
    assert capfd.readouterr() == ("", "")


def test_a_refusal_is_the_users(child: Callable[[str], None], recipe: Recipe) -> None:
    child("""print('{"refused": "--slice: one line"}')""")
    with pytest.raises(InputError, match=r"^--slice: one line$"):
        ask(recipe)


@pytest.mark.parametrize(("cause", "may_live"), [("SIGSEGV", False), ("SIGKILL", True)])
def test_a_death_is_one_line(child: Callable[[str], None], recipe: Recipe, cause: str, may_live: bool) -> None:
    child(f"import os, signal; os.write(2, b'too deep\\n'); os.kill(os.getpid(), signal.{cause})")
    with pytest.raises(CompilerDiedError) as caught:
        ask(recipe)
    assert str(caught.value) == f"{TASK}: the compiler died ({cause}; its last words: too deep)"
    assert caught.value.may_live == may_live


def test_a_process_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch, recipe: Recipe) -> None:
    def start(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(process.subprocess, "Popen", start)
    with pytest.raises(InputError, match=r"cannot be started \(Cannot allocate memory\); give it room$"):
        ask(recipe)


def test_giving_up_is_no_refusal_of_the_users_words(child: Callable[[str], None], recipe: Recipe) -> None:
    child("""print('{"gave up": "INTERNAL"}')""")
    with pytest.raises(CompilerDiedError, match=r"^INTERNAL$"):
        ask(recipe)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "import os; os.write(2, b'one\\nunknown flag\\n'); os._exit(7)",
            "exit code 7; its last words: unknown flag",
        ),
        ("pass", "exit code 0"),
    ],
)
def test_an_end_without_an_answer_is_no_death(
    child: Callable[[str], None], recipe: Recipe, code: str, told: str
) -> None:
    child(code)
    with pytest.raises(InputError) as caught:
        ask(recipe)
    assert not isinstance(caught.value, CompilerDiedError)
    assert str(caught.value) == f"{TASK}: the compiler ended ({told})"


def test_what_the_environment_tells_jax_is_left_out(
    child: Callable[[str], None], recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    child("import json, os; print(json.dumps([name for name in os.environ if name.startswith('JAX_')]))")
    assert ask(recipe, JAX_PLATFORMS="cpu") == ["JAX_PLATFORMS"]


def test_ctrl_c_ends_it_at_once(child: Callable[[str], None], recipe: Recipe) -> None:
    child("import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask(recipe)
    assert time.monotonic() - start < 30


def test_a_real_process_answers_whatever_the_folder_and_the_environment(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax")
    (tmp_path / "jax.py").write_text("raise RuntimeError('not this one')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "nonsense")
    found = compiled(recipe, TASK, {"JAX_PLATFORMS": "cpu"}, tmp_path / "program.txt")
    assert found["reading"]["compiler"] == "XLA:CPU"
    assert (tmp_path / "program.txt").read_text(encoding="utf-8").startswith("HloModule")


def _all_of(reader: int) -> Iterator[str]:
    while select.select([reader], [], [], 0.1)[0]:
        yield os.read(reader, 10_000).decode()


def test_a_terminal_sees_seconds_pass_and_then_nothing(
    child: Callable[[str], None], recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pytest.importorskip("pty").openpty()
    child("import time; time.sleep(0.5); print('{}')")
    monkeypatch.setattr(process, "TICK_S", 0.05)
    monkeypatch.setattr(process.shutil, "get_terminal_size", lambda: os.terminal_size((20, 24)))
    with os.fdopen(writer, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        ask(recipe)
        seen = "".join(_all_of(reader))
    os.close(reader)
    assert re.match(r"\r.* \.\.\. \d+ s", seen)
    assert max(len(line) for line in seen.split("\r")) < 20
    *_, cleared, end = seen.split("\r")
    assert (cleared.strip(), end) == ("", "")


@pytest.mark.parametrize("stream", [None, sys.__stdout__])
def test_work_goes_on_without_a_terminal(
    child: Callable[[str], None], recipe: Recipe, monkeypatch: pytest.MonkeyPatch, stream: Any
) -> None:
    child("print('{}')")
    monkeypatch.setattr(sys, "stderr", stream)
    assert ask(recipe) == {}
