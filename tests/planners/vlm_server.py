"""A server that speaks OpenAI's chat completions as vLLM and SGLang do, answers as told, and fails as told."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from media.probe import Probe, probe
from planners.questions import Role
from tests.generators.loopback import Reply, Request, as_json

PICTURE_TOKENS = 300
DATA_URL = re.compile(r"data:([\w/]+);base64,(.*)", re.DOTALL)
ROLE_BY_WORDS: Mapping[str, Role] = {
    "You plan for": "planner",
    "You check clips": "verifier",
    "was filmed several times": "router",
    "is complete": "assessor",
    "the best of these clips": "selector",
}
USUAL: Mapping[Role, Mapping[str, Any]] = {
    "planner": {
        "observation": "A disc in a corridor.",
        "remaining_goal": "To the flag.",
        "task_complete": False,
        "instruction": "The red disc glides right.",
        "target_state": "It is further right.",
        "estimated_steps_remaining": 1,
        "confidence": "high",
    },
    "verifier": {
        "reason": "From frame 1 on the disc goes left.",
        "verdict": "reject",
        "action_executed": False,
        "progress": "none",
        "confidence": "high",
        "failure": "wrong_direction",
        "suggestion": "The disc goes right.",
        "good_fraction": 0.0,
    },
    "router": {"reason": "It fails alike.", "action": "fallback", "suggestion": "", "sub_actions": []},
    "assessor": {"reason": "The disc is not on the flag.", "task_complete": False},
    "selector": {"reason": "It goes farthest.", "best_index": 1},
}
ACCEPT: Mapping[str, Any] = {
    **USUAL["verifier"],
    "reason": "The disc glides right as planned.",
    "verdict": "accept",
    "action_executed": True,
    "progress": "complete",
    "failure": "none",
    "suggestion": "",
    "good_fraction": 1.0,
}


@dataclass(frozen=True)
class Came:
    """A picture that came: its kind as the data says, and its pixels."""

    kind: str
    picture: Image.Image


@dataclass(frozen=True)
class Chat:
    """A question as it came."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def content(self) -> list[dict[str, Any]]:
        return self.body["messages"][-1]["content"]

    @property
    def system(self) -> str:
        return self.body["messages"][0]["content"]

    @property
    def text(self) -> str:
        """All the user's text, an image as `[image]`."""
        return "\n".join(part.get("text", f"[{part['type'].removesuffix('_url')}]") for part in self.content)

    @property
    def images(self) -> list[Came]:
        found: list[Came] = []
        for part in self.content:
            if part["type"] == "image_url":
                data = DATA_URL.fullmatch(part["image_url"]["url"])
                assert data is not None
                found.append(Came(data[1], Image.open(io.BytesIO(base64.b64decode(data[2])))))
        return found

    @property
    def videos(self) -> list[Probe]:
        urls = [part["video_url"]["url"] for part in self.content if part["type"] == "video_url"]
        return [probe(base64.b64decode(url.removeprefix("data:video/mp4;base64,"))) for url in urls]

    @property
    def schema(self) -> Mapping[str, Any] | None:
        form = self.body.get("response_format")
        return None if form is None else form["json_schema"]["schema"]

    @property
    def role(self) -> Role:
        return next(role for words, role in ROLE_BY_WORDS.items() if words in self.system)


def refusal(status: int, message: str, code: Any = None, param: str | None = None, **headers: str) -> Reply:
    """An error as vLLM gives it."""
    said = {"message": message, "type": "BadRequestError", "param": param, "code": code or status}
    return as_json({"error": said}, status, **headers)


def completion(content: Any, finish: str | None = "stop", **message: Any) -> Reply:
    """An answer, with what it cost."""
    said = {"role": "assistant", "content": content, **message}
    return as_json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "qwen-served",
            "choices": [{"index": 0, "message": said, "finish_reason": finish}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200},
        }
    )


@dataclass
class VlmServer:
    """`faults` are given first. `answers` by role: an object, a text, a Reply, a function, or a list of these."""

    answers: dict[Role, Any] = field(default_factory=dict[Role, Any])
    faults: list[Reply] = field(default_factory=list[Reply])
    max_images: int | None = None
    takes_video: bool = False
    takes_schema: bool = True
    context_tokens: int | None = None
    asked: list[Chat] = field(default_factory=list[Chat])
    answered: list[Chat] = field(default_factory=list[Chat])

    def answer(self, request: Request) -> Reply:
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            return refusal(404, f"there is no {request.path}")
        chat = Chat(request.headers, request.json)
        self.asked.append(chat)
        if self.faults:
            return self.faults.pop(0)
        refused = self._refused(chat)
        if refused is not None:
            return refused
        self.answered.append(chat)
        return _reply(self.answers.get(chat.role, USUAL[chat.role]), chat)

    def asked_of(self, role: Role) -> list[Chat]:
        return [chat for chat in self.answered if chat.role == role]

    def _refused(self, chat: Chat) -> Reply | None:
        kinds = [part["type"] for part in chat.content]
        if "video_url" in kinds and not self.takes_video:
            return refusal(400, "Unknown part type: video_url")
        if self.max_images is not None and kinds.count("image_url") > self.max_images:
            return refusal(
                400,
                f"At most {self.max_images} image(s) may be provided in one prompt."
                " Set `--limit-mm-per-prompt` to increase this limit.",
            )
        if chat.schema is not None and not self.takes_schema:
            return refusal(400, "response_format of type json_schema is not supported", param="response_format")
        prompt = PICTURE_TOKENS * kinds.count("image_url") + len(chat.system + chat.text) // 4
        wanted = prompt + chat.body.get("max_tokens", chat.body.get("max_completion_tokens", 0))
        if self.context_tokens is not None and wanted > self.context_tokens:
            return refusal(
                400,
                f"This model's maximum context length is {self.context_tokens} tokens. However, you requested"
                f" {wanted} tokens ({prompt} in the messages, {wanted - prompt} in the completion).",
            )
        return None


def _reply(said: Any, chat: Chat) -> Reply:
    if isinstance(said, Reply):
        return said
    if isinstance(said, list):
        return _reply(said.pop(0) if len(said) > 1 else said[0], chat)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(said, Callable):
        return _reply(said(chat), chat)
    return completion(said if isinstance(said, str) else json.dumps(said))
