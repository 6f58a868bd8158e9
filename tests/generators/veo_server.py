"""A server that speaks the Gemini API's part for Veo: operations, files, filters, and faults as told."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from media.pictures import Frames, decode_png, encode_png
from tests.generators.loopback import Reply, Request, as_json
from tests.generators.vendor_clips import encoded, moving

SUBMIT = re.compile(r"/v1beta/models/([\w.-]+):predictLongRunning")
OPERATION = re.compile(r"/v1beta/(models/[\w.-]+/operations/\w+)")
FILE = re.compile(r"/v1beta/files/(\w+):download\?alt=media")
FPS = 24
FILTERED: dict[str, Any] = {
    "raiMediaFilteredCount": 1,
    "raiMediaFilteredReasons": ["The video could not be made: it may show a real person. You were not charged."],
}


def refusal(status: int, message: str, name: str = "", details: Any = (), **headers: str) -> Reply:
    """An error as Google's APIs give it."""
    said = {"code": status, "message": message, "status": name, "details": list(details)}
    return as_json({"error": said}, status, **headers)


@dataclass
class VeoServer:
    """`faults` are given first, by what is asked: submit, look, load. `ends` says how renders end, in order."""

    draw: Callable[[bytes, int, int], Frames] = moving
    polls: int = 1
    shrink: int = 2  # of the sides of what it renders: other sizes of the same shape, and quicker
    seed_by_operation: bool = True
    ends: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    content: Callable[[bytes], Reply] | None = None
    never_done: bool = False
    faults: dict[str, list[Reply]] = field(default_factory=dict[str, list[Reply]])
    asked: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])
    operations: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    looks: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, kind: str) -> int:
        return sum(what == kind for what, _ in self.asked)

    @property
    def submitted(self) -> list[Any]:
        """The JSON of every submission that came."""
        return [request.json for what, request in self.asked if what == "submit"]

    def answer(self, request: Request) -> Reply:
        for kind, path, give in (
            ("submit", SUBMIT, self._submit),
            ("look", OPERATION, self._look),
            ("load", FILE, self._load),
        ):
            found = path.fullmatch(request.path)
            if found:
                self.asked.append((kind, request))
                return self.faults[kind].pop(0) if self.faults.get(kind) else give(found[1], request)
        return refusal(404, f"there is no {request.path}", "NOT_FOUND")

    def _submit(self, model: str, request: Request) -> Reply:
        if "veo" not in model:
            return refusal(404, f"models/{model} is not found for API version v1beta", "NOT_FOUND")
        if "seed" in request.json["parameters"]:
            return refusal(400, "`seed` isn't supported by this model", "INVALID_ARGUMENT")
        name = f"models/{model}/operations/op{len(self.operations) + 1}"
        self.operations[name] = request.json
        return as_json({"name": name})

    def _look(self, name: str, _request: Request) -> Reply:
        if name not in self.operations:
            return refusal(404, "Operation not found", "NOT_FOUND")
        seen = self.looks[name] = self.looks.get(name, 0) + 1
        if self.never_done or seen <= self.polls:
            return as_json({"name": name})
        number = int(name.rpartition("op")[2])
        if number <= len(self.ends):
            return as_json({"name": name, "done": True, **self.ends[number - 1]})
        uri = f"https://generativelanguage.googleapis.com/v1beta/files/f{number}:download?alt=media"
        return as_json(done(generatedSamples=[{"video": {"uri": uri}}], name=name))

    def _load(self, file: str, _request: Request) -> Reply:
        said = next(each for name, each in self.operations.items() if name.endswith(f"op{file[1:]}"))
        seconds = int(said["parameters"]["durationSeconds"])
        sent = base64.b64decode(said["instances"][0]["image"]["bytesBase64Encoded"])
        picture = Image.fromarray(decode_png(sent))
        assert picture.width * 9 == picture.height * 16 or picture.width * 16 == picture.height * 9
        small = picture.resize((picture.width // self.shrink, picture.height // self.shrink))
        seed = int(file[1:]) if self.seed_by_operation else 0
        data = encoded(self.draw(encode_png(small), seconds * FPS, seed), FPS)
        return Reply(200, data, {"content-type": "video/mp4"}) if self.content is None else self.content(data)


def done(name: str = "", **response: Any) -> dict[str, Any]:
    """An operation that ended, with this in its answer."""
    kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"
    ended = {"done": True, "response": {"@type": kind, "generateVideoResponse": response}}
    return {"name": name, **ended} if name else ended


def sent_picture(submission: Any) -> Frames:
    """The start picture in a submission."""
    with Image.open(
        io.BytesIO(base64.b64decode(submission["instances"][0]["image"]["bytesBase64Encoded"]))
    ) as png:
        assert png.format == "PNG"
    return decode_png(base64.b64decode(submission["instances"][0]["image"]["bytesBase64Encoded"]))
