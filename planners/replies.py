"""Reads what vision-language models send back, for every role; strict and fail-closed.

An accept, a finished task: only from an explicit, complete object in a finished reply that contradicts nowhere.
All else is `unclear` (verifier), ReplyUnreadable (planner) or the role's stated default (router: fallback;
selector: the first; assessor: not complete). What a safety filter
withheld is ReplyBlocked, whatever it holds. A reply of more than MAX_LENGTH characters is not read at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import get_args

from orchestrator.errors import ReplyBlocked, ReplyUnreadable
from orchestrator.records import (
    Assessment,
    Choice,
    Confidence,
    FailureKind,
    Plan,
    Progress,
    Route,
    RouteAction,
    Verdict,
)
from planners.doubts import (
    against_accept,
    flag,
    reports_error,
    reports_trouble,
    says_something,
    takes_back,
    visible,
    without_thoughts,
    word,
)
from planners.lenient_json import MAX_LENGTH, Found, Value, clean, find

MAX_REASON = 2000  # characters of a reason that are kept
_ENUM = re.compile(r"^(?:\w+\.)?finish_?reason[._]")  # `FinishReason.STOP`, `FINISH_REASON_STOP`
FINISHED = frozenset({"stop", "end_turn", "stop_sequence", "eos", "eos_token", "completed"})
CUT = frozenset({"max_tokens", "length", "max_output_tokens"})
BLOCKED = frozenset(
    {
        *("safety", "recitation", "prohibited_content", "blocklist", "spii", "model_armor"),  # Gemini
        *("image_safety", "image_prohibited_content", "image_recitation"),
        *("content_filter", "content_filtered", "refusal", "guardrail_intervened"),  # others
    }
)

_WRAPPERS = frozenset(
    {
        *("result", "response", "answer", "output", "verdict", "evaluation", "judgement", "judgment"),
        *("verification", "assessment", "plan", "final", "final_answer", "json"),
    }
)
_PLACEHOLDERS = frozenset(
    {
        *(
            "none",
            "n/a",
            "na",
            "null",
            "nil",
            "undefined",
            "unknown",
            "tbd",
            "todo",
            "nothing",
            "no",
            "false",
            "true",
        ),
        *(
            "no action",
            "next action",
            "instruction",
            "your instruction",
            "the next action",
            "placeholder",
            "string",
        ),
        *("0", "text", "no instruction", "nothing remains", "not applicable", "empty", "nan"),
    }
)
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_TEMPLATE = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\{+[^{}]*\}+")
_FRACTION = re.compile(r"(\d{0,6}\.?\d{1,12})\s?(%?)")


def parse_verdict(text: str | None, finish_reason: str | None) -> Verdict:
    """A verifier's reply. What cannot be relied on is decision `unclear` with the cause as reason.

    Raises ReplyBlocked.
    """
    try:
        found = _read(text, finish_reason)
        given = _candidates(found, "verdict")
        verdict = _verdict(given[-1])
        if verdict.decision == "accept":
            said = [(word(item.get("verdict")), _progress(item.get("progress"))) for item in given]
            _agreed(found, said, "verdict", complete=False)
        elif found.broken_at is not None and found.broken_at >= found.last_start:
            raise ReplyUnreadable("the reply holds an object that breaks off")
        return verdict
    except ReplyUnreadable as unreadable:
        return Verdict(decision="unclear", confidence="low", reason=str(unreadable))


def parse_plan(text: str | None, finish_reason: str | None) -> Plan:
    """A planner's reply. Raises ReplyUnreadable, ReplyBlocked."""
    found = _read(text, finish_reason)
    try:
        last, complete = _one_plan(found)
    except ReplyUnreadable as unreadable:
        raise ReplyUnreadable(str(unreadable), raw=text or "") from None
    return Plan(
        observation=_text(last, "observation"),
        remaining_goal=_text(last, "remaining_goal"),
        task_complete=complete,
        instruction=_text(last, "instruction"),
        target_state=_text(last, "target_state"),
        estimated_steps_remaining=_count(last.get("estimated_steps_remaining")),
        confidence=_confidence(last.get("confidence")),
    )


def _one_plan(found: Found) -> tuple[dict[str, Value], bool]:
    """The plan that counts, and whether it says that the task is complete."""
    if found.broken_at is not None:
        raise ReplyUnreadable("the reply holds an object that breaks off")
    if any(reports_trouble(item) for item in found.objects):
        raise ReplyUnreadable("the reply reports an error")
    given = _candidates(found, "instruction", "task_complete")
    last, said = given[-1], given[-1].get("task_complete")
    if len(found.groups[-1]) > 1 and any(item != last for item in given):
        raise ReplyUnreadable("several plans in one reply, where one next action was asked for")
    complete = {flag(item.get("task_complete")) or False for item in given}
    if len(complete) > 1:
        raise ReplyUnreadable("the reply says both that the task is complete and that it is not")
    if said is not None and flag(said) is None:
        raise ReplyUnreadable("`task_complete` is neither true nor false")
    if takes_back(found.prose[-1]):
        raise ReplyUnreadable("what follows the plan takes it back")
    if flag(said):
        _agreed(found, [True], "task_complete", complete=True)
    elif not _is_said(_text(last, "instruction")):
        raise ReplyUnreadable("the plan has no instruction and the task is not complete")
    return last, bool(flag(said))


