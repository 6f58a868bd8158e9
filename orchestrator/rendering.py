"""Rendering one clip, here or in a worker: the effect behind every `…/clip` entry."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.asking import patiently
from orchestrator.errors import BackendFailed, JobCancelled, JobWaiting
from orchestrator.frame_counts import clip_seconds
from orchestrator.ports import Frames, Journal, Ports
from orchestrator.records import Policy, Rendered, Shot, Spend, Token


@dataclass(frozen=True)
class Render:
    """What a process needs to make a clip: nothing of the loop's own state."""

    key: str  # of the clip's entry
    shot: Shot
    policy: Policy
    ports: Ports
    journal: Journal

    def __call__(self) -> Rendered:
        """Render and store. Raises BackendFailed with what it cost, JobWaiting(backend | disk), JobCancelled."""
        clock = self.ports.clock
        started = clock.now()
        try:
            frames = self._frames()
            rendered = clock.now()
            clip = self.ports.editor.store(frames, self.shot)
        except BackendFailed as failure:
            if self.ports.cancelled():  # what stopping it looks like to some backends: no attempt is counted
                raise JobCancelled("the job was cancelled") from failure
            lost = clock.now() - started
            raise BackendFailed(str(failure), spend=Spend(gpu_seconds=lost, wall_seconds=lost)) from failure
        seconds = clip_seconds(clip.num_frames, clip.fps)
        spend = Spend(
            video_seconds=seconds,
            gpu_seconds=rendered - started,
            usd=seconds * self.ports.generator.capabilities.usd_per_video_second,
            wall_seconds=clock.now() - started,
        )
        return Rendered(clip=clip, spend=spend)

    def _frames(self) -> Frames:
        resume = self._token()
        return patiently(
            self.ports.clock,
            self.shot.seed,
            self.key,
            lambda: self.ports.generator.render(
                self.shot,
                resume=resume,
                checkpoint=self._checkpoint,
                progress=lambda fraction: self.ports.progress(self.key, fraction),
                cancelled=self.ports.cancelled,
            ),
        )

    def _checkpoint(self, token: str) -> None:
        number = 1
        while self.journal.peek(f"{self.key}/token/{number}", Token) is not None:
            number += 1
        self.journal.once(f"{self.key}/token/{number}", {}, Token, lambda: Token(token=token))

    def _token(self) -> str | None:
        """The latest token, if any; notices that a restart fell between submit and token."""
        latest: str | None = None
        number = 1
        while (token := self.journal.peek(f"{self.key}/token/{number}", Token)) is not None:
            latest, number = token.token, number + 1
        if latest is None and self.ports.generator.capabilities.remote:
            self._note_submission()
        return latest

    def _note_submission(self) -> None:
        if self.journal.peek(f"{self.key}/submitting", Token) is None:
            self.journal.once(f"{self.key}/submitting", {}, Token, Token)
            return
        self.journal.once(f"{self.key}/submit_unknown", {}, Token, Token)
        if self.policy.submit_unknown == "wait" and self.journal.renewals(self.key) == 0:
            message = (
                f"{self.key}: stopped between submitting a render and learning its id; it may be running "
                "and charged already. Run again to submit it anew"
            )
            raise JobWaiting("backend", message, key=self.key)
