"""The OpenAPI document: what the routes say, the schemas of bodies that are read by hand, and who may call."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.access import OPEN
from service.asks import FormSubmission, Submission
from service.openai_asks import VideoRequest
from service.openai_errors import OpenAIError, speaks_openai
from service.problems import MEDIA_TYPE, Problem

_BY_ACCESS = (401, 403, 421, 429)  # what a request may be answered before its route is asked
_REF = "#/components/schemas/{model}"


def document(app: FastAPI) -> dict[str, Any]:
    """Built once, when it is first asked for."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas: dict[str, Any] = made.setdefault("components", {}).setdefault("schemas", {})
        read_by_hand = (Submission, FormSubmission, VideoRequest, Problem, OpenAIError)
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
        app.openapi_schema = made
    return app.openapi_schema


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
