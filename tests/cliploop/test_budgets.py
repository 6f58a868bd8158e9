"""Budgets as text and as a table: what is malformed is refused with an example."""

from __future__ import annotations

import pytest

from cliploop.budgets import parse_budget
from orchestrator.errors import TaskRejected
from orchestrator.records import Budget


def test_a_budget_is_read_from_text_or_a_table() -> None:
    wanted = Budget(video_seconds=60, vlm_calls=40, usd=2.5)
    assert parse_budget("video_seconds=60, vlm_calls=40,usd=2.5", "--budget") == wanted
    assert parse_budget({"video_seconds": 60, "vlm_calls": 40, "usd": 2.5}, "file") == wanted
    assert parse_budget("video_seconds=0", "--budget") == Budget(video_seconds=0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("60", "no KEY=N"),
        ("video_seconds=", "no KEY=N"),
        ("video_seconds=60,", "no KEY=N"),
        ("video_second=60", "did you mean 'video_seconds'"),
        ("video_seconds=sixty", "not a number"),
        ("video_seconds=nan", "no limit"),
        ("usd=inf", "no limit"),
        ("usd=-1", "negative"),
        ("vlm_calls=1.5", "whole"),
        ("usd=1,usd=2", "twice"),
    ],
)
def test_a_malformed_budget_is_refused(text: str, says: str) -> None:
    with pytest.raises(TaskRejected, match=says) as caught:
        parse_budget(text, "--budget")
    assert caught.value.reason == "budget"
    assert str(caught.value).startswith("--budget")
