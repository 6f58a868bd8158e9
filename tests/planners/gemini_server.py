"""A server that speaks the Gemini API's part for questions: generateContent and files; it looks at what it got.

Every question is opened: media are decoded, and how they were sent is on record for a test to judge.
"""

from __future__ import annotations

import base64
import io
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import av
import numpy as np
from PIL import Image

from media.pictures import Frame
from planners.questions import Role
from tests.generators.loopback import Reply, Request, as_json
from tests.generators.veo_server import refusal
from tests.planners.vlm_server import ROLE_BY_WORDS, USUAL

GENERATE = re.compile(r"/v1beta/models/([\w.-]+):generateContent")
MODEL = re.compile(r"/v1beta/models/([\w.-]+)")
BEGIN = re.compile(r"/upload/v1beta/files")
PIECE = re.compile(r"/upload/v1beta/files\?upload_id=(\w+)")
FILE = re.compile(r"/v1beta/(files/\w+)")


@dataclass(frozen=True)
class Seen:
    """A picture or a video as it came: `how` is inline or file; a picture is one frame."""

    kind: str
    how: str
    num_bytes: int
    frames: tuple[Frame, ...]
    rate: float | None
    pixel_format: str
    fps: float | None


@dataclass(frozen=True)
class Asked:
    """One question: the JSON that came, and what was to be seen in it."""

    model: str
    body: Any
    seen: tuple[Seen, ...]
    key: str

    @property
    def config(self) -> Any:
        return self.body["generationConfig"]

    @property
    def text(self) -> str:
        parts = self.body["contents"][0]["parts"]
        return "\n".join(part["text"] for part in parts if "text" in part)

    @property
    def system(self) -> str:
        return self.body["systemInstruction"]["parts"][0]["text"]

    @property
    def role(self) -> Role:
        return next(role for words, role in ROLE_BY_WORDS.items() if words in self.system)

    @property
    def videos(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.kind.startswith("video/")]

    @property
    def pictures(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.kind.startswith("image/")]


@dataclass
class _File:
    data: bytes
    kind: str
    looks: int = 0


