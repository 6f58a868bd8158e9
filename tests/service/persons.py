"""A verifier that never answers by itself: it waits for a person, or cannot make up its mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from media.frames import FrameReader
from orchestrator.catalogs import Line
from orchestrator.errors import JobWaiting
from orchestrator.records import Answer, Assessment, Attempt, Footage, Plan, Record, Route, Task, Verdict, View
from planners.oracle import ONE_CALL, Oracle


class PersonOptions(Record):
    """What it does instead of an answer."""

    does: Literal["waits", "doubts"] = "waits"


PERSON = Line(
    "tests.service.persons:build", "tests.service.persons:PersonOptions", "tests.service.persons:figures"
)


@dataclass(frozen=True)
class Person:
    """An oracle in every role but one."""

    inner: Oracle
    given: PersonOptions

    def accepts(self, task: Task) -> None:
        self.inner.accepts(task)

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        return self.inner.plan(task, view)

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        if self.given.does == "doubts":
            return Answer[Verdict](value=Verdict(decision="unclear", reason="too dark"), spend=ONE_CALL)
        raise JobWaiting("review", "a person's verdict is missing: POST /v1/jobs/{id}/review")

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        return self.inner.route(task, plan, attempts, view)

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        return self.inner.assess(task, view)


def build(options: PersonOptions, reader: FrameReader | None) -> Person:
    return Person(Oracle(reader), options)


def figures(options: Any) -> dict[str, Any]:
    return options.model_dump(mode="json")
