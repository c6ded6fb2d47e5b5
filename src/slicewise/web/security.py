"""What every answer carries, and whose requests are heard: headers against foreign content, and the Host header."""

from __future__ import annotations

import ipaddress
import json
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",  # pictures are exported by way of data and blob addresses
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
"""No script, picture or answer from elsewhere, and nothing evaluated from text: Vega runs with its interpreter."""

HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_REFUSED, _FOREIGN = 421, 403
_HERE_ALONE = "this server answers for localhost only; open http://127.0.0.1 on this machine"
_NO_FOREIGN = "another site's page asks; open the address itself, or ask from a program"


class Guard:
    """Adds the headers to every answer, and hears only the hosts that are served.

    On a loopback address only its own names are answered: a page elsewhere whose name is made to point here, as DNS
    rebinding does, would otherwise read the answers. A question from another site's page is refused before it is
    computed: that page could not read the answer, but could keep the server busy.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self.hosts is not None and host_name(Headers(scope=scope).get("host", "")) not in self.hosts:
            await _refuse(send_with_headers, _REFUSED, _HERE_ALONE)
            return
        if _is_foreign(scope):
            await _refuse(send_with_headers, _FOREIGN, _NO_FOREIGN)
            return
        await self.app(scope, receive, send_with_headers)


def _is_foreign(scope: Scope) -> bool:
    """Whether a browser says that the question comes from the page of another site."""
    asks = str(scope["path"]).startswith("/api/")
    return asks and Headers(scope=scope).get("sec-fetch-site", "").strip().lower() == "cross-site"


async def _refuse(send: Send, status: int, message: str) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": message}).encode()})


def hosts_of(address: str, host: str = "") -> frozenset[str] | None:
    """The names that a server bound to an address answers for; None for any, where it is open to a network.

    Args:
        address: as the socket tells it, for a name may stand for any address.
        host: by what name it was asked for.

    >>> sorted(hosts_of("127.0.0.1")), hosts_of("0.0.0.0")
    (['127.0.0.1', '::1', 'localhost'], None)
    """
    return _LOOPBACK | {address.lower(), *([host.lower()] if host else [])} if is_loopback(address) else None


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone.

    >>> is_loopback("127.1.2.3"), is_loopback("::ffff:127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def host_name(header: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("localhost:8080"), host_name("[::1]:8080"), host_name("[")
    ('localhost', '::1', '')
    """
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""
