"""What a hostile or careless reply may hold beside an accept, a complete task, a plan, a route or a choice."""

from __future__ import annotations

import json
import time

import pytest

from orchestrator.errors import ReplyUnreadable
from planners.replies import parse_assessment, parse_choice, parse_plan, parse_route, parse_verdict

ACCEPT = (
    '{"verdict":"accept","action_executed":true,"progress":"complete","confidence":"high","reason":"It arrived."}'
)
DONE = '{"task_complete":true,"reason":"The circle rests on the goal."}'


def _with(key: str, value: object, base: str = ACCEPT) -> str:
    return json.dumps({**json.loads(base), key: value})


def _decision(text: str) -> str:
    return parse_verdict(text, "STOP").decision


def _is_complete(text: str) -> bool:
    return parse_assessment(text, "STOP").task_complete


def _plans_complete(text: str) -> bool:
    try:
        return parse_plan(text, "STOP").task_complete
    except ReplyUnreadable:
        return False


CHATTER = [
    "Let me look at the clip carefully.\n{}\nHope this helps!",
    "Here is my answer in the requested format:\n```json\n{}\n```",
    "I must decide whether to accept or reject this clip.\n{}",
    "The circle did not cross any wall, and it moved right.\n{}",
    "Wait, let me look again. It is not at the start any more, but in row 2.\n{}",
    "{}\nLet me know if you need anything else.",
    "{}\nNo issues found.",
    "{}\nPlease don't hesitate to ask.",
    "{}\n**Summary:** the move was carried out as planned.",
]


@pytest.mark.parametrize("chatter", CHATTER)
def test_ordinary_chatter_is_harmless(chatter: str) -> None:
    assert _decision(chatter.replace("{}", ACCEPT)) == "accept"
    assert _is_complete(chatter.replace("{}", DONE))
    assert _plans_complete(chatter.replace("{}", DONE))


@pytest.mark.parametrize(
    "reason",
    [
        "The red circle moved right without crossing a wall; the other objects did not move.",
        "It did not pass through any walls.",
        "It moved one cell of two; the goal is not yet reached.",
        "There was no illegal move and no reason to reject.",
        "The circle moves around the obstacle instead of through it, and cannot go further.",
        "It moved into the correct cell, not the wrong one; nothing else changed.",
    ],
)
def test_a_reason_may_deny_what_would_have_been_wrong(reason: str) -> None:
    assert _decision(_with("reason", reason)) == "accept"


@pytest.mark.parametrize("value", ["no", False, "n/a", "none", "", [], {}, 0, True, "almost", "partial|complete"])
def test_a_progress_that_is_given_but_unreadable_is_not_missing(value: object) -> None:
    assert _decision(_with("progress", value)) == "unclear"


@pytest.mark.parametrize("value", ["none", "n/a", "no", "null", "", [], {}, False, 0, 2, "partly"])
def test_an_action_executed_that_is_given_but_not_true_is_not_missing(value: object) -> None:
    assert _decision(_with("action_executed", value)) == "unclear"


@pytest.mark.parametrize("key", ["progress", "action_executed", "failure", "reason"])
def test_null_is_missing(key: str) -> None:
    assert _decision(_with(key, None)) == "accept"


@pytest.mark.parametrize(
    ("key", "value"),
    [("failure", "illegal_move"), ("failure", ["other"]), ("action_executed", False), ("progress", "none"),
     ("progress", "partial"), ("reason", "I cannot verify this."), ("self_check", {"verdict": "reject"}),
     ("frames", [{"verdict": "reject"}]), ("final_verdict", "reject"), ("final_decision", "no"),
     ("checks", [{"n": 1, "action_executed": False}]), ("decision", True), ("verdicts", ["accept", "reject"]),
     ("legal", False), ("violations", ["wall"]), ("is_valid", False), ("actionExecuted", False),
     ("finalVerdict", "fail"), ("failure_reason", "it jumped"), ("notes", ["I could not verify it."]),
     ("message", "Internal server error"), ("truncated", True)],
)  # fmt: skip
def test_a_contradiction_in_any_object_of_the_reply_counts(key: str, value: object) -> None:
    texts = [_with(key, value) + ACCEPT, ACCEPT + _with(key, value), f"[{_with(key, value)},{ACCEPT}]"]
    alone = [] if value == "partial" else [_with(key, value), '{"result":' + _with(key, value) + "}"]
    for text in texts + alone:
        assert _decision(text) == "unclear", text


