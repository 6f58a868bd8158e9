"""The five roles over any client: what each question holds, and what its reply becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.errors import ReplyBlocked, ReplyUnreadable
from orchestrator.records import Attempt, Shot, Size, Spend, Verdict
from planners.prompting import load
from planners.questions import Clip, Picture, Question, Reply, Role
from planners.roles import VlmModel
from planners.schemas import SCHEMAS, choice_schema
from tests.planners.vlm_desk import VlmDesk, moving
from tests.planners.vlm_server import ACCEPT, USUAL

COST = Spend(vlm_calls=1, vlm_tokens=1200, usd=0.01)
SENT = ("9 frames",)


@dataclass
class Scripted:
    """Implements planners.questions.VlmClient: answers as told, and keeps what it was asked."""

    replies: list[Any]
    finish: str | None = "stop"
    asked: list[Question] = field(default_factory=list[Question])

    def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        said = self.replies.pop(0)
        return Reply(said if isinstance(said, str) else json.dumps(said), self.finish, COST, "m-1", SENT)


def desk_and(*replies: Any, finish: str | None = "stop") -> tuple[VlmDesk, Scripted, VlmModel]:
    client = Scripted(list(replies), finish)
    return VlmDesk(num_frames=17), client, VlmModel(client, load())


def text_of(question: Question) -> str:
    return "\n".join(part if isinstance(part, str) else f"[{type(part).__name__}]" for part in question.parts)


def attempt(index: int, reason: str) -> Attempt:
    shot = Shot(
        prompt=f"told {index}",
        start_frame="a.png",
        seconds=1,
        num_frames=17,
        fps=16,
        seed=index,
        canvas=Size(width=16, height=16),
        denoising_steps=1,
        guidance=1,
    )
    verdict = Verdict(decision="reject", failure="wrong_target", reason=reason, good_fraction=0.4)
    return Attempt(index=index, shot=shot, verdict=verdict)


def test_the_planner_sees_task_history_and_both_pictures_and_answers_a_plan() -> None:
    desk, client, model = desk_and(USUAL["planner"])
    answer = model.plan(desk.task, desk.view(step=2, history=desk.done(), prompt_chars=321, temperature=0.4))
    (question,) = client.asked
    text = text_of(question)
    assert "step 1 (partial): The disc goes halfway." in text
    assert "This is step 2 of 3. Is it the last step? No." in text
    assert "At most 321 characters" in question.system
    assert [part.key for part in question.parts if isinstance(part, Picture)] == [desk.first, desk.current]
    assert (question.schema, question.seed, question.temperature) == (SCHEMAS["planner"], 7, 0.4)
    assert answer.value.instruction == "The red disc glides right."
    assert (answer.spend, answer.model, answer.sent) == (COST, "m-1", SENT)
    assert json.loads(answer.raw) == USUAL["planner"]


@pytest.mark.parametrize(("step", "last"), [(1, "No"), (3, "Yes"), (0, "Yes")])
def test_the_last_step_is_named_to_planner_and_verifier_and_the_gate_is_one(step: int, last: str) -> None:
    desk, client, model = desk_and(USUAL["planner"], ACCEPT)
    model.plan(desk.task, desk.view(step=step))
    desk.verdict(model, step=step)
    assert [f"last step? {last}." in text_of(question) for question in client.asked] == [True, True]
    assert ("This is step 1 of 1" in text_of(client.asked[1])) == (step == 0)


def test_the_verifier_sees_the_plan_what_was_told_the_notes_and_the_whole_candidate() -> None:
    desk, client, model = desk_and(USUAL["verifier"])
    answer = desk.verdict(model)
    text = text_of(client.asked[0])
    for told in (desk.plan.instruction, desk.plan.target_state, "told", "- a flash at frame 3", desk.task.prompt):
        assert told in text
    assert "It has 17 frames, 0 to 16, in 1.06 s" in text
    assert [part for part in client.asked[0].parts if isinstance(part, Clip)] == [Clip(desk.candidate)]
    assert (answer.value.decision, answer.value.failure) == ("reject", "wrong_direction")
    assert answer.value.source == "verifier"


def test_the_router_sees_every_finding_and_how_many_steps_are_left() -> None:
    desk, client, model = desk_and(USUAL["router"])
    attempts = [attempt(1, "too far"), attempt(2, "not far enough"), Attempt(index=3, shot=attempt(3, "").shot)]
    answer = model.route(desk.task, desk.plan, attempts, desk.view(step=1))
    text = text_of(client.asked[0])
    assert "clip 1, told: told 1" in text
    assert "reject, wrong_target, progress none, right for 40% of it: not far enough" in text
    assert "no clip: not judged" in text
    assert "2 steps are left" in client.asked[0].system
    assert answer.value.action == "fallback"


def test_the_selector_sees_the_clips_by_number_and_no_other_number_is_taken() -> None:
    desk, client, model = desk_and(USUAL["selector"], {"best_index": 2, "reason": ""})
    clips = (desk.candidate, desk.footage(moving(9)))
    assert model.select(desk.task, desk.plan, clips, desk.view()).value.index == 1
    text = text_of(client.asked[0])
    assert text.index("Clip 0:\n[Clip]") < text.index("Clip 1:\n[Clip]")
    assert client.asked[0].schema == choice_schema(2)
    with pytest.raises(ReplyUnreadable, match="no index from 0 to 1"):
        model.select(desk.task, desk.plan, clips, desk.view())


def test_the_assessor_sees_first_picture_last_frame_and_history() -> None:
    desk, client, model = desk_and({"reason": "It rests on the flag.", "task_complete": True})
    assert model.assess(desk.task, desk.view(history=desk.done("complete"))).value.task_complete
    question = client.asked[0]
    assert [part.key for part in question.parts if isinstance(part, Picture)] == [desk.first, desk.current]
    assert "step 1 (complete)" in text_of(question)


def call(role: Role, model: VlmModel, desk: VlmDesk) -> Any:
    """One ask of a role."""
    view = desk.view()
    match role:
        case "planner":
            return model.plan(desk.task, view)
        case "verifier":
            return desk.verdict(model)
        case "router":
            return model.route(desk.task, desk.plan, [], view)
        case "assessor":
            return model.assess(desk.task, view)
        case "selector":
            return model.select(desk.task, desk.plan, (desk.candidate, desk.candidate), view)


@pytest.mark.parametrize("role", ["planner", "router", "assessor", "selector"])
@pytest.mark.parametrize(
    ("reply", "finish"), [("", "stop"), ("{", "stop"), ("no JSON", "stop"), ("USUAL", "length")]
)
def test_what_cannot_be_read_is_asked_again_and_keeps_what_it_cost(role: Role, reply: str, finish: str) -> None:
    """python-genai#1039, #774; the loop's stated default stands in only after the last ask."""
    said = json.dumps(USUAL[role]) if reply == "USUAL" else reply
    desk, _, model = desk_and(said, finish=finish)
    with pytest.raises(ReplyUnreadable) as unreadable:
        call(role, model, desk)
    assert (unreadable.value.raw, unreadable.value.spend, unreadable.value.sent) == (said, COST, SENT)
    assert not str(unreadable.value).startswith("default")


def test_a_verdict_that_cannot_be_read_is_unclear() -> None:
    desk, _, model = desk_and("{")
    answer = desk.verdict(model)
    assert (answer.value.decision, answer.spend, answer.sent) == ("unclear", COST, SENT)


@pytest.mark.parametrize("role", list(USUAL))
def test_a_blocked_reply_is_blocked_in_every_role(role: Role) -> None:
    desk, _, model = desk_and(ACCEPT, finish="content_filter")
    with pytest.raises(ReplyBlocked) as blocked:
        call(role, model, desk)
    assert (blocked.value.spend, blocked.value.sent) == (COST, SENT)


@pytest.mark.parametrize("role", list(USUAL))
def test_a_fence_around_the_reply_is_tolerated_in_every_role(role: Role) -> None:
    """js-genai#976"""
    desk, _, model = desk_and(f"```json\n{json.dumps(USUAL[role])}\n```")
    call(role, model, desk)


def test_it_reads_any_picture() -> None:
    desk, client, model = desk_and()
    model.accepts(desk.task)
    assert client.asked == []
