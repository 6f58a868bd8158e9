"""The OpenAPI document: what the routes say, and the schemas of bodies that are read by hand."""

from __future__ import annotations

from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.asks import FormSubmission, Submission
from service.problems import MEDIA_TYPE, Problem

_REF = "#/components/schemas/{model}"


def document(app: FastAPI) -> dict[str, Any]:
    """Built once, when it is first asked for."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas: dict[str, Any] = made.setdefault("components", {}).setdefault("schemas", {})
        kinds = [(kind, "validation") for kind in (Submission, FormSubmission, Problem)]
        _, own = models_json_schema(cast("Any", kinds), ref_template=_REF)
        schemas.update({name: schema for name, schema in own["$defs"].items() if name not in schemas})
        picture = {"type": "string", "format": "binary", "description": "The first picture, as a file."}
        schemas["FormSubmission"]["properties"]["picture"] = picture
        schemas["FormSubmission"]["required"] = ["prompt", "picture"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        _answer_in_problems(made)
        app.openapi_schema = made
    return app.openapi_schema


def _answer_in_problems(made: dict[str, Any]) -> None:
    """The framework documents its own form of 422, which is never sent."""
    ours = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    for operations in made["paths"].values():
        for operation in operations.values():
            answer = operation.get("responses", {}).get("422")
            if answer is not None:
                answer["content"] = ours
