"""Whatever is sent to any route, the answer is one that the OpenAPI document describes, and never a fault.

Cases are generated from the document: its examples, the edges of its schemas, wrong types, fields and methods,
and random ones. CLIPLOOP_EXAMPLES raises the number of random ones for a longer look.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.python.asgi import shutdown_lifespans

from cliploop.site import Site
from service.app import create_app
from tests.service.asking import as_data_url, maze, posted, work
from tests.service.serving import client_of, served
from tests.workers.sites import a_site
from workers.pulse import beating

EXAMPLES = int(os.environ.get("CLIPLOOP_EXAMPLES", "3"))
PNG, PROMPT = maze()
CONFIG: dict[str, Any] = {
    "base-url": "http://127.0.0.1",
    "seed": 1,
    "continue-on-failure": True,
    "max-stream-events": 20,
    "generation": {"deterministic": True, "max-examples": EXAMPLES, "with-security-parameters": False},
    "phases": {"stateful": {"enabled": False}, "coverage": {"unexpected-methods": ["PATCH", "OPTIONS"]}},
    # A text that fits the schema need not be a picture, or a maze that somebody can solve.
    "checks": {"positive_data_acceptance": {"enabled": False}},
}
READABLE = {"job_id": "", "video_id": "", "name": "maze", "step": 1, "attempt": 1}
pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with (
        a_site(tmp_path) as site,
        beating(site.messages, "reason@here:1"),
        beating(site.messages, "render@here:2", generators=["simulated"]),
    ):
        yield site


def loaded(site: Site) -> Any:
    """The document of the site's application, with hooks that name what there is: a job that has ended."""
    app = create_app(site)
    with served(create_app(site)) as address, client_of(address) as client:
        job_id = posted(client)
    work(site)
    there = {**READABLE, "job_id": job_id, "video_id": job_id}

    def map_path_parameters(context: Any, path_parameters: Any) -> Any:
        """Half of the names are those of what there is, but not for what would delete it."""
        if path_parameters and context.operation.method.lower() != "delete":
            for name in path_parameters.keys() & there.keys():
                if len(str(path_parameters[name])) % 2 == 0:
                    path_parameters[name] = there[name]
        return path_parameters

    def map_body(context: Any, body: Any) -> Any:
        """Half of the tasks are real ones; all else that was said with them stays."""
        said: Any = cast("Any", body) if isinstance(body, dict) else {}
        if isinstance(said.get("prompt"), str) and len(said["prompt"]) % 2 == 0:
            for field in said.keys() & {"picture", "input_reference"}:
                is_file = isinstance(said[field], bytes)
                said.update({field: PNG if is_file else as_data_url(PNG), "prompt": PROMPT})
        return cast("Any", body)

    document = copy.deepcopy(app.openapi())
    config: Any = SchemathesisConfig
    schema: Any = schemathesis.openapi.from_dict(document, config=config.from_dict(CONFIG))
    schema.app = app
    schema.hook(map_path_parameters)
    schema.hook(map_body)
    return schema


def played(schema: Any) -> tuple[dict[str, str], Counter[tuple[str, int]]]:
    """What was wrong, each kind once with a way to do it again; and how often a route gave which status."""
    wrong: dict[str, str] = {}
    answers: Counter[tuple[str, int]] = Counter()
    for event in from_schema(schema).execute():
        if isinstance(event, (events.NonFatalError, events.FatalError)):
            wrong[f"the check itself: {event}"] = ""
        if not isinstance(event, events.ScenarioFinished):
            continue
        for case_id, checks in event.recorder.checks.items():
            recorder: Any = event.recorder
            route = str(recorder.cases[case_id].value.operation.label)
            answer: Any = recorder.interactions[case_id].response
            answers[route, 0 if answer is None else answer.status_code] += 1
            for check in checks:
                if check.failure_info is not None:
                    failure = check.failure_info.failure
                    kind = f"{route}: {failure.title}: {failure.message}"
                    wrong.setdefault(kind[:1000], check.failure_info.code_sample[:1000])
    return wrong, answers


def test_every_answer_is_one_that_the_document_describes(site: Site) -> None:
    schema = loaded(site)
    try:
        wrong, answers = played(schema)
    finally:
        shutdown_lifespans()  # of the application, before what it stands on is gone
    assert not wrong, "\n\n".join(f"{kind}\n{how}" for kind, how in wrong.items())
    routes = {operation.ok().label for operation in schema.get_all_operations()}
    assert {route for route, _ in answers} == routes
    assert not [route for route, status in answers if status == 0 or status >= 500]
    for route in ("POST /v1/jobs", "POST /v1/videos", "GET /v1/jobs/{job_id}/events"):
        assert any(answers[route, status] for status in (200, 202)), f"nothing real was asked of {route}"
