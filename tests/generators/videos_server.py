"""A server that speaks `POST /v1/videos` as vLLM-Omni and SGLang do, renders real files, and fails as told."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from media.pictures import Frames
from tests.generators.loopback import Reply, Request, as_json
from tests.generators.vendor_clips import encoded, moving

ONE = re.compile(r"/v1/videos/([\w-]+)(/content)?")


def refusal(
    status: int, message: str, code: str | None = None, param: str | None = None, **headers: str
) -> Reply:
    """An error as OpenAI's API gives it."""
    said = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return as_json({"error": said}, status, **headers)


@dataclass
class VideosServer:
    """`faults` are given first, by what is asked: create, look, load, delete. All that came is on record."""

    draw: Callable[[bytes, int, int], Frames] = moving
    polls: int = 1  # answers that it is not done, before it is
    progress: tuple[Any, ...] = (40,)  # told in these answers, the last again and again
    poll_after_ms: int | None = 1
    fps: float | None = None  # of what it renders; None: as asked
    failure: Mapping[str, Any] | None = None  # how every render ends, if not well
    content: Callable[[bytes], Reply] | None = None  # makes an answer of a file
    never_done: bool = False
    loses: list[threading.Event] = field(
        default_factory=list[threading.Event]
    )  # answers to submissions, if not well
    faults: dict[str, list[Reply]] = field(default_factory=dict[str, list[Reply]])
    asked: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    looks: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, kind: str) -> int:
        return sum(what == kind for what, _ in self.asked)

    @property
    def submitted(self) -> list[dict[str, Any]]:
        """The fields of every submission that came."""
        return [request.form for what, request in self.asked if what == "create"]

    def answer(self, request: Request) -> Reply:
        one = ONE.fullmatch(request.path)
        if request.method == "POST" and request.path == "/v1/videos":
            kind = "create"
        elif one is None:
            return refusal(404, f"there is no {request.path}")
        else:
            kind = "delete" if request.method == "DELETE" else "load" if one[2] else "look"
        self.asked.append((kind, request))
        if self.faults.get(kind):
            return self.faults[kind].pop(0)
        if kind == "create":
            return self._create(request)
        assert one is not None
        if one[1] not in self.jobs:
            return refusal(404, f"there is no video {one[1]}")
        return {"look": self._look, "load": self._load, "delete": self._delete}[kind](one[1])

    def _create(self, request: Request) -> Reply:
        fields = request.form
        video_id = f"video_{len(self.jobs) + 1}"
        self.jobs[video_id] = fields
        if self.loses:
            return Reply(hangs_up=True, holds=self.loses.pop(0))
        return as_json(self._view(video_id, "queued", 0))

    def _look(self, video_id: str) -> Reply:
        seen = self.looks[video_id] = self.looks.get(video_id, 0) + 1
        if self.never_done or seen <= self.polls:
            said = self.progress[min(seen, len(self.progress)) - 1]
            hint = {} if self.poll_after_ms is None else {"openai-poll-after-ms": str(self.poll_after_ms)}
            reply = as_json(self._view(video_id, "in_progress", said))
            return replace(reply, headers={**reply.headers, **hint})
        if self.failure is not None:
            return as_json({**self._view(video_id, "failed", 40), "error": self.failure})
        return as_json(self._view(video_id, "completed", 100))

    def _load(self, video_id: str) -> Reply:
        fields = self.jobs[video_id]
        fps = self.fps or float(fields.get("fps", 16))
        if "num_frames" in fields:
            count = round((int(fields["num_frames"]) - 1) * fps / float(fields["fps"])) + 1
        else:
            count = round(float(fields["seconds"]) * fps)
        frames = self.draw(fields["input_reference"][2], count, int(fields.get("seed", 0)))
        data = encoded(frames, fps)
        if self.content is not None:
            return self.content(data)
        return Reply(200, data, {"content-type": "video/mp4"})

    def _delete(self, video_id: str) -> Reply:
        del self.jobs[video_id]
        return as_json({"id": video_id, "object": "video.deleted", "deleted": True})

    def _view(self, video_id: str, status: str, progress: Any) -> dict[str, Any]:
        fields = self.jobs[video_id]
        return {
            "id": video_id,
            "object": "video",
            "model": fields.get("model", "wan"),
            "status": status,
            "progress": progress,
            "created_at": 1,
            "seconds": fields.get("seconds", "1"),
            "size": fields["size"],
            "error": None,
        }
