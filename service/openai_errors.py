"""Errors in the form that OpenAI's clients read, for every answer under /v1/videos.

Whatever refuses a request there, an access check or a limit before any route too, answers with a problem
document; the middleware here says the same in the other form, so nobody else has to know it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import MEDIA_TYPE, Refused

PREFIX = "/v1/videos"
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_PARAMS = {"empty_prompt": "prompt", "prompt_too_long": "prompt", "not_text": "prompt", "budget": "budget"}
_OF_THE_PICTURE = frozenset(
    {
        *("empty", "not_a_picture", "too_many_pixels", "too_small", "extreme_aspect", "truncated", "unsupported"),
        "unreadable",
    }
)
_WORTH_A_RETRY = frozenset({"still_stopping"})  # of the conflicts


class ErrorWords(BaseModel):
    """What was wrong. `param` is the field that it is about; `code` is short and stable."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIError(BaseModel):
    """An error as OpenAI's API gives it."""

    error: ErrorWords


class Wrong(Refused):
    """A request that cannot be served, and the field that is wrong with it."""

    def __init__(self, code: str, detail: str, param: str | None = None, *, status: int = 400) -> None:
        super().__init__(status, code, detail)
        self.param = param


def speaks_openai(path: str) -> bool:
    """Whether answers at this path are in OpenAI's form."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says of these statuses, and of those that any route here can give."""
    schema = {"$ref": "#/components/schemas/OpenAIError"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": schema}}}
        for status in sorted({*statuses, 400, 401, 429, 503})
    }


def install(app: FastAPI) -> None:
    """Have every error under /v1/videos answered in this form. To be called after all other middleware."""
    app.add_exception_handler(Wrong, _wrong)
    app.add_middleware(InTheirForm)


async def _wrong(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Wrong)
    return _response(error.status, error.code, error.detail, error.param, error.headers)


def of_problem(document: dict[str, Any], headers: dict[str, str]) -> JSONResponse:
    """The same as a problem document. What is invalid is a bad request (400) here."""
    status, code = int(document["status"]), str(document["code"])
    detail = str(document["detail"])
    return _response(400 if status == 422 else status, code, detail, _param(document, code, detail), headers)


def _param(document: dict[str, Any], code: str, detail: str) -> str | None:
    faults = document.get("errors")
    if faults:
        return str(faults[0]["where"]).partition(".")[0]
    if code in _OF_THE_PICTURE:
        return "input_reference"
    if code == "misconfigured" and ":" in detail:  # the field that named it comes first
        named = detail.partition(":")[0]
        return named if named.isidentifier() else None
    return _PARAMS.get(code)


def _response(status: int, code: str, message: str, param: str | None, headers: dict[str, str]) -> JSONResponse:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body = OpenAIError(error=ErrorWords(message=message, type=kind, param=param, code=code))
    said = dict(headers)
    if status == 409 and code not in _WORTH_A_RETRY:
        said["x-should-retry"] = "false"  # their clients send every conflict twice more otherwise
    return JSONResponse(body.model_dump(), status, headers=said)


@dataclass(frozen=True)
class InTheirForm:
    """Middleware, the outermost: problem documents under /v1/videos, and faults, become errors in this form."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not speaks_openai(scope["path"]):
            await self.app(scope, receive, send)
            return
        answer = _Answer(scope, receive, send)
        try:
            await self.app(scope, receive, answer.send)
        except Exception as error:
            if answer.begun:
                raise
            handler = scope["app"].exception_handlers[Exception]
            response: Response = await handler(Request(scope), error)
            await response(scope, receive, answer.send)


class _Answer:
    """One answer on its way out; a problem is held back until it is whole."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._start: Message | None = None
        self._body = b""
        self.begun = False

    async def send(self, message: Message) -> None:
        """Pass it on, or keep it and answer otherwise."""
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            self.begun = True
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._answer(self._start)

    async def _answer(self, start: Message) -> None:
        left = {b"content-type", b"content-length"}
        headers = {name.decode(): value.decode() for name, value in start["headers"] if name not in left}
        self.begun = True
        if not self._body:  # of a HEAD request
            await self._send({**start, "headers": [pair for pair in start["headers"] if pair[0] not in left]})
            await self._send({"type": "http.response.body", "body": b""})
            return
        await of_problem(json.loads(self._body), headers)(self._scope, self._receive, self._send)


def _is_problem(start: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(MEDIA_TYPE.encode()) for name, value in start["headers"]
    )
