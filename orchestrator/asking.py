"""Asking a model: each ask is an entry of its own, three in all; a transient error is never an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from orchestrator.errors import BackendUnavailable, JobWaiting, ReplyBlocked, ReplyUnreadable
from orchestrator.job import Job
from orchestrator.ports import Clock, Inputs
from orchestrator.records import Answer, Asked, Record, Shown, Spend, View
from orchestrator.seeds import derived_seed

ASKS = 3  # unreadable, contradictory and unclear replies share this allowance
BLOCKED_ASKS = 2  # after a safety filter: one more
RETRIES = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0

R = TypeVar("R", bound=Record)
T = TypeVar("T")


def ask(
    job: Job,
    key: str,
    kind: type[R],
    view: View,
    call: Callable[[View], Answer[R]],
    *,
    given: Mapping[str, Any],
    refuse: Callable[[R], str] = lambda _value: "",
    default: R | None = None,
    final: bool = False,
) -> Answer[R]:
    """The recorded answer at `key`, or ask until one is readable.

    `refuse(value)` says why a readable value is no answer (an unclear verdict, a too long instruction).
    With a default, that stands in for an answer after the last ask; without one the job waits. `given` is
    what the model is shown beside the view, for the entry's digest. Raises JobWaiting, OutOfBudget.
    """

    inputs = job.inputs(view=view, **given)
    rounds = 1 + job.journal.renewals(key)
    spend, why, asks, blocked, number = Spend(), "", 0, 0, 0
    while True:
        number, asks = number + 1, asks + 1
        asked = _one_ask(job, f"{key}/try/{number}", kind, view, call, inputs, final)
        spend = spend + asked.spend
        why = refuse(asked.answer.value) if asked.answer else asked.unreadable or asked.blocked
        blocked += bool(asked.blocked)
        if asked.answer is not None and not why:
            return _settled(job, key, kind, inputs, asked.answer, spend, number)
        if asks == ASKS or blocked == BLOCKED_ASKS:
            rounds -= 1
            if not rounds:
                break
            asks, blocked = 0, 0
    if default is not None:
        stand_in = Answer[kind](value=default, defaulted=why)
        return _settled(job, key, kind, inputs, stand_in, spend, number)
    if blocked == BLOCKED_ASKS:
        raise JobWaiting("backend", f"{key}: the reply was blocked by a safety filter ({why})", key=key)
    raise JobWaiting("unclear", f"{key}: no clear reply in {ASKS} asks ({why})", key=key)


def _settled(
    job: Job, key: str, kind: type[R], inputs: Inputs, answer: Answer[R], spend: Spend, asks: int
) -> Answer[R]:
    """What the tries came to, as an entry of its own for readers of the journal."""
    told = answer.model_copy(update={"spend": spend, "asks": asks})
    return job.journal.once(key, inputs, Answer[kind], lambda: told)


def _one_ask(
    job: Job,
    key: str,
    kind: type[R],
    view: View,
    call: Callable[[View], Answer[R]],
    inputs: Inputs,
    final: bool,
) -> Asked[R]:
    job.ledger.afford(vlm_calls=1, final=final)
    own_view = view.model_copy(update={"seed": derived_seed(job.policy.seed, key)})

    def effect() -> Asked[R]:
        job.stop_if_cancelled()
        started = job.ports.clock.now()
        try:
            answer = patiently(job.ports.clock, own_view.seed, key, lambda: call(own_view))
            asked = Asked[kind](
                answer=answer, raw=answer.raw, sent=answer.sent, spend=_at_least_one(answer.spend)
            )
        except ReplyUnreadable as error:
            asked = _unanswered(kind, error, unreadable=str(error))
        except ReplyBlocked as error:
            asked = _unanswered(kind, error, blocked=str(error))
        wall = job.ports.clock.now() - started
        return asked.model_copy(update={"spend": asked.spend.model_copy(update={"wall_seconds": wall})})

    asked = job.journal.once(key, inputs, Asked[kind], effect)
    job.ledger.add(asked.spend)
    if asked.sent:
        job.tape.shown.append(Shown(key=key, model=asked.answer.model if asked.answer else "", sent=asked.sent))
    return asked


def _unanswered(
    kind: type[R], error: ReplyUnreadable | ReplyBlocked, *, unreadable: str = "", blocked: str = ""
) -> Asked[R]:
    spend = _at_least_one(error.spend)
    return Asked[kind](unreadable=unreadable, blocked=blocked, raw=error.raw, sent=error.sent, spend=spend)


def _at_least_one(spend: Spend) -> Spend:
    return spend if spend.vlm_calls else spend.model_copy(update={"vlm_calls": 1})


def patiently(clock: Clock, seed: int, key: str, call: Callable[[], T]) -> T:
    """Call again while the backend is unavailable: exponential backoff with jitter, honouring Retry-After.

    Then JobWaiting(backend). Pauses of 1, 2, 4, … s, each times 0.5 … 1; a longer Retry-After waits at once.
    """
    for retry in range(RETRIES + 1):
        try:
            return call()
        except BackendUnavailable as error:
            pause = FIRST_PAUSE_SECONDS * 2**retry * (0.5 + derived_seed(seed, "pause", retry) / 2**32)
            pause = max(pause, error.retry_after_seconds or 0.0)
            if retry == RETRIES or pause > LONGEST_PAUSE_SECONDS:
                raise JobWaiting("backend", f"{key}: {error}", key=key) from error
            clock.sleep(pause)
    raise AssertionError("unreachable")
