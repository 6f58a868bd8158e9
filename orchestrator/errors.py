"""Errors, named by what the caller should do; caught only at boundaries (attempt, HTTP, job).

    CliploopError
    ├── TaskRejected          fix the input
    ├── BackendMisconfigured  fix the configuration
    ├── BackendUnavailable    retry later: backoff with jitter, honours retry_after, then waiting
    │   └── SubmissionUnknown a remote render may have begun: submitted again, or asked first, by the job's policy
    ├── BackendFailed         this attempt is lost and counted
    ├── ReplyUnreadable       ask again: three asks in all, then waiting `unclear`
    ├── ReplyBlocked          a safety filter: one more ask, then waiting `backend`
    ├── JobNotFound
    ├── JobCancelled
    └── JobWaiting            stopped, resumable: the runner records it

`Suspended` is a BaseException: only the journal raises it, only the runner catches it.
"""

from __future__ import annotations

from orchestrator.plain import encodable
from orchestrator.records import Spend, WaitReason


class CliploopError(Exception):
    """Base: `str(error)` is one line that says what was wrong, where, and what to do.

    `outside` tells it to those who only call a service: no address of its parts, no remedy for its operator.
    """

    def __init__(self, message: str = "", *, outside: str = "") -> None:
        super().__init__(encodable(message))
        self._outside = encodable(outside)

    @property
    def outside(self) -> str:
        """What a service's callers are told."""
        return self._outside or str(self)

    @property
    def is_private(self) -> bool:
        """Whether callers are told other words, so that these belong into a log."""
        return bool(self._outside)


class TaskRejected(CliploopError):
    """The picture, prompt or option cannot be used. `reason` is a short machine-readable code."""

    def __init__(self, message: str, *, reason: str = "invalid", outside: str = "") -> None:
        super().__init__(message, outside=outside)
        self.reason = reason


class BackendMisconfigured(CliploopError):
    """A name, key, option or extra is missing or wrong; the message names the remedy."""


class BackendUnavailable(CliploopError):
    """The backend may answer later."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, outside: str = "") -> None:
        super().__init__(message, outside=outside)
        self.retry_after_seconds = retry_after_seconds


class SubmissionUnknown(BackendUnavailable):
    """A render was submitted and the answer was lost: it may be running, and charged, under an unknown id."""


class BackendFailed(CliploopError):
    """The render is lost; it counts as an attempt without a verdict. `spend` is what it cost all the same."""

    def __init__(self, message: str, *, spend: Spend | None = None) -> None:
        super().__init__(message)
        self.spend = spend or Spend()


class ReplyUnreadable(CliploopError):
    """A model's reply that is empty, unfinished, contradictory or not in the asked form."""

    def __init__(
        self, message: str, *, raw: str = "", spend: Spend | None = None, sent: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.raw = raw
        self.spend = spend or Spend(vlm_calls=1)
        self.sent = sent


class ReplyBlocked(CliploopError):
    """A safety filter withheld the reply."""

    def __init__(
        self, message: str, *, raw: str = "", spend: Spend | None = None, sent: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.raw = raw
        self.spend = spend or Spend(vlm_calls=1)
        self.sent = sent


class JobNotFound(CliploopError):
    """No such job, or not this caller's."""


class JobCancelled(CliploopError):
    """The caller asked the job to stop; raised by a backend from its progress callback too."""


class JobWaiting(CliploopError):
    """The job stops in state `waiting`; running it again goes on at `key`."""

    def __init__(self, reason: WaitReason, message: str, *, key: str = "", outside: str = "") -> None:
        super().__init__(message, outside=outside)
        self.reason: WaitReason = reason
        self.key = key


class Suspended(BaseException):
    """Effects that cannot run here: all of them are scheduled, then the loop unwinds."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys
