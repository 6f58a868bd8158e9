"""The oracle's words: a reason tells rejected from accepted, advice names the piece and its move."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from generators.seeing import see
from orchestrator.records import FailureKind
from planners.knowing import Known
from planners.wording import suggestion_of
from tests.planners.desk import Desk, desk
from worlds.advice import move_named, rule_of
from worlds.catalog import WORLDS
from worlds.chain import chain
from worlds.grid import named
from worlds.judging import Judgement

ORDER = list(WORLDS)
REASON_MAX = 120  # characters: two lines of a contact sheet


def _told(task: Desk, index: int) -> tuple[str, ...]:
    """What a sentence about action `index` of the plan must hold: piece, from where, to where."""
    state = task.state
    for action in task.plan[:index]:
        state = task.world.step(state, action)
    action: Any = task.plan[index]
    match task.world.name:
        case "hanoi":
            return f"disc {action.disc} ", f"off peg {'ABC'[action.source]}", f"over peg {'ABC'[action.target]};"
        case "sliding_puzzle":
            here, there = named(state.cell(action.tile)), named((action.row, action.col))
            return f"tile {action.tile} ", f"from {here}", f"fills {there}"
        case "sort_circles":
            colour = task.scene.legend.colours[action.rank - 1]
            return f"{colour} circle", "largest)", f"position {action.slot} of"
        case _ if hasattr(action, "to"):
            return task.scene.legend.box, f"from {named(action.box)}", f"in {named(action.to)}"
        case _:
            return task.scene.legend.player, f"from {named(state.player)}", f"stops in {named(action.cell)}"


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("seed", [3, 4])
def test_advice_about_a_wrong_way_names_the_piece_that_is_due_and_its_move(name: str, seed: int) -> None:
    task = desk(name, seed)
    for kind, frames in task.wrong_ways():
        advice = task.verdict(frames, task.planned(1)).suggestion.lower()
        for part in _told(task, 0):
            assert part.lower() in advice, kind


@pytest.mark.parametrize("name", ORDER)
def test_advice_after_the_first_action_is_about_the_second(name: str) -> None:
    task = desk(name)
    part = task.does(task.plan[:2], 33)[:27]
    verdict = task.verdict(part, task.planned(2))
    assert (verdict.decision, verdict.progress) == ("accept", "partial")
    for told in _told(task, 1):
        assert told.lower() in verdict.suggestion.lower()


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_no_advice_changes_what_the_generator_makes_of_the_prompt(name: str, seed: int) -> None:
    task = desk(name, seed)
    known, actions = Known(task.scene, task.scene.start), task.plan[:2]
    way, instruction = chain(task.world, known.reading, actions), task.planned(2).instruction
    plain = see(task.frame, instruction)
    assert plain is not None
    assert not plain.corrected
    for failure in get_args(FailureKind):
        judged = Judgement(20, 5, 6, failure, 0, 0.0, finished=False)
        advice = suggestion_of(known, way, failure, judged)
        seen = see(task.frame, f"{instruction} {advice}")
        assert seen is not None, failure
        assert (seen.scene.world, seen.scene.start) == (task.world, plain.scene.start), failure
        assert (seen.actions, seen.scene.legend) == (plain.actions, plain.scene.legend), failure
        assert seen.corrected, failure


@pytest.mark.parametrize("name", ORDER)
def test_a_fault_and_its_frame_come_first_in_the_reason(name: str) -> None:
    task = desk(name)
    for kind, frames in task.wrong_ways():
        verdict = task.verdict(frames, task.planned(1))
        fault, _, done = verdict.reason.partition("; ")
        assert " from frame " in fault, kind
        assert done.startswith("before that "), kind
        assert done.endswith("of 1 action done"), kind
        assert len(verdict.reason) <= REASON_MAX, verdict.reason
        if verdict.failure == "wrong_action" and name == "hanoi":
            assert verdict.reason.startswith("disc ")
            assert not verdict.reason.startswith(f"disc {task.plan[0].disc} ")


@pytest.mark.parametrize("name", ORDER)
def test_a_part_that_is_rejected_says_why_and_one_that_is_accepted_says_otherwise(name: str) -> None:
    task = desk(name)
    part = task.does(task.plan[:2], 33)[:22]
    accepted, rejected = task.verdict(part, task.planned(2)), task.verdict(part, task.planned(2), step=3)
    assert accepted.reason.startswith("right so far")
    assert rejected.reason.startswith("unfinished, and the last step must finish")
    assert max(len(accepted.reason), len(rejected.reason)) <= REASON_MAX
    whole = task.verdict(task.does(task.plan[:2], 33), task.planned(2))
    assert whole.reason == "as planned; 2 of 2 actions done"
    still = task.verdict(np.repeat(task.frame[np.newaxis], 12, axis=0), task.planned(1))
    assert still.reason == "nothing moves; 0 of 1 action done"


def test_an_action_of_no_built_in_world_is_not_named() -> None:
    assert (move_named(None, "jump", None), rule_of("jump")) == ("", "")
