"""Runs the server."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from slicewise.errors import InputError
from slicewise.web.app import create_app
from slicewise.web.security import hosts_of

_KEEP_ALIVE_S = 15
_BACKLOG = 256
_STOP_S = 3


def bound(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address; who serves on it makes it listen.

    Args:
        host: the address.
        port: the port; 0 for any that is free.

    Raises:
        InputError: the address is none, or is taken.
    """
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _taken(host, port, error) from None
    family, kind, protocol, _, address = places[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        raise _taken(host, port, error) from None
    return found


def _taken(host: str, port: int, error: OSError) -> InputError:
    return InputError(
        f"cannot listen on {host}, port {port} ({error.strerror}); give another --port, or another --host"
    )


def serve(host: str, port: int, told: Callable[[str, bool], None]) -> None:
    """Serve until it is stopped.

    Args:
        host: the address to listen on.
        port: the port.
        told: is given the address of the page once it is bound, and whether other machines may reach it.

    Raises:
        InputError: the address cannot be listened on.
    """
    opened = bound(host, port)
    hosts = hosts_of(opened.getsockname()[0], host)
    config = uvicorn.Config(
        create_app(hosts=hosts),
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_S,
        backlog=_BACKLOG,
        access_log=False,
    )
    told(f"http://{f'[{host}]' if ':' in host else host}:{port}", hosts is None)
    with opened:
        uvicorn.Server(config).run(sockets=[opened])
