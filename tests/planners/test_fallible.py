"""Imperfect verifiers err as often as their profile says, and alike for the same ask."""

from __future__ import annotations

import pytest

from orchestrator.errors import BackendMisconfigured
from orchestrator.records import CONFIDENCE_VALUE, Footage, Segment, Verdict
from planners.catalog import PLANNERS, build
from planners.fallible import FALLIBLE, err, load_fallibility

REJECT = Verdict(decision="reject", failure="illegal_move", good_fraction=0.4, confidence="high")
ACCEPT = Verdict(decision="accept", progress="complete", good_fraction=1.0, confidence="high")
COUNT = 1500


def _candidate(number: int) -> Footage:
    return Footage(segments=(Segment(mezzanine=f"{number}.mp4", first=0, stop=17, fps=16),))


def _told(verdict: Verdict, name: str) -> list[Verdict]:
    figures = load_fallibility(name)
    return [err(verdict, figures, number, _candidate(number)) for number in range(COUNT)]


@pytest.mark.parametrize(("name", "recall"), [("gemini-2.5-pro", 0.656), ("qwen3.5", 0.43)])
def test_reject_recall_and_false_rejects_are_those_of_the_profile(name: str, recall: float) -> None:
    rejected = sum(verdict.decision == "reject" for verdict in _told(REJECT, name)) / COUNT
    assert rejected == pytest.approx(recall, abs=0.04)
    false = sum(verdict.decision == "reject" for verdict in _told(ACCEPT, name)) / COUNT
    assert false == pytest.approx(load_fallibility(name).false_reject, abs=0.02)


@pytest.mark.parametrize("name", FALLIBLE)
def test_confidence_tells_right_from_wrong_at_the_stated_auroc(name: str) -> None:
    told = _told(REJECT, name)
    right = [CONFIDENCE_VALUE[v.confidence] for v in told if v.decision == "reject"]
    wrong = [CONFIDENCE_VALUE[v.confidence] for v in told if v.decision == "accept"]
    above = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong) / (len(right) * len(wrong))
    assert above == pytest.approx(0.65, abs=0.04)


def test_the_same_ask_errs_alike_and_another_may_not() -> None:
    figures = load_fallibility("qwen3.5")
    assert err(REJECT, figures, 5, _candidate(1)) == err(REJECT, figures, 5, _candidate(1))
    assert len({err(REJECT, figures, seed, _candidate(1)).decision for seed in range(20)}) == 2


def test_what_it_gets_right_is_told_in_full() -> None:
    right = [verdict for verdict in _told(REJECT, "qwen3.5") if verdict.decision == "reject"]
    assert {(verdict.failure, verdict.good_fraction) for verdict in right} == {("illegal_move", 0.4)}


def test_the_names_are_those_of_the_documents_and_an_unknown_one_lists_them() -> None:
    assert list(PLANNERS)[:3] == ["oracle", "oracle-gemini", "oracle-qwen"]
    assert {"gemini", "openai_compatible"} <= set(PLANNERS)
    with pytest.raises(BackendMisconfigured, match=r"oracel.*did you mean 'oracle'.*oracle-gemini"):
        build("oracel", {}, None)
    with pytest.raises(BackendMisconfigured, match="no option 'profil'; did you mean 'profile'"):
        build("oracle", {"profil": "exact"}, None)
    with pytest.raises(BackendMisconfigured, match="gpt-9"):
        load_fallibility("gpt-9")
    assert PLANNERS.content("oracle", {}) != PLANNERS.content("oracle-qwen", {})
