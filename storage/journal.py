"""A job's journal in SQL: what was recorded never runs again; one sequence of effects and changes of state.

It knows how to replay, record and order; not what the effects are, nor when a job should stop.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from pydantic import ValidationError
from sqlalchemy import Connection, bindparam, select
from sqlalchemy.exc import IntegrityError

from orchestrator.errors import BackendFailed, CliploopError, JobCancelled, JobWaiting, Suspended
from orchestrator.ports import Call, Inputs
from orchestrator.records import OutcomeKind, Record, Spend, WaitReason
from storage.digest import digest, dump
from storage.jobs import (
    FINAL_STATES,
    JobState,
    State,
    append_entry,
    change_state,
    finished,
    load_job,
)
from storage.sql import SqlDatabase, Version, damaged
from storage.tables import EntryKind, EntryRow

R = TypeVar("R", bound=Record)
Moment = Literal["before", "after"]

_SELECT_ENTRIES = (
    select(EntryRow.sequence, EntryRow.key, EntryRow.kind, EntryRow.inputs, EntryRow.value, EntryRow.recorded_at)
    .where(EntryRow.job_id == bindparam("job"), EntryRow.sequence > bindparam("after"))
    .order_by(EntryRow.sequence)
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A line of the journal. `value`: a record, a failure (`message`, `spend`) or a state, as JSON."""

    sequence: int
    key: str
    kind: EntryKind
    inputs: str | None
    value: dict[str, Any]
    recorded_at: float  # seconds since the epoch, UTC


@dataclass(frozen=True)
class EffectBegan:
    """An effect that is not recorded yet begins here."""

    key: str


@dataclass(frozen=True)
class EntryRecorded:
    """An effect has ended and is recorded; `value` as in Entry."""

    sequence: int
    key: str
    kind: Literal["record", "failure"]
    value: dict[str, Any]


@dataclass(frozen=True)
class StateChanged:
    """The job is in another state now."""

    sequence: int
    state: JobState


Event: TypeAlias = EffectBegan | EntryRecorded | StateChanged


class EntryConflict(CliploopError):
    """Another process recorded the same effect meanwhile: this one's value is dropped, theirs stands."""


