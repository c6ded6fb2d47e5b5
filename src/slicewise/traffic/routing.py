"""Which server a request goes to. Servers are run up to its arrival only where that may change the choice."""

from __future__ import annotations

import numpy as np

from slicewise.traffic.batch import LiveServer
from slicewise.traffic.server import LEAST_LOADED, PREFIX_SLACK, ROUND_ROBIN


class Router:
    """Servers with what is known of their load.

    Attributes:
        unfinished: requests that each has and did not finish, as of the latest look at it. Shape (n,).
        same_until_s: before that nothing that a choice rests on changes. [s] Shape (n,).
    """

    def __init__(self, servers: list[LiveServer], route: str) -> None:
        self.servers, self.route = servers, route
        self.n_sent = 0
        self.is_blind = route == ROUND_ROBIN or len(servers) == 1
        self.unfinished = np.zeros(len(servers), dtype=np.int64)
        self.same_until_s = np.full(len(servers), np.inf)

    def send(self, request: int, now_s: float) -> int:
        """Send a request to a server at its arrival; which one."""
        at = self.n_sent % len(self.servers) if self.is_blind else self._chosen(request, now_s)
        self.n_sent += 1
        self.servers[at].take(request)
        self.unfinished[at] += 1
        self.same_until_s[at] = -np.inf
        return at

    def _chosen(self, request: int, now_s: float) -> int:
        for at in np.flatnonzero(self.same_until_s <= now_s).tolist():
            server = self.servers[at]
            server.advance(now_s)
            self.unfinished[at], self.same_until_s[at] = server.unfinished_at(now_s), server.same_until_s(now_s)
        if self.route == LEAST_LOADED:
            return int(self.unfinished.argmin())
        among = np.flatnonzero(self.unfinished <= self.unfinished.min() + PREFIX_SLACK)
        hits = np.array([self.servers[at].prefix_hits(request) for at in among.tolist()])
        best = among[hits == hits.max()]
        return int(best[self.unfinished[best].argmin()])