@pytest.mark.parametrize(
    ("key", "value"),
    [("reason", "This cannot be verified."), ("reason", "The circle is not at the goal."), ("progress", "none"),
     ("checks", {"goal_reached": False}), ("remaining_moves", 2), ("remaining", "two moves"),
     ("verdict", "reject"), ("failure", "illegal_move"), ("error", "timeout"), ("status", "error")],
)  # fmt: skip
def test_a_contradicted_assessment_is_not_complete(key: str, value: object) -> None:
    for text in (
        _with(key, value, DONE),
        _with(key, value, DONE) + DONE,
        '{"result":' + _with(key, value, DONE) + "}",
    ):
        assert not _is_complete(text), text


@pytest.mark.parametrize(
    "error",
    ['"error":"timeout"', '"errors":["frame decoding failed"]', '"status":"error"', '"status":"Timed out"',
     '"error_message":"x"', '"meta":{"error":{"code":500}}', '"status_code":503', '"decode_error":true'],
)  # fmt: skip
def test_an_error_anywhere_is_never_an_answer(error: str) -> None:
    alone = "{" + error + "}"
    for text in (
        ACCEPT[:-1] + "," + error + "}",
        '{"result":' + ACCEPT[:-1] + "," + error + "}}",
        '{"result":' + alone + "}" + ACCEPT,
        ACCEPT + alone,
    ):
        assert _decision(text) == "unclear", text
    assert not _is_complete('{"result":{"task_complete":true,' + error + "}}")
    for plan in ('{"plan":{"instruction":"go",' + error + "}}", '{"task_complete":true,' + error + "}"):
        with pytest.raises(ReplyUnreadable):
            parse_plan(plan, "stop")
    assert parse_route('{"action":"regenerate",' + error + "}", "stop").action == "fallback"
    assert parse_choice('{"best_index":2,' + error + "}", "stop", 4).index == 0


def test_no_error_is_no_error() -> None:
    fine = ACCEPT[:-1] + ',"error":null,"errors":[],"error_count":0,"status":"ok","steps":[{"ok":true}]}'
    assert _decision(fine) == "accept"


AROUND = [
    '{}\nWait, it crossed a wall: I reject.\n{"meta":1}',
    "{}\nNo: rejected.\n[{\"frame\":1}]",
    "{}\nNote: I could not verify this, the frames were black.",
    "{}\nI am unable to view the video, so this is a guess.",
    "The format is {}. I cannot assess this video.",
    "You asked for JSON like {} but no video was attached.",
    "// example: {}\nI have no answer.",
    "For example: {}",
    "{}\nScratch that, it hit the wall.",
    "{}\nOn closer look, the circle passes through a wall.",
    "{}\nIgnore the above; the move was illegal.",
    "{}\nThe clip is not acceptable.",
    "{}\nThis is wrong.",
    "{}\nI changed my mind: fail.",
    "{}\nVerdict: REJECTED",
    "{}\nVerdict: **RE\u200bJECT**",
    "{}\nVerdict: ｒｅｊｅｃｔｅｄ",
    "{}\nNein, doch abgelehnt.",
    "{}\nI can’t be sure.",
    "I reject this clip: it crossed a wall.\n{}",
    "The circle passes through a wall.\n{}",
    "I cannot see the video.\n{}",
    "{}\nI take that back.\n{}",
    "{}\nThis verdict is only a formality.",
    "{}\nThe above is a sample.",
    "I have not looked at the clip.\n{}",
    "Do not use this: I made it up.\n{}",
]  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
def test_prose_that_retracts_rejects_or_cannot_verify_takes_the_answer_back(around: str) -> None:
    assert _decision(around.replace("{}", ACCEPT)) == "unclear"
    assert not _is_complete(around.replace("{}", DONE))
    assert not _plans_complete(around.replace("{}", DONE))