class SqlJournal:
    """One job's journal; implements orchestrator.ports.Journal. Raises JobNotFound.

    Opening the journal of a waiting job takes it up again (see `renewals`). `runnable(key)` says which effects
    can run in this process. `watcher` hears of every effect and change after its commit, never inside a
    transaction; what it raises is logged, and the job goes on. `clock` gives seconds since the epoch.
    `fence(connection, value)` is called first in every write transaction, with what is about to be recorded:
    there a holder of a stale lease is refused, and a job's references are kept. `on_commit(moment, key)` is a
    seam for crash tests: it is called inside the transaction just before its commit, and again just after; for a
    change of state the key is "state/<state>".
    """

    def __init__(
        self,
        database: SqlDatabase,
        job_id: str,
        *,
        watcher: Callable[[Event], None] | None = None,
        runnable: Callable[[str], bool] = lambda _key: True,
        clock: Callable[[], float] = time.time,
        fence: Callable[[Connection, Mapping[str, Any]], None] = lambda _connection, _value: None,
        on_commit: Callable[[Moment, str], None] = lambda _moment, _key: None,
    ) -> None:
        load_job(database, job_id)
        self.job_id = job_id
        self._database = database
        self._watcher = watcher
        self._runnable = runnable
        self._clock = clock
        self._fence = fence
        self._on_commit = on_commit
        self._effects: dict[str, Entry] = {}  # what is recorded never changes
        self._states: list[Entry] = []
        self._seen = 0
        self._version: Version | None = None  # of the database when everything up to `_seen` was known
        self._catch_up()
        if not self._states:
            raise damaged(database.where, f"job {job_id} has no state", service=database.serves)
        self._opened_at = self._seen

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """The recorded value of `key`, or run the effect and record what it returns. See the port.

        Raises also EntryConflict, JobCancelled (the job is being cancelled), IllegalState (it is final),
        JobWaiting(disk).
        """
        found = self.once_all([Call(key, inputs, kind, effect)])[0]
        if isinstance(found, BackendFailed):
            raise found
        return found

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """Several; what can run here does, one after the other, in order. See the port."""
        digests = {call.key: digest(call.inputs) for call in calls}
        if len(digests) != len(calls):
            raise ValueError(f"keys must differ: {[call.key for call in calls]}")
        found = {call.key: self._replayed(call, digests[call.key]) for call in calls}
        missing = [call for call in calls if found[call.key] is None]
        if missing:
            self._claim()
            elsewhere = [call for call in missing if not self._runnable(call.key)]
            for call in missing:
                if call not in elsewhere:
                    found[call.key] = self._run(call, digests[call.key])
            for call in elsewhere:  # others may have recorded meanwhile
                found[call.key] = self._replayed(call, digests[call.key])
            if away := tuple(call.key for call in elsewhere if found[call.key] is None):
                raise Suspended(away)
        return [value for value in found.values() if value is not None]

    def peek(self, key: str, kind: type[R]) -> R | None:
        """The recorded value, or None; raises BackendFailed for a recorded failure; never runs anything."""
        entry = self._find(key)
        if entry is not None and entry.kind == "failure":
            raise _failure(entry)
        return self._value(entry, kind) if entry is not None else None

    def renewals(self, key: str) -> int:
        """How often the job waited at `key` and went on to run; a wait that this journal was opened on counts.

        So the count is the same before and after the first effect of a resumed run, and after a crash of it.
        """
        self._catch_up()
        count = 0
        waited: dict[str, int] = {}  # key -> sequence of the first wait there since the job last ran
        for entry in self._states:
            if entry.value["state"] == "waiting":
                waited.setdefault(entry.key, entry.sequence)
            elif entry.value["state"] == "running":
                count += key in waited
                waited.clear()
        return count + (key in waited and waited[key] <= self._opened_at)

    def state(self) -> JobState:
        """The job's state now."""
        return load_job(self._database, self.job_id).state

    def set_state(
        self,
        state: State,
        *,
        reason: WaitReason | None = None,
        message: str = "",
        key: str = "",
        outcome: OutcomeKind | None = None,
    ) -> None:
        """Change the state; nothing is written if it is this one already. Raises IllegalState.

        A waiting job that succeeds (what it waited for was no effect: a full disk at its export) runs first.
        """
        if state == "succeeded" and self.state().state == "waiting":
            self._move(JobState("running"))
        self._move(JobState(state, reason, message, key, outcome))

    def wait(self, stop: JobWaiting) -> None:
        """Record that the job waits, as far as it can be: not where nothing began, nor on a disk that is full."""
        try:
            if self.state().state in ("running", "waiting"):
                self.set_state("waiting", reason=stop.reason, message=str(stop), key=stop.key)
        except JobWaiting as full:
            _log.warning("could not record that job %s waits: %s", self.job_id, full)

    def entries(self, after: int = 0) -> list[Entry]:
        """The entries with a sequence number above `after`, in order."""
        return read_entries(self._database, self.job_id, after)

    def _catch_up(self) -> None:
        version = self._database.version()
        if version == self._version:
            return
        for entry in self.entries(self._seen):
            if not _is_sound(entry):
                why = f"entry {entry.sequence}, {entry.key or entry.kind!r}"
                raise damaged(self._database.where, why, service=self._database.serves)
            self._seen = entry.sequence
            if entry.kind == "state":
                self._states.append(entry)
            else:
                self._effects[entry.key] = entry
        self._version = version

    def _find(self, key: str) -> Entry | None:
        if key not in self._effects:
            self._catch_up()
        return self._effects.get(key)

    def _replayed(self, call: Call[R], inputs: str) -> R | BackendFailed | None:
        entry = self._find(call.key)
        if entry is None:
            return None
        if entry.inputs != inputs:
            raise self._changed(call.key, "with other inputs")
        if entry.kind == "failure":
            return _failure(entry)
        return self._value(entry, call.kind)

    def _claim(self) -> None:
        """`running` begins with the first effect that is really done or scheduled."""
        state: State = self._states[-1].value["state"]
        if state in ("cancelling", "cancelled"):
            raise JobCancelled(f"job {self.job_id} is {state}")
        if state in FINAL_STATES:
            raise finished(self.job_id, state)
        if state != "running":
            self._move(JobState("running"))

    def _move(self, to: JobState) -> None:
        with self._database.write() as connection:
            self._fence(connection, asdict(to))
            sequence = change_state(connection, self.job_id, to, self._clock())
            if sequence is None:
                return
            self._on_commit("before", f"state/{to.state}")
        self._on_commit("after", f"state/{to.state}")
        self._tell(StateChanged(sequence, to))

    def _run(self, call: Call[R], inputs: str) -> R | BackendFailed:
        """Run the effect outside any transaction and record how it ended; other errors leave no entry."""
        self._database.require_space()
        self._tell(EffectBegan(call.key))
        try:
            value = dump(call.effect())
        except BackendFailed as failed:
            lost = {"message": str(failed), "spend": dump(failed.spend)}
            self._record(call.key, "failure", inputs, lost)
            return failed
        record = call.kind.model_validate(value)  # what a replay will read, or an error before it is recorded
        self._record(call.key, "record", inputs, value)
        return record

    def _record(self, key: str, kind: Literal["record", "failure"], inputs: str, value: dict[str, Any]) -> None:
        now = self._clock()
        try:
            with self._database.write() as connection:
                self._fence(connection, value)
                sequence = append_entry(connection, self.job_id, key, kind, inputs, value, now)
                version = self._database.version(connection)
                self._on_commit("before", key)
        except IntegrityError as error:
            raise EntryConflict(
                f"{key} of job {self.job_id} was recorded by another process meanwhile"
            ) from error
        if sequence == self._seen + 1:  # nobody else wrote meanwhile: it need not be read back
            self._effects[key] = Entry(sequence, key, kind, inputs, value, now)
            self._seen, self._version = sequence, version
        self._on_commit("after", key)
        self._tell(EntryRecorded(sequence, key, kind, value))

    def _value(self, entry: Entry, kind: type[R]) -> R:
        try:
            return kind.model_validate(entry.value)
        except ValidationError as error:
            raise self._changed(entry.key, f"in a form that {kind.__name__} no longer has") from error

    def _changed(self, key: str, how: str) -> JobWaiting:
        step = re.match(r"step/(\d+)/", key)
        where, afresh = f"step {step[1]}" if step else "the beginning", self._database.afresh
        return JobWaiting(
            "changed",
            f"{key} ({where}) was recorded {how}: the code, a prompt or the policy changed since. "
            f"{afresh[0].upper()}{afresh[1:]}, or fork from {where}",
            key=key,
        )

    def _tell(self, event: Event) -> None:
        if self._watcher is None:
            return
        try:
            self._watcher(event)
        except Exception:
            _log.exception("a watcher of job %s failed at %s", self.job_id, event)


def read_entries(database: SqlDatabase, job_id: str, after: int = 0) -> list[Entry]:
    """A job's entries with a sequence number above `after`, in order; empty for an unknown job."""
    with database.read() as connection:
        return [Entry(*row) for row in connection.execute(_SELECT_ENTRIES, {"job": job_id, "after": after})]


def _is_sound(entry: Entry) -> bool:
    """Whether a state or a failure says what it must; a record is checked when it is asked for."""
    if entry.kind == "record":
        return True
    value = cast("Any", entry.value)  # whatever JSON the row holds
    wanted = "state" if entry.kind == "state" else "message"
    return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get(wanted), str)


def _failure(entry: Entry) -> BackendFailed:
    spend = entry.value.get("spend")
    return BackendFailed(str(entry.value["message"]), spend=Spend.model_validate(spend) if spend else None)
