"""Errors as problem documents (RFC 9457): what was wrong, and what to do, for every way a request can fail."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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
from orchestrator.faults import MAX_CHARS, place, unknown_field, words
from service.methods import allowed
from storage.artifacts import ArtifactMissing
from storage.jobs import IllegalState
from storage.submissions import OtherRequest, TooManyJobs

MEDIA_TYPE = "application/problem+json"
TOO_LARGE = frozenset({"too_large", "too_many_pixels"})
RETRY_AFTER_SECONDS = 5
IN_ITS_LOG = "its log says more to whoever runs it"
_FRAMEWORK_COULD_NOT_READ = "There was an error parsing the body"
MAX_FAULTS = 20
MAX_NAME = 60
_PARTS = (("body",), ("query",), ("path",), ("header",))
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

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Fault] = (),
    ) -> None:
        super().__init__(detail)
        self.errors = list(errors) or None
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
    detail = error.outside
    if error.is_private:
        _log.warning("%s", error)
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
            _log.error("%s", error)
            return problem(404, "artifact_missing", "this file is gone from the server's store: tell who runs it")
        case BackendMisconfigured():
            _log.error("%s", error)
            return problem(500, "misconfigured", f"this server is not set up rightly: {IN_ITS_LOG}")
        case _:
            _log.error("%s", error)
            return problem(500, "internal", f"a fault of this server's own: {IN_ITS_LOG}")


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return problem(error.status, error.code, error.detail, errors=error.errors, headers=error.headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = list(error.errors())
    read_as = getattr(request.scope.get("route"), "body_field", None)
    if any(each["loc"] == ("body",) for each in errors) and not _says_json(request):
        return problem(415, "media_type", "the body is not read as JSON: send Content-Type: application/json")
    return invalid(errors, None if read_as is None else read_as.field_info.annotation)


def _says_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def invalid(errors: Sequence[Any], kind: Any = None, *, more: Sequence[Fault] = ()) -> JSONResponse:
    """From pydantic's list of errors about a body that is read as `kind`; what was sent is not repeated.

    `more`: faults that were found otherwise, told first.
    """
    if errors and errors[0]["type"] == "json_invalid":
        why = str(errors[0].get("ctx", {}).get("error", "it cannot be read"))[:MAX_CHARS]
        return problem(400, "not_json", f"the body is not JSON ({why}): correct it")
    faults = _merged([*more, *(_fault_of(error, kind) for error in errors[:MAX_FAULTS])])
    detail = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:3])
    return problem(422, "invalid", detail, errors=faults)


def _fault_of(error: Any, kind: Any) -> Fault:
    part, *inside = error["loc"] if error["loc"][:1] in _PARTS else ("body", *error["loc"])
    is_unknown = error["type"] == "extra_forbidden"
    names, known = [str(each) for each in inside], list[str]()
    if part == "body" and kind is not None:
        names, known = place(kind, inside[:-1] if is_unknown else inside)
        names += [str(inside[-1])] if is_unknown else []
    says = unknown_field(names[-1][:MAX_NAME], known) if is_unknown and known else words(error)
    return Fault(where=one_line(".".join(name[:MAX_NAME] for name in names)) or "body", message=says)


def _merged(faults: Sequence[Fault]) -> list[Fault]:
    """One for a field: what fits no branch of a union has a fault for each, or one deeper in one of them."""
    found: dict[str, str] = {}
    for fault in faults:
        if any(other.where.startswith(f"{fault.where}.") for other in faults):
            continue
        before = found.get(fault.where)
        also = fault.message.removeprefix("must be ")
        found[fault.where] = fault.message if before in (None, fault.message) else f"{before}, or {also}"
    return [Fault(where=where, message=message) for where, message in found.items()]


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
    return problem(500, "internal", f"a fault of this server's own: {IN_ITS_LOG}")
