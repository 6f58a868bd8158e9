"""Seeds, frame counts and prompt evolution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evolution import evolve
from orchestrator.frame_counts import clip_seconds, frames_for, retry_seconds, snap
from orchestrator.records import Capabilities
from orchestrator.seeds import SEED_MODULUS, attempt_seed, derived_seed

WAN = Capabilities(name="wan", frame_step=4, frame_offset=1, min_frames=5, max_frames=81)


@given(st.integers(0, 2**63))
def test_no_two_attempts_of_a_job_share_a_seed(base: int) -> None:
    seeds = [attempt_seed(base, step, attempt) for step in range(45) for attempt in range(1, 61)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < SEED_MODULUS for seed in seeds)


def test_seeds_depend_on_the_base_seed_and_on_the_name() -> None:
    assert attempt_seed(0, 1, 1) != attempt_seed(1, 1, 1)
    assert derived_seed(0, "a", "b") != derived_seed(0, "ab")
    assert derived_seed(7, "x") == derived_seed(7, "x")


@pytest.mark.parametrize(("wanted", "given_frames"), [(15, 17), (80, 81), (97, 81), (1, 5), (81, 81), (14, 13)])
def test_frame_counts_snap_to_what_the_backend_renders(wanted: int, given_frames: int) -> None:
    assert snap(wanted, WAN) == given_frames


@given(st.integers(1, 8), st.integers(0, 7), st.integers(2, 400), st.integers(-5, 500))
def test_a_snapped_count_is_always_valid(step: int, offset: int, highest: int, wanted: int) -> None:
    backend = Capabilities(
        name="x", frame_step=step, frame_offset=offset, min_frames=2, max_frames=highest + step
    )
    count = snap(wanted, backend)
    assert (count - offset) % step == 0
    assert 2 <= count <= highest + step


def test_six_seconds_at_sixteen_frames_a_second_are_97_frames() -> None:
    free = Capabilities(name="free", frame_step=4, frame_offset=1)
    assert frames_for(6.0, 16.0, free) == 97
    assert clip_seconds(97, 16.0) == 6.0


def test_a_retry_has_what_is_left_and_at_least_a_second() -> None:
    assert retry_seconds(3.0, 17, 16.0) == 2.0
    assert retry_seconds(3.0, 49, 16.0) == 1.0
    assert retry_seconds(3.0, 0, 16.0) == 3.0


def test_an_evolved_prompt_is_the_instruction_and_its_corrections_in_order() -> None:
    evolved = evolve("Move right.", ["Stay on the path.", "Stop in time."], 200)
    assert evolved.prompt == "Move right. Stay on the path. Stop in time."
    assert evolved.dropped == ()


def test_a_repeated_suggestion_is_not_added_twice() -> None:
    repeated = ["Stay on the path.", "Stop in time.", "stay on  the path"]
    assert evolve("Move.", repeated, 200).prompt == "Move. Stop in time. stay on the path"
    assert evolve("Move right.", ["move right"], 200).prompt == "Move right."


def test_the_latest_suggestions_stay_when_the_limit_is_short_and_the_rest_is_said() -> None:
    evolved = evolve("Move.", ["first first first", "second", "third"], 21)
    assert evolved.prompt == "Move. second third"
    assert evolved.dropped == ("first first first",)


@given(st.text(max_size=40), st.lists(st.text(max_size=30), max_size=6), st.integers(0, 80))
def test_an_evolved_prompt_never_exceeds_the_limit_by_what_was_added(
    instruction: str, suggestions: list[str], limit: int
) -> None:
    evolved = evolve(instruction, suggestions, limit)
    assert evolved.prompt.startswith(instruction)
    assert len(evolved.prompt) <= max(limit, len(instruction))