def candidate(text: str | None, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    """An answer of one candidate."""
    said: dict[str, Any] = {} if text is None else {"content": {"role": "model", "parts": [{"text": text}]}}
    return {"candidates": [{**said, "index": 0, **({"finishReason": finish} if finish else {}), **more}]}


def camel(value: Any) -> Any:
    """Names in one case: the client mixes two, and the API takes both. What a schema calls its fields stays."""
    if isinstance(value, list):
        return [camel(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    named: dict[str, Any] = {}
    for name, inner in cast("dict[str, Any]", value).items():
        said = re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
        named[said] = inner if said == "responseJsonSchema" else camel(inner)
    return named


@dataclass
class GeminiServer:
    """Answers by role, the last of several again and again; `replies` are given before those, as they stand.

    `faults` are given before all, by what is asked: ask, model, begin, piece, look, delete. `processing`: how
    often a file is looked at, its upload included, before it `ends`.
    """

    answers: dict[Role, Any] = field(default_factory=lambda: dict(USUAL))
    replies: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    usage: dict[str, int] = field(
        default_factory=lambda: {
            "promptTokenCount": 12_000,
            "candidatesTokenCount": 200,
            "thoughtsTokenCount": 800,
            "totalTokenCount": 13_000,
        }
    )
    models: tuple[str, ...] = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-own")
    processing: int = 0
    ends: str = "ACTIVE"
    faults: dict[str, list[Reply]] = field(default_factory=dict[str, list[Reply]])
    log: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])
    asked: list[Asked] = field(default_factory=list[Asked])
    files: dict[str, _File] = field(default_factory=dict[str, _File])
    deleted: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)
    _begun: dict[str, tuple[int, str, bytearray]] = field(default_factory=dict[str, tuple[int, str, bytearray]])

    def count(self, kind: str) -> int:
        return sum(what == kind for what, _ in self.log)

    def answer(self, request: Request) -> Reply:
        with self.lock:
            for kind, method, path, give in (
                ("ask", "POST", GENERATE, self._ask),
                ("begin", "POST", BEGIN, self._begin),
                ("piece", "POST", PIECE, self._piece),
                ("model", "GET", MODEL, self._model),
                ("look", "GET", FILE, self._look),
                ("delete", "DELETE", FILE, self._delete),
            ):
                found = path.fullmatch(request.path)
                if found and method == request.method:
                    self.log.append((kind, request))
                    if self.faults.get(kind):
                        return self.faults[kind].pop(0)
                    return give(found[1] if found.groups() else "", request)
            return refusal(404, f"there is no {request.method} {request.path}", "NOT_FOUND")

    def _ask(self, model: str, request: Request) -> Reply:
        if model not in self.models:
            return refusal(404, f"models/{model} is not found for API version v1beta", "NOT_FOUND")
        body = camel(request.json)
        (content,) = body["contents"]
        seen = tuple(self._seen(part) for part in content["parts"] if "text" not in part)
        asked = Asked(model, body, seen, request.headers["x-goog-api-key"])
        self.asked.append(asked)
        said = self.replies.pop(0) if self.replies else candidate(self._told_by(asked.role))
        return as_json({"modelVersion": f"{model}-001", "usageMetadata": self.usage, **said})

    def _told_by(self, role: Role) -> str:
        given = self.answers[role]
        if isinstance(given, list):
            several = cast("list[Any]", given)
            given = several.pop(0) if len(several) > 1 else several[0]
        return given if isinstance(given, str) else json.dumps(given)

    def _model(self, model: str, _: Request) -> Reply:
        if model not in self.models:
            return refusal(404, f"models/{model} is not found for API version v1beta", "NOT_FOUND")
        return as_json({"name": f"models/{model}", "inputTokenLimit": 1_048_576})

    def _seen(self, part: Mapping[str, Any]) -> Seen:
        fps = part.get("videoMetadata", {}).get("fps")
        if (inline := part.get("inlineData")) is not None:
            data = base64.urlsafe_b64decode(inline["data"])  # the alphabet of the official client
            kind, how = inline["mimeType"], "inline"
        else:
            given = part["fileData"]
            file = self.files[given["fileUri"].partition("/v1beta/")[2]]
            assert file.looks > self.processing, "a file that is not ready was used"
            data, kind, how = file.data, given["mimeType"], "file"
            assert kind == file.kind
        if kind.startswith("image/"):
            with Image.open(io.BytesIO(data)) as picture:
                frame = np.asarray(picture.convert("RGB"))
            return Seen(kind, how, len(data), (frame,), None, "", fps)
        opened: Any = av.open(io.BytesIO(data), "r")
        with opened as container:
            stream = container.streams.video[0]
            frames = tuple(frame.to_ndarray(format="rgb24") for frame in container.decode(stream))
            rate = float(stream.average_rate)
            return Seen(kind, how, len(data), frames, rate, f"{stream.codec.name} {stream.pix_fmt}", fps)

    def _begin(self, _: str, request: Request) -> Reply:
        assert request.headers["x-goog-upload-protocol"] == "resumable"
        assert request.headers["x-goog-upload-command"] == "start"
        number = f"u{len(self._begun) + 1}"
        size = int(request.headers["x-goog-upload-header-content-length"])
        kind = request.headers["x-goog-upload-header-content-type"]
        self._begun[number] = (size, kind, bytearray())
        url = f"http://{request.headers['host']}/upload/v1beta/files?upload_id={number}"
        return as_json({}, x_goog_upload_url=url, x_goog_upload_status="active")

    def _piece(self, number: str, request: Request) -> Reply:
        size, kind, data = self._begun[number]
        assert int(request.headers["x-goog-upload-offset"]) == len(data)
        data += request.body
        if "finalize" not in request.headers["x-goog-upload-command"]:
            return as_json({}, x_goog_upload_status="active")
        assert len(data) == size
        name = f"files/{number}"
        self.files[name] = _File(bytes(data), kind)
        return as_json({"file": self._file(name)}, x_goog_upload_status="final")

    def _look(self, name: str, _: Request) -> Reply:
        return as_json(self._file(name)) if name in self.files else refusal(404, f"no {name}", "NOT_FOUND")

    def _file(self, name: str) -> dict[str, Any]:
        file = self.files[name]
        file.looks += 1
        state = "PROCESSING" if file.looks <= self.processing else self.ends
        more = {"error": {"code": 13, "message": "the container is damaged"}} if state == "FAILED" else {}
        uri = f"https://generativelanguage.googleapis.com/v1beta/{name}"
        return {"name": name, "uri": uri, "mimeType": file.kind, "state": state, **more}

    def _delete(self, name: str, _: Request) -> Reply:
        del self.files[name]
        self.deleted.append(name)
        return as_json({})
