"""A file of a job, fetched into a part file that is gone on with where it stopped, and named when it is whole."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from cliploop.client.answers import Downloaded
from cliploop.client.asking import Tries, refusal, unreachable
from cliploop.client.errors import ClientError, NotUnderstood, TryLater
from cliploop.client.paths import job_path
from cliploop.client.wire import Answer, Close, Flow, Head, Lost, Patience, Pause, Request, body, chunk, opened

What: TypeAlias = Literal["video", "contact-sheet", "clip"]
OnBytes: TypeAlias = Callable[[int, int | None], None]
_TAG = re.compile(r'"([A-Za-z0-9]{1,64})"')
_SPAN = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")


@dataclass
class _Part:
    """What is there of a file so far: `.video.mp4.<tag>.part` beside it, the tag that of the content."""

    target: Path
    tag: str = ""
    path: Path | None = None

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size if self.path is not None else 0
        except OSError:
            return 0

    def find(self) -> None:
        """One from before, if there is one whose content can be named."""
        known = re.compile(re.escape(f".{self.target.name}.") + r"([A-Za-z0-9]{1,64})\.part")
        with contextlib.suppress(OSError):
            for path in sorted(self.target.parent.iterdir()):
                if (found := known.fullmatch(path.name)) is not None:
                    self.path, self.tag = path, found[1]

    def begin(self, tag: str) -> None:
        """Of this content; what was there of another is dropped. Without a tag nothing can be gone on with."""
        self.drop()
        self.tag = tag
        if tag:
            self.path = self.target.with_name(f".{self.target.name}.{tag}.part")
            self.path.write_bytes(b"")
        else:
            number, name = tempfile.mkstemp(
                prefix=f".{self.target.name}.", suffix=".fresh-part", dir=self.target.parent
            )
            os.close(number)
            self.path = Path(name)

    def drop(self) -> None:
        """Forget it."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.path, self.tag = None, ""

    def opened(self) -> BinaryIO:
        """To write on at its end."""
        assert self.path is not None
        return self.path.open("ab")

    def finish(self) -> None:
        """It is whole: it takes the place of the target."""
        assert self.path is not None
        self.path.replace(self.target)


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

    It is there whole or not at all. What a lost connection or an interrupt leaves is gone on with, if the content
    is still the same. `on_bytes(so_far, all_or_none)` hears of every piece. Raises ClientError: WrongMoment where
    there is no video yet, NotThere; OSError for what cannot be written.
    """
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    where = _where(job_id, what, step, attempt)
    part, tries = _Part(path), Tries(patience)
    part.find()
    began_at = resumed = part.size
    try:
        while True:
            try:
                head = yield from opened(_request(where, part))
                error, resumed = yield from _fetched(head, part, tries, on_bytes, began_at)
                if error is None:
                    break
            except Lost as lost:
                error = unreachable(lost)
                if lost.hopeless:
                    raise error from None
            yield Close()
            yield Pause(tries.pause(error))
    finally:
        if not part.tag:
            part.drop()
    return Downloaded(path=path, num_bytes=path.stat().st_size, resumed_at=resumed)


def _where(job_id: str, what: What, step: int | None, attempt: int | None) -> str:
    if what == "clip":
        if step is None or attempt is None:
            raise ValueError("a clip is that of a step and an attempt: give both")
        return f"{job_path(job_id)}/steps/{step}/attempts/{attempt}/clip"
    return f"{job_path(job_id)}/{what}"


def _request(where: str, part: _Part) -> Request:
    headers = {"Accept-Encoding": "identity"}
    if part.tag and part.size:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": f'"{part.tag}"'}
    return Request("GET", where, headers=headers)


def _fetched(
    head: Head, part: _Part, tries: Tries, on_bytes: OnBytes | None, began_at: int
) -> Flow[tuple[ClientError | None, int]]:
    """No error when the target is there. The number: bytes that were there before this call."""
    if head.status == 206:
        span = _SPAN.fullmatch(head.headers.get("content-range", ""))
        if span is None or int(span[1]) != part.size:
            part.drop()
            raise NotUnderstood("the server sent another part of the file than was asked for", status=206)
    elif head.status == 200:
        tag = _TAG.fullmatch(head.headers.get("etag", ""))
        part.begin(tag[1] if tag else "")
        began_at = 0
    elif head.status == 416 and part.size:  # all of it was there, or more
        yield from body()
        if head.headers.get("content-range") == f"bytes */{part.size}":
            part.finish()
            return None, part.size
        part.drop()
        return TryLater("the file has become shorter", status=416), 0
    else:
        error = refusal(Answer(head.status, head.headers, (yield from body())))
        if isinstance(error, TryLater):
            return error, began_at
        raise error
    yield from _written(head, part, tries, on_bytes)
    return None, began_at


def _written(head: Head, part: _Part, tries: Tries, on_bytes: OnBytes | None) -> Flow[None]:
    length = head.headers.get("content-length", "")
    whole = part.size + int(length) if length.isdigit() else None
    with part.opened() as file:
        while (data := (yield from chunk())) is not None:
            tries.heard()
            file.write(data)
            if on_bytes is not None:
                on_bytes(file.tell(), whole)
        file.flush()
        os.fsync(file.fileno())
    if whole is not None and part.size != whole:
        raise Lost(f"{part.size} of {whole} bytes came", sent=True)
    part.finish()
