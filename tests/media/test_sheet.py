"""The contact sheet tells the whole story, the same way every time, whatever the texts hold."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from media.lettering import Font
from media.pictures import Frame, to_array
from media.sheet import contact_sheet
from media.sheet_parts import (
    AMBER,
    BAR_PX,
    BLUE,
    GREEN,
    GREY,
    RED,
    WIDTH_PX,
    Colour,
    Pen,
    Shown,
    Strip,
    draw_strip,
)
from media.sheet_steps import picks
from orchestrator.records import Check, Choice, Drift, Outcome, Route, Step, Trajectory, Video
from tests.media.made import Studio, dot_moves, drawing, trajectory

HOSTILE = (
    "Move 😀😀 العربية \u202eevil\u202c \x00\x07 中文 naïve → ≤ Ωμέγα "
    + "W" * 10_000
    + "\n\n"
    + "e\u0301\u0323" * 50
)


@pytest.fixture(scope="module")
def studio() -> Studio:
    return Studio()


@pytest.fixture(scope="module")
def story(studio: Studio) -> Trajectory:
    return trajectory(studio, dot_moves(drawing(), 24, side=12, travel=80))


def drawn(story: Trajectory, studio: Studio) -> Frame:
    with Image.open(io.BytesIO(contact_sheet(story, studio.reader))) as sheet:
        return to_array(sheet)


def has(sheet: Frame, colour: Colour) -> bool:
    return bool((sheet == np.array(colour, np.uint8)).all(axis=2).any())


def test_equal_trajectories_give_equal_bytes_and_measured_times_do_not_show(
    studio: Studio, story: Trajectory
) -> None:
    sheet = contact_sheet(story, studio.reader)
    slower = story.spend.model_copy(update={"wall_seconds": 999.0, "gpu_seconds": 77.0})
    steps = tuple(step.model_copy(update={"spend": slower}) for step in story.steps)
    studio.forget()
    assert contact_sheet(story.model_copy(update={"spend": slower, "steps": steps}), studio.reader) == sheet


def test_what_was_decided_changes_the_sheet(studio: Studio, story: Trajectory) -> None:
    sheet = contact_sheet(story, studio.reader)
    for change in (
        {"outcome": Outcome(kind="completed", reason="Done.")},
        {"spend": story.spend.model_copy(update={"vlm_calls": 8})},
        {"steps": story.steps[:1]},
        {"task": story.task.model_copy(update={"prompt": "Something else."})},
    ):
        assert contact_sheet(story.model_copy(update=change), studio.reader) != sheet


def test_what_quick_checks_noticed_is_shown_and_alarms_only_where_the_clip_is_not_accepted(
    studio: Studio, story: Trajectory
) -> None:
    step = story.steps[0]
    calm = Drift(saturation=1, brightness=1, sharpness=1, colour_levels=0)
    check = Check(notes=("frame 9 flashes",), drift=calm)
    done = Outcome(kind="completed", reason="Done.")

    def sheet(accepted: bool, check: Check | None) -> Frame:
        attempt = step.attempts[1 if accepted else 0].model_copy(update={"check": check})
        steps = (step.model_copy(update={"attempts": (attempt,)}),)
        return drawn(story.model_copy(update={"outcome": done, "steps": steps}), studio)

    assert has(sheet(False, check), AMBER)
    assert not has(sheet(True, check), AMBER)
    assert sheet(True, check).shape[0] > sheet(True, None).shape[0]


def test_a_single_shot_is_told_as_one(studio: Studio, story: Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    step = story.steps[0]
    shot = step.attempts[0].model_copy(update={"verdict": None})
    step = step.model_copy(update={"attempts": (shot,), "status": "unverified"})
    policy = story.policy.model_copy(update={"strategy": "pass@1"})
    done = Outcome(kind="completed", reason="It is there.", best_effort=True)
    told = story.model_copy(update={"policy": policy, "steps": (step,), "gate": None, "outcome": done})
    words = texts(told, studio, monkeypatch)
    assert {"Single shot", "NOT JUDGED", "single shot  ·  not judged"} <= set(words)
    said = " ".join(words)
    assert "the clip was not judged" in said
    for wrong in ("Step 1", "rejected", "accepted", "verifier", "planner", "NOT VERIFIED"):
        assert wrong not in said


def test_several_shots_are_told_with_the_chosen_one(
    studio: Studio, story: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = story.steps[0]
    shot = step.attempts[0].model_copy(update={"verdict": None})
    shots = tuple(shot.model_copy(update={"index": number}) for number in (1, 2, 3))
    choice = Choice(index=1, reason="It gets there.")
    chosen = {"attempts": shots, "status": "unverified", "chosen_attempt": 2, "choice": choice}
    policy = story.policy.model_copy(update={"strategy": "pass@3", "selector": "oracle"})
    done = Outcome(kind="completed", reason="It is there.", best_effort=True)
    changed = {"policy": policy, "steps": (step.model_copy(update=chosen),), "gate": None, "outcome": done}
    words = texts(story.model_copy(update=changed), studio, monkeypatch)
    assert words.count("NOT JUDGED") == 3  # the step and two of its shots
    assert words.count("CHOSEN") == 1
    assert {"3 shots", "3 shots  ·  not judged", "It gets there."} <= set(words)
    said = " ".join(words)
    assert "no clip was judged: one of them was chosen" in said
    assert "selector oracle" in said
    assert "used in the video" in said
    assert "Step 1" not in said


def texts(story: Trajectory, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that the sheet draws."""
    said: list[str] = []
    draw = Pen.text

    def heard(pen: Pen, xy: tuple[int, int], text: str, face: Font, colour: Colour = (0, 0, 0)) -> int:
        said.append(text)
        return draw(pen, xy, text, face, colour)

    with monkeypatch.context() as patched:
        patched.setattr(Pen, "text", heard)
        contact_sheet(story, studio.reader)
    return said


