"""Rendering one clip, here or in a worker: the effect behind every `…/clip` entry."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.asking import patiently
from orchestrator.errors import BackendFailed, BackendUnavailable, JobCancelled, JobWaiting, SubmissionUnknown
from orchestrator.frame_counts import clip_seconds
from orchestrator.ports import Frames, Journal, Ports
from orchestrator.records import Doubt, Policy, Rendered, Shot, Spend, Token

RESUBMISSIONS = 2  # by policy `resubmit`, until somebody is asked all the same


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
            spend = failure.spend + Spend(gpu_seconds=lost, wall_seconds=lost)
            raise BackendFailed(str(failure), spend=spend) from failure
        seconds = clip_seconds(clip.num_frames, clip.fps)
        spend = Spend(
            video_seconds=seconds,
            gpu_seconds=rendered - started,
            usd=seconds * self.ports.generator.capabilities.usd_per_video_second,
            wall_seconds=clock.now() - started,
        )
        return Rendered(clip=clip, spend=spend)

    def _frames(self) -> Frames:
        return patiently(self.ports.clock, self.shot.seed, self.key, self._render)

    def _render(self) -> Frames:
        """Once. What was submitted before, here or in a process that ended, is taken up by its token."""
        token = self._token()
        if token is None and self.ports.generator.capabilities.remote:
            self._submission()
        try:
            return self.ports.generator.render(
                self.shot,
                resume=token,
                checkpoint=self._checkpoint,
                progress=lambda fraction: self.ports.progress(self.key, fraction),
                cancelled=self.ports.cancelled,
            )
        except SubmissionUnknown:
            self._unknown(self._count("submitting"))
            raise
        except BackendUnavailable:
            submission = self._count("submitting")
            if self._is_open(submission):
                self._note(f"submitting/{submission}/refused")
            raise

    def _checkpoint(self, token: str) -> None:
        """An empty one: the render that the last one named is over, and the backend submits another now."""
        key = f"token/{self._count('token') + 1}"
        self.journal.once(f"{self.key}/{key}", {}, Token, lambda: Token(token=token))
        if not token:
            self._submission()

    def _token(self) -> str | None:
        """The latest one, if its render is not over."""
        latest = self._noted(f"token/{self._count('token')}")
        return None if latest is None or not latest.token else latest.token

    def _submission(self) -> None:
        """Note that a render is being submitted. First what became of the one before, if that is open.

        Raises JobWaiting if it may be running and the policy says to ask.
        """
        number = self._count("submitting")
        if self._is_open(number):
            self._unknown(number)
        before = str(self._count("token"))
        self.journal.once(f"{self.key}/submitting/{number + 1}", {}, Token, lambda: Token(token=before))

    def _is_open(self, submission: int) -> bool:
        """Whether its answer was lost: it was neither refused nor given a token. It holds how many there were."""
        noted = self._noted(f"submitting/{submission}")
        if noted is None or self._noted(f"submitting/{submission}/refused") is not None:
            return False
        return self._count("token") <= int(noted.token or 0)

    def _unknown(self, submission: int) -> None:
        """This submission may have begun a render, whose id nobody knows.

        Raises JobWaiting by the policy, and where it happens again and again: each may be charged.
        """
        now = self.journal.renewals(self.key)
        if self._doubt(submission) is None:
            key = f"{self.key}/submit_unknown/{submission}"
            self.journal.once(key, {}, Doubt, lambda: Doubt(renewals=now))
        doubts = [self._doubt(number) for number in range(1, submission + 1)]
        unsettled = sum(doubt is not None and doubt.renewals >= now for doubt in doubts)
        if unsettled > (0 if self.policy.submit_unknown == "wait" else RESUBMISSIONS):
            message = (
                f"{self.key}: stopped between submitting a render and learning its id; it may be running "
                "and charged already. Run again to submit it anew"
            )
            raise JobWaiting("backend", message, key=self.key)

    def _doubt(self, submission: int) -> Doubt | None:
        return self.journal.peek(f"{self.key}/submit_unknown/{submission}", Doubt)

    def _count(self, kind: str) -> int:
        """How many entries of that kind there are; they are numbered from 1."""
        number = 0
        while self._noted(f"{kind}/{number + 1}") is not None:
            number += 1
        return number

    def _noted(self, name: str) -> Token | None:
        return self.journal.peek(f"{self.key}/{name}", Token)

    def _note(self, name: str) -> None:
        self.journal.once(f"{self.key}/{name}", {}, Token, Token)
