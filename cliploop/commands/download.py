"""`cliploop download`: what a job has made, into a folder, in the names that `cliploop run` writes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cliploop.client import Client, NotThere, NotUnderstood
from cliploop.commands.talking import Contact, talking
from cliploop.terminal import EXIT_COMPLETED, EXIT_WAITING, Terminal, one_line
from orchestrator.records import Trajectory

VIDEO = "video.mp4"
TRAJECTORY = "trajectory.json"
CONTACT_SHEET = "contact-sheet.png"


def download_command(job_id: str, output: str | None, clips: bool, contact: Contact) -> int:
    """Fetch a job's files. Exit 4 while it goes on."""
    return talking(contact.terminal, lambda: _download(job_id, output, clips, contact))


def _download(job_id: str, output: str | None, clips: bool, contact: Contact) -> int:
    with contact.client() as client:
        job = client.get(job_id)
        if not job.ended:
            return contact.terminal.error(
                f"job {job.id} is {job.state}: its files come at its end; {contact.again('watch', job.id)}",
                reason="not_ready",
                code=EXIT_WAITING,
                id=job.id,
            )
    if Path(job.id).name != job.id:
        raise NotUnderstood(f"the server calls the job {one_line(job.id)}, which can be no folder's name")
    folder = Path(output) if output else Path("out") / job.id
    folder.mkdir(parents=True, exist_ok=True)
    with contact.client(patience_seconds=30.0) as client:
        fetched = _Fetched(client, job.id, folder, contact.terminal)
        told = fetched.trajectory()
        fetched.file(VIDEO, "video")
        if told.first_frame:
            fetched.file(CONTACT_SHEET, "contact-sheet")
        for step, attempt in _rendered(told) if clips else ():
            fetched.clip(step, attempt)
    files = {name: str(path) for name, path in fetched.files.items()}
    contact.terminal.result(
        {"ok": True, "exit_code": EXIT_COMPLETED, "id": job.id, "folder": str(folder), "files": files}
    )
    return EXIT_COMPLETED


@dataclass
class _Fetched:
    """What has been written so far; each is said when it is there."""

    client: Client
    job_id: str
    folder: Path
    terminal: Terminal
    files: dict[str, Path] = field(default_factory=dict[str, Path])

    def trajectory(self) -> Trajectory:
        """Written, and handed back."""
        told = self.client.trajectory(self.job_id)
        target = self.folder / TRAJECTORY
        part = target.with_name(f".{TRAJECTORY}.{secrets.token_hex(8)}.own-part")
        try:
            with part.open("x", encoding="utf-8") as file:  # never one that is there, nor what a link points to
                file.write(told.model_dump_json(indent=2) + "\n")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        self._said(TRAJECTORY)
        return told

    def file(self, name: str, what: str) -> None:
        """A file of the whole job; a word where there is none."""
        try:
            if what == "video":
                self.client.download(self.job_id, self.folder / name)
            else:
                self.client.download(self.job_id, self.folder / name, what="contact-sheet")
        except NotThere as error:
            if error.code == "not_found":
                raise
            self.terminal.say(one_line(str(error)))
            return
        self._said(name)

    def clip(self, step: int, attempt: int) -> None:
        """The clip of an attempt."""
        name = f"steps/{step}/attempt-{attempt}.mp4"
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        self.client.download(self.job_id, target, what="clip", step=step, attempt=attempt)
        self._said(name)

    def _said(self, name: str) -> None:
        self.files[name] = self.folder / name
        self.terminal.say(one_line(str(self.files[name])), whole=True)


def _rendered(told: Trajectory) -> Iterator[tuple[int, int]]:
    """Step and attempt of every clip; step 0 is the single-shot gate."""
    for step in [*([told.gate] if told.gate else []), *told.steps]:
        for attempt in step.attempts:
            if attempt.clip is not None:
                yield step.index, attempt.index
