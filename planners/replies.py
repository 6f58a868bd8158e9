"""Reads what vision-language models send back, for every role; strict and fail-closed.

An accept, a finished task: only from an explicit, complete object in a finished reply that contradicts nowhere.
All else is `unclear` (verifier), ReplyUnreadable (planner) or the role's stated default (router: fallback;
selector: the first; assessor: not complete). What a safety filter
withheld is ReplyBlocked, whatever it holds.
"""

from __future__ import annotations

import math
import re
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
from planners.lenient_json import Found, Value, clean, find

MAX_REASON = 2000  # characters of a reason that are kept
FINISHED = frozenset({"stop", "end_turn", "stop_sequence", "eos", "eos_token", "completed"})
BLOCKED = frozenset(
    {
        *("safety", "recitation", "prohibited_content", "blocklist", "spii", "model_armor"),  # Gemini
        *("image_safety", "image_prohibited_content", "image_recitation"),
        *("content_filter", "content_filtered", "refusal", "guardrail_intervened"),  # others
    }
)

_THINKING = re.compile(
    r"[<◁]\|?\s{0,8}(/?)\s{0,8}(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
    r"\b[^<>◁▷]{0,200}[>▷]",
    re.IGNORECASE,
)
_UNVERIFIED = re.compile(
    r"\b(?:can ?not|can['’]?t|could ?not|couldn['’]?t|unable to|(?:im|not )possible to|hard to|difficult to)"
    r" (?:\w+ )?(?:be (?:\w+ )?)?(?:verif|confirm|determin|tell|judge|assess|see|check|establish)"
    r"|\bunverif|\bnot (?:be |been )?(?:verifi|confirm)|\binconclusive|\bnot (?:sure|certain|clear)\b|\bunsure\b",
    re.IGNORECASE,
)
_SECOND_THOUGHTS = re.compile(
    r"\breject|\bwait\b|\bactually\b|\bcorrection\b|\bsecond thought|\bmistake|\bretract|\bdisregard|\bhowever\b"
    r"|\bnot accept|\bnot complete|\bincorrect",
    re.IGNORECASE,
)
_WRAPPERS = frozenset(
    {
        *("result", "response", "answer", "output", "verdict", "evaluation", "judgement", "judgment"),
        *("verification", "assessment", "plan", "final", "final_answer", "json"),
    }
)
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
            _agreed(found, [_word(item.get("verdict")) for item in given], "verdicts")
            if _UNVERIFIED.search(verdict.reason):
                raise ReplyUnreadable("accepted, yet the reason says that it cannot be verified")
        elif found.broken_at is not None and found.broken_at >= found.last_start:
            raise ReplyUnreadable("the reply holds an object that breaks off")
        return verdict
    except ReplyUnreadable as unreadable:
        return Verdict(decision="unclear", confidence="low", reason=str(unreadable))


def parse_plan(text: str | None, finish_reason: str | None) -> Plan:
    """A planner's reply. Raises ReplyUnreadable, ReplyBlocked."""
    found = _read(text, finish_reason)
    if found.broken_at is not None:
        raise ReplyUnreadable("the reply holds an object that breaks off", raw=text or "")
    given = _candidates(found, "instruction", "task_complete")
    if len(found.groups[-1]) > 1 and any(item != given[-1] for item in given):
        raise ReplyUnreadable("several plans in one reply, where one next action was asked for", raw=text or "")
    complete = {_flag(item.get("task_complete")) or False for item in given}
    if len(complete) > 1:
        raise ReplyUnreadable("the reply says both that the task is complete and that it is not", raw=text or "")
    plan, last = complete.pop(), given[-1]
    if last.get("task_complete") is not None and _flag(last.get("task_complete")) is None:
        raise ReplyUnreadable("`task_complete` is neither true nor false", raw=text or "")
    instruction = _text(last, "instruction")
    if not plan and not instruction:
        raise ReplyUnreadable("the plan has no instruction and the task is not complete", raw=text or "")
    return Plan(
        observation=_text(last, "observation"),
        remaining_goal=_text(last, "remaining_goal"),
        task_complete=plan,
        instruction=instruction,
        target_state=_text(last, "target_state"),
        estimated_steps_remaining=_count(last.get("estimated_steps_remaining")),
        confidence=_confidence(last.get("confidence")),
    )


def parse_route(text: str | None, finish_reason: str | None) -> Route:
    """A router's reply; anything unreadable, and a split into nothing, is `fallback`. Raises ReplyBlocked."""
    try:
        last = _candidates(_read(text, finish_reason), "action")[-1]
        action = _word(last.get("action"))
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
        last = _candidates(_read(text, finish_reason), "best_index")[-1]
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
        complete = _flag(given[-1].get("task_complete"))
        if complete is None:
            raise ReplyUnreadable("`task_complete` is neither true nor false")
        reason = _reason(given[-1])
        if complete:
            _agreed(found, [_flag(item.get("task_complete")) for item in given], "assessments")
            if _UNVERIFIED.search(reason):
                raise ReplyUnreadable("complete, yet the reason says that it cannot be verified")
    except ReplyUnreadable as unreadable:
        return Assessment(task_complete=False, reason=f"default: {unreadable}")
    return Assessment(task_complete=complete, reason=reason)


