"""One request until it is answered: what may be sent again, how long to wait, what a refusal means."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from cliploop.client.errors import ClientError, NotUnderstood, ServerUnreachable, TryLater, kind_of
from cliploop.client.wire import Answer, Flow, Lost, Patience, Pause, Request, body, opened
from orchestrator.faults import words

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 8.0
UNDONE = frozenset({429, 503})  # refused before anything was done
SHOWN_CHARACTERS = 200
M = TypeVar("M", bound=BaseModel)


class Tries:
    """The pauses between tries: longer and longer, with jitter, until patience is over."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.first_seconds = FIRST_PAUSE_SECONDS
        self.number = 0
        self._since: float | None = None

    def heard(self) -> None:
        """A sign of life: patience begins anew."""
        self.number, self._since = 0, None

    def pause(self, error: ClientError) -> float:
        """Seconds until the next try. Raises the error where patience is over."""
        now = self._patience.clock()
        self._since = now if self._since is None else self._since
        self.number += 1
        longest = min(self.first_seconds * 2.0 ** (self.number - 1), LONGEST_PAUSE_SECONDS)
        seconds = longest * (0.5 + 0.5 * self._patience.random())
        seconds = max(seconds, error.retry_after_seconds or 0.0)
        if now + seconds - self._since > self._patience.seconds:
            raise error
        return seconds


def answered(patience: Patience, request: Request) -> Flow[Answer]:
    """The answer, of a status that is good. Raises ClientError."""
    tries = Tries(patience)
    repeated = False
    while True:
        try:
            head = yield from opened(request)
            answer = Answer(head.status, head.headers, (yield from body(request.most_bytes)))
        except Lost as lost:
            error: ClientError = unreachable(lost)
            repeated = repeated or lost.sent
            again = not lost.hopeless and (request.repeatable or not lost.sent)
        else:
            if answer.status in request.good:
                return answer
            error = refusal(answer)
            error.repeated = repeated
            again = isinstance(error, TryLater) and (request.repeatable or answer.status in UNDONE)
        if not again:
            raise error
        yield Pause(tries.pause(error))


def unreachable(lost: Lost) -> ServerUnreachable:
    """The same for the caller."""
    return ServerUnreachable(str(lost), code="unreachable")


def refusal(answer: Answer) -> ClientError:
    """What a status that is not good means, in the server's own words where it gives a problem document."""
    kind, problem = kind_of(answer.status), _problem(answer)
    if problem is None:
        where = f"; it points to {_shortened(answer.headers['location'])}" if "location" in answer.headers else ""
        said = f"the answer has status {answer.status} and is no problem document{where}: is the address right?"
        return kind(
            said, status=answer.status, code="no_problem", retry_after_seconds=retry_after(answer.headers)
        )
    return kind(
        str(problem.get("detail") or problem.get("title") or f"status {answer.status}"),
        status=answer.status,
        code=str(problem.get("code", "")),
        retry_after_seconds=retry_after(answer.headers),
        faults=_faults(problem.get("errors")),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def document(answer: Answer) -> Any:
    """The JSON of an answer. Raises NotUnderstood."""
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        said = "the answer is not JSON: is the address that of a Cliploop server?"
        raise NotUnderstood(said, status=answer.status, code="not_json") from None


def read_as(kind: type[M], answer: Answer) -> M:
    """The answer's record. Raises NotUnderstood."""
    return record(kind, document(answer), answer.status)


def record(kind: type[M], value: Any, status: int) -> M:
    """The same of a part of it."""
    try:
        return kind.model_validate(value)
    except RecursionError:
        raise NotUnderstood("the answer is nested too deeply", status=status, code="not_json") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        said = f"the answer is no {kind.__name__} of this version ({where}: {words(first)})"
        raise NotUnderstood(said, status=status, code="other_version") from None


def _problem(answer: Answer) -> Mapping[str, Any] | None:
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(answer.body)
        if isinstance(value, dict) and ("detail" in value or "title" in value):
            return cast("Mapping[str, Any]", value)
    return None


def _faults(listed: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for each in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if isinstance(each, dict):
            said = cast("dict[str, Any]", each)
            found.append((str(said.get("where", "")), str(said.get("message", ""))))
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
