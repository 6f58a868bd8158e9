"""What the user names on the command line, read: a picture, a prompt, a sample of a world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cliploop.files import Fault, FileUnusable, read_regular
from cliploop.terminal import one_line
from orchestrator.errors import TaskRejected

MAX_PICTURE_BYTES = 200_000_000
MAX_PROMPT_BYTES = 1_000_000
Remedies = Mapping[Fault, str]
CORRECT: Remedies = {
    "missing_file": "correct the path",
    "unreadable_file": "correct the path, or allow reading it",
    "not_a_file": "name a file",
    "too_large": "name a smaller file",
}
PROMPT_REMEDIES: Remedies = {
    "not_a_file": "name a text file, or give the task as a sentence",
    "too_large": "name a text file of a few sentences",
}
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
    if not path_text.strip():
        raise TaskRejected("--image is empty; name a picture file (PNG, JPEG, WebP, …)", reason="usage")
    remedies: Remedies = {
        "not_a_file": "name a picture file (PNG, JPEG, WebP, …)",
        "too_large": "save it smaller",
    }
    return _read(path_text, "--image", MAX_PICTURE_BYTES, remedies)


def read_prompt(given: str, option: str = "--prompt") -> str:
    """The task in words: the text itself, or the content of the text file that it names.

    A word that can only be a path, and is missing, is refused rather than taken for a task.
    """
    if not given.strip():
        raise TaskRejected(f"{option} is empty; say what should happen in the picture", reason="empty_prompt")
    shown = one_line(given)
    if any("\ud800" <= character <= "\udfff" for character in given):  # what Python makes of such bytes
        raise TaskRejected(f"{option} {shown[:200]}: not UTF-8 text; give it as UTF-8", reason="not_text")
    if "\0" in given:
        raise TaskRejected(f"{option} {shown[:200]}: holds a NUL character; remove it", reason="not_text")
    if not _exists(given):
        if _looks_like_a_path(given):
            raise TaskRejected(
                f"{option} {shown}: no such file; correct the path, or give the task as a sentence",
                reason="missing_file",
            )
        return given.strip()
    data = _read(given, option, MAX_PROMPT_BYTES, PROMPT_REMEDIES, too_large="prompt_too_long")
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise TaskRejected(f"{option} {shown}: not UTF-8 text; save it as UTF-8", reason="not_text") from None
    if "\0" in text:
        raise TaskRejected(f"{option} {shown}: holds a NUL character; name a text file", reason="not_text")
    if not text.strip():
        raise TaskRejected(
            f"{option} {shown}: the file is empty; write what should happen in the picture", reason="empty_prompt"
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


def _read(
    path_text: str, option: str, limit_bytes: int, remedies: Remedies, *, too_large: str = "too_large"
) -> bytes:
    try:
        return read_regular(Path(path_text), limit_bytes)
    except FileUnusable as error:
        reason = too_large if error.fault == "too_large" else error.fault
        message = f"{option} {one_line(path_text)}: {error}; {remedies.get(error.fault, CORRECT[error.fault])}"
        raise TaskRejected(message, reason=reason) from None
