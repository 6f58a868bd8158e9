"""Errors as problem documents (RFC 9457): what was wrong, and what to do, for every way a request can fail."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from cliploop.terminal import one_line
from orchestrator.errors import (
    BackendMisconfigured,
    BackendUnavailable,
    CliploopError,
    JobNotFound,
    JobWaiting,
    TaskRejected,
)
from service.methods import allowed
from storage.artifacts import ArtifactMissing
from storage.jobs import IllegalState
from storage.submissions import OtherRequest, TooManyJobs

MEDIA_TYPE = "application/problem+json"
TOO_LARGE = frozenset({"too_large", "too_many_pixels"})
RETRY_AFTER_SECONDS = 5
_FRAMEWORK_COULD_NOT_READ = "There was an error parsing the body"
_log = logging.getLogger(__name__)


class Fault(BaseModel):
    """One wrong field: where it is and what is wrong with it."""

    where: str
    message: str


class Problem(BaseModel):
    """A problem document. `code` is short and stable, for programs; `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[Fault] | None = None


class Refused(Exception):
    """A request that cannot be served; what no error of the product's own says."""

    def __init__(self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers = dict(headers or {})


class BodyTooSlow(HTTPException):
    """A body that takes too long to come; raised like BodyTooLarge."""

    def __init__(self) -> None:
        super().__init__(
            408, "the request's body did not come in time: send it again", headers={"Connection": "close"}
        )


class BodyTooLarge(HTTPException):
    """More bytes than are read; raised while they arrive, so that the framework lets it pass."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            413,
            f"the request's body has more than {limit / 2**20:g} MiB, the limit here: send a smaller picture",
        )


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[Fault] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The response."""
    title = HTTPStatus(status).phrase
    document = Problem(
        type=f"urn:cliploop:{code}",
        title=title,
        status=status,
        detail=one_line(detail),  # it may repeat what was sent
        code=code,
        errors=errors,
    )
    return JSONResponse(
        document.model_dump(exclude_none=True), status, headers=dict(headers or {}), media_type=MEDIA_TYPE
    )


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says of these statuses, and of those that any route can give."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*statuses, 422, 503, 507})
    }


def install(app: FastAPI) -> None:
    """Have every error answered by a problem document."""
    app.add_exception_handler(CliploopError, _ours)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _fault)


async def _ours(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, CliploopError)
    return of_error(error)


def of_error(error: CliploopError) -> JSONResponse:
    """By what the caller should do."""
    detail = str(error)
    match error:
        case TaskRejected():
            return problem(413 if error.reason in TOO_LARGE else 422, error.reason, detail)
        case JobNotFound():
            return problem(404, "not_found", detail)
        case IllegalState():
            return problem(409, "illegal_state", detail)
        case OtherRequest():
            return problem(409, "idempotency_key_reused", detail)
        case TooManyJobs():
            headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
            return problem(429, "too_many_jobs", detail, headers=headers)
        case BackendUnavailable():
            seconds = max(1, round(error.retry_after_seconds or RETRY_AFTER_SECONDS))
            return problem(503, "unavailable", detail, headers={"Retry-After": str(seconds)})
        case JobWaiting():
            headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
            return problem(507 if error.reason == "disk" else 503, error.reason, detail, headers=headers)
        case ArtifactMissing():
            return problem(404, "artifact_missing", detail)
        case BackendMisconfigured():
            _log.error("%s", detail)
            return problem(500, "misconfigured", detail)
        case _:
            _log.error("%s", detail)
            return problem(500, "internal", detail)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return problem(error.status, error.code, error.detail, headers=error.headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return invalid(list(error.errors()))


def invalid(errors: list[Any]) -> JSONResponse:
    """From pydantic's list of errors; what was sent is not repeated."""
    faults = [Fault(where=_where(error), message=_words(error)) for error in errors[:20]]
    if errors and errors[0]["type"] == "json_invalid":
        return problem(400, "not_json", f"the body is not JSON: {faults[0].message}")
    detail = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:3])
    return problem(422, "invalid", detail, errors=faults)


def _where(error: Any) -> str:
    where = ".".join(str(part)[:60] for part in error["loc"] if part not in ("body", "query", "path"))
    return one_line(where) or "body"


def _words(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field: leave it out"
    return str(error["msg"])[:300]


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    code = {413: "too_large", 408: "too_slow"}.get(error.status_code, phrase)
    if error.status_code == 400 and error.detail == _FRAMEWORK_COULD_NOT_READ:
        return problem(400, "not_json", "the body is not JSON in UTF-8, or is nested too deeply: correct it")
    if error.status_code == 404:
        return problem(404, "not_found", "there is nothing at this address: see /docs for those that there are")
    headers = {"Allow": allowed(request)} if error.status_code == 405 else error.headers
    return problem(error.status_code, code, str(error.detail), headers=headers)


async def _gone(_request: Request, _error: Exception) -> JSONResponse:
    return problem(400, "incomplete", "the request's body stopped half-way: send it again")


async def _fault(request: Request, error: Exception) -> JSONResponse:
    _log.error("a fault of ours at %s", request.url.path, exc_info=error)
    return problem(500, "internal", "a fault of this server's own, which is in its log")