MARKS = [
    ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"), ("<analysis>", "</analysis>"),
    ("<|channel|>analysis<|message|>", "<|end|>"), ("<|channel>thought\n", "<channel|>"),
    ("<thought_process>", "</thought_process>"), ("<reasoning_content>", "</reasoning_content>"),
    ("<reasoning>", "</reasoning>"), ("<scratchpad>", "</scratchpad>"),
    ("<self_reflection>", "</self_reflection>"),
    ("<draft>", "</draft>"), ('<think lang="en">', "</think>"), ("◁think▷", "◁/think▷"),
    ("【思think】", "【/think】"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"), ("< think >", "< / think >"),
]  # fmt: skip


@pytest.mark.parametrize(("opening", "closing"), MARKS)
def test_a_draft_within_any_marks_of_thinking_is_no_answer(opening: str, closing: str) -> None:
    draft = "maybe " + ACCEPT
    assert _decision(opening + draft + closing) == "unclear"
    assert _decision(opening + draft + closing + " I give no answer.") == "unclear"
    assert _decision(opening + draft) == "unclear"
    assert _decision(opening + draft + "</other>" + ACCEPT) == "unclear"
    assert _decision(opening + "I reject this." + closing + "\n" + ACCEPT) == "accept"
    assert not _is_complete(opening + DONE)


def test_the_final_channel_holds_the_answer() -> None:
    analysis = "<|channel|>analysis<|message|>I reject.<|end|><|start|>assistant"
    assert _decision(analysis + "<|channel|>final<|message|>" + ACCEPT + "<|return|>") == "accept"
    assert _decision(analysis + "<|channel|>commentary<|message|>" + ACCEPT) == "unclear"


@pytest.mark.parametrize(
    "reason",
    ["No video was provided; accepting by default.", "There is no way to verify the move.", "I cannot be sure.",
     "I could not see the clip.", "I did not verify the clip.", "It crossed a wall, so this must be rejected.",
     "Verification is not possible.", "Insufficient evidence that it moved.", "I'm not certain.",
     "The frames are black.", "The circle did not move at all.", "I assume that it moved.",
     "It probably moved.", "The frames do not show the move.", "I have no access to the clip.", "Too dark.",
     "Unable to fully confirm the end state.", "It’s unclear.", "The move couldn’t be checked."],
)  # fmt: skip
def test_a_reason_that_admits_ignorance_or_calls_for_a_reject_is_no_accept(reason: str) -> None:
    assert _decision(_with("reason", reason)) == "unclear"
    assert _decision(_with("explanation", reason)) == "unclear"
    assert not _is_complete(_with("reason", reason, DONE))


@pytest.mark.parametrize(
    "instruction",
    ["none", "N/A", "...", "…", "<next action>", "\u200b", "\u2060\ufeff", "-", "[instruction]", "{{action}}",
     "TBD", "None.", "`null`"],
)  # fmt: skip
def test_a_placeholder_is_no_instruction(instruction: str) -> None:
    with pytest.raises(ReplyUnreadable):
        parse_plan(json.dumps({"task_complete": False, "instruction": instruction}), "stop")
    assert parse_route(json.dumps({"action": "split", "sub_actions": [instruction]}), "stop").action == "fallback"


def test_a_plan_that_is_taken_back_is_unreadable() -> None:
    with pytest.raises(ReplyUnreadable, match="takes it back"):
        parse_plan('{"instruction":"Go left."} Wait, no: right.', "stop")


@pytest.mark.parametrize(
    "text",
    [
        '{"action":"regenerate"}{"action":"split","sub_actions":["a"]}',
        '{"action":"split","sub_actions":["a"]}{"action":"split","sub_actions":["b"]}',
        '{"action":"split","sub_actions":["a"]} {"action":"fal',
        '{"action":"regenerate"} Scratch that.',
    ],
)
def test_routes_that_differ_break_off_or_are_taken_back_fall_back(text: str) -> None:
    assert parse_route(text, "stop").action == "fallback"


def test_the_same_route_twice_is_one_route() -> None:
    assert parse_route('{"action":"regenerate"} Again: {"action":"regenerate"}', "stop").action == "regenerate"


@pytest.mark.parametrize(
    "text",
    [
        '{"best_index":"100%"}',
        '{"best_index":"200 %"}',
        '{"best_index":1}{"best_index":2}',
        '{"best_index":2} {"best_in',
    ],
)
def test_no_clear_choice_is_the_first(text: str) -> None:
    choice = parse_choice(text, "stop", 4)
    assert (choice.index, choice.reason[:7]) == (0, "default")


@pytest.mark.parametrize("piece", ["\ufdfa", "cannot a b ", "accept or reject ", ". ", "<a ", "no frame a b c "])
def test_hostile_prose_around_an_answer_is_read_in_bounded_time(piece: str) -> None:
    prose = piece * (295_000 // len(piece))
    for text in (ACCEPT + "\n" + prose, prose + "\n" + ACCEPT, _with("reason", "?").replace("?", prose)):
        began = time.process_time()
        assert _decision(text) in ("accept", "unclear")
        assert time.process_time() - began < 3


def test_the_reason_of_a_verdict_is_no_verdict() -> None:
    assert _decision(_with("verdict_reason", "It arrived.")) == "accept"
    assert _decision(_with("verdict_reason", "It cannot be verified.")) == "unclear"


def test_a_partial_accept_keeps_what_is_left_to_do() -> None:
    text = _with(
        "suggestion", "Move the circle on; it could not be seen to stop.", ACCEPT.replace("complete", "partial")
    )
    verdict = parse_verdict(text, "STOP")
    assert (verdict.decision, verdict.progress, verdict.failure) == ("accept", "partial", None)
    assert verdict.suggestion.startswith("Move the circle on")
    assert parse_verdict(_with("suggestion", "N/A", text), "STOP").suggestion == ""


def test_a_reject_needs_no_second_reading() -> None:
    text = '{"verdict":"reject","progress":"n/a","reason":"It was not executed."}\nThis is wrong.'
    assert parse_verdict(text, "STOP").decision == "reject"
