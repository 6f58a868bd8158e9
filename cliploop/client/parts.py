"""What is there of a file that is being fetched: a part file beside it, of one content, to be gone on with."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import BinaryIO


class Part:
    """What is there of a file so far: `.video.mp4.<tag>.part` beside it, the tag that of the content.

    It is locked while it is written. Where somebody else writes it, or the content has no tag, it is a file of
    this download alone, which is dropped at its end. Links are not followed: what they point to is not ours.
    `whole`: how many bytes there will be, where that is known. Raises OSError.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.tag = ""
        self.whole: int | None = None
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

    def begin(self, tag: str, whole: int | None) -> None:
        """Of this content, from its first byte; what was there of another is dropped."""
        if self.tag != tag or not tag:
            self.drop()
            if not tag or not self._take(self.target.with_name(f".{self.target.name}.{tag}.part")):
                own = self.target.with_name(f".{self.target.name}.{secrets.token_hex(8)}.own-part")
                self._path, self._file, self._kept = own, own.open("x+b"), False
            self.tag = tag
        self.whole = whole
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

    def sha256(self) -> str:
        """Of what is there, in base64."""
        assert self._file is not None
        self._file.seek(0)
        digest = hashlib.sha256()
        while data := self._file.read(1 << 20):
            digest.update(data)
        return base64.b64encode(digest.digest()).decode("ascii")

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
        self._path, self.tag, self.whole = None, "", None
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
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # no pipe is waited for
        try:
            file = os.fdopen(os.open(path, flags, 0o666), "a+b")
        except OSError:  # a link, a folder, somebody else's
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            opened = os.fstat(file.fileno())
            alone = stat.S_ISREG(opened.st_mode) and opened.st_nlink == 1
            if alone and path.lstat().st_ino == opened.st_ino:  # else somebody finished it meanwhile
                self._path, self._file, self._kept = path, file, True
                return True
        except OSError:
            pass
        file.close()
        return False
