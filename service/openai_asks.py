"""What a request of OpenAI's video API says, as a form or as JSON; read and checked, nothing decoded yet."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile

from cliploop.compose import Composition
from orchestrator.errors import TaskRejected
from orchestrator.faults import suggest
from orchestrator.records import Policy, Size
from service.asks import MAX_FORM_FIELDS, Choice, data_url, validated
from service.openai_errors import Wrong
from service.pictures import names_picture
from service.problems import Refused
from storage.artifacts import is_key
from storage.digest import digest

DEFAULT_MODEL = "default"
MAX_SECONDS = 3600.0
_SECONDS = re.compile(r"\d{1,6}(\.\d{1,6})?")
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
_NESTED = re.compile(r"(\w+)\[(\w+)\]")


class ImageReference(BaseModel):
    """The first picture, named instead of sent."""

    model_config = ConfigDict(extra="forbid")

    image_url: str | None = Field(
        default=None,
        description="A data URL (data:image/png;base64,…), or, where this server fetches them, a public address.",
    )
    file_id: str | None = Field(
        default=None,
        max_length=200,
        description="The id of an artifact that was uploaded with POST /v1/artifacts.",
    )


class VideoRequest(Choice):
    """What should happen in a picture. Beside OpenAI's own fields those of POST /v1/jobs can be set."""

    prompt: str = Field(description="What should happen in the picture.", max_length=1_000_000)
    input_reference: ImageReference | str | None = Field(
        default=None,
        description="The first picture, with which the video begins: a file in a form, an object that names it,"
        " or what that object's fields hold.",
    )
    model: str = Field(
        default=DEFAULT_MODEL,
        max_length=200,
        description="A preset of this server (GET /v1/presets), one of its generators (GET /v1/generators), or"
        " `default`: what its settings say.",
    )
    seconds: str | int | float | None = Field(
        default=None,
        description="The most that the answer may last: as many steps are done as fit, and at least one. How long"
        " it is depends on the task; the video says so when it is completed.",
        examples=["12"],
    )
    size: str | None = Field(
        default=None,
        max_length=40,
        description="`auto`, or the picture's own size: a video has the size of its first picture.",
        examples=["1280x720"],
    )

    def choice(self, composition: Composition) -> Choice:
        """What it chooses, `model` resolved. Raises Wrong."""
        said: dict[str, Any] = {name: getattr(self, name) for name in Choice.model_fields}
        if self.preset is not None:
            raise Wrong("unknown_parameter", "preset: say it as model", "preset")
        presets, generators = composition.settings.presets, composition.generator_names()
        if self.model in presets:
            return Choice.model_validate({**said, "preset": self.model})
        if self.model == DEFAULT_MODEL:
            return Choice.model_validate(said)
        if self.model not in generators:
            known = [DEFAULT_MODEL, *(name for name in (*presets, *generators) if name != DEFAULT_MODEL)]
            what = f"there is no model {self.model[:60]!r}{suggest(self.model[:60], known)}"
            raise Wrong("model_not_found", what, "model", status=404)
        if self.generator not in (None, self.model):
            what = f"generator: the model is the generator {self.model!r} already: leave one of them out"
            raise Wrong("invalid_value", what, "generator")
        return Choice.model_validate({**said, "generator": self.model})

    @property
    def limit_seconds(self) -> float | None:
        """`seconds` as a number. Raises Wrong."""
        if self.seconds is None:
            return None
        text = str(self.seconds).strip()
        value = float(text) if _SECONDS.fullmatch(text) else math.nan
        if not 0 < value <= MAX_SECONDS:
            what = f"seconds must be a number above 0 and at most {MAX_SECONDS:g}, like '8' (got {text[:40]!r})"
            raise Wrong("invalid_value", what, "seconds")
        return value

    def refuse_size(self, picture: Size) -> None:
        """Raise Wrong for a size that is not the picture's."""
        if self.size in (None, "auto"):
            return
        found = _SIZE.fullmatch(self.size or "")
        if found is None:
            what = f"size must be like '1280x720', or 'auto' (got {(self.size or '')[:40]!r})"
            raise Wrong("invalid_value", what, "size")
        if (int(found[1]), int(found[2])) != (picture.width, picture.height):
            what = (
                f"the picture is {picture}, and a video has the size of its first picture: send size='{picture}',"
                f" leave size out, or scale the picture to {self.size}"
            )
            raise Wrong("size_mismatch", what, "size")


