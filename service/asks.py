"""What a submission says, as JSON or as a form; read and checked, nothing decoded yet."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote_to_bytes

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from starlette.datastructures import UploadFile

from cliploop.choosing import Wanted
from orchestrator.errors import TaskRejected
from orchestrator.faults import unknown_field
from orchestrator.records import Budget
from service.hooks import MAX_SECRET_CHARS, MAX_URL_CHARS, Hook, in_form
from service.pictures import names_picture
from service.problems import MAX_NAME, Fault, Refused, invalid
from storage.digest import digest
from storage.tables import Priority

MAX_FORM_FIELDS = 40
LARGEST = 2**63 - 1
_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)
_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
Named = Field(default=None, max_length=200)


class Choice(BaseModel):
    """What a request chooses of preset, backends, strategy and limits; null = not said."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    preset: str | None = Field(default=None, max_length=200, description="What GET /v1/presets names.")
    generator: str | None = Field(default=None, max_length=200, examples=["simulated"])
    planner: str | None = Field(default=None, max_length=200, examples=["oracle"])
    verifier: str | None = Field(default=None, max_length=200, examples=["oracle"])
    strategy: str | None = Field(default=None, max_length=200, examples=["collabvr"])
    max_steps: int | None = Field(default=None, ge=1, le=1000, examples=[6])
    max_attempts: int | None = Field(default=None, ge=1, le=1000)
    seed: int | None = Field(default=None, ge=0, le=LARGEST)
    gate: str | None = Field(default=None, max_length=200, examples=["none"])
    budget: Budget | str | None = Field(
        default=None,
        description="An object, or text like video_seconds=60,vlm_calls=40.",
        examples=[{"video_seconds": 60, "vlm_calls": 40}],
    )
    priority: Priority = "normal"

    def wanted(self) -> ByField:
        """The same for the composition."""
        values = {name: getattr(self, name) for name in Choice.model_fields if name not in ("priority", "budget")}
        return ByField(**values, budget=_as_text(self.budget))


class Submission(Choice):
    """A picture, what should happen in it, and how."""

    prompt: str = Field(description="What should happen in the picture.", max_length=1_000_000)
    picture: str = Field(
        description="The first picture: a data URL (data:image/png;base64,…), the id of an artifact that was"
        " uploaded with POST /v1/artifacts, or, where this server fetches them, a public https address."
    )
    webhook: Hook | None = Field(default=None, description="Where the job's news goes.")

    @property
    def hook(self) -> Hook | None:
        """The webhook."""
        return self.webhook


class FormSubmission(Choice):
    """The same as a form; the picture is a file, or text as in JSON."""

    prompt: str = Field(max_length=1_000_000)
    webhook_url: str | None = Field(default=None, max_length=MAX_URL_CHARS, description="webhook.url")
    webhook_secret: str | None = Field(
        default=None, max_length=MAX_SECRET_CHARS, repr=False, description="webhook.secret"
    )

    @field_validator("webhook_secret")
    @classmethod
    def _of_a_webhook(cls, secret: str | None, info: ValidationInfo) -> str | None:
        if secret is not None and info.data.get("webhook_url") is None:
            raise ValueError("webhook_url is missing")
        return in_form(secret)

    @property
    def hook(self) -> Hook | None:
        """The webhook."""
        return None if self.webhook_url is None else Hook(url=self.webhook_url, secret=self.webhook_secret)


@dataclass(frozen=True)
class ByField(Wanted):
    """A choice whose fields are called by their own names in messages."""

    def where(self, key: str) -> str:
        """See Wanted."""
        return key


@dataclass(frozen=True)
class Ask:
    """A submission that was read. A picture as text names one that is elsewhere, see `service.pictures`.

    `name` is the client's own name of the picture, for messages only.
    """

    choice: Choice
    prompt: str
    picture: bytes | str
    name: str = ""
    hook: Hook | None = None

    @property
    def fingerprint(self) -> str:
        """Equal for equal requests, in whatever form they came."""
        said = {name: getattr(self.choice, name) for name in Choice.model_fields}
        picture = self.picture if isinstance(self.picture, str) else hashlib.sha256(self.picture).hexdigest()
        told = {} if self.hook is None else {"webhook": self.hook.model_dump()}
        return digest({**said, **told, "prompt": self.prompt, "picture": picture})


