"""Recorded files that are gone or damaged are made again where the same frames give the same bytes.

The video is encoded again; a clip's last frame is read again from its lossless video.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from media.frames import FrameReader
from media.pictures import encode_png
from orchestrator.errors import BackendFailed, CliploopError
from orchestrator.footage import whole
from orchestrator.ports import Artifacts, Call, Inputs, Journal
from orchestrator.records import ArtifactKey, Footage, Prefix, Record, Rendered, Video
from storage.artifacts import ArtifactMissing

R = TypeVar("R", bound=Record)


class RepairingJournal:
    """The journal behind it; only what costs nobody anything but time is ever made again."""

    def __init__(self, journal: Journal, artifacts: Artifacts, reader: FrameReader) -> None:
        self._journal = journal
        self._artifacts = artifacts
        self._reader = reader

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """As the journal's own. Where the file cannot be made again, whoever reads it says that it is missing."""
        value = self._journal.once(key, inputs, kind, effect)
        self._repair(value, effect)
        return value

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """As once, for several."""
        values = self._journal.once_all(calls)
        for call, value in zip(calls, values, strict=True):
            if not isinstance(value, BackendFailed):
                self._repair(value, call.effect)
        return values

    def _repair(self, value: Record, effect: Callable[[], Record]) -> None:
        if isinstance(value, Video) and not self._is_there(value.artifact):
            effect()
        if isinstance(value, Rendered):
            self._restore(value.clip.last_frame, whole(value.clip))
        if isinstance(value, Prefix):
            self._restore(value.last_frame, value.footage)

    def peek(self, key: str, kind: type[R]) -> R | None:
        """As the journal's own."""
        return self._journal.peek(key, kind)

    def renewals(self, key: str) -> int:
        """As the journal's own."""
        return self._journal.renewals(key)

    def _restore(self, picture: ArtifactKey, footage: Footage) -> None:
        """The last frame of the footage as PNG again, if it is not there; its key says that it is the same."""
        if self._is_there(picture) or not footage.num_frames:
            return
        with contextlib.suppress(CliploopError):  # the clip is gone too: whoever reads the picture says so
            self._artifacts.put(encode_png(self._reader.frame(footage, -1)), ".png")

    def _is_there(self, key: ArtifactKey) -> bool:
        try:
            self._artifacts.path(key)
        except ArtifactMissing:
            return False
        return True
