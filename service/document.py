"""The OpenAPI document: what the routes say, the schemas of bodies that are read by hand, and who may call."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.about import ABOUT, TAGS, tag_of
from service.access import OPEN
from service.asks import FormSubmission, Submission
from service.examples import (
    ANSWERS,
    EVENTS,
    NEWS,
    NOT_READY,
    REQUESTS,
    error_example,
    problem_example,
    trajectory_example,
)
from service.hooks import HookNews
from service.openai_asks import VideoRequest
from service.openai_errors import OpenAIError, speaks_openai
from service.problems import MEDIA_TYPE, Problem

_BY_ACCESS = (401, 403, 421, 429)  # what a request may be answered before its route is asked
_REF = "#/components/schemas/{model}"


def _signed(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": True, "description": about, "schema": {"type": "string"}}


_WEBHOOK: dict[str, Any] = {
    "operationId": "job_changed",
    "summary": "A job waits or has ended",
    "tags": ["Jobs"],
    "description": "Sent to the `webhook` of a submission, signed as Standard Webhooks say, till a 2xx comes.",
    "parameters": [
        _signed("webhook-id", "The same at every try: what was seen before is to be left out."),
        _signed("webhook-timestamp", "When it was sent, in whole seconds since the epoch."),
        _signed("webhook-signature", "v1, and the HMAC-SHA256 of id, timestamp and body, with the secret."),
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": _REF.format(model="HookNews")}, "example": NEWS},
        },
    },
    "responses": {
        "2XX": {"description": "Taken."},
        "410": {"description": "No more of this job is wanted."},
        "default": {"description": "Sent again later, for about 16 hours."},
    },
}


def document(app: FastAPI) -> dict[str, Any]:
    """Built once, when it is first asked for."""
    if app.openapi_schema is None:
        tags = [{"name": name, "description": about} for name, about in TAGS.items()]
        made = get_openapi(title=app.title, version=app.version, description=ABOUT, tags=tags, routes=app.routes)
        schemas: dict[str, Any] = made.setdefault("components", {}).setdefault("schemas", {})
        read_by_hand = (Submission, FormSubmission, VideoRequest, Problem, OpenAIError, HookNews)
        kinds = [(kind, "validation") for kind in read_by_hand]
        _, own = models_json_schema(cast("Any", kinds), ref_template=_REF)
        schemas.update({name: schema for name, schema in own["$defs"].items() if name not in schemas})
        picture = {"type": "string", "format": "binary", "description": "The first picture, as a file."}
        schemas["FormSubmission"]["properties"]["picture"] = picture
        schemas["FormSubmission"]["required"] = ["prompt", "picture"]
        schemas["VideoForm"] = _video_form(schemas["VideoRequest"])
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        _answer_in_problems(made)
        _ask_for_a_key(made)
        made["webhooks"] = {"job_changed": {"post": _WEBHOOK}}
        _tag_and_exemplify(made)
        app.openapi_schema = made
    return app.openapi_schema


def _tag_and_exemplify(made: dict[str, Any]) -> None:
    """A group for each route, and an example of all that is sent and answered."""
    refusals: dict[str, Any] = made["components"].setdefault("examples", {})
    for path, operations in made["paths"].items():
        for operation in operations.values():
            operation["tags"] = [tag_of(path)]
            name = operation["operationId"]
            for media_type, said in REQUESTS.get(name, {}).items():
                content = operation["requestBody"]["content"][media_type]
                content["examples"] = {title: {"value": value} for title, value in said.items()}
            for status, answer in operation["responses"].items():
                for media_type, content in answer.get("content", {}).items():
                    content.update(_example(name, int(status), media_type, refusals))


def _example(name: str, status: int, media_type: str, refusals: dict[str, Any]) -> dict[str, Any]:
    """Of an answer; those of refusals are written once."""
    if status < 300:
        if media_type == "text/event-stream":
            return {"examples": {title: {"value": value} for title, value in EVENTS.items()}}
        answer = trajectory_example() if name == "read_trajectory" else ANSWERS.get(name)
        return {} if answer is None else {"example": answer}
    if name == "readyz":
        return {"example": NOT_READY}
    kind, example = ("problem", problem_example(status))
    if media_type != MEDIA_TYPE:
        kind, example = ("error", error_example(status))
    refusals[f"{kind}-{status}"] = {"value": example}
    return {"examples": {kind: {"$ref": f"#/components/examples/{kind}-{status}"}}}


def _video_form(request: dict[str, Any]) -> dict[str, Any]:
    """The same as a form, with the picture as a file."""
    picture = {"type": "string", "format": "binary", "description": "The first picture, as a file."}
    said = {**request["properties"], "input_reference": picture}
    return {**request, "title": "VideoForm", "properties": said, "required": ["prompt", "input_reference"]}


def _answer_in_problems(made: dict[str, Any]) -> None:
    """The framework documents its own form of 422, which is never sent; OpenAI's API says 400 instead."""
    ours = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    for path, operations in made["paths"].items():
        for operation in operations.values():
            answers = operation.get("responses", {})
            if speaks_openai(path):
                answers.pop("422", None)
            elif "422" in answers:
                answers["422"]["content"] = ours


def _ask_for_a_key(made: dict[str, Any]) -> None:
    """A key is optional in the document: it is asked for where any was made."""
    about = "An API key, where any was made: `cliploop keys create NAME`."
    scheme = {"type": "http", "scheme": "bearer", "bearerFormat": "clp_…", "description": about}
    made["components"]["securitySchemes"] = {"key": scheme}
    ours = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    for path, operations in made["paths"].items():
        if path in OPEN:
            continue
        for operation in operations.values():
            answers = operation["responses"]
            content = answers.get("503", {}).get("content", ours)  # in the form of this route's other errors
            operation["security"] = [{}, {"key": []}]
            for status in (*_BY_ACCESS, *((408,) if "413" in answers else ())):
                answers.setdefault(str(status), {"description": HTTPStatus(status).phrase, "content": content})
