"""A file of a job, fetched into a part file that is gone on with where it stopped, and named when it is whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Callable
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


class _Part:
    """What is there of a file so far: `.video.mp4.<tag>.part` beside it, the tag that of the content.

    It is locked while it is written. Where somebody else writes it, or the content has no tag, it is a file of
    this download alone, which is dropped at its end.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.tag = ""
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._kept = False

    @property
    def size(self) -> int:
        """Bytes so far."""
        return os.fstat(self._file.fileno()).st_size if self._file is not None else 0

    def find(self) -> None:
        """One from before, if there is one."""
        known = re.compile(re.escape(f".{self.target.name}.") + r"([A-Za-z0-9]{1,64})\.part")
        with contextlib.suppress(OSError):
            for path in sorted(self.target.parent.iterdir()):
                if (found := known.fullmatch(path.name)) is not None and self._take(path):
                    self.tag = found[1]
                    return

    def begin(self, tag: str) -> None:
        """Of this content; what was there of another is dropped."""
        if self.tag != tag or not tag:
            self.drop()
            if not tag or not self._take(self.target.with_name(f".{self.target.name}.{tag}.part")):
                own = self.target.with_name(f".{self.target.name}.{secrets.token_hex(8)}.own-part")
                self._path, self._file, self._kept = own, own.open("xb"), False
            self.tag = tag
        assert self._file is not None
        self._file.truncate(0)

    def write(self, data: bytes) -> None:
        """At its end."""
        assert self._file is not None
        self._file.write(data)

    def flush(self) -> None:
        """To the disk."""
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """It is whole: it takes the place of the target."""
        assert self._path is not None
        self._path.replace(self.target)
        self._path = None
        self.close()

    def drop(self) -> None:
        """Forget it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._path, self.tag = None, ""
        self.close()

    def close(self) -> None:
        """Leave it to be gone on with; drop what only this download knows."""
        path, file, self._path, self._file = self._path, self._file, None, None
        if path is not None and not self._kept:
            path.unlink(missing_ok=True)
        if file is not None:
            file.close()

    def _take(self, path: Path) -> bool:
        """Have it for this download alone, if nobody else has it."""
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino == os.fstat(file.fileno()).st_ino:  # else somebody finished it meanwhile
                self._path, self._file, self._kept = path, file, True
                return True
        except OSError:
            pass
        file.close()
        return False


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
        part.close()
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
    so_far = part.size
    try:
        while (data := (yield from chunk())) is not None:
            tries.heard()
            part.write(data)
            so_far += len(data)
            if on_bytes is not None:
                on_bytes(so_far, whole)
    finally:
        part.flush()
    if whole is not None and so_far != whole:
        raise Lost(f"{so_far} of {whole} bytes came", sent=True)
    part.finish()
