"""What a flow asks of the one who drives it, and what it is told. No I/O here.

A flow is a generator: it yields actions, is sent what came of them, and returns its value. So one text serves
a blocking driver and an asynchronous one (`cliploop.client.clients`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from cliploop.client.errors import NotUnderstood

T = TypeVar("T")
GOOD = frozenset({200, 201, 202, 204})
ANSWER_BYTES = 8 << 20


@dataclass(frozen=True)
class Request:
    """One request. `path` begins with a slash and follows the server's address.

    `repeatable`: sent twice it does what it does once, so that it may be sent again when its answer was lost.
    `form` goes with `file`: field, name, content. `silence_seconds`: how long nothing may be heard; None: as the
    client's timeout. `most_bytes`: of the answer; more are not read.
    """

    method: str
    path: str
    query: Mapping[str, str | int | list[str]] = field(default_factory=dict[str, "str | int | list[str]"])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: Any = None
    form: Mapping[str, str] | None = None
    file: tuple[str, str, bytes] | None = None
    repeatable: bool = True
    good: frozenset[int] = GOOD
    silence_seconds: float | None = None
    most_bytes: int = ANSWER_BYTES


@dataclass(frozen=True)
class Open:
    """Send a request; the answer is a Head."""

    request: Request


@dataclass(frozen=True)
class Read:
    """The next bytes of the answer's body, None at its end."""


@dataclass(frozen=True)
class Close:
    """Read no more of it."""


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True)
class Emit:
    """Hand a value to the one who iterates."""

    value: Any


Action: TypeAlias = Open | Read | Close | Pause | Emit
Flow: TypeAlias = Generator[Action, Any, T]


@dataclass(frozen=True)
class Head:
    """The first part of an answer. Header names in lower case."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(Exception):
    """No answer, or not all of it. `sent`: the server may have done what was asked. `hopeless`: always so."""

    def __init__(self, message: str, *, sent: bool, hopeless: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.hopeless = hopeless


@dataclass(frozen=True)
class Patience:
    """How long a server that does not answer is asked again, from its last sign of life."""

    seconds: float
    clock: Callable[[], float]  # seconds, monotonic
    random: Callable[[], float]  # 0 … 1


def opened(request: Request) -> Flow[Head]:
    """Send it. Raises Lost."""
    head = yield Open(request)
    assert isinstance(head, Head)
    return head


def chunk() -> Flow[bytes | None]:
    """The next bytes of the body. Raises Lost."""
    data: bytes | None = yield Read()
    return data


def body(most_bytes: int = ANSWER_BYTES) -> Flow[bytes]:
    """All that is left of it. Raises Lost, NotUnderstood where it does not end in time."""
    came = bytearray()
    while (part := (yield from chunk())) is not None:
        came += part
        if len(came) > most_bytes:
            raise NotUnderstood(
                f"the answer has more than {most_bytes >> 20} MiB: is the address that of a Cliploop server?",
                code="too_long",
            )
    return bytes(came)


def swallowed(flow: Flow[T], each: Callable[[Any], None]) -> Flow[T]:
    """The same flow, what it emits told to `each` instead."""
    said, lost = None, None
    while True:
        try:
            action = flow.throw(lost) if lost is not None else flow.send(said)
        except StopIteration as end:
            return end.value
        said, lost = None, None
        if isinstance(action, Emit):
            each(action.value)
            continue
        try:
            said = yield action
        except Lost as error:
            lost = error
