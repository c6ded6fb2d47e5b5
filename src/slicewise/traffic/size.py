"""Sizing: how many servers of which shape meet latency limits under a trace at least cost.

Each shape of fleet is searched on its own, each fleet is run at most once, and all that was run is kept as a row. The
searches go side by side: each round runs the next fleet of every shape, so that rows are the same for any number of
processes. Searches hold that one more server never hurts; `search` says what is left where it does.

Cost is the price of the fleet an hour; where the price of some shape is not known, its chips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from slicewise.errors import InputError
from slicewise.traffic.fleets import outcome_of
from slicewise.traffic.limits import Limit, Verdict, goodput_limits, verdict
from slicewise.traffic.metrics import metrics
from slicewise.traffic.requests import Requests
from slicewise.traffic.search import Counts, Search, shared_search, split_search
from slicewise.traffic.shapes import Shape, alone, busy_counts
from slicewise.traffic.sizing import Answer, Sizing, Tried, cost_key, rows_below
from slicewise.traffic.sweep import LOCAL, Run, workers
from slicewise.units import show

MOST_SERVERS = 1024
_IN_DOUBT, _IN_DOUBT_GAPS = 1.001, 1.05
"""Times that requests take alone refuse a shape where they are so many times a limit. Gaps are told in parts, each with
its mean: alone and under load a percentile may be of other parts."""


def size(
    requests: Requests,
    shapes: Sequence[Shape],
    limits: Sequence[Limit],
    *,
    warm_up_s: float = 0.0,
    most_servers: int = MOST_SERVERS,
    jobs: int = 1,
    backend: str = LOCAL,
    progress: Callable[[Tried], None] | None = None,
) -> Sizing:
    """The cheapest fleet that meets limits, of each shape and of all. Stopped by Ctrl-C, what is known so far.

    Args:
        requests: in the order of their arrival.
        shapes: kinds of fleets, each with a name of its own.
        limits: that all have to be kept.
        warm_up_s: requests that arrive earlier are left out of the latencies. [s]
        most_servers: of a kind in a fleet.
        jobs: processes of this machine; shapes are run side by side.
        backend: local, dask or ray, as of `sweep`.
        progress: is told each fleet that was run.

    Raises:
        InputError: no limits, shapes, servers or requests; two shapes of one name; or as of `sweep`.
    """
    _refuse(requests, shapes, limits, most_servers)
    works = [_Work(requests, shape, tuple(limits), warm_up_s, most_servers) for shape in shapes]
    searches = _Searches(works, has_price=all(shape.has_price for shape in shapes), progress=progress)
    is_whole = False
    try:
        with workers(jobs, backend) as run:
            searches.refuse_hopeless(run)
            while searches.asked:
                searches.round(run)
        is_whole = True
    except KeyboardInterrupt:
        pass
    return Sizing(
        limits=tuple(limits),
        answers=tuple(searches.answer(place, is_whole=is_whole) for place in range(len(shapes))),
        tried=tuple(row for known in searches.known for _, row in sorted(known.items())),
        has_price=searches.has_price,
        is_whole=is_whole,
    )


@dataclass(frozen=True)
class _Work:
    """What a process has to know to run fleets of a shape."""

    requests: Requests
    shape: Shape
    limits: tuple[Limit, ...]
    warm_up_s: float
    most_servers: int
    counts: Counts = (0, 0)


def _alone(work: _Work) -> Verdict:
    return alone(work.requests, work.shape, work.limits, work.warm_up_s, work.most_servers)


def tried(work: _Work) -> Tried:
    """A fleet's row.

    Raises:
        KeyboardInterrupt: the run was stopped.
    """
    fleet = work.shape.fleet(*work.counts)
    outcome = outcome_of(work.requests, fleet)
    if not outcome.is_whole:
        raise KeyboardInterrupt
    told = metrics(
        work.requests,
        outcome,
        n_chips=fleet.total_chips,
        usd_per_hour=fleet.total_usd_per_hour,
        warm_up_s=work.warm_up_s,
        **goodput_limits(work.limits),
    )
    return Tried(
        shape=work.shape.name,
        n_servers=work.counts[0],
        n_prefill=work.counts[1],
        total_chips=fleet.total_chips,
        usd_per_hour=fleet.total_usd_per_hour,
        verdict=verdict(work.limits, told, outcome),
        metrics=told,
    )


@dataclass
class _Searches:
    """Searches of all shapes, one entry each.

    Attributes:
        works: what processes have to know.
        has_price: fleets are compared by price, not by chips.
        progress: is told each row.
        known: rows by counts.
        refused: why no count does; nothing where one may.
        asked: the search of each shape that goes on, with the counts that it asks for.
        found: counts that a search came to.
    """

    works: list[_Work]
    has_price: bool
    progress: Callable[[Tried], None] | None
    known: list[dict[Counts, Tried]] = field(init=False)
    refused: list[str] = field(init=False)
    asked: dict[int, tuple[Search, Counts]] = field(init=False, default_factory=dict)
    found: dict[int, Counts | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.known, self.refused = [{} for _ in self.works], ["" for _ in self.works]

    def refuse_hopeless(self, run: Run) -> None:
        """Begin the searches of the shapes that may meet the limits at some count."""
        with closing(run(_alone, self.works)) as results:
            for place, told in results:
                self.refused[place] = _hopeless(told, self.works[place].warm_up_s)
        for place, work in enumerate(self.works):
            if not self.refused[place]:
                search = self._search(work)
                self.asked[place] = search, next(search)
                self._answer(place)

    def _search(self, work: _Work) -> Search:
        start = busy_counts(work.requests, work.shape)
        if not work.shape.is_split:
            return shared_search(start[0], work.most_servers)
        return split_search(start, work.most_servers, lambda counts: cost_key(work.shape, counts, self.has_price))

    def round(self, run: Run) -> None:
        """Run the fleet that each search asks for, and tell them."""
        places = list(self.asked)
        with closing(run(tried, [replace(self.works[at], counts=self.asked[at][1]) for at in places])) as results:
            for at, row in results:
                self.known[places[at]][self.asked[places[at]][1]] = row
                if self.progress:
                    self.progress(row)
        for place in places:
            self._answer(place)

    def _answer(self, place: int) -> None:
        """Tell a search what is known until it asks for what is not."""
        search, counts = self.asked.pop(place)
        known = self.known[place]
        try:
            while counts in known or self._is_too_few(place, counts):
                row = known.get(counts)
                if row and row.verdict.dropped:
                    self.refused[place] = f"{row.verdict.reasons[0]}, however many there are"
                    return
                counts = search.send(row is not None and row.kept)
        except StopIteration as stop:
            self.found[place] = stop.value
            if stop.value is None and not known:
                self.refused[place] = f"the rate alone takes more than {self.works[place].most_servers:,} servers"
            elif stop.value is None:
                last = known[max(known)]
                split = f" and {last.n_prefill:,} prefill" if last.n_prefill else ""
                self.refused[place] = f"{last.verdict.reasons[0]}, even with {last.n_servers:,}{split} servers"
            return
        self.asked[place] = search, counts

    def _is_too_few(self, place: int, counts: Counts) -> bool:
        """Whether the load is more than so many servers can finish, however short the run is that would show it."""
        least = self.works[place].shape.least
        return counts[0] < least[0] or counts[1] < least[1]

    def answer(self, place: int, *, is_whole: bool) -> Answer:
        """What is known of a shape."""
        shape, known = self.works[place].shape, self.known[place]
        kept = [counts for counts, row in known.items() if row.kept]
        best = self.found.get(place) or min(
            kept, key=lambda counts: cost_key(shape, counts, self.has_price), default=None
        )
        return Answer(
            shape=shape.name,
            is_split=shape.is_split,
            best=known[best] if best else None,
            rejected=rows_below(known, best) if best else (),
            refused=self.refused[place],
            is_whole=is_whole or place in self.found or bool(self.refused[place]),
        )


def _hopeless(told: Verdict, warm_up_s: float) -> str:
    """Why no count of servers does, by what requests take alone; nothing where one may."""
    if told.dropped:
        return f"{told.reasons[0]}, however many there are"
    for check in told.checks:
        # A warm-up leaves out gaps by when they are, which under load is not when they are alone.
        is_itl = check.limit.metric == "itl"
        least = check.limit.seconds * (_IN_DOUBT_GAPS if is_itl else _IN_DOUBT)
        if check.seconds is not None and check.seconds > least and not (is_itl and warm_up_s):
            over = show(check.seconds - check.limit.seconds, "s", 3)
            return (
                f"{check.limit.title} is {show(check.seconds, 's', 4)} where no request waits for another, over"
                f" {show(check.limit.seconds, 's')} by {over}: no count of servers helps"
            )
    return ""


def _refuse(requests: Requests, shapes: Sequence[Shape], limits: Sequence[Limit], most_servers: int) -> None:
    if not len(requests):
        raise InputError("there are no requests to size for; give a trace or a load that holds one")
    if not limits:
        raise InputError("there is no limit to size for; give at least one, such as a TTFT of p95:2s")
    if not shapes:
        raise InputError("there is no shape of fleet to size; give at least one")
    names = [shape.name for shape in shapes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two shapes are named '{twice}'; give each a name of its own")
    if most_servers < 1:
        raise InputError(f"{most_servers} servers serve nobody; give at least 1")
