"""Records for tests: a policy, shots, clips, a whole trajectory; small, and valid."""

from __future__ import annotations

from typing import Any

from orchestrator.records import (
    Answer,
    Assessment,
    Attempt,
    Box,
    Canvas,
    Capabilities,
    Check,
    Clip,
    Drift,
    Footage,
    Outcome,
    Plan,
    Policy,
    Prefix,
    Rendered,
    Route,
    Segment,
    Shot,
    Size,
    Spend,
    Step,
    Task,
    Trajectory,
    Verdict,
    Video,
)

KEY = "0" * 64 + ".png"
SIZE = Size(width=64, height=48)
TASK = Task(prompt="Move the circle.", picture=KEY, size=SIZE)
DRIFT = Drift(saturation=1, brightness=1, sharpness=1, colour_levels=0)


def policy(**changes: Any) -> Policy:
    canvas = Canvas(size=SIZE, content=Box(left=0, top=0, width=64, height=48), fit="identity")
    base = Policy(
        generator="simulated",
        planner="oracle",
        verifier="oracle",
        router="oracle",
        assessor="oracle",
        capabilities=Capabilities(name="simulated"),
        canvas=canvas,
        encoder="test",
    )
    return base.model_copy(update=changes)


def shot(prompt: str = "The circle moves right.") -> Shot:
    return Shot(
        prompt=prompt,
        start_frame=KEY,
        seconds=3,
        num_frames=49,
        fps=16,
        seed=1,
        canvas=SIZE,
        denoising_steps=20,
        guidance=5,
    )


def clip() -> Clip:
    return Clip(
        mezzanine=KEY,
        last_frame=KEY,
        num_frames=49,
        fps=16,
        size=SIZE,
        rendered_size=SIZE,
        frames_digest="",
        first_frame_psnr=100,
        first_frame_ssim=1,
    )


def rendered() -> Rendered:
    return Rendered(clip=clip(), spend=Spend(video_seconds=3))


def plan(instruction: str = "The circle moves right.") -> Answer[Plan]:
    return Answer[Plan](value=Plan(instruction=instruction), spend=Spend(vlm_calls=1))


def reject(reason: str = "it went left") -> Verdict:
    return Verdict(
        decision="reject", failure="wrong_direction", reason=reason, suggestion="Go right.", good_fraction=0.25
    )


def prefix() -> Prefix:
    return Prefix(footage=Footage(segments=(Segment(mezzanine=KEY, first=0, stop=12, fps=16),)), last_frame=KEY)


def accept() -> Verdict:
    return Verdict(decision="accept", progress="complete")


def quick_reject() -> Check:
    return Check(failure="no_motion", reason="nothing moved", drift=DRIFT)


def trajectory(**changes: Any) -> Trajectory:
    footage = Footage(segments=(Segment(mezzanine=KEY, first=0, stop=49, fps=16),))
    attempts = (
        Attempt(index=1, shot=shot(), clip=clip(), candidate=footage, verdict=reject(), notes=("a note",)),
        Attempt(
            index=2, shot=shot(), kept=Prefix(footage=footage, last_frame=KEY), clip=clip(), verdict=accept()
        ),
        Attempt(index=3, shot=shot(), failed="out of memory"),
    )
    step = Step(
        index=1,
        plan=Plan(instruction="The circle moves right."),
        attempts=attempts,
        route=Route(action="fallback", reason="atomic"),
        status="best_effort",
        last_frame=KEY,
    )
    video = Video(artifact=KEY, num_frames=49, seconds=3.1, size=SIZE)
    base = Trajectory(
        id="abc",
        task=TASK,
        policy=policy(),
        first_frame=KEY,
        steps=(step,),
        assessment=Assessment(task_complete=True, reason="the circle is on the square"),
        outcome=Outcome(kind="completed", reason="done", best_effort=True, video=video),
        spend=Spend(video_seconds=6, vlm_calls=5),
    )
    return base.model_copy(update=changes)