def test_the_router_s_word_stands_between_the_attempts(studio: Studio, story: Trajectory) -> None:
    step = story.steps[0].model_copy(update={"route": Route(action="regenerate", reason="It slipped.")})
    once = story.policy.model_copy(update={"max_attempts": 1})
    between, after = (
        drawn(story.model_copy(update={"steps": (step,), "policy": policy}), studio)
        for policy in (once, story.policy)
    )
    assert between.shape == after.shape
    assert not np.array_equal(between, after)


def test_verdicts_have_their_colours(studio: Studio, story: Trajectory) -> None:
    sheet = drawn(story, studio)
    assert all(has(sheet, colour) for colour in (GREEN, RED, GREY, AMBER, BLUE))
    accepted_only = story.steps[0].model_copy(update={"attempts": story.steps[0].attempts[1:]})
    done = Outcome(kind="completed", reason="Done.")
    sheet = drawn(story.model_copy(update={"steps": (accepted_only,), "outcome": done}), studio)
    assert has(sheet, GREEN)
    assert not has(sheet, RED)
    assert not has(sheet, AMBER)


def test_the_frames_shown_are_the_candidate_s(studio: Studio, story: Trajectory) -> None:
    """The red square of the drawing is seen at rest and on its way."""
    sheet = drawn(story, studio)
    assert has(sheet, (200, 40, 40))


@pytest.mark.parametrize("keep", ["no steps", "no outcome", "an empty step", "a gate"])
def test_unfinished_and_unusual_jobs_are_drawn(studio: Studio, story: Trajectory, keep: str) -> None:
    first = story.steps[0]
    changes: dict[str, dict[str, object]] = {
        "no steps": {"steps": (), "outcome": None, "assessment": None},
        "no outcome": {"outcome": None},
        "an empty step": {"steps": (first.model_copy(update={"attempts": (), "status": "running"}),)},
        "a gate": {"gate": first, "steps": ()},
    }
    sheet = drawn(story.model_copy(update=changes[keep]), studio)
    assert sheet.shape[1] == WIDTH_PX
    assert 300 < sheet.shape[0] < 4000


