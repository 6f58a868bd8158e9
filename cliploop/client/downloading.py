"""A file of a job, fetched into a part file that is gone on with where it stopped, and named when it is whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from cliploop.client.answers import Downloaded
from cliploop.client.asking import Tries, refusal, unreachable
from cliploop.client.errors import ClientError, NotUnderstood, TryLater
from cliploop.client.parts import Part
from cliploop.client.paths import job_path
from cliploop.client.wire import Answer, Close, Flow, Head, Lost, Patience, Pause, Request, body, chunk, opened

What: TypeAlias = Literal["video", "contact-sheet", "clip"]
OnBytes: TypeAlias = Callable[[int, int | None], None]
_TAG = re.compile(r'"([A-Za-z0-9]{1,64})"')
_SPAN = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_LENGTH = re.compile(r"\d{1,18}")
_DIGEST = re.compile(r"sha-256=:([A-Za-z0-9+/=]{44}):")
MOST_STARTS_OVER = 3


class _Misfit(Exception):
    """What came does not fit together: all of it is to be fetched anew."""


def download(
    patience: Patience,
    job_id: str,
    target: Path | str,
    *,
    what: What = "video",
    step: int | None = None,
    attempt: int | None = None,
    on_bytes: OnBytes | None = None,
) -> Flow[Downloaded]:
    """Fetch a file of a job to the path `target`; of a `clip`, that of `step` (0: the single shot) and `attempt`.

    It is there whole or not at all: its length is checked, and its digest where the server tells it. What a lost
    connection or an interrupt leaves is gone on with, if the content is still the same; else all of it is fetched
    anew, a few times. `on_bytes(so_far, all_or_none)` hears of every piece. Raises ClientError: WrongMoment where
    there is no video yet, NotThere, NotUnderstood; OSError for what cannot be written.
    """
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    where = _where(job_id, what, step, attempt)
    part, tries, misfits = Part(path), Tries(patience), 0
    part.find()
    began_at = resumed = part.size
    try:
        while True:
            try:
                head = yield from opened(_request(where, part))
                error, resumed = yield from _fetched(head, part, tries, on_bytes, began_at)
                if error is None:
                    break
            except _Misfit as misfit:
                part.drop()
                misfits, began_at = misfits + 1, 0
                error = NotUnderstood(f"the server's answers do not fit together: {misfit}", code="other_content")
                if misfits > MOST_STARTS_OVER:
                    raise error from None
            except Lost as lost:
                error = unreachable(lost)
                if lost.hopeless:
                    raise error from None
            yield Close()
            yield Pause(tries.pause(error))
    finally:
        part.close()
    return Downloaded(path=path, num_bytes=path.stat().st_size, resumed_at=resumed)


def _where(job_id: str, what: What, step: int | None, attempt: int | None) -> str:
    if what == "clip":
        if step is None or attempt is None:
            raise ValueError("a clip is that of a step and an attempt: give both")
        return f"{job_path(job_id)}/steps/{step}/attempts/{attempt}/clip"
    return f"{job_path(job_id)}/{what}"


def _request(where: str, part: Part) -> Request:
    headers = {"Accept-Encoding": "identity"}
    if part.tag and part.size:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": f'"{part.tag}"'}
    return Request("GET", where, headers=headers)


def _fetched(
    head: Head, part: Part, tries: Tries, on_bytes: OnBytes | None, began_at: int
) -> Flow[tuple[ClientError | None, int]]:
    """No error when the target is there. The number: bytes that were there before this call. Raises _Misfit."""
    if head.status in (200, 206) and head.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotUnderstood("the server sent the file encoded, which nobody asked for", status=head.status)
    if head.status == 206:
        _refuse_other_part(head, part)
    elif head.status == 200:
        tag = _TAG.fullmatch(head.headers.get("etag", ""))
        part.begin(tag[1] if tag else "", _length(head))
        began_at = 0
    elif head.status == 416 and part.size:  # all of it was there, or more
        yield from body()
        if head.headers.get("content-range") != f"bytes */{part.size}":
            raise _Misfit("the file has become shorter")
        part.whole = part.size
        _finish(head, part)
        return None, part.size
    else:
        error = refusal(Answer(head.status, head.headers, (yield from body())))
        if isinstance(error, TryLater):
            return error, began_at
        raise error
    yield from _written(part, tries, on_bytes)
    _finish(head, part)
    return None, began_at


def _length(head: Head) -> int | None:
    """Of an answer, in bytes; None where it comes in chunks that say their end. Raises NotUnderstood."""
    length = head.headers.get("content-length", "")
    if _LENGTH.fullmatch(length):
        return int(length)
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        return None
    raise NotUnderstood("the server does not say how long the file is", status=head.status)


def _refuse_other_part(head: Head, part: Part) -> None:
    """Raise _Misfit unless the answer is all that is missing, of the same content."""
    if not (part.tag and part.size):
        raise NotUnderstood("the server sent a part of the file, and the whole was asked for", status=206)
    span = _SPAN.fullmatch(head.headers.get("content-range", ""))
    if span is None:
        raise _Misfit("it is not said which part of the file came")
    first, last, whole = map(int, span.groups())
    missing = str(whole - first)
    if first != part.size or last != whole - 1 or head.headers.get("content-length", missing) != missing:
        raise _Misfit("another part of the file came than was asked for")
    if part.whole not in (None, whole) or head.headers.get("etag") != f'"{part.tag}"':
        raise _Misfit("the file has changed")
    part.whole = whole


def _written(part: Part, tries: Tries, on_bytes: OnBytes | None) -> Flow[None]:
    so_far = part.size
    try:
        while (data := (yield from chunk())) is not None:
            tries.heard()
            part.write(data)
            so_far += len(data)
            if part.whole is not None and so_far > part.whole:
                break
            if on_bytes is not None:
                on_bytes(so_far, part.whole)
    finally:
        part.flush()


def _finish(head: Head, part: Part) -> None:
    """Name the file. Raises _Misfit where it is not what the answer says that it is."""
    if part.whole is not None and part.size != part.whole:
        raise _Misfit(f"{part.size} bytes came of {part.whole}")
    if head.status == 416 and head.headers.get("etag", f'"{part.tag}"') != f'"{part.tag}"':
        raise _Misfit("the file has changed")
    digest = _DIGEST.search(head.headers.get("repr-digest", ""))
    if digest is not None and digest[1] != part.sha256():
        raise _Misfit("its content is not that of its digest")
    part.finish()
