"""A fleet in the planner's words: which deployments serve, by which rules, and with whose times."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slicewise.planner.deployment import Deployment
from slicewise.traffic.fleets import Fleet, PrefillPool
from slicewise.traffic.planned import DECIDING, blocks_of, longest_of, pool_of, server_of
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Policy, Server


@dataclass(frozen=True, kw_only=True)
class Design:
    """Servers of one kind, or prefill servers before decode servers; how many stand elsewhere.

    Attributes:
        deployment: a server; of a split fleet, a decode server.
        prefill: a prefill server; None where each server does both phases.
        policy: the rules of a server.
        route: how a request finds its server.
    """

    deployment: Deployment
    prefill: Deployment | None
    policy: Policy
    route: str

    @property
    def usd_per_hour(self) -> float | None:
        """Price of one server; None where none is known. [USD/h]"""
        price, slice_ = self.deployment.price, self.deployment.slice
        return None if price is None else price.usd_per_chip_hour * slice_.n_chips

    def server(self, requests: Requests, names: tuple[str, str] = DECIDING) -> Server:
        """A server for requests of such lengths, with the times of these names.

        Raises:
            InputError: it holds no block of the cache, or is of several groups.
        """
        return server_of(self.deployment, self.policy, requests, names)

    def pool(self, requests: Requests, n_servers: int, names: tuple[str, str] = DECIDING) -> PrefillPool | None:
        """Its prefill servers; None where it has none.

        Raises:
            InputError: one holds no block of the cache, or the rate of the hand-off is not known.
        """
        if self.prefill is None:
            return None
        one = replace(self.policy, max_num_seqs=1)
        room = blocks_of(self.prefill, one, requests) * one.block_tokens
        longest, kept = longest_of(requests, room), room if self.policy.caches_prefixes else 0
        typical = max(round(float(requests.prompt_tokens.mean())), 1)
        return pool_of(self.prefill, self.deployment, n_servers, longest, names, kept, typical)

    def fleet(self, requests: Requests, n_servers: int, n_prefill: int = 0, names: tuple[str, str] = DECIDING) -> Fleet:
        """So many servers for requests of such lengths, with the times of these names.

        Raises:
            InputError: a server holds no block of the cache, or the rate of the hand-off is not known.
        """
        return Fleet(
            server=self.server(requests, names),
            n_servers=n_servers,
            route=self.route,
            prefill=self.pool(requests, n_prefill, names),
            n_chips=self.deployment.slice.n_chips,
            usd_per_hour=self.usd_per_hour,
        )
