"""The journal of one job: replay, failures, changed inputs, suspension, states, renewals, watchers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import (
    BackendFailed,
    BackendUnavailable,
    JobCancelled,
    JobWaiting,
    Suspended,
)
from orchestrator.ports import Call, Journal
from orchestrator.records import Answer, Plan, Record, Spend, Verdict
from storage.digest import dump
from storage.jobs import IllegalState, JobState, create_job
from storage.journal import EffectBegan, EntryConflict, EntryRecorded, Event, SqlJournal, StateChanged
from storage.sql import SqlDatabase
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import JOB, POLICY, TASK, a_database, never, plan, record

KEY = "step/2/plan"


@pytest.fixture
def database(opened: OpenDatabase) -> SqlDatabase:
    database = opened()
    create_job(database, JOB, TASK, POLICY)
    return database


def states(journal: SqlJournal) -> list[str]:
    return [entry.value["state"] for entry in journal.entries() if entry.kind == "state"]


def keys(journal: SqlJournal) -> list[str]:
    return [entry.key for entry in journal.entries() if entry.kind != "state"]


def fails() -> Plan:
    raise BackendFailed("the render was lost")


def test_it_is_the_loops_journal(database: SqlDatabase) -> None:
    journal: Journal = SqlJournal(database, JOB)
    assert journal.peek(KEY, Plan) is None


def test_a_recorded_effect_never_runs_again_here_or_in_another_journal(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    first = journal.once(KEY, {"task": TASK}, Plan, plan)
    assert first == plan()
    for again in (journal, SqlJournal(database, JOB)):
        assert again.once(KEY, {"task": TASK}, Plan, never) == first


def test_a_replay_of_a_finished_job_changes_nothing(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, KEY)
    journal.set_state("succeeded", outcome="completed")
    before = journal.entries()
    again = SqlJournal(database, JOB)
    assert record(again, KEY) == plan(KEY)
    again.set_state("succeeded", outcome="completed")
    assert again.entries() == before


@settings(max_examples=25)
@given(
    raw=st.text(),
    usd=st.floats(allow_nan=False, allow_infinity=False),
    instruction=st.text(alphabet=st.characters(exclude_categories=["Cs"])),
)
def test_a_replayed_value_equals_the_recorded_one(
    tmp_path_factory: pytest.TempPathFactory, raw: str, usd: float, instruction: str
) -> None:
    with a_database(tmp_path_factory.mktemp("values")) as database:
        answer = Answer[Plan](value=plan(instruction), raw=raw, spend=Spend(usd=usd, vlm_calls=1))
        assert SqlJournal(database, JOB).once(KEY, {}, Answer[Plan], lambda: answer) == answer
        replayed = SqlJournal(database, JOB).once(KEY, {}, Answer[Plan], lambda: answer.model_validate(never()))
        assert replayed == answer
        assert type(replayed) is Answer[Plan]


def test_the_first_run_returns_what_a_replay_returns_even_for_a_bare_answer(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    bare: Any = Answer(value=plan())
    first = journal.once(KEY, {}, Answer[Plan], lambda: bare)
    assert first == SqlJournal(database, JOB).once(KEY, {}, Answer[Plan], lambda: bare.nothing)
    assert isinstance(first.value, Plan)


def test_an_effect_that_returns_another_kind_is_an_error_and_leaves_no_entry(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    wrong: Any = Verdict(decision="accept")
    with pytest.raises(ValueError, match="Plan"):
        journal.once(KEY, {}, Plan, lambda: wrong)
    assert journal.peek(KEY, Plan) is None


def test_a_failure_is_recorded_and_raised_again_on_replay(database: SqlDatabase) -> None:
    with pytest.raises(BackendFailed, match="the render was lost"):
        SqlJournal(database, JOB).once(KEY, {}, Plan, fails)
    again = SqlJournal(database, JOB)
    with pytest.raises(BackendFailed, match="the render was lost"):
        again.once(KEY, {}, Plan, never)
    with pytest.raises(BackendFailed, match="the render was lost"):
        again.peek(KEY, Plan)
    assert [entry.kind for entry in again.entries() if entry.key == KEY] == ["failure"]


@pytest.mark.parametrize(
    "error",
    [
        BackendUnavailable("later"),
        JobCancelled("stop"),
        JobWaiting("disk", "full"),
        ZeroDivisionError(),
        KeyboardInterrupt(),
    ],
)
def test_every_other_error_leaves_no_entry(database: SqlDatabase, error: BaseException) -> None:
    def effect() -> Plan:
        raise error

    journal = SqlJournal(database, JOB)
    with pytest.raises(type(error)):
        journal.once(KEY, {}, Plan, effect)
    assert keys(journal) == []
    assert record(journal, KEY) == plan(KEY)


def test_changed_inputs_stop_the_job_and_name_the_step_and_the_remedies(database: SqlDatabase) -> None:
    SqlJournal(database, JOB).once(KEY, {"task": TASK, "n": 1}, Plan, plan)
    with pytest.raises(JobWaiting, match=r"step/2/plan \(step 2\).*Submit it anew, or fork from step 2") as stop:
        SqlJournal(database, JOB).once(KEY, {"task": TASK, "n": 2}, Plan, never)
    assert (stop.value.reason, stop.value.key) == ("changed", KEY)


def test_a_failure_with_changed_inputs_is_not_replayed_either(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    with pytest.raises(BackendFailed):
        journal.once("final/video", {"n": 1}, Plan, fails)
    with pytest.raises(JobWaiting, match=r"final/video \(the beginning\)"):
        journal.once("final/video", {"n": 2}, Plan, never)


def test_a_record_whose_form_changed_stops_the_job(database: SqlDatabase) -> None:
    class OlderPlan(Record):
        text: str

    SqlJournal(database, JOB).once(KEY, {}, OlderPlan, lambda: OlderPlan(text="up"))
    with pytest.raises(JobWaiting, match="in a form that Plan no longer has") as stop:
        SqlJournal(database, JOB).once(KEY, {}, Plan, never)
    assert stop.value.reason == "changed"


def test_an_effect_may_use_the_journal_itself(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    journal.once(KEY, {}, Plan, lambda: record(journal, f"{KEY}/try/1"))
    assert keys(journal) == [f"{KEY}/try/1", KEY]


def test_an_effect_runs_outside_any_transaction(database: SqlDatabase) -> None:
    def effect() -> Plan:
        with database.write():
            return plan()

    assert SqlJournal(database, JOB).once(KEY, {}, Plan, effect) == plan()


def test_an_effect_recorded_elsewhere_meanwhile_is_a_conflict_and_theirs_stands(database: SqlDatabase) -> None:
    ours, theirs = SqlJournal(database, JOB), SqlJournal(database, JOB)

    def slow() -> Plan:
        theirs.once(KEY, {}, Plan, lambda: plan("theirs"))
        return plan("ours")

    with pytest.raises(EntryConflict, match=f"{KEY} of job {JOB}"):
        ours.once(KEY, {}, Plan, slow)
    assert ours.peek(KEY, Plan) == plan("theirs")
    assert keys(ours) == [KEY]


def test_a_value_does_not_stand_beside_a_failure_recorded_elsewhere_meanwhile(database: SqlDatabase) -> None:
    theirs = SqlJournal(database, JOB)

    def slow() -> Plan:
        with pytest.raises(BackendFailed):
            theirs.once(KEY, {}, Plan, fails)
        return plan("ours")

    with pytest.raises(EntryConflict):
        SqlJournal(database, JOB).once(KEY, {}, Plan, slow)
    assert keys(theirs) == [KEY]


def test_two_jobs_in_one_database_do_not_see_each_other(database: SqlDatabase) -> None:
    create_job(database, "job-2", TASK, POLICY)
    one, two = SqlJournal(database, JOB), SqlJournal(database, "job-2")
    record(one, KEY)
    assert two.peek(KEY, Plan) is None
    assert two.once(KEY, {}, Plan, lambda: plan("other")) == plan("other")
    assert [entry.sequence for entry in one.entries()] == [entry.sequence for entry in two.entries()] == [1, 2, 3]


def test_several_run_in_order_with_failures_as_values(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "b")
    ran: list[str] = []

    def call(key: str, effect: Any = None) -> Call[Plan]:
        return Call(key, {}, Plan, effect or (lambda: (ran.append(key), plan(key))[1]))

    calls = [call("a"), call("b", never), call("c", fails), call("d")]
    for effects in (calls, [call(key, never) for key in "abcd"]):
        a, b, c, d = SqlJournal(database, JOB).once_all(effects)
        assert (a, b, d) == (plan("a"), plan("b"), plan("d"))
        assert isinstance(c, BackendFailed)
        assert str(c) == "the render was lost"
    assert ran == ["a", "d"]


def test_the_same_key_twice_at_once_is_a_mistake(database: SqlDatabase) -> None:
    call = Call("a", {}, Plan, plan)
    with pytest.raises(ValueError, match="keys must differ"):
        SqlJournal(database, JOB).once_all([call, call])


def test_none_at_once_is_none(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    assert journal.once_all([]) == []
    assert journal.state().state == "queued"


def test_of_several_those_that_can_run_here_do_and_all_others_suspend_at_once(database: SqlDatabase) -> None:
    record(SqlJournal(database, JOB), "b")
    journal = SqlJournal(database, JOB, runnable=lambda key: key == "d")
    effects = {"a": never, "b": never, "c": never, "d": lambda: plan("d")}
    with pytest.raises(Suspended) as suspended:
        journal.once_all([Call(key, {}, Plan, effect) for key, effect in effects.items()])
    assert suspended.value.keys == ("a", "c")
    assert record(journal, "b") == plan("b")
    assert journal.peek("d", Plan) == plan("d")
    with pytest.raises(Suspended):
        record(journal, "c")


def test_what_another_process_records_of_several_meanwhile_is_not_waited_for(database: SqlDatabase) -> None:
    there = SqlJournal(database, JOB)
    journal = SqlJournal(database, JOB, runnable=lambda key: key == "a")
    effects = {"a": lambda: (record(there, "b"), plan("a"))[1], "b": never}
    calls = [Call(key, {}, Plan, effect) for key, effect in effects.items()]
    assert journal.once_all(calls) == [plan("a"), plan("b")]


def test_a_recorded_effect_is_replayed_where_it_could_not_run(database: SqlDatabase) -> None:
    record(SqlJournal(database, JOB), KEY)
    assert record(SqlJournal(database, JOB, runnable=lambda _: False), KEY) == plan(KEY)


def test_what_another_process_records_is_seen(database: SqlDatabase) -> None:
    here = SqlJournal(database, JOB)
    assert here.peek(KEY, Plan) is None
    record(SqlJournal(database, JOB), KEY)
    assert here.peek(KEY, Plan) == plan(KEY)


@pytest.mark.parametrize("elsewhere", ["same database", "another connection"])
def test_what_is_committed_between_two_of_our_own_entries_is_never_missed(
    opened: OpenDatabase, database: SqlDatabase, elsewhere: str
) -> None:
    ours = SqlJournal(database, JOB)
    theirs = SqlJournal(database if elsewhere == "same database" else opened(), JOB)
    for number in range(5):
        record(ours, f"step/{number}/plan")
        record(theirs, f"step/{number}/route")
        assert ours.once(f"step/{number}/route", {}, Plan, never) == plan(f"step/{number}/route")
        assert theirs.peek(f"step/{number}/plan", Plan) == plan(f"step/{number}/plan")
    theirs.set_state("cancelling")
    with pytest.raises(JobCancelled):
        record(ours, "step/9/plan")


def test_an_entry_that_was_rolled_back_is_not_remembered(database: SqlDatabase) -> None:
    class Power(Exception):
        """Goes out before the commit."""

    def cut(moment: str, key: str) -> None:
        if (moment, key) == ("before", KEY):
            raise Power

    journal = SqlJournal(database, JOB, on_commit=cut)
    with pytest.raises(Power):
        record(journal, KEY)
    assert journal.peek(KEY, Plan) is None
    assert record(SqlJournal(database, JOB), KEY) == plan(KEY)
    assert journal.peek(KEY, Plan) == plan(KEY)


def test_running_begins_with_the_first_effect_and_is_written_once(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    assert journal.state() == JobState("queued")
    seen: list[str] = []
    journal.once("a", {}, Plan, lambda: (seen.append(journal.state().state), plan())[1])
    record(journal, "b")
    assert seen == ["running"]
    assert states(journal) == ["queued", "running"]


@pytest.mark.parametrize("state", ["cancelling", "cancelled"])
def test_a_job_that_is_being_cancelled_begins_no_effect(database: SqlDatabase, state: str) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "a")
    journal.set_state("cancelling")
    if state == "cancelled":
        journal.set_state("cancelled")
    with pytest.raises(JobCancelled, match=state):
        journal.once("b", {}, Plan, never)
    assert record(journal, "a") == plan("a")


def test_a_final_job_takes_no_effect_not_even_one_that_was_under_way(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)

    def slow() -> Plan:
        SqlJournal(database, JOB).set_state("failed", message="gave up")
        return plan()

    with pytest.raises(IllegalState, match=r"is failed.*begin another one"):
        journal.once(KEY, {}, Plan, slow)
    with pytest.raises(IllegalState, match=r"is failed.*begin another one"):
        journal.once(KEY, {}, Plan, never)
    assert keys(journal) == []


def test_a_waiting_job_whose_effects_are_all_recorded_succeeds_through_running(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "final/video")
    journal.wait(JobWaiting("disk", "no room for the export"))
    journal.set_state("succeeded", outcome="completed")
    assert states(journal) == ["queued", "running", "waiting", "running", "succeeded"]


def test_a_wait_is_recorded_only_where_the_job_can_wait(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    journal.wait(JobWaiting("disk", "full", key=KEY))
    assert journal.state().state == "queued"
    record(journal, "a")
    journal.wait(JobWaiting("unclear", "no clear reply", key=KEY))
    assert journal.state() == JobState("waiting", "unclear", "no clear reply", KEY)


def test_a_full_disk_does_not_keep_a_wait_from_being_told(
    database: SqlDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    def full(moment: str, _key: str) -> None:
        if moment == "before":
            raise JobWaiting("disk", "no room")

    record(SqlJournal(database, JOB), "a")
    SqlJournal(database, JOB, on_commit=full).wait(JobWaiting("disk", "no room", key=KEY))
    assert "could not record that job job-1 waits: no room" in caplog.text
    assert SqlJournal(database, JOB).state().state == "running"


def wait_at(journal: SqlJournal, key: str) -> None:
    journal.wait(JobWaiting("unclear", "no clear reply", key=key))


def test_each_wait_that_is_taken_up_again_renews_its_key_alone(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "a")
    wait_at(journal, KEY)
    assert journal.renewals(KEY) == 0  # nobody has taken it up yet
    journal = SqlJournal(database, JOB)
    assert journal.renewals(KEY) == 1  # this run does, and still will once it runs, and after a crash
    record(journal, "b")
    assert journal.renewals(KEY) == SqlJournal(database, JOB).renewals(KEY) == 1
    wait_at(journal, KEY)
    record(SqlJournal(database, JOB), "c")
    assert SqlJournal(database, JOB).renewals(KEY) == 2
    assert SqlJournal(database, JOB).renewals("step/1/plan") == 0


def test_a_wait_for_something_else_in_between_does_not_lose_a_renewal(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "a")
    wait_at(journal, KEY)
    journal = SqlJournal(database, JOB)
    journal.wait(JobWaiting("changed", "a prompt changed", key="step/1/plan"))
    journal = SqlJournal(database, JOB)
    record(journal, "b")
    assert (journal.renewals(KEY), journal.renewals("step/1/plan")) == (1, 1)


def test_waiting_again_at_the_same_key_in_the_run_that_took_it_up_takes_nothing_back(
    database: SqlDatabase,
) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "a")
    wait_at(journal, KEY)
    journal = SqlJournal(database, JOB)
    journal.wait(JobWaiting("disk", "no room", key=KEY))
    assert journal.renewals(KEY) == 1


def test_opening_a_waiting_job_twice_renews_once(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB)
    record(journal, "a")
    wait_at(journal, KEY)
    SqlJournal(database, JOB)
    assert SqlJournal(database, JOB).renewals(KEY) == 1


def test_watchers_hear_of_everything_in_order_and_can_go_on_after_a_number(database: SqlDatabase) -> None:
    heard: list[Event] = []
    journal = SqlJournal(database, JOB, watcher=heard.append)
    record(journal, "a")
    with pytest.raises(BackendFailed):
        journal.once("b", {}, Plan, fails)
    record(journal, "a")
    journal.set_state("succeeded", outcome="exhausted")
    value = plan("a").model_dump(mode="json")
    assert heard == [
        StateChanged(2, JobState("running")),
        EffectBegan("a"),
        EntryRecorded(3, "a", "record", value),
        EffectBegan("b"),
        EntryRecorded(4, "b", "failure", {"message": "the render was lost", "spend": dump(Spend())}),
        StateChanged(5, JobState("succeeded", outcome="exhausted")),
    ]
    assert [entry.sequence for entry in journal.entries()] == [1, 2, 3, 4, 5]
    assert [(entry.sequence, entry.value) for entry in journal.entries(after=2)[:1]] == [(3, value)]


def test_a_watcher_is_told_after_the_commit_and_its_error_stops_nothing(
    database: SqlDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def watcher(event: Event) -> None:
        with database.write():  # would wait for ever inside a transaction
            seen.append(len(SqlJournal(database, JOB).entries()))
        raise RuntimeError(f"cannot draw {event}")

    journal = SqlJournal(database, JOB, watcher=watcher)
    assert record(journal, "a") == plan("a")
    assert seen == [2, 2, 3]
    assert "cannot draw" in caplog.text
    assert SqlJournal(database, JOB).peek("a", Plan) == plan("a")


def test_an_interrupt_in_a_watcher_stops_the_run_and_keeps_the_entry(database: SqlDatabase) -> None:
    def watcher(event: Event) -> None:
        if isinstance(event, EntryRecorded):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(SqlJournal(database, JOB, watcher=watcher), "a")
    assert SqlJournal(database, JOB).peek("a", Plan) == plan("a")


def test_times_come_from_the_clock_and_never_enter_a_value(database: SqlDatabase) -> None:
    journal = SqlJournal(database, JOB, clock=lambda: 42.5)
    record(journal, "a")
    entry = journal.entries()[-1]
    assert entry.recorded_at == 42.5
    assert entry.value == plan("a").model_dump(mode="json")


def test_a_crash_seam_hears_of_every_commit_before_and_after(database: SqlDatabase) -> None:
    moments: list[tuple[str, str, int]] = []

    def on_commit(moment: str, key: str) -> None:
        moments.append((moment, key, len(SqlJournal(database, JOB).entries())))

    record(SqlJournal(database, JOB, on_commit=on_commit), "a")
    assert moments == [
        ("before", "state/running", 1),
        ("after", "state/running", 2),
        ("before", "a", 2),
        ("after", "a", 3),
    ]
