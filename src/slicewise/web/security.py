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
        "style-src 'self' 'unsafe-inline'",  # Vega sets the style of its tooltip and of its frame in the page
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
_REFUSED = 421


class Guard:
    """Adds the headers to every answer, and hears only the hosts that are served.

    On a loopback address only its own names are answered: a page elsewhere whose name is made to point here, as DNS
    rebinding does, would otherwise read the answers.
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
            await _refuse(send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)


async def _refuse(send: Send) -> None:
    body = json.dumps({"detail": "this server answers for localhost only; open http://127.0.0.1 on this machine"})
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": _REFUSED, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def hosts_of(host: str) -> frozenset[str] | None:
    """The names that a server bound to an address answers for; None for any, where it is open to a network.

    >>> sorted(hosts_of("127.0.0.1")), hosts_of("0.0.0.0")
    (['127.0.0.1', '::1', 'localhost'], None)
    """
    return _LOOPBACK | {host} if is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("localhost:8080"), host_name("[::1]:8080"), host_name("[")
    ('localhost', '::1', '')
    """
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""