def parse_route(text: str | None, finish_reason: str | None) -> Route:
    """A router's reply; anything unreadable, and a split into nothing, is `fallback`. Raises ReplyBlocked."""
    try:
        last = _sole(_read(text, finish_reason), "action")
        action = word(last.get("action"))
        if action not in get_args(RouteAction):
            raise ReplyUnreadable(f"unknown route {action!r}")
        subs = _sub_actions(last.get("sub_actions")) if action == "split" else ()
        if action == "split" and not subs:
            raise ReplyUnreadable("a split into nothing is no split")
    except ReplyUnreadable as unreadable:
        return Route(action="fallback", reason=f"default: {unreadable}")
    known: RouteAction = next(name for name in get_args(RouteAction) if name == action)
    return Route(action=known, reason=_reason(last), suggestion=_text(last, "suggestion"), sub_actions=subs)


def parse_choice(text: str | None, finish_reason: str | None, count: int) -> Choice:
    """A selector's pick among `count`; unreadable or out of range is the first. Raises ReplyBlocked."""
    try:
        last = _sole(_read(text, finish_reason), "best_index")
        index = _count(last.get("best_index"))
        if index is None or index >= count:
            raise ReplyUnreadable(f"no index from 0 to {count - 1}")
    except ReplyUnreadable as unreadable:
        return Choice(index=0, reason=f"default: {unreadable}")
    return Choice(index=index, reason=_reason(last))


def parse_assessment(text: str | None, finish_reason: str | None) -> Assessment:
    """A final assessment; complete only if the reply says so without a doubt. Raises ReplyBlocked."""
    try:
        found = _read(text, finish_reason)
        given = _candidates(found, "task_complete")
        complete = flag(given[-1].get("task_complete"))
        if complete is None:
            raise ReplyUnreadable("`task_complete` is neither true nor false")
        if complete:
            _agreed(found, [flag(item.get("task_complete")) for item in given], "task_complete", complete=True)
            if any(_steps_left(item) for item in given):
                raise ReplyUnreadable("complete, yet something remains to be done")
    except ReplyUnreadable as unreadable:
        return Assessment(task_complete=False, reason=f"default: {unreadable}")
    return Assessment(task_complete=complete, reason=_reason(given[-1]))


def _read(text: str | None, finish_reason: str | None) -> Found:
    """The objects of a finished reply, thoughts left out."""
    finish = _ENUM.sub("", (finish_reason or "").strip().casefold())
    if finish in BLOCKED:
        raise ReplyBlocked(f"a safety filter withheld the reply ({finish_reason})", raw=text or "")
    if finish not in FINISHED:
        remedy = ": raise max_output_tokens" if finish in CUT else ""
        raise ReplyUnreadable(f"the reply is not finished ({finish_reason}){remedy}", raw=text or "")
    if len(text or "") > MAX_LENGTH:
        raise ReplyUnreadable(f"the reply has more than {MAX_LENGTH} characters", raw=(text or "")[:MAX_LENGTH])
    found = find(without_thoughts((text or "").lstrip("\ufeff")))
    if any(reports_error(item) for item in found.objects):
        raise ReplyUnreadable("the reply reports an error", raw=text or "")
    if not found.objects:
        raise ReplyUnreadable("the reply holds no complete object", raw=text or "")
    return found


def _candidates(found: Found, *keys: str) -> list[dict[str, Value]]:
    """Objects that hold one of the keys, in order; one that merely wraps such an object stands for it."""
    given: list[dict[str, Value]] = []
    for item in found.objects:
        for name, inner in item.items():
            if len(item) == 1 and name in _WRAPPERS and isinstance(inner, dict):
                item = inner
        if any(key in item for key in keys):
            given.append(item)
    if not given:
        raise ReplyUnreadable(f"no object with `{keys[0]}` in the reply")
    return given


def _sole(found: Found, key: str) -> dict[str, Value]:
    """The object with the key, where all that have it are alike in what they choose and none breaks off."""
    if found.broken_at is not None and found.broken_at >= found.last_start:
        raise ReplyUnreadable("the reply holds an object that breaks off")
    given = _candidates(found, key)
    if any(item.get(name) != given[-1].get(name) for item in given for name in (key, "sub_actions")):
        raise ReplyUnreadable("differing answers in one reply")
    if any(reports_trouble(item) for item in found.objects):
        raise ReplyUnreadable("the reply reports an error")
    if takes_back(found.prose[-1]):
        raise ReplyUnreadable("what follows the answer takes it back")
    return given[-1]


