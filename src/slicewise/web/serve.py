"""Runs the server."""

from __future__ import annotations

import logging

import uvicorn

from slicewise.errors import InputError
from slicewise.web.app import create_app
from slicewise.web.security import hosts_of

_KEEP_ALIVE_S = 15
_BACKLOG = 256


def serve(host: str, port: int) -> None:
    """Serve until it is stopped.

    Args:
        host: the address to listen on.
        port: the port.

    Raises:
        InputError: the address cannot be listened on.
    """
    config = uvicorn.Config(
        create_app(hosts=hosts_of(host)),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        backlog=_BACKLOG,
        access_log=False,
    )
    try:
        uvicorn.Server(config).run()
    except SystemExit:
        # uvicorn has logged why, and leaves: the command line says it in its one line.
        logging.shutdown()
        raise InputError(f"cannot listen on {host}, port {port}; give another --port or --host") from None
