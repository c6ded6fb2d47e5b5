"""Sweeps: a function over many points, in this process, in several, or on a cluster that the user already has.

joblib runs what is not of this process; it is an extra, and imported only then. A result depends on its point alone, so
that the same sweep gives the same table wherever it runs. Ctrl-C ends a sweep with the results that are there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from slicewise.errors import InputError

P = TypeVar("P")
R = TypeVar("R")
LOCAL, DASK, RAY = "local", "dask", "ray"
BACKENDS = (LOCAL, DASK, RAY)
Run = Callable[[Callable[[Any], Any], Sequence[Any]], Generator[tuple[int, Any], None, None]]
"""Gives the place of each point with its result, as they come."""
DASK_WAIT = "10s"
"""For a scheduler to answer."""
Told = Callable[[int, int], None]
"""Is told how many points are done, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept(Generic[R]):
    """Results of a sweep.

    Attributes:
        results: in the order of the points; None where there is none, as the sweep was stopped.
        is_whole: the sweep was not stopped.
    """

    results: tuple[R | None, ...]
    is_whole: bool


def sweep(
    function: Callable[[P], R],
    points: Iterable[P],
    *,
    jobs: int = 1,
    backend: str = LOCAL,
    progress: Told | None = None,
) -> Swept[R]:
    """A function's results at points.

    Args:
        function: of a module, so that other processes find it; what it gives depends on the point alone. It raises
            KeyboardInterrupt where it was stopped.
        points: that it is called with.
        jobs: processes of this machine; a cluster is used whole.
        backend: local, dask (the client at work, or the scheduler that DASK_SCHEDULER_ADDRESS names) or ray (the
            cluster at work, or that RAY_ADDRESS names).
        progress: is told how many are done.

    Raises:
        InputError: no such backend or count, something that it needs is not installed, or there is no cluster.
    """
    here = list(points)
    found: list[R | None] = [None] * len(here)
    is_whole = False
    with suppress(KeyboardInterrupt), workers(jobs, backend) as run, closing(run(function, here)) as results:
        for done, (place, result) in enumerate(results, start=1):
            found[place] = result
            if progress:
                progress(done, len(here))
        is_whole = True
    return Swept(results=tuple(found), is_whole=is_whole)


@contextmanager
def workers(jobs: int = 1, backend: str = LOCAL) -> Iterator[Run]:
    """What runs functions over points, for as many sweeps as it is open; then its processes end.

    Raises:
        InputError: as of `sweep`.
    """
    if backend not in BACKENDS:
        raise InputError(f"backend '{backend}' is not known; choose {', '.join(BACKENDS)}")
    if jobs < 1:
        raise InputError(f"{jobs} jobs run nothing; give at least 1")
    if backend == LOCAL:
        with _local(jobs) as run:
            yield run
    else:
        with {DASK: _dask, RAY: _ray}[backend]() as run:
            yield run


def _here(function: Callable[[Any], Any], points: Sequence[Any]) -> Generator[tuple[int, Any], None, None]:
    return ((place, function(point)) for place, point in enumerate(points))


@contextmanager
def _local(jobs: int) -> Iterator[Run]:
    if jobs == 1:
        yield _here
        return
    joblib = _needed("joblib", "more than one job needs joblib")
    is_over = False
    try:
        # Points are pickled: arrays in shared files would outlive processes that are stopped.
        with joblib.parallel_config("loky", n_jobs=jobs, initializer=_ignore_ctrl_c, max_nbytes=None):
            yield _streamed(joblib)
        is_over = True
    except BrokenProcessPool as error:
        raise InputError("a process ended by itself, most likely for want of memory; take fewer jobs") from error
    finally:
        # joblib keeps its processes for the next call; here they end.
        import_module("joblib.externals.loky").get_reusable_executor().shutdown(wait=True, kill_workers=not is_over)


@contextmanager
def _dask() -> Iterator[Run]:
    joblib = _needed("joblib", "the backend dask needs joblib")
    distributed = _needed("distributed", "the backend dask needs dask[distributed]")
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    try:
        there = {"set_as_default": False, "timeout": DASK_WAIT}
        client = distributed.Client(address, **there) if address else distributed.get_client()
    except (ValueError, OSError) as error:
        what = f"no Dask cluster answers at {address}" if address else "there is no Dask cluster"
        raise InputError(
            f"{what}; start one, and name its scheduler: DASK_SCHEDULER_ADDRESS=tcp://host:8786"
        ) from error
    try:
        with joblib.parallel_config("dask", client=client, n_jobs=-1):
            yield _streamed(joblib)
    except TimeoutError as error:
        raise InputError("the Dask cluster has no workers; start some: dask worker tcp://host:8786") from error
    finally:
        if address:
            client.close()


@contextmanager
def _ray() -> Iterator[Run]:
    joblib = _needed("joblib", "the backend ray needs joblib")
    ray = _needed("ray", "the backend ray needs ray")
    try:
        if not ray.is_initialized():
            ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
    except (ConnectionError, ValueError) as error:
        raise InputError("there is no Ray cluster; start one, and name it: RAY_ADDRESS=host:6379") from error
    import_module("ray.util.joblib").register_ray()
    with joblib.parallel_config("ray", n_jobs=-1):
        yield _in_rounds(joblib, int(ray.cluster_resources().get("CPU", 1)))


def _streamed(joblib: Any) -> Run:
    def run(function: Callable[[Any], Any], points: Sequence[Any]) -> Generator[tuple[int, Any], None, None]:
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        results = parallel(_calls(joblib, function, points))
        try:
            # Not `yield from`, which hands the end on to joblib: that would warn of results that nobody reads.
            for result in results:  # noqa: UP028
                yield result
        except GeneratorExit:
            with suppress(KeyboardInterrupt, StopIteration):
                results.throw(KeyboardInterrupt)
            raise

    return run


def _in_rounds(joblib: Any, size: int) -> Run:
    """Ray gives results only when a call is over: as many points a call as it has processors."""

    def run(function: Callable[[Any], Any], points: Sequence[Any]) -> Generator[tuple[int, Any], None, None]:
        calls = list(_calls(joblib, function, points))
        for begin in range(0, len(calls), size):
            yield from joblib.Parallel(batch_size=1)(calls[begin : begin + size])

    return run


def _calls(joblib: Any, function: Callable[[Any], Any], points: Sequence[Any]) -> Generator[Any, None, None]:
    return (joblib.delayed(_placed)(function, place, point) for place, point in enumerate(points))


def _placed(function: Callable[[Any], Any], place: int, point: Any) -> tuple[int, Any]:
    return place, function(point)


def _ignore_ctrl_c() -> None:
    """Ctrl-C goes to every process of a terminal; that which asked ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _needed(module: str, why: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        packages = {"joblib": "slicewise[traffic]", "distributed": "dask[distributed]", "ray": "ray[default]"}
        raise InputError(f"{why}; install it with: pip install '{packages[module]}'") from error
