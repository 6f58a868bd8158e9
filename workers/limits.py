"""How long a call of a backend may take, and what happens then; and what to do when memory runs out.

Past its limit a call is stopped by an exception in the main thread and the attempt is lost. Where even that
cannot reach it (it hangs inside a library), the process ends after a grace, with its stack on stderr: its lease
runs out and somebody else goes on.
"""

from __future__ import annotations

import faulthandler
import gc
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

VLM_SECONDS = 120.0
CLIP_SECONDS = 1800.0  # of a backend that says nothing else: `cliploop worker render --clip-seconds`
GRACE_SECONDS = 60.0
_AGAIN_SECONDS = 5.0  # code that swallows the exception meets it again
_STDERR = 2
_OUT_OF_MEMORY = ("OutOfMemoryError", "MemoryError")  # by name: torch's own is never imported here

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """In seconds: of one ask of a model, of one render, and from then until the process ends."""

    vlm_seconds: float = VLM_SECONDS
    clip_seconds: float = CLIP_SECONDS
    grace_seconds: float = GRACE_SECONDS


class TookTooLong(BaseException):
    """The call was stopped at its limit. Only who set the limit catches it."""


def within(seconds: float, grace_seconds: float, call: Callable[[], T]) -> T:
    """Call, for at most that long. Raises TookTooLong. Outside the main thread there is no limit.

    One limit at a time: they do not nest.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    armed = True

    def late(_number: int, _frame: object) -> None:
        if armed:
            raise TookTooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    faulthandler.dump_traceback_later(seconds + grace_seconds, exit=True, file=_STDERR)
    try:
        try:
            return call()
        finally:
            armed = False
    finally:  # reached whenever the alarm came: it comes at most once around here
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says that memory ran out, the processor's or an accelerator's."""
    return any(kind.__name__ in _OUT_OF_MEMORY for kind in type(error).__mro__)


def free_memory() -> None:
    """Give back what nobody uses any more, an accelerator's memory too where one is in use."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
