"""Jobs: made once, and moved only as the table of states says."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy.schema import CreateTable

from orchestrator.errors import JobNotFound, TaskRejected
from orchestrator.records import Policy, Task
from storage.database import Database
from storage.jobs import (
    FINAL_STATES,
    IllegalState,
    JobState,
    State,
    change_state,
    create_job,
    differing,
    load_job,
    stored_jobs,
)
from storage.journal import SqlJournal, read_entries
from storage.tables import Table
from tests.storage.jobs_for_tests import JOB, POLICY, TASK, a_database

LEGAL = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("running", "waiting"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "cancelling"),
    ("waiting", "running"),
    ("waiting", "cancelling"),
    ("waiting", "failed"),
    ("cancelling", "cancelled"),
}
WAY: dict[State, list[State]] = {
    "queued": [],
    "running": ["running"],
    "waiting": ["running", "waiting"],
    "cancelling": ["running", "cancelling"],
    "succeeded": ["running", "succeeded"],
    "failed": ["running", "failed"],
    "cancelled": ["cancelled"],
}


def a_state(state: State) -> JobState:
    reason = "review" if state == "waiting" else None
    outcome = "completed" if state == "succeeded" else None
    return JobState(state, reason=reason, outcome=outcome)


def move(database: Database, to: JobState) -> int | None:
    with database.write() as connection:
        return change_state(connection, JOB, to, 0.0)


@pytest.mark.parametrize(("origin", "target"), list(product(get_args(State), repeat=2)))
def test_a_job_moves_only_as_the_table_says(tmp_path: Path, origin: State, target: State) -> None:
    with a_database(tmp_path) as database:
        for state in WAY[origin]:
            move(database, a_state(state))
        before = len(read_entries(database, JOB))
        if origin == target:
            assert move(database, a_state(target)) is None
        elif (origin, target) in LEGAL:
            assert move(database, a_state(target)) == before + 1
            assert load_job(database, JOB).state == a_state(target)
            return
        else:
            with pytest.raises(IllegalState, match=f"{JOB} is {origin}: it cannot become {target}"):
                move(database, a_state(target))
        assert load_job(database, JOB).state == a_state(origin)
        assert len(read_entries(database, JOB)) == before


def test_the_final_states_are_those_that_lead_nowhere() -> None:
    assert {"succeeded", "failed", "cancelled"} == FINAL_STATES


def test_a_final_state_cannot_change_its_outcome(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        move(database, a_state("running"))
        move(database, JobState("succeeded", outcome="exhausted"))
        with pytest.raises(IllegalState):
            move(database, JobState("succeeded", outcome="completed"))


def test_a_waiting_job_may_come_to_wait_for_something_else(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        move(database, a_state("running"))
        move(database, JobState("waiting", reason="disk", message="full", key="step/1/plan"))
        move(database, JobState("waiting", reason="changed", message="new prompt", key="step/1/route"))
        state = load_job(database, JOB).state
    assert (state.reason, state.message, state.key) == ("changed", "new prompt", "step/1/route")


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "waiting"},
        {"state": "running", "reason": "disk"},
        {"state": "succeeded"},
        {"state": "failed", "outcome": "completed"},
        {"state": "paused"},
    ],
)
def test_a_state_with_the_wrong_fields_cannot_be_said(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"reason|outcome|no state"):
        JobState(**fields)


def test_a_job_is_stored_whole_and_begins_queued(tmp_path: Path) -> None:
    with Database(tmp_path / "a") as database:
        assert create_job(database, JOB, TASK, POLICY, clock=lambda: 12.5)
        stored = load_job(database, JOB)
        entries = read_entries(database, JOB)
    assert Task.model_validate(stored.task) == TASK
    assert Policy.model_validate(stored.policy) == POLICY
    assert (stored.state, stored.created_at, stored.parent_id) == (JobState("queued"), 12.5, None)
    assert [(entry.sequence, entry.kind, entry.value["state"]) for entry in entries] == [(1, "state", "queued")]


def test_storing_the_same_job_again_changes_nothing(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        SqlJournal(database, JOB).set_state("running")
        assert not create_job(database, JOB, TASK, POLICY)
        assert load_job(database, JOB).state.state == "running"
        assert len(stored_jobs(database)) == 1


def test_another_task_or_policy_under_the_same_id_is_refused_and_named(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        other = POLICY.model_copy(update={"max_steps": 12, "seed": 7})
        with pytest.raises(TaskRejected, match=r"another prompt, policy \(max_steps, seed\).*--fresh"):
            create_job(database, JOB, TASK.model_copy(update={"prompt": "other"}), other)


def test_what_differs_is_named_in_the_users_words(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        stored = load_job(database, JOB)
    assert differing(stored, TASK, POLICY) == []
    assert differing(stored, TASK.model_copy(update={"picture": "b" * 64 + ".png"}), POLICY) == ["picture"]
    assert differing(stored, TASK.model_copy(update={"prompt": "x"}), POLICY) == ["prompt"]


def test_an_unknown_job_is_not_found(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        with pytest.raises(JobNotFound, match="no job nobody in"):
            load_job(database, "nobody")
        with pytest.raises(JobNotFound):
            SqlJournal(database, "nobody")
        with pytest.raises(JobNotFound), database.write() as connection:
            change_state(connection, "nobody", JobState("running"), 0.0)


def test_jobs_are_listed_oldest_first_with_their_parents(tmp_path: Path) -> None:
    with Database(tmp_path / "a") as database:
        create_job(database, "second", TASK, POLICY, clock=lambda: 2.0)
        create_job(database, "first", TASK, POLICY, clock=lambda: 1.0)
        create_job(database, "child", TASK, POLICY, parent_id="second", clock=lambda: 3.0)
        assert [(job.id, job.parent_id) for job in stored_jobs(database)] == [
            ("first", None),
            ("second", None),
            ("child", "second"),
        ]


def test_every_constraint_has_a_name_for_migrations_to_find() -> None:
    for table in Table.metadata.sorted_tables:
        assert all(constraint.name for constraint in table.constraints), str(CreateTable(table))
        assert all(index.name for index in table.indexes)
