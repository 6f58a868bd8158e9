"""A recorded video whose file is gone or damaged is encoded again: the same frames give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from orchestrator.errors import BackendFailed
from orchestrator.ports import Artifacts, Call, Inputs, Journal
from orchestrator.records import Record, Video
from storage.artifacts import ArtifactMissing

R = TypeVar("R", bound=Record)


class RepairingJournal:
    """The journal behind it; only videos, which cost nobody anything but time, are ever made again."""

    def __init__(self, journal: Journal, artifacts: Artifacts) -> None:
        self._journal = journal
        self._artifacts = artifacts

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """As the journal's own. Where the file cannot be made again, whoever reads it says that it is missing."""
        value = self._journal.once(key, inputs, kind, effect)
        if isinstance(value, Video) and not self._is_there(value):
            effect()
        return value

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """As the journal's own."""
        return self._journal.once_all(calls)

    def peek(self, key: str, kind: type[R]) -> R | None:
        """As the journal's own."""
        return self._journal.peek(key, kind)

    def renewals(self, key: str) -> int:
        """As the journal's own."""
        return self._journal.renewals(key)

    def _is_there(self, video: Video) -> bool:
        try:
            self._artifacts.path(video.artifact)
        except ArtifactMissing:
            return False
        return True
