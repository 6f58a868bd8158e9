"""What the user names on the command line, read: a picture, a prompt, a sample of a world."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from cliploop.terminal import one_line
from orchestrator.errors import TaskRejected

MAX_PICTURE_BYTES = 200_000_000
MAX_PROMPT_BYTES = 1_000_000
_TEXT_SUFFIXES = (".txt", ".md", ".prompt")


@dataclass(frozen=True)
class Asked:
    """A picture as the user gave it, and the task in words. `name` is for messages."""

    picture: bytes
    prompt: str
    name: str
    slug: str


def read_picture(path_text: str) -> bytes:
    """The bytes of a picture file. Raises TaskRejected for anything that is not a readable regular file."""
    path = Path(path_text)
    shown = one_line(path_text)
    size = _regular_size(path, f"--image {shown}", "name a picture file (PNG, JPEG, WebP, …)")
    if size > MAX_PICTURE_BYTES:
        limit = MAX_PICTURE_BYTES // 1_000_000
        raise TaskRejected(
            f"--image {shown}: {size // 1_000_000} MB, at most {limit} MB are read; save it smaller",
            reason="too_large",
        )
    return _read(path, f"--image {shown}")


def read_prompt(given: str) -> str:
    """The task in words: the text itself, or the content of the text file that it names.

    A word that can only be a path, and is missing, is refused rather than taken for a task.
    """
    if not given.strip():
        raise TaskRejected("--prompt is empty; say what should happen in the picture", reason="empty_prompt")
    shown = one_line(given)
    if any("\ud800" <= character <= "\udfff" for character in given):  # what Python makes of such bytes
        raise TaskRejected(f"--prompt {shown[:200]}: not UTF-8 text; give it as UTF-8", reason="not_text")
    if not _exists(given):
        if _looks_like_a_path(given):
            raise TaskRejected(
                f"--prompt {shown}: no such file; correct the path, or give the task as a sentence",
                reason="missing_file",
            )
        return given.strip()
    path = Path(given)
    size = _regular_size(path, f"--prompt {shown}", "name a text file, or give the task as a sentence")
    if size > MAX_PROMPT_BYTES:
        raise TaskRejected(
            f"--prompt {shown}: {size} bytes is no prompt; name a text file", reason="prompt_too_long"
        )
    try:
        text = _read(path, f"--prompt {shown}").decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise TaskRejected(f"--prompt {shown}: not UTF-8 text; save it as UTF-8", reason="not_text") from None
    if not text.strip():
        raise TaskRejected(
            f"--prompt {shown}: the file is empty; write what should happen in the picture", reason="empty_prompt"
        )
    return text.strip()


def _exists(given: str) -> bool:
    try:
        return Path(given).exists()
    except (OSError, ValueError):  # a sentence is often too long for a path
        return False


def _looks_like_a_path(given: str) -> bool:
    text = given.strip()
    if "\n" in text:
        return False
    return text.lower().endswith(_TEXT_SUFFIXES) or ("/" in text and not any(char.isspace() for char in text))


def _regular_size(path: Path, what: str, remedy: str) -> int:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise TaskRejected(f"{what}: no such file; correct the path", reason="missing_file") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise TaskRejected(
            f"{what}: cannot be read ({why}); correct the path", reason="unreadable_file"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise TaskRejected(f"{what}: {kind}; {remedy}", reason="not_a_file")
    return status.st_size


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{what}: cannot be read ({error.strerror}); allow reading it, or name another file"
        raise TaskRejected(message, reason="unreadable_file") from None
