"""What a server, or the way to it, says instead of an answer; named by what the caller should do.

    ClientError
    ├── RequestRejected    fix the request (400, 413, 415, 422): `faults` name the fields
    ├── KeyRefused         give another API key (401, 403)
    ├── NotThere           no such job, file or route, or not this key's (404)
    ├── WrongMoment        look at the job's state, or at the key's other request (409)
    ├── TryLater           ask again after `retry_after_seconds` (429, 502, 503, 504)
    ├── StillGoing         wait longer: the job goes on
    ├── ServerUnreachable  start the server, or correct its address
    ├── ServerFailed       look into the server's log (500)
    └── NotUnderstood      the answer is no Cliploop server's, or another version's

No message holds the API key.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.errors import CliploopError


class ClientError(CliploopError):
    """Base: `str(error)` is one line. `status` is None where there was no answer; `code` is for programs."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after_seconds: float | None = None,
        faults: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.retry_after_seconds = retry_after_seconds
        self.faults = tuple(faults)  # (field, what is wrong with it)
        self.repeated = False  # an earlier answer to the same request was lost


class RequestRejected(ClientError):
    """The request cannot be served as it is."""


class KeyRefused(ClientError):
    """The API key is missing, wrong or revoked."""


class NotThere(ClientError):
    """No such job or file, or not this key's."""


class WrongMoment(ClientError):
    """The job's state does not allow it now, or the idempotency key was used for another request."""


class TryLater(ClientError):
    """The server is busy, limited or not whole."""


class StillGoing(ClientError):
    """The job has not ended in the time that was given."""


class ServerUnreachable(ClientError):
    """Nobody answers, or the connection was lost, for longer than the client is patient."""


class ServerFailed(ClientError):
    """A fault of the server's own."""


class NotUnderstood(ClientError):
    """An answer in a form that this version does not know."""


BY_STATUS: dict[int, type[ClientError]] = {
    400: RequestRejected,
    401: KeyRefused,
    403: KeyRefused,
    404: NotThere,
    409: WrongMoment,
    413: RequestRejected,
    415: RequestRejected,
    416: RequestRejected,
    422: RequestRejected,
    429: TryLater,
    502: TryLater,
    503: TryLater,
    504: TryLater,
}


def kind_of(status: int) -> type[ClientError]:
    """The error of a status."""
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status >= 500:
        return ServerFailed
    return RequestRejected if status >= 400 else NotUnderstood
