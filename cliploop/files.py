"""Files and folders as the user names them: read within a limit, and what is wrong with one in a few words.

It knows no error of ours; who asks adds the place and the remedy.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

Fault = Literal["missing_file", "unreadable_file", "not_a_file", "too_large"]


class FileUnusable(Exception):
    """`no such file`, `a folder`, `12 MB, at most 1 MB are read`: what is wrong, and its kind."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault: Fault = fault


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """The content of a regular file. Raises FileUnusable: no pipe is waited for, no device read without end."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise FileUnusable(kind, "not_a_file")
        size = status.st_size
        if size <= limit_bytes:
            with path.open("rb") as file:
                data = file.read(limit_bytes + 1)  # it may grow, or be one that tells no size
            if len(data) <= limit_bytes:
                return data
            size = len(data)
    except FileNotFoundError:
        raise FileUnusable("no such file", "missing_file") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise FileUnusable(f"cannot be read ({why})", "unreadable_file") from None
    raise FileUnusable(f"{_mb(size)} MB, at most {_mb(limit_bytes)} MB are read", "too_large")


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.3g}" if num_bytes < 1e9 else f"{num_bytes // 1_000_000}"


def folder_fault(path: Path) -> str | None:
    """Why this cannot be a folder, nor become one: `out is a file, not a folder`; None if it can."""
    if "\0" in str(path):
        return "a name holds no NUL character"
    nearest = nearest_there(path)
    if nearest is None or os.path.isdir(nearest):  # noqa: PTH112  (never raises)
        return None
    if not os.path.exists(nearest):  # noqa: PTH110  (never raises)
        return f"{nearest} is a link to nothing"
    return f"{nearest} is a file, not a folder"


def nearest_there(path: Path) -> Path | None:
    """The path itself, or the nearest of its parents that is there."""
    return next((part for part in (path, *path.parents) if os.path.lexists(part)), None)
