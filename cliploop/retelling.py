"""A job that runs elsewhere, told as if it ran here: its journal, as it arrives, is replayed for a watcher.

The watcher hears the loop's own keys and inputs in the loop's order, each once. No effect is ever run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from cliploop.watch import Watcher
from orchestrator.budget import Ledger
from orchestrator.errors import BackendFailed, CliploopError, Suspended
from orchestrator.job import Job
from orchestrator.loop import play
from orchestrator.ports import Call, Inputs, Ports
from orchestrator.records import Policy, Record, Spend, Task

R = TypeVar("R", bound=Record)
_NOBODY = cast("Any", None)  # a replay asks none of them
_NO_PORTS = Ports(_NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY)


class Retelling:
    """Implements orchestrator.ports.Journal over what has arrived so far."""

    def __init__(self, task: Task, policy: Policy, watcher: Watcher) -> None:
        self._task, self._policy, self._watcher = task, policy, watcher
        self._arrived: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._read: dict[str, Record] = {}
        self._told: set[str] = set()
        self._missing = ""  # where the replay stopped; empty where any entry may let it go on
        self._waits: dict[str, int] = {}  # key -> how often the job waited there and went on
        self._waited: set[str] = set()  # since it last ran
        self.understood = True  # whether this version's loop can be what recorded these entries

    def hear(self, kind: str, key: str, value: Mapping[str, Any]) -> None:
        """An entry has arrived: a record, a failure or a change of state."""
        if kind == "state":
            self._note_state(key, str(value.get("state")))
            return
        self._arrived.setdefault(key, (kind, value))
        if self.understood and self._missing in ("", key):
            self._replay()

    def _note_state(self, key: str, state: str) -> None:
        if state == "waiting":
            self._waited.add(key)
        elif state == "running":
            for each in self._waited:
                self._waits[each] = self._waits.get(each, 0) + 1
            self._waited.clear()

    def _replay(self) -> None:
        self._missing = ""
        try:
            with contextlib.suppress(Suspended, CliploopError):
                play(Job(self._task, self._policy, _NO_PORTS, self, Ledger(self._policy.budget)))
        except (ValidationError, LookupError):
            self.understood = False

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """What has arrived, told the first time. Raises Suspended where nothing has, BackendFailed."""
        if key not in self._arrived:
            self._missing = key
            if (began := f"began {key}") not in self._told:
                self._told.add(began)
                self._watcher.began(key, inputs)
            raise Suspended((key,))
        fresh = key not in self._told
        self._told.add(key)
        try:
            value = self._value(key, kind)
        except BackendFailed as failure:
            if fresh:
                self._watcher.lost(key, str(failure), remembered=False)
            raise
        if fresh:
            self._watcher.recorded(key, inputs, value, remembered=False)
        return value

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """As once, for several; told in their order, whichever arrived first."""
        values: list[R | BackendFailed] = []
        for call in calls:
            try:
                values.append(self.once(call.key, call.inputs, call.kind, call.effect))
            except BackendFailed as failure:
                values.append(failure)
        return values

    def peek(self, key: str, kind: type[R]) -> R | None:
        """What has arrived."""
        return self._value(key, kind) if key in self._arrived else None

    def renewals(self, key: str) -> int:
        """How often the job waited at `key` and went on."""
        return self._waits.get(key, 0)

    def _value(self, key: str, kind: type[R]) -> R:
        how, value = self._arrived[key]
        if how == "failure":
            spend = value.get("spend")
            raise BackendFailed(str(value.get("message")), spend=Spend.model_validate(spend) if spend else None)
        if key not in self._read:
            self._read[key] = kind.model_validate(value)
        return cast("R", self._read[key])