class Unreadable(Exception):
    """A body that is not what it should be; `response` says so."""

    def __init__(self, response: JSONResponse) -> None:
        super().__init__()
        self.response = response


def idempotency_key(request: Request) -> str | None:
    """The header's value. Raises Refused."""
    said = request.headers.getlist("idempotency-key")
    if len(said) > 1 or not all(map(_IDEMPOTENCY_KEY.fullmatch, said)):
        detail = "Idempotency-Key must be there once, with 1 to 255 visible ASCII characters"
        raise Refused(422, "idempotency_key", detail)
    return said[0] if said else None


async def read_ask(request: Request) -> Ask:
    """The submission of a request. Raises Refused, Unreadable, TaskRejected."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _from_form(request)
    if kind == "application/json":
        said = validated(Submission, await request.body())
        return Ask(said, said.prompt, _named_or_sent(said.picture), hook=said.hook)
    raise Refused(415, "media_type", "send application/json or multipart/form-data")


async def _from_form(request: Request) -> Ask:
    limit = request.app.state.max_body_bytes
    async with request.form(max_files=1, max_fields=MAX_FORM_FIELDS, max_part_size=limit) as form:
        values: dict[str, Any] = {}
        for name, value in form.multi_items():
            if name in values:
                raise Refused(422, "invalid", f"the field {name[:60]!r} is there twice: keep one")
            values[name] = value
        picture = values.pop("picture", None)
        if isinstance(picture, UploadFile):
            sent, name = await picture.read(), picture.filename or ""
        elif isinstance(picture, str):
            sent, name = _named_or_sent(picture), ""
        else:
            raise Unreadable(_without_picture(values))
        if any(isinstance(value, UploadFile) for value in values.values()):
            raise Refused(422, "invalid", "only picture is a file: send the other fields as text")
    said = validated(FormSubmission, cast("Mapping[str, str]", values))
    return Ask(said, said.prompt, sent, name, said.hook)


def _without_picture(values: Mapping[str, Any]) -> JSONResponse:
    """A form's other faults are told with it: the file may only have another name."""
    missing = Fault(where="picture", message="is missing: send the first picture as a file in this field")
    known = ("picture", *FormSubmission.model_fields)
    unknown = [
        Fault(where=name[:MAX_NAME], message=unknown_field(name[:MAX_NAME], known))
        for name in values
        if name not in known
    ]
    return invalid((), more=(missing, *unknown))


def validated(kind: type[Any], given: bytes | Mapping[str, str]) -> Any:
    """The model of a JSON body, exact types wanted, or of a form's texts. Raises Unreadable."""
    try:
        if isinstance(given, bytes):
            read = kind.model_validate_json(given, strict=True)
            refuse_repeated_fields(given)
            return read
        return kind.model_validate(given)
    except ValidationError as error:
        raise Unreadable(invalid(error.errors(include_url=False, include_input=False), kind)) from None


def refuse_repeated_fields(body: bytes) -> None:
    """JSON readers keep the last of two: what was meant is unknown. Raises Refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        said = dict(pairs)
        if len(said) < len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise Refused(422, "invalid", f"the field {twice[:60]!r} is there twice: keep one")
        return said

    json.loads(body, object_pairs_hook=once)


def _named_or_sent(picture: str) -> bytes | str:
    return picture if names_picture(picture) else data_url(picture)


def data_url(text: str) -> bytes:
    """The content of a data URL. Raises TaskRejected; other URLs are never fetched."""
    found = _DATA_URL.match(text)
    if found is None:
        if re.match(r"https?:", text, re.IGNORECASE):
            raise TaskRejected(
                "picture: addresses are not fetched: send the picture itself, as data:image/png;base64,…",
                reason="picture_address",
            )
        raise TaskRejected("picture: not a data URL: write data:image/png;base64,…", reason="picture_form")
    body = text[found.end() :]
    if not found[2].lower().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise TaskRejected("picture: the data URL is not valid base64", reason="picture_form") from None


def _as_text(budget: Budget | str | None) -> str | None:
    if budget is None or isinstance(budget, str):
        return budget
    said = budget.model_dump(exclude_none=True)
    return ",".join(f"{name}={value!r}" for name, value in said.items()) or None
