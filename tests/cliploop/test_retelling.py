"""A job told from its journal as it arrives is told as it was where it ran."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cliploop.retelling import Retelling
from cliploop.watch import WatchedJournal
from orchestrator.errors import BackendFailed, JobWaiting, ReplyUnreadable
from orchestrator.loop import run
from orchestrator.ports import Inputs
from orchestrator.records import Choice, Record, Route
from tests.orchestrator.fakes import (
    ACCEPT,
    DONE,
    MOVE,
    NO,
    REJECT,
    TASK,
    YES,
    Stage,
    digest,
    policy,
    reject,
    stage,
)


class Heard:
    """A watcher that notes everything."""

    def __init__(self) -> None:
        self.began_at: list[str] = []
        self.told: list[tuple[str, str, str]] = []

    def began(self, key: str, inputs: Inputs) -> None:
        self.began_at.append(key)

    def recorded(self, key: str, inputs: Inputs, value: Record, *, remembered: bool) -> None:
        self.told.append((key, digest(inputs), value.model_dump_json()))

    def lost(self, key: str, reason: str, *, remembered: bool) -> None:
        self.told.append((key, "lost", reason))


SPLIT = Route(action="split", sub_actions=("One.", "Two."))
JOBS: dict[str, Any] = {
    "accepted at once": {"plans": [MOVE, DONE]},
    "kept and repaired": {"verdicts": [reject(0.5), ACCEPT], "assessments": [NO, YES]},
    "regenerated": {"verdicts": [REJECT], "routes": [Route(action="regenerate", reason="slips")]},
    "split": {"verdicts": [REJECT] * 3 + [ACCEPT], "routes": [SPLIT]},
    "nothing good": {"verdicts": [reject(0.0)], "max_steps": 2},
    "a lost render": {"failures": {1: BackendFailed("out of memory")}},
    "a gate": {"gate": "single_shot", "assessments": [NO, YES]},
    "a single shot": {"strategy": "pass@1"},
    "several shots": {"strategy": "pass@3", "choices": [Choice(index=2, reason="it is there")]},
    "several shots, one lost": {
        "strategy": "pass@3",
        "choices": [Choice(index=1)],
        "failures": {1: BackendFailed("out of memory")},
    },
    "an unreadable reply": {"plans": [ReplyUnreadable("no JSON"), MOVE, DONE]},
}


def played(on: Stage) -> Heard:
    heard = Heard()
    run(on.task, on.policy, on.ports, WatchedJournal(on.journal, heard))
    return heard


def arriving(on: Stage, to: Retelling) -> None:
    for key, (_, value, failure) in on.journal.entries.items():
        if failure is not None:
            to.hear("failure", key, {"message": str(failure), "spend": failure.spend.model_dump()})
        else:
            assert value is not None
            to.hear("record", key, json.loads(value))


@pytest.mark.parametrize("job", JOBS)
def test_it_tells_what_was_told_where_the_job_ran_and_each_once(job: str) -> None:
    on, heard = stage(**JOBS[job]), Heard()
    here = played(on)
    retelling = Retelling(on.task, on.policy, heard)
    arriving(on, retelling)
    assert heard.told == here.told
    assert heard.began_at == here.began_at[1:]  # when the first entry is there, the second begins
    arriving(on, retelling)
    assert len(heard.told) == len(here.told)


def test_shots_that_arrive_in_another_order_are_told_in_theirs() -> None:
    on, heard = stage(strategy="pass@3", choices=[Choice(index=2)]), Heard()
    here = played(on)
    clips = [key for key in on.journal.entries if key.endswith("/clip")]
    first, *rest = on.journal.entries.items()
    later = [entry for entry in rest if entry[0] not in clips]
    on.journal.entries = dict([first, *((key, on.journal.entries[key]) for key in reversed(clips)), *later])
    arriving(on, Retelling(on.task, on.policy, heard))
    assert heard.told == here.told


def test_a_wait_that_was_taken_up_again_lets_it_go_on() -> None:
    unreadable = [ReplyUnreadable("no JSON")] * 3
    on, heard = stage(plans=[*unreadable, MOVE, DONE]), Heard()
    retelling = Retelling(on.task, on.policy, heard)
    with pytest.raises(JobWaiting):
        on.run()
    arriving(on, retelling)
    before = len(heard.told)
    retelling.hear("state", "step/1/plan", {"state": "waiting"})
    on.journal.renewed["step/1/plan"] = 1
    on.run()
    retelling.hear("state", "", {"state": "running"})
    arriving(on, retelling)
    assert len(heard.told) > before
    assert [key for key, *_ in heard.told] == list(on.journal.entries)


def test_records_of_another_version_are_not_understood_and_harm_nothing() -> None:
    heard = Heard()
    retelling = Retelling(TASK, policy(), heard)
    retelling.hear("record", "start", {"another": "form"})
    assert not retelling.understood
    retelling.hear("record", "step/1/plan/try/1", {})
    assert heard.told == []