def test_hostile_texts_neither_break_nor_blow_up_the_sheet(studio: Studio, story: Trajectory) -> None:
    plain = drawn(story, studio)

    def spoilt(step: Step) -> Step:
        attempts = tuple(
            attempt.model_copy(
                update={
                    "failed": HOSTILE if attempt.failed else None,
                    "verdict": attempt.verdict
                    and attempt.verdict.model_copy(update={"reason": HOSTILE, "suggestion": HOSTILE}),
                }
            )
            for attempt in step.attempts
        )
        plan = step.plan.model_copy(update={"instruction": HOSTILE, "target_state": HOSTILE})
        return step.model_copy(update={"attempts": attempts, "plan": plan})

    hostile = story.model_copy(
        update={
            "id": HOSTILE,
            "task": story.task.model_copy(update={"prompt": HOSTILE}),
            "steps": tuple(spoilt(step) for step in story.steps),
            "outcome": Outcome(kind="exhausted", reason=HOSTILE),
        }
    )
    assert drawn(hostile, studio).shape[0] < 2 * plain.shape[0]


def test_a_long_job_stays_a_reasonable_file(studio: Studio, story: Trajectory) -> None:
    for num_steps in (12, 30, 40, 80):
        steps = tuple(story.steps[i % 2].model_copy(update={"index": i + 1}) for i in range(num_steps))
        sheet = contact_sheet(story.model_copy(update={"steps": steps}), studio.reader)
        assert len(sheet) < 4_000_000
        with Image.open(io.BytesIO(sheet)) as image:
            assert image.height < 3 * image.width  # as a sheet of paper, not as a till roll
            assert image.height < 12_000
            assert image.width % WIDTH_PX == 0


def test_the_video_s_figures_are_shown_when_there_is_one(studio: Studio, story: Trajectory) -> None:
    assert story.outcome is not None
    video = Video(artifact="v.mp4", num_frames=40, seconds=2.5, size=story.task.size)
    with_video = story.model_copy(update={"outcome": story.outcome.model_copy(update={"video": video})})
    assert contact_sheet(with_video, studio.reader) != contact_sheet(story, studio.reader)


@settings(max_examples=200, deadline=None)
@given(num_frames=st.integers(1, 300), cut=st.integers(0, 300), wanted=st.integers(1, 8))
def test_picks_hold_the_first_the_last_and_the_cut(num_frames: int, cut: int, wanted: int) -> None:
    numbers = picks(num_frames, min(cut, num_frames), wanted)
    assert numbers == sorted(set(numbers))
    assert 1 <= len(numbers) <= wanted
    assert numbers[-1] == num_frames - 1
    if wanted > 1:
        assert numbers[0] == 0
    if wanted > 2 and 1 < cut < num_frames:
        assert cut - 1 in numbers


def test_a_rejected_clip_s_kept_part_is_green_and_the_rest_is_hatched_red() -> None:
    frame = Image.new("RGB", (8, 8))
    strip = Strip((Shown(0, frame),), num_frames=40, cut=10, kept_until=19, colour=RED, fps=16.0)
    assert [strip.edge(number) for number in (0, 10, 19, 20)] == [BLUE, GREEN, GREEN, RED]
    pen = Pen(Image.new("RGB", (460, 60), (255, 255, 255)))
    draw_strip(pen, (0, 0), strip, 400)
    bar = to_array(pen.image)[15 : 15 + BAR_PX, :400]
    middle = [tuple(int(level) for level in bar[4, x]) for x in (50, 150)]
    assert middle == [BLUE, GREEN]
    rest = bar[:, 210:390]
    assert not (rest == np.array(GREEN, np.uint8)).all(axis=2).any()
    share = (rest == np.array(RED, np.uint8)).all(axis=2).mean()
    assert 0.1 < share < 0.6
    accepted = Strip((Shown(0, frame),), num_frames=40, cut=0, kept_until=None, colour=GREEN, fps=16.0)
    assert accepted.edge(39) == GREEN
