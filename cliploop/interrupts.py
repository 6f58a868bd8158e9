"""Ctrl-C that nobody loses: Python drops the exception where a module's own import, or a finaliser, swallows it.

Light: it is listened to before anything else is loaded.
"""

from __future__ import annotations

import signal
from types import FrameType

_heard = False


def listen() -> None:
    """From now on SIGINT raises KeyboardInterrupt, as ever, and is remembered. In the main thread."""
    signal.signal(signal.SIGINT, _hear)


def note() -> None:
    """A signal that asks to end has come."""
    global _heard
    _heard = True


def heard() -> bool:
    """Whether one has come: an error that follows may be what became of its exception in somebody's library."""
    return _heard


def forget() -> None:
    """For a process that goes on with another command line."""
    global _heard
    _heard = False


def refuse_if_heard() -> None:
    """Raise the KeyboardInterrupt that came, if one came, and was swallowed."""
    if _heard:
        raise KeyboardInterrupt


def _hear(number: int, frame: FrameType | None) -> None:
    note()
    signal.default_int_handler(number, frame)