def _agreed(found: Found, values: Sequence[object], *keys: str, complete: bool) -> None:
    """What lets a step or a job pass must be said once, or always alike, with nothing in the reply against it."""
    if any(value != values[0] for value in values):
        raise ReplyUnreadable("differing answers in one reply")
    if found.broken_at is not None:
        raise ReplyUnreadable("the reply holds an object that breaks off")
    if doubt := against_accept(found, keys, complete=complete):
        raise ReplyUnreadable(doubt)


def _verdict(item: dict[str, Value]) -> Verdict:
    """The verdict as one object says it; what speaks against an accept is looked for in the whole reply."""
    decision = word(item.get("verdict"))
    executed, progress = flag(item.get("action_executed")), _progress(item.get("progress"))
    failure = _failure(item.get("failure"))
    if decision == "accept":
        return Verdict(
            decision="accept",
            progress=progress or "partial",
            confidence=_confidence(item.get("confidence")),
            reason=_reason(item),
            suggestion="" if progress == "complete" else _suggestion(item),
            good_fraction=1.0,
        )
    if decision == "reject":
        if executed and progress == "complete" and failure is None:
            raise ReplyUnreadable("rejected, yet executed and complete, and no failure is named")
        return Verdict(
            decision="reject",
            progress=progress or "none",
            confidence=_confidence(item.get("confidence")),
            failure=failure,
            reason=_reason(item),
            suggestion=_suggestion(item),
            good_fraction=_fraction(item.get("good_fraction")),
        )
    if decision == "unclear":
        raise ReplyUnreadable(_reason(item) or "the verifier says that it is unclear")
    raise ReplyUnreadable(f"unknown verdict {decision[:40]!r}")


def _number(value: Value) -> float | None:
    """A number, a numeral in a string, or a percentage; None for the rest, NaN and infinities included."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    match = _FRACTION.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None else float(match.group(1)) / (100 if match.group(2) else 1)


def _fraction(value: Value) -> float:
    """0 … 1; what is none reads as missing, and missing is 0: the whole clip is rendered again."""
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else 0.0


def _count(value: Value) -> int | None:
    number = None if isinstance(value, str) and "%" in value else _number(value)
    return int(number) if number is not None and number.is_integer() and 0 <= number < 10_000 else None


def _progress(value: Value) -> Progress | None:
    return next((name for name in get_args(Progress) if name == word(value)), None)


def _failure(value: Value) -> FailureKind | None:
    """The failure kind; `other` for one that is not on the list; None where none is named."""
    if not says_something(value):
        return None
    kind = re.sub(r"[\s-]+", "_", word(value))
    return next((name for name in get_args(FailureKind) if name == kind), "other")


def _confidence(value: Value) -> Confidence:
    """Words or numbers, bounds half-way between 0.3, 0.6 and 0.9. Missing is medium, unreadable is low."""
    if not says_something(value):
        return "medium"
    number = _number(value)
    if number is not None:
        return "high" if 0.75 <= number <= 1 else "medium" if 0.45 <= number < 0.75 else "low"
    said = word(value)
    return "high" if said in ("high", "very high") else "medium" if said in ("medium", "moderate") else "low"


def _text(item: dict[str, Value], key: str) -> str:
    value = item.get(key)
    return clean(value).strip() if isinstance(value, str) else ""


def _suggestion(item: dict[str, Value]) -> str:
    """What to do better or further; it is kept on a partial accept too, where it tells the remainder."""
    suggestion = _text(item, "suggestion")
    return suggestion if _is_said(suggestion) else ""


def _is_said(text: str) -> bool:
    """Whether a text says something: no placeholder, no bare punctuation, nothing that cannot be seen."""
    bare = _EDGES.sub("", visible(text)).casefold()
    return bool(bare) and bare not in _PLACEHOLDERS and _TEMPLATE.fullmatch(visible(text)) is None


def _steps_left(item: dict[str, Value]) -> bool:
    return any("remaining" in key and _is_said_or_counted(value) for key, value in item.items())


def _is_said_or_counted(value: Value) -> bool:
    return _is_said(value) if isinstance(value, str) else says_something(value) and value != 0


def _reason(item: dict[str, Value]) -> str:
    return _text(item, "reason")[:MAX_REASON]


def _sub_actions(value: Value) -> tuple[str, ...]:
    """Sub-actions as sentences; () if one of them is none."""
    if not isinstance(value, list):
        return ()
    items = [item.get("instruction", item.get("action")) if isinstance(item, dict) else item for item in value]
    if not all(isinstance(item, str) for item in items):
        return ()
    return tuple(clean(item).strip() for item in items if isinstance(item, str) and _is_said(item))
