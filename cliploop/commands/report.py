"""How `cliploop run` says what came of it: exit code, last lines, and the one JSON object.

The object always has the same keys: ok, exit_code, state, id, folder, outcome, spend, files, resume, error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliploop.local import Ending
from cliploop.narrate import Line, Tone, one_line, outcome_lines
from cliploop.terminal import (
    EXIT_COMPLETED,
    EXIT_EXHAUSTED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_WAITING,
)


@dataclass(frozen=True)
class Report:
    """An ending, and where it happened. `again` is the command that goes on."""

    ending: Ending
    job_id: str
    folder: Path
    again: str

    @property
    def exit_code(self) -> int:
        """0 completed, 3 exhausted, 4 waiting, 1 failed, 130 interrupted."""
        ending = self.ending
        if ending.state == "succeeded":
            outcome = ending.trajectory.outcome if ending.trajectory else None
            return EXIT_COMPLETED if outcome is not None and outcome.kind == "completed" else EXIT_EXHAUSTED
        return {"waiting": EXIT_WAITING, "failed": EXIT_FAILED, "interrupted": EXIT_INTERRUPTED}[ending.state]

    def lines(self) -> Iterator[Line]:
        """What people read last."""
        ending = self.ending
        if ending.state == "succeeded" and ending.trajectory:
            yield from outcome_lines(ending.trajectory)
        elif ending.state != "succeeded":
            tone: Tone = "bad" if ending.state == "failed" else "note"
            reason = f" ({ending.reason})" if ending.reason else ""
            yield Line(f"{ending.state.capitalize()}{reason}: {one_line(ending.message)}", tone)
        yield from self._files()
        if ending.state in ("waiting", "interrupted"):
            yield Line(f"To go on: {one_line(self.again)}", "head", whole=True)

    def _files(self) -> Iterator[Line]:
        files = self.ending.files
        for label, name in (
            ("video", "video.mp4"),
            ("contact sheet", "contact-sheet.png"),
            ("trajectory", "trajectory.json"),
        ):
            if name in files:
                yield Line(f"{label:14}{one_line(str(files[name]))}", whole=True)

    def json(self) -> Mapping[str, Any]:
        """The one object."""
        ending, trajectory = self.ending, self.ending.trajectory
        outcome = trajectory.outcome if trajectory else None
        stopped = ending.state in ("waiting", "failed", "interrupted")
        error = {"reason": ending.reason or ending.state, "message": ending.message} if stopped else None
        return {
            "ok": ending.state == "succeeded",
            "exit_code": self.exit_code,
            "state": ending.state,
            "id": self.job_id,
            "folder": str(self.folder),
            "outcome": outcome.model_dump(mode="json") if outcome else None,
            "spend": trajectory.spend.model_dump(mode="json") if trajectory else None,
            "files": {name: str(path) for name, path in ending.files.items()},
            "resume": self.again if ending.state in ("waiting", "interrupted") else None,
            "error": error,
        }
