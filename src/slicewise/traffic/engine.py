"""The event engine: requests go to servers, and while a batch stays the same its steps advance in one closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slicewise.errors import InputError
from slicewise.traffic.batch import Books
from slicewise.traffic.policies import live_server
from slicewise.traffic.requests import Requests
from slicewise.traffic.routing import Router
from slicewise.traffic.server import ROUTES, Outcome, Server

Progress = Callable[[int, int], None]
"""Is told how many requests have arrived, and of how many."""
_TOLD = 200
"""Times that progress is told in a run."""


def simulate(
    requests: Requests,
    server: Server,
    n_servers: int = 1,
    route: str = "round-robin",
    progress: Progress | None = None,
) -> Outcome:
    """What becomes of requests on servers that are all alike. Stopped by Ctrl-C, it gives what is known so far.

    Args:
        requests: in the order of their arrival.
        server: its times, room and rules.
        n_servers: how many there are.
        route: round-robin, least-loaded (fewest unfinished requests) or prefix-aware (most cached blocks,
            of servers that are not far busier than others).
        progress: is told how far the run is.

    Raises:
        InputError: no servers, or a route that is not known.
    """
    if n_servers < 1:
        raise InputError(f"{n_servers} servers serve nobody; give at least 1")
    if route not in ROUTES:
        raise InputError(f"route '{route}' is not known; choose {', '.join(ROUTES)}")
    books = Books.of(requests, server)
    servers = [live_server(books, server) for _ in range(n_servers)]
    kept = np.flatnonzero(fits(requests, server)).tolist()
    router = Router(servers, route)
    told = max(len(kept) // _TOLD, 1)
    arrived = 0
    try:
        for place, request in enumerate(kept):
            now_s = books.arrival_s[request]
            books.server[request] = router.send(request, now_s)
            arrived = request + 1
            if place % told == 0 and progress:
                # Servers that nobody has to look at are run up to here only to tell how far they are.
                for each in servers:
                    each.advance(now_s)
                progress(place, len(kept))
        for each in servers:
            each.advance(float("inf"))
    except KeyboardInterrupt:
        return books.outcome(arrived, is_whole=False)
    if progress:
        progress(len(kept), len(kept))
    return books.outcome(len(requests), is_whole=True)


def fits(requests: Requests, server: Server) -> np.ndarray:
    """Whether a server can ever hold a request, also when it has to compute it anew. Shape (n,)."""
    held = requests.prompt_tokens + requests.output_tokens - 1
    blocks = -(-held // server.policy.block_tokens)
    longest = len(server.times.prefills_s) - 1
    return np.asarray((blocks <= server.most_blocks) & (held <= longest))