def _read(text: str | None, finish_reason: str | None) -> Found:
    """The objects of a finished reply, thoughts left out."""
    finish = (finish_reason or "").rsplit(".", 1)[-1].strip().casefold().removeprefix("finish_reason_")
    if finish in BLOCKED:
        raise ReplyBlocked(f"a safety filter withheld the reply ({finish_reason})", raw=text or "")
    if finish not in FINISHED:
        raise ReplyUnreadable(f"the reply is not finished ({finish_reason})", raw=text or "")
    found = find(_without_thoughts((text or "").lstrip("\ufeff")))
    if any(_set(item.get("error")) for item in found.objects):
        raise ReplyUnreadable("the reply reports an error", raw=text or "")
    if not found.objects:
        raise ReplyUnreadable("the reply holds no complete object", raw=text or "")
    return found


def _without_thoughts(text: str) -> str:
    """What stands outside think tags; before a lone closing tag and after an unclosed one, all is thought."""
    kept: list[str] = []
    depth = position = 0
    for tag in _THINKING.finditer(text):
        if depth == 0:
            kept.append(text[position : tag.start()])
        if tag.group(1):
            if depth == 0:
                kept.clear()
            depth = max(0, depth - 1)
        else:
            depth += 1
        position = tag.end()
    if depth == 0:
        kept.append(text[position:])
    return "\n".join(kept)


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


def _agreed(found: Found, values: list[object], what: str) -> None:
    """What lets a step or a job pass must be said once, or always alike, with nothing half-said beside it."""
    if any(value != values[0] for value in values):
        raise ReplyUnreadable(f"differing {what} in one reply")
    if found.broken_at is not None:
        raise ReplyUnreadable("the reply holds an object that breaks off")
    if _SECOND_THOUGHTS.search(found.tail):
        raise ReplyUnreadable("what follows the answer takes it back")


def _verdict(item: dict[str, Value]) -> Verdict:
    decision = _word(item.get("verdict"))
    executed, progress = _flag(item.get("action_executed")), _progress(item.get("progress"))
    failure = _failure(item.get("failure"))
    if decision == "accept":
        if executed is False or (executed is None and _set(item.get("action_executed"))):
            raise ReplyUnreadable("accepted, yet the action was not executed")
        if progress == "none" or (progress is None and _set(item.get("progress"))):
            raise ReplyUnreadable("accepted, yet without progress")
        if failure is not None:
            raise ReplyUnreadable(f"accepted, yet with failure {failure}")
        return Verdict(
            decision="accept",
            progress=progress or "partial",
            confidence=_confidence(item.get("confidence")),
            reason=_reason(item),
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
            suggestion=_text(item, "suggestion"),
            good_fraction=_fraction(item.get("good_fraction")),
        )
    if decision == "unclear":
        raise ReplyUnreadable(_reason(item) or "the verifier says that it is unclear")
    raise ReplyUnreadable(f"unknown verdict {decision[:40]!r}")


def _word(value: Value) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


def _set(value: Value) -> bool:
    """Whether a field says anything: a missing, empty or false one does not."""
    return (
        value is not None
        and value is not False
        and value not in ([], {})
        and (not isinstance(value, str) or _word(value) not in ("", "none", "null", "n/a", "no", "false"))
    )


def _flag(value: Value) -> bool | None:
    """True or False, also as a word; None where it is neither."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return {1.0: True, 0.0: False}.get(value)
    return {"true": True, "yes": True, "false": False, "no": False}.get(_word(value))


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
    number = _number(value)
    return int(number) if number is not None and number.is_integer() and 0 <= number < 10_000 else None


def _progress(value: Value) -> Progress | None:
    word = _word(value)
    return next((name for name in get_args(Progress) if name == word), None)


def _failure(value: Value) -> FailureKind | None:
    """The failure kind; `other` for one that is not on the list; None where none is named."""
    if not _set(value):
        return None
    word = re.sub(r"[\s-]+", "_", _word(value))
    return next((name for name in get_args(FailureKind) if name == word), "other")


def _confidence(value: Value) -> Confidence:
    """Words or numbers, bounds half-way between 0.3, 0.6 and 0.9. Missing is medium, unreadable is low."""
    if not _set(value):
        return "medium"
    number = _number(value)
    if number is not None:
        return "high" if 0.75 <= number <= 1 else "medium" if 0.45 <= number < 0.75 else "low"
    word = _word(value)
    return "high" if word in ("high", "very high") else "medium" if word in ("medium", "moderate") else "low"


def _text(item: dict[str, Value], key: str) -> str:
    value = item.get(key)
    return value.strip() if isinstance(value, str) else ""


def _reason(item: dict[str, Value]) -> str:
    return clean(_text(item, "reason"))[:MAX_REASON]


def _sub_actions(value: Value) -> tuple[str, ...]:
    """Sub-actions as sentences; () if one of them is none."""
    if not isinstance(value, list):
        return ()
    items = [item.get("instruction", item.get("action")) if isinstance(item, dict) else item for item in value]
    if not all(isinstance(item, str) for item in items):
        return ()
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())
