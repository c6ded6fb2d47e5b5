"""`slicewise web`."""

from __future__ import annotations

import click

from slicewise.errors import InputError

_HOST, _PORT = "127.0.0.1", 8080


@click.command()
@click.option("--host", metavar="ADDRESS", default=_HOST, show_default=True, help="Address to listen on.")
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), default=_PORT, show_default=True, help="Port.")
def web(host: str, port: int) -> None:
    """Open the explorer: a page on this machine where a plan can be seen, moved and understood."""
    try:
        from slicewise.web.serve import serve
    except ImportError as error:
        raise InputError(
            f"the explorer needs {error.name}: pip install 'slicewise[web]' (a checkout: '.[web]')"
        ) from None
    serve(host, port, told=_told)


def _told(address: str, is_open: bool) -> None:  # noqa: FBT001 - as it is called
    click.echo(f"slicewise explorer: {address} (stop with Ctrl-C)")
    if is_open:
        click.echo(
            "slicewise: warning: other machines may reach it, under any name, and nobody is asked who they are;"
            " leave --host out for this machine alone",
            err=True,
        )
