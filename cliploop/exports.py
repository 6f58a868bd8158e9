"""The files that a finished job leaves for people and scorers, each written whole or not at all.

    video.mp4               the stitched answer
    trajectory.json         every plan, attempt and verdict
    contact-sheet.png       the same as one picture
    steps/<t>/attempt-<j>.mp4   what was judged, for a browser

Only these names are ever written, and only those of them that a job had are ever removed; `.cliploop/` beside
them is the job's own memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from media.encode import browser_clip
from media.frames import FrameReader
from media.sheet import contact_sheet
from orchestrator.errors import CliploopError, JobWaiting
from orchestrator.footage import whole
from orchestrator.ports import Artifacts
from orchestrator.records import Attempt, Footage, Step, Trajectory
from storage.folders import DISK_FULL

VIDEO = "video.mp4"
TRAJECTORY = "trajectory.json"
CONTACT_SHEET = "contact-sheet.png"
STEPS = "steps"
SCRATCH = frozenset({"part", "clip.mp4"})  # what is half-written, in a folder of the job's memory
_CLIP = re.compile(r"steps/\d+/attempt-\d+\.mp4")


def present(folder: Path) -> list[str]:
    """Which of our names are in the folder, as relative paths."""
    names = [name for name in (VIDEO, TRAJECTORY, CONTACT_SHEET) if os.path.lexists(folder / name)]
    clips = sorted((folder / STEPS).glob("*/attempt-*.mp4")) if os.path.isdir(folder / STEPS) else []  # noqa: PTH112  (never raises)
    return names + [
        str(clip.relative_to(folder)) for clip in clips if _CLIP.fullmatch(str(clip.relative_to(folder)))
    ]


def names(trajectory: Trajectory) -> list[str]:
    """The relative paths that `write` writes for a trajectory."""
    clips = [name for name, attempt in _clips(trajectory) if _shown(attempt) is not None]
    has_video = trajectory.outcome is not None and trajectory.outcome.video is not None
    return [*clips, CONTACT_SHEET, *([VIDEO] if has_video else []), TRAJECTORY]


def is_ours(name: object) -> bool:
    """Whether `write` could have written this relative path: never one that leaves the folder."""
    return name in (VIDEO, TRAJECTORY, CONTACT_SHEET) or (
        isinstance(name, str) and _CLIP.fullmatch(name) is not None
    )


def remove(folder: Path, written: Iterable[str]) -> None:
    """Remove what was `written`, if it has our names, and the folders that are empty then; all else stays."""
    gone = [folder / name for name in written if is_ours(name)]
    for path in gone:
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
    for emptied in [*sorted({path.parent for path in gone if path.parent != folder}), folder / STEPS]:
        with contextlib.suppress(OSError):
            emptied.rmdir()


def write(
    folder: Path, scratch: Path, trajectory: Trajectory, artifacts: Artifacts, reader: FrameReader
) -> dict[str, str]:
    """Write what is missing or differs; return {relative path: SHA-256}. Raises JobWaiting(disk)."""
    try:
        return dict(_write(folder, scratch, trajectory, artifacts, reader))
    except OSError as error:
        if error.errno in DISK_FULL:
            room = f"no room to write into {folder} ({error.strerror})"
            message = f"{room}: free some space, then run the same command again"
            raise JobWaiting("disk", message, key="final/files") from error
        raise CliploopError(
            f"cannot write into {folder} ({error.strerror}): make it writable, then run again"
        ) from error


def _write(
    folder: Path, scratch: Path, trajectory: Trajectory, artifacts: Artifacts, reader: FrameReader
) -> Iterator[tuple[str, str]]:
    for path in (scratch / "part", *(folder / name for name in names(trajectory))):
        refuse_obstacle(path, folder)
    scratch.mkdir(exist_ok=True)
    for name, attempt in _clips(trajectory):
        part = scratch / "clip.mp4"
        footage = _shown(attempt)
        if footage is not None:
            browser_clip(footage, reader, part)
            yield name, _place(folder / name, part.read_bytes(), scratch)
            part.unlink()
    yield CONTACT_SHEET, _place(folder / CONTACT_SHEET, contact_sheet(trajectory, reader), scratch)
    if trajectory.outcome is not None and trajectory.outcome.video is not None:
        yield VIDEO, _place(folder / VIDEO, artifacts.read(trajectory.outcome.video.artifact), scratch)
    text = trajectory.model_dump_json(indent=2) + "\n"
    yield TRAJECTORY, _place(folder / TRAJECTORY, text.encode(), scratch)


def _clips(trajectory: Trajectory) -> Iterator[tuple[str, Attempt]]:
    steps: list[Step] = ([trajectory.gate] if trajectory.gate else []) + list(trajectory.steps)
    for step in steps:
        for attempt in step.attempts:
            yield f"{STEPS}/{step.index}/attempt-{attempt.index}.mp4", attempt


def _shown(attempt: Attempt) -> Footage | None:
    """What was judged, or all that was rendered."""
    return attempt.candidate or (whole(attempt.clip) if attempt.clip else None)


def refuse_obstacle(path: Path, folder: Path) -> None:
    """Raise CliploopError if a folder is where a file belongs, or a file where a folder between belongs."""
    if path.is_dir():
        raise CliploopError(f"{path} is a folder, where a file belongs: move it away, then run again")
    for parent in path.parents:
        if parent == folder:
            return
        if os.path.lexists(parent) and not parent.is_dir():
            raise CliploopError(f"{parent} is a file, where a folder belongs: move it away, then run again")


def _place(target: Path, data: bytes, scratch: Path) -> str:
    """Temporary file on the same disk, fsync, rename; a file with this content is left alone."""
    if not (target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = scratch / "part"
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    return hashlib.sha256(data).hexdigest()


def unchanged(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether every file is there with the content that it had."""
    for name, digest in digests.items():
        path = folder / name
        if not is_ours(name) or not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return False
    return True
