"""The application: the page, the answers, the pages about them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from threading import Thread
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

import slicewise
from slicewise.report.figures import vega_library
from slicewise.web.api import DEFECT, detail, router
from slicewise.web.documentation import documentation_page
from slicewise.web.schema import DESCRIPTION, with_answers
from slicewise.web.security import Guard

PAGE = Path(str(resources.files("slicewise.report").joinpath("page")))


class Application(FastAPI):
    """FastAPI, whose description tells the keys of each answer, once somebody asks for it."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description."""
        if self.openapi_schema is None:
            self.openapi_schema = with_answers(super().openapi())
        return self.openapi_schema


def create_app(hosts: frozenset[str] | None = None) -> FastAPI:
    """The application.

    Args:
        hosts: names that it answers for; None for any.
    """
    app = Application(
        title="slicewise",
        version=slicewise.__version__,
        description=DESCRIPTION,
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        lifespan=_warm,
        exception_handlers={Exception: _defect},
    )
    app.add_middleware(Guard, hosts=hosts)
    app.include_router(router())
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.add_api_route("/openapi.json", lambda: JSONResponse(app.openapi()), include_in_schema=False)
    app.add_api_route("/static/vega.js", _vega, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE, check_dir=False))
    return app


@asynccontextmanager
async def _warm(app: FastAPI) -> AsyncIterator[None]:
    """Make the charts' library in the background: it takes seconds, and the page needs it last."""
    del app
    Thread(target=vega_library, daemon=True).start()
    yield


async def _defect(request: Request, error: Exception) -> Response:
    """What should not happen is said in one line; the server's log has the rest."""
    del request
    return detail(f"a defect of slicewise, please report it: {type(error).__name__}", DEFECT)


def _page() -> FileResponse:
    return FileResponse(PAGE / "index.html")


def _docs() -> HTMLResponse:
    return HTMLResponse(documentation_page(slicewise.__version__))


def _vega() -> Response:
    return Response(vega_library(), media_type="text/javascript", headers={"cache-control": "max-age=86400"})
