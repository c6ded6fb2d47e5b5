"""The endpoints: each question by GET with the words in the address, and by POST with the words in a JSON body."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response

from slicewise.errors import InputError, SlicewiseError
from slicewise.web.answers import Answers, BusyError
from slicewise.web.questions import Question, questions
from slicewise.web.schema import get_schema, post_schema
from slicewise.web.words import MOST_BYTES, Asked, read_body, read_query

OFF, TOO_LARGE, BUSY, DEFECT = 422, 413, 503, 500
JSON = "application/json"
Endpoint = Callable[[Request], Awaitable[Response]]


class TooLargeError(InputError):
    """A body is larger than any question."""


def router() -> APIRouter:
    """The endpoints of all questions."""
    found, answers = APIRouter(prefix="/api"), Answers()
    for name, question in questions().items():
        found.add_api_route(
            f"/{name}",
            _answer(question, answers, _from_query),
            methods=["GET"],
            summary=question.summary,
            operation_id=f"get_{name}",
            tags=[question.tag],
            openapi_extra=get_schema(question),
            responses={},
        )
        if question.takes_config:
            found.add_api_route(
                f"/{name}",
                _answer(question, answers, _from_body),
                methods=["POST"],
                summary=f"{question.summary} Words, or a config.json, as a JSON body.",
                operation_id=f"post_{name}",
                tags=[question.tag],
                openapi_extra=post_schema(question),
            )
    return found


def detail(message: str, status: int) -> Response:
    """A refusal: one line."""
    return Response(json.dumps({"detail": message}), status, media_type=JSON)


def _answer(question: Question, answers: Answers, read: Callable[[Request, Question], Awaitable[Asked]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            asked = await read(request, question)
            body = await answers.get(f"{question.name} {asked.key}", lambda: question.render(asked))
        except TooLargeError as error:
            return detail(str(error), TOO_LARGE)
        except InputError as error:
            return detail(str(error), OFF)
        except BusyError:
            busy = detail("too many questions wait; ask again in a moment", BUSY)
            busy.headers["retry-after"] = "1"
            return busy
        except SlicewiseError as error:
            return detail(f"a defect of slicewise, please report it: {error}", DEFECT)
        return Response(body, media_type=question.media_type, headers=question.headers)

    return endpoint


async def _from_query(request: Request, question: Question) -> Asked:
    return read_query(request.query_params.multi_items(), question.in_query)


async def _from_body(request: Request, question: Question) -> Asked:
    if request.url.query:
        raise InputError("words stand in the address or in the body, and both are given; put all into the body")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooLargeError(f"the body is larger than {MOST_BYTES:,} bytes; a config.json is a few kB")
    return read_body(bytes(body), question.offered)