@dataclass(frozen=True)
class VideoAsk:
    """A request that was read. A picture as text names one that is elsewhere, see `service.pictures`.

    `name` is the client's own name of the picture, for messages only.
    """

    said: VideoRequest
    picture: bytes | str
    name: str = ""

    @property
    def words(self) -> dict[str, Any]:
        """What is kept of it as it was said."""
        return {"model": self.said.model, "seconds": self.said.seconds, "size": self.said.size}

    @property
    def fingerprint(self) -> str:
        """Equal for equal requests, in whatever form they came."""
        said = self.said.model_dump(mode="json", exclude={"input_reference"})
        picture = self.picture if isinstance(self.picture, str) else hashlib.sha256(self.picture).hexdigest()
        return digest({**said, "api": "openai", "picture": picture})


def within(policy: Policy, seconds: float | None) -> Policy:
    """The policy with no more steps than fit into an answer of so many seconds; the first may be cut to fit."""
    if seconds is None:
        return policy
    further = math.floor((seconds - policy.first_step_seconds) / policy.step_seconds + 1e-9)
    return policy.model_copy(
        update={
            "max_steps": min(policy.max_steps, 1 + max(0, further)),
            "first_step_seconds": min(policy.first_step_seconds, seconds),
        }
    )


async def read_video_ask(request: Request) -> VideoAsk:
    """The request's words and picture. Raises Wrong, Refused, service.asks.Unreadable."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _from_form(request)
    if kind == "application/json":
        said: VideoRequest = validated(VideoRequest, await request.body())
        return VideoAsk(said, _referenced(said.input_reference))
    raise Refused(415, "media_type", "send multipart/form-data or application/json")


async def _from_form(request: Request) -> VideoAsk:
    limit = request.app.state.max_body_bytes
    async with request.form(max_files=1, max_fields=MAX_FORM_FIELDS, max_part_size=limit) as form:
        values = _fields(form.multi_items())
        file = values.get("input_reference")
        data, name = None, ""
        if isinstance(file, UploadFile):
            data, name = await file.read(), file.filename or ""
            del values["input_reference"]
    for field, value in values.items():
        if isinstance(value, UploadFile):
            raise Wrong("invalid_value", f"{field[:60]}: only input_reference is a file: send text", field[:60])
    said: VideoRequest = validated(VideoRequest, values)
    return VideoAsk(said, _referenced(said.input_reference) if data is None else data, name)


def _fields(items: Sequence[tuple[str, UploadFile | str]]) -> dict[str, Any]:
    """By name; `input_reference[image_url]` is a part of an object. Raises Wrong for a field that comes twice."""
    values: dict[str, Any] = {}
    for key, value in items:
        nested = _NESTED.fullmatch(key)
        name, into = key, values
        if nested is not None:
            into, name = values.setdefault(nested[1], {}), nested[2]
        if not isinstance(into, dict) or name in into:
            raise Wrong("invalid_value", f"the field {key[:60]!r} is there twice: keep one", key[:60])
        into[name] = value
    return values


def _referenced(reference: ImageReference | str | None) -> bytes | str:
    """The picture, or its name where it is elsewhere. Raises Wrong."""
    named = reference
    if isinstance(reference, ImageReference):
        if (reference.image_url is None) == (reference.file_id is None):
            what = "input_reference: give one of image_url and file_id, or send the file"
            raise Wrong("invalid_value", what, "input_reference")
        if reference.file_id is not None and not is_key(reference.file_id):
            what = "input_reference: file_id must be the id of an artifact, from POST /v1/artifacts"
            raise Wrong("invalid_value", what, "input_reference")
        named = reference.image_url or reference.file_id
    if not named:
        raise Wrong(
            "missing_required_parameter",
            "input_reference: the video begins with a picture: send one as a file, or as image_url with a data"
            " URL (POST /v1/worlds/{name}/sample gives one to try with)",
            "input_reference",
        )
    if names_picture(str(named)):
        return str(named)
    with pictures_named():
        return data_url(str(named))


@contextlib.contextmanager
def pictures_named() -> Generator[None]:
    """Refusals of a picture, with the name that the field has here."""
    try:
        yield
    except TaskRejected as error:
        if not error.reason.startswith("picture_"):
            raise
        what = str(error).replace("picture:", "input_reference:", 1)
        raise Wrong(error.reason, what, "input_reference") from error
