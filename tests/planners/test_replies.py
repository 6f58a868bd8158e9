"""What models send back: every collected reply as its file expects, and the kinds behind them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReplyBlocked, ReplyUnreadable
from planners.lenient_json import MAX_LENGTH
from planners.replies import parse_assessment, parse_choice, parse_plan, parse_route, parse_verdict

REPLIES = Path(__file__).parents[1] / "data" / "replies" / "replies.jsonl"
CASES = [json.loads(line) for line in REPLIES.read_text(encoding="utf-8").splitlines()]
ACCEPT = (
    '{"verdict":"accept","action_executed":true,"progress":"complete","confidence":"high","reason":"It arrived."}'
)
REJECT = '{"verdict":"reject","action_executed":false,"good_fraction":0.3,"failure":"wrong_direction"}'
PLAN = '{"task_complete":false,"instruction":"Slide tile 5 left.","target_state":"Tile 5 is left."}'


def _outcome(case: dict[str, Any]) -> dict[str, Any]:
    text, finish = case["text"], case["finish_reason"]
    try:
        match case["role"]:
            case "verifier":
                verdict = parse_verdict(text, finish)
                return {"verdict": verdict.decision, **verdict.model_dump()}
            case "planner":
                return parse_plan(text, finish).model_dump()
            case "router":
                route = parse_route(text, finish)
                return {"action": route.action, "sub_actions": len(route.sub_actions)}
            case "selector":
                return {"best_index": parse_choice(text, finish, 4).index}
            case _:
                return parse_assessment(text, finish).model_dump()
    except ReplyBlocked:
        return {"error": "blocked"}
    except ReplyUnreadable:
        return {"error": "unreadable"}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_collected_reply_is_read_as_its_file_expects(case: dict[str, Any]) -> None:
    outcome = _outcome(case)
    assert {key: outcome.get(key) for key in case["expect"]} == case["expect"]


def test_no_case_is_missing() -> None:
    assert len(CASES) >= 52


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + ACCEPT,
        ACCEPT.replace('"', "”"),
        ACCEPT.replace("true", "True"),
        "{verdict: 'accept', progress: 'complete', reason: 'It didn't stop, it arrived.', // sure\n}",
        '{"verdict": "accept", /* all good */ "progress": "complete" # fine\n}',
        "````\n```json\n" + ACCEPT + "\n```\n````",
        "The set {1, 2} and [3] matter.\n" + ACCEPT,
        "<thinking>" + REJECT + "</thinking>" + ACCEPT,
        "a draft " + REJECT + "</think>" + ACCEPT,
        "<think><think>" + REJECT + "</think>" + REJECT + "</think>" + ACCEPT,
        '{"result": ' + ACCEPT + "}",
        '{"Verdict": " Accept ", "progress": "partial", "failure": "none"}',
        '{"verdict":"accept","verdict":"accept","progress":"complete"}',
        '{"verdict":"accept","action_executed":"yes","progress":"complete","confidence":"pretty sure"}',
        '{"verdict":"accept","progress":"complete","reason":"line\nbreak \\ud800 \\u00e9"}',
    ],
)
def test_an_accept_in_an_odd_coat_is_still_an_accept(text: str) -> None:
    verdict = parse_verdict(text, "STOP")
    assert verdict.decision == "accept", verdict.reason
    verdict.model_dump_json().encode("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "<think>" + ACCEPT,
        "<think>hm</think><think>" + ACCEPT,
        ACCEPT[:-1],
        "[" + ACCEPT,
        '{"analysis": ' + ACCEPT + ', "verdict": "rej',
        ACCEPT + '\n{"verdict": "rej',
        '{"verdict": "acc\n' + ACCEPT,
        '{"draft": ' + ACCEPT + ', "done": false}',
        '{"verdict":"accept","verdict":"reject","progress":"complete"}',
        '{"verdict":"accept","Verdict":"reject","progress":"complete"}',
        "[" + REJECT + "," + ACCEPT + "]",
        '{"verdict":"accept","error":"timeout"}',
        '{"error":{"code":500}}' + ACCEPT,
        '{"verdict":"accept","failure":"illegal_move","progress":"complete"}',
        '{"verdict":"accept","failure":"a little blurry","progress":"complete"}',
        '{"verdict":"accept","action_executed":"partly","progress":"complete"}',
        '{"verdict":"accept","action_executed":0,"progress":"complete"}',
        '{"verdict":"accept","progress":"almost"}',
        '{"verdict":"accept","progress":"complete","reason":"The move cannot be verified."}',
        '{"verdict":"accept","progress":"complete","reason":"I could not clearly verify the move."}',
        '{"verdict":"accept","progress":"complete","reason":"this is unverified"}',
        '{"verdict":"accept|reject","progress":"complete"}',
        '{"verdict":["accept"]}',
        '{"verdict":true}',
        '{"verdict":"accept"; "progress":"complete"}',
        '"' + ACCEPT.replace('"', '\\"') + '"',
        "verdict: accept",
        "eval('accept')",
        ACCEPT + "\nWait, the circle crossed a wall. I reject this clip.",
        '{"verdict":"unclear","reason":"too dark"}',
        '{"verdict":"reject","action_executed":true,"progress":"complete"}',
        "null",
        "[]",
        "{}",
        "[" * 200 + ACCEPT + "]" * 200,
    ],
)
def test_what_cannot_be_relied_on_is_unclear(text: str) -> None:
    assert parse_verdict(text, "STOP").decision == "unclear"


@pytest.mark.parametrize("finish", ["STOP", "stop", "end_turn", "FinishReason.STOP", "FINISH_REASON_STOP"])
def test_a_finished_reply_may_accept(finish: str) -> None:
    assert parse_verdict(ACCEPT, finish).decision == "accept"


UNFINISHED = [
    *("MAX_TOKENS", "OTHER", "MALFORMED_FUNCTION_CALL", "FINISH_REASON_UNSPECIFIED", "LANGUAGE"),
    *("length", "tool_calls", "function_call", "max_tokens", "pause_turn", "", "new_reason", None),
]


@pytest.mark.parametrize("finish", UNFINISHED)
def test_an_unfinished_reply_never_passes_in_any_role(finish: str | None) -> None:
    assert parse_verdict(ACCEPT, finish).decision == "unclear"
    assert parse_assessment('{"task_complete":true}', finish).task_complete is False
    assert parse_route('{"action":"regenerate"}', finish).action == "fallback"
    assert parse_choice('{"best_index":2}', finish, 4).index == 0
    with pytest.raises(ReplyUnreadable, match="not finished"):
        parse_plan(PLAN, finish)


@pytest.mark.parametrize(
    "finish",
    ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "content_filter", "refusal"],
)
def test_a_safety_filter_is_blocked_in_every_role_even_with_a_text(finish: str) -> None:
    for text in (None, ACCEPT, PLAN):
        for parse in (parse_verdict, parse_plan, parse_route, parse_assessment):
            with pytest.raises(ReplyBlocked, match=finish):
                parse(text, finish)
        with pytest.raises(ReplyBlocked):
            parse_choice(text, finish, 2)


@pytest.mark.parametrize(
    ("given_fraction", "read"),
    [
        ("0.25", 0.25),
        ('"25 %"', 0.25),
        ("1", 1.0),
        ('"100%"', 1.0),
        ("3e-1", 0.3),
        (".5", 0.5),
        ('"half"', 0.0),
        ('"one third"', 0.0),
        ("Infinity", 0.0),
        ("-Infinity", 0.0),
        ("true", 0.0),
        ("1.01", 0.0),
        ('"130%"', 0.0),
        ("[0.5]", 0.0),
        ("1e999", 0.0),
    ],
)
def test_a_good_fraction_is_a_number_from_0_to_1_or_missing(given_fraction: str, read: float) -> None:
    verdict = parse_verdict(f'{{"verdict":"reject","good_fraction":{given_fraction}}}', "STOP")
    assert verdict.decision == "reject"
    assert verdict.good_fraction == pytest.approx(read)


@pytest.mark.parametrize(
    ("given_confidence", "read"),
    [("0.95", "high"), ("0.6", "medium"), ('"70%"', "medium"), ("0.2", "low"), ('"Very High"', "high"),
     ('"moderate"', "medium"), ('"no idea"', "low"), ("null", "medium"), ("7", "low"), ("NaN", "low")],
)  # fmt: skip
def test_confidence_is_read_from_words_and_numbers(given_confidence: str, read: str) -> None:
    text = f'{{"verdict":"reject","confidence":{given_confidence}}}'
    assert parse_verdict(text, "STOP").confidence == read


def test_a_reject_survives_a_broken_draft_but_not_a_broken_second_thought() -> None:
    assert parse_verdict("{verdict: reject} " + REJECT, "STOP").decision == "reject"
    assert parse_verdict(REJECT + ' {"verdict": "acc', "STOP").decision == "unclear"


def test_a_failure_outside_the_closed_list_is_other() -> None:
    assert parse_verdict('{"verdict":"reject","failure":"Wrong Direction"}', "STOP").failure == "wrong_direction"
    assert parse_verdict('{"verdict":"reject","failure":"teleported"}', "STOP").failure == "other"
    assert parse_verdict('{"verdict":"reject","failure":""}', "STOP").failure is None


@pytest.mark.parametrize(
    "text",
    [
        "[" + PLAN + "," + PLAN.replace("5", "6") + "]",
        PLAN + PLAN.replace("false", "true"),
        PLAN + '{"instruction": "Sli',
        '{"plan": ' + PLAN,
        '{"task_complete":"maybe","instruction":"x"}',
        '{"task_complete":false,"instruction":["a","b"]}',
        '{"task_complete":false,"instruction":"  "}',
        '{"instruction":"a","instruction":"b"}',
        '{"error":"quota","task_complete":true}',
    ],
)
def test_an_ambiguous_plan_is_unreadable(text: str) -> None:
    with pytest.raises(ReplyUnreadable):
        parse_plan(text, "stop")


def test_the_last_of_several_plans_in_prose_counts() -> None:
    plan = parse_plan(PLAN + "\nBetter:\n" + PLAN.replace("5", "6"), "stop")
    assert plan.instruction == "Slide tile 6 left."


def test_a_route_takes_sub_actions_as_sentences_or_objects_and_nothing_else() -> None:
    mixed = parse_route('{"action":"SPLIT","sub_actions":["a",{"instruction":"b"}," "]}', "stop")
    assert (mixed.action, mixed.sub_actions) == ("split", ("a", "b"))
    for bad in ('"a, b"', "[1, 2]", "[[]]", "null"):
        assert parse_route(f'{{"action":"split","sub_actions":{bad}}}', "stop").action == "fallback"


@pytest.mark.parametrize("index", ["-1", "1.5", "true", "null", "NaN", '"first"', "1e9", "[1]", "4"])
def test_a_choice_that_is_no_index_is_the_first_and_says_so(index: str) -> None:
    choice = parse_choice(f'{{"best_index":{index}}}', "stop", 4)
    assert choice.index == 0
    assert choice.reason.startswith("default")


@pytest.mark.parametrize(
    "text",
    [
        '{"task_complete":"perhaps"}',
        '{"task_complete":true}{"task_complete":false}',
        '{"task_complete":false}{"task_complete":true}',
        '{"task_complete":true,"reason":"cannot be verified from these frames"}',
        '{"task_complete":true,"task_complete":false}',
        '{"task_complete":true}{"task_comp',
        "The task is complete.",
    ],
)
def test_a_doubtful_assessment_is_not_complete(text: str) -> None:
    assert parse_assessment(text, "stop").task_complete is False


@pytest.mark.parametrize("piece", ["[", '{"a":[', "{'a", "<think>", '{"\\"', "{/*", "{“a", "\\", "{a:{"])
def test_hostile_replies_end_soon_and_never_accept(piece: str) -> None:
    for length in (MAX_LENGTH, 1_000_000):
        began = time.process_time()
        assert parse_verdict(piece * (length // len(piece)), "STOP").decision == "unclear"
        assert time.process_time() - began < 2


def test_long_prose_before_the_answer_is_read_up_to_the_stated_length() -> None:
    assert parse_verdict("It moves on. " * 20_000 + ACCEPT, "STOP").decision == "accept"
    verdict = parse_verdict("It moves on. " * 80_000 + ACCEPT, "STOP")
    assert (verdict.decision, verdict.reason) == ("unclear", f"the reply has more than {MAX_LENGTH} characters")


@given(st.integers(0, len(ACCEPT) - 1))
@settings(max_examples=60, deadline=None)
def test_an_accept_cut_anywhere_never_accepts(length: int) -> None:
    assert parse_verdict(ACCEPT[:length], "STOP").decision == "unclear"


@given(st.text(alphabet="{}[]\"':,\\ acept<think>/truefalsn\n“”\ud800", max_size=80))
@settings(max_examples=200, deadline=None)
def test_no_text_makes_a_parser_crash(text: str) -> None:
    assert parse_verdict(text, "STOP").decision == "unclear"
    assert parse_assessment(text, "STOP").task_complete is False
    assert parse_choice(text, "STOP", 3).index == 0
    with pytest.raises(ReplyUnreadable):
        parse_plan(text, "STOP")


@pytest.mark.parametrize("finish", ["unfinished.stop", "not_stop", "stop.later", "error: stop", "STOP.length"])
def test_an_end_that_only_looks_like_one_accepts_nothing(finish: str) -> None:
    whole = (
        '{"reason": "As planned.", "verdict": "accept", "action_executed": true, "progress": "complete",'
        ' "confidence": "high", "failure": "none", "suggestion": "", "good_fraction": 1.0}'
    )
    assert parse_verdict(whole, "FinishReason.STOP").decision == "accept"
    assert parse_verdict(whole, finish).decision == "unclear"
