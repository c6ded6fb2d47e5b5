"""Sweeps: the same table wherever they run, Ctrl-C in the middle, and what they need."""

import importlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from helpers.sizes import SHAPES, STRICT, traffic
from slicewise.errors import InputError
from slicewise.traffic.curves import load_curve
from slicewise.traffic.size import size
from slicewise.traffic.sweep import sweep

Told = Callable[[int, int], None]


def stop_after(n: int) -> Told:
    def told(done: int, total: int) -> None:
        if done == n:
            raise KeyboardInterrupt

    return told


def test_results_in_the_order_of_the_points() -> None:
    told: list[tuple[int, int]] = []
    found = sweep(math.sqrt, (16.0, 9.0, 4.0), progress=lambda done, total: told.append((done, total)))
    assert (found.results, found.is_whole) == ((4.0, 3.0, 2.0), True)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert sweep(math.sqrt, ()).results == ()


def test_ctrl_c_gives_what_is_done() -> None:
    found = sweep(math.sqrt, (16.0, 9.0, 4.0), progress=stop_after(2))
    assert (found.results, found.is_whole) == ((4.0, 3.0, None), False)

    def stopped(point: float) -> float:
        if point == 9.0:
            raise KeyboardInterrupt
        return math.sqrt(point)

    found = sweep(stopped, (16.0, 9.0, 4.0))
    assert (found.results, found.is_whole) == ((4.0, None, None), False)


def test_one_process_needs_no_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert sweep(math.sqrt, (16.0,)).results == (4.0,)


@pytest.mark.parametrize(
    ("missing", "words", "says"),
    [
        ("joblib", {"jobs": 2}, "more than one job needs joblib; install it with: pip install 'slicewise[traffic]'"),
        ("joblib", {"backend": "dask"}, "dask needs joblib; install it with: pip install 'slicewise[traffic]'"),
        ("distributed", {"backend": "dask"}, "install it with: pip install 'dask[distributed]'"),
        ("ray", {"backend": "ray"}, "the backend ray needs ray; install it with: pip install 'ray[default]'"),
        ("", {"backend": "slurm"}, "backend 'slurm' is not known; choose local, dask, ray"),
        ("", {"jobs": 0}, "0 jobs run nothing; give at least 1"),
    ],
)
def test_what_is_missing_is_named(
    missing: str, words: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing != "joblib" and "backend" in words:
        pytest.importorskip("joblib")
    monkeypatch.setitem(sys.modules, missing or "no such module", None)
    with pytest.raises(InputError) as refused:
        sweep(math.sqrt, (16.0,), **words)
    assert says in str(refused.value)


def test_without_a_dask_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("joblib")
    pytest.importorskip("distributed")
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    with pytest.raises(InputError, match="there is no Dask cluster; start one, and name its scheduler"):
        sweep(math.sqrt, (16.0,), backend="dask")
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:9")
    monkeypatch.setattr("slicewise.traffic.sweep.DASK_WAIT", "200ms")
    with pytest.raises(InputError, match=r"no Dask cluster answers at tcp://127\.0\.0\.1:9; start one"):
        sweep(math.sqrt, (16.0,), backend="dask")


def tables(**words: Any) -> tuple[Any, ...]:
    """A load curve and a sizing, as JSON and as they are."""
    curve = load_curve(
        "llama-3-8b", slice="v5e:2x2", trace=traffic(0), requests=40, rate=["8", "24"], seed=["0", "1"], **words
    )
    sizing = size(traffic(0, n=60), SHAPES, STRICT, **words)
    return len(curve.points), sizing, curve.to_dict(), sizing.to_dict()


def test_two_processes_give_the_table_of_one() -> None:
    pytest.importorskip("joblib")
    found = tables(jobs=2)
    assert found == tables()
    assert found[0] == 4


def test_a_dask_cluster_gives_the_table_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    here = tables()
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    words = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**words) as cluster:
        with distributed.Client(cluster) as client:
            assert len({worker["pid"] for worker in client.run(lambda: {"pid": os.getpid()}).values()}) == 2
            assert tables(backend="dask") == here
            stopped = sweep(math.sqrt, range(8), backend="dask", progress=stop_after(3))
            assert not stopped.is_whole
            assert sum(result is not None for result in stopped.results) == 3
            # What was stopped leaves the cluster in order.
            assert sweep(math.sqrt, (16.0, 9.0), backend="dask").results == (4.0, 3.0)
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        assert sweep(math.sqrt, (16.0, 9.0), backend="dask").results == (4.0, 3.0)


def test_ctrl_c_of_two_processes_gives_what_is_done() -> None:
    pytest.importorskip("joblib")
    found = sweep(math.sqrt, range(20), jobs=2, progress=stop_after(3))
    assert not found.is_whole
    there = {place: result for place, result in enumerate(found.results) if result is not None}
    assert len(there) == 3
    assert all(result == math.sqrt(place) for place, result in there.items())

    def stopped(point: int) -> int:
        if point == 5:
            raise KeyboardInterrupt
        return point

    found_here = sweep(stopped, range(20), jobs=2)
    assert not found_here.is_whole
    assert all(result in (None, place) for place, result in enumerate(found_here.results))


def test_a_refusal_in_another_process_is_the_same_line() -> None:
    pytest.importorskip("joblib")
    with pytest.raises(InputError) as refused:
        load_curve("llama-3-8b", slice="v5e:2x2", trace=traffic(0), rate=["8", "-1"], jobs=2)
    with pytest.raises(InputError) as refused_here:
        load_curve("llama-3-8b", slice="v5e:2x2", trace=traffic(0), rate=["8", "-1"])
    assert str(refused.value) == str(refused_here.value)


def test_a_process_that_dies_is_told() -> None:
    pytest.importorskip("joblib")

    def dies(point: int) -> None:
        os._exit(1)

    with pytest.raises(InputError, match="a process ended by itself, most likely for want of memory; take fewer jobs"):
        sweep(dies, range(4), jobs=2)


SLOW = """
import os, time
from slicewise.traffic.sweep import sweep

def say(text):
    os.write(1, text.encode() + bytes([10]))  # whole, whatever other processes write

def wait(point):
    say("begun")
    time.sleep(0.05 if point < 2 else 60)
    return point

if __name__ == "__main__":
    print(sweep(wait, range(6), jobs=JOBS, progress=lambda done, total: say(f"done {done}")))
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="groups of processes are those of POSIX")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_at_a_terminal_leaves_no_process(jobs: int, tmp_path: Any) -> None:
    if jobs > 1:
        pytest.importorskip("joblib")
    script = tmp_path / "slow.py"
    script.write_text(SLOW.replace("JOBS", str(jobs)))
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            lines: list[str] = []
            while "done 2" not in lines or lines.count("begun") < 2 + jobs:
                lines.append(run.stdout.readline().strip())
                assert lines[-1], lines
            # A terminal sends it to the whole group.
            os.killpg(run.pid, signal.SIGINT)
            rest, errors = run.communicate(timeout=20)
            assert "results=(0, 1, None, None, None, None), is_whole=False" in rest
            # Of joblib's own keeper of resources, a line that some are gone already may be there.
            assert "Traceback" not in errors
            assert "KeyboardInterrupt" not in errors
            # What the group still holds ends within a moment.
            until = time.monotonic() + 5
            while is_there(run.pid) and time.monotonic() < until:
                time.sleep(0.05)
            assert not is_there(run.pid)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_sweep_imports_no_joblib_before_it_is_needed() -> None:
    code = "import sys, slicewise.traffic.size, slicewise.traffic.curves; print('joblib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert importlib.util.find_spec("slicewise.traffic.sweep")
