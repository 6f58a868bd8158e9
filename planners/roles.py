"""Any vision-language model in every role: asks with the prompts, reads strictly, and says what it cost.

It knows roles and records; how pictures and clips travel is the client's business, and what is sent again is the
loop's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from orchestrator.errors import ReplyBlocked, ReplyUnreadable
from orchestrator.ports import check
from orchestrator.records import (
    Answer,
    Assessment,
    Attempt,
    Choice,
    Footage,
    Plan,
    Record,
    Route,
    Task,
    Verdict,
    View,
)
from planners.prompting import Prompts, load
from planners.questions import Clip, Part, Picture, Question, Reply, Role, VlmClient
from planners.replies import parse_assessment, parse_choice, parse_plan, parse_route, parse_verdict
from planners.schemas import SCHEMAS, choice_schema
from planners.vlm_options import VlmOptions

NOTHING = "(nothing)"
DEFAULTED = "default: "  # how the readers begin a reason where a stated default stands in
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class VlmModel:
    """Implements the ports Planner, Verifier, Router, Assessor and Selector over any client.

    `ask_seconds` is how long the client waits for one answer by itself: who watches it must wait longer.
    """

    client: VlmClient
    prompts: Prompts
    ask_seconds: float = 0.0

    def accepts(self, task: Task) -> None:
        """It reads any picture."""

    def check(self) -> None:
        """Whether the client lacks something. Raises BackendMisconfigured."""
        check(self.client)

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        """The next action only. Raises ReplyUnreadable, ReplyBlocked, and what the client raises."""
        return self._ask(
            "planner",
            parse_plan,
            view,
            facts={**_place(view), "prompt_chars": str(view.prompt_chars)},
            written={"task": task.prompt, "history": _history(view)},
            shown=_pictures(view, "current_frame"),
        )

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        """The verdict on the whole candidate. Raises as `plan` does; what is unreadable is `unclear`."""
        return self._ask(
            "verifier",
            parse_verdict,
            view,
            facts={
                **_place(view),
                "num_frames": str(candidate.num_frames),
                "last_frame_number": str(candidate.num_frames - 1),
                "seconds": f"{candidate.seconds:.2f}",
            },
            written={
                "task": task.prompt,
                "instruction": plan.instruction,
                "target_state": plan.target_state or NOTHING,
                "told": prompt,
                "notes": "\n".join(f"- {note}" for note in notes) or NOTHING,
            },
            shown={**_pictures(view, "start_frame"), "clip": (Clip(candidate),)},
        )

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        """Raises as `plan` does, ReplyUnreadable where the stated default would have to stand in."""
        return self._ask(
            "router",
            parse_route,
            view,
            facts={
                **_place(view),
                "steps_left": str(max(0, view.max_steps - view.step)),
                "prompt_chars": str(view.prompt_chars),
            },
            written={
                "task": task.prompt,
                "instruction": plan.instruction,
                "target_state": plan.target_state or NOTHING,
                "attempts": "\n".join(map(_finding, attempts)) or NOTHING,
            },
            shown=_pictures(view, "current_frame"),
        )

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        """Raises as `route` does."""
        return self._ask(
            "assessor",
            parse_assessment,
            view,
            facts={},
            written={"task": task.prompt, "history": _history(view)},
            shown=_pictures(view, "last_frame"),
        )

    def select(self, task: Task, plan: Plan, candidates: Sequence[Footage], view: View) -> Answer[Choice]:
        """Raises as `route` does."""
        count = len(candidates)
        shown: list[Part] = []
        for number, candidate in enumerate(candidates):
            shown += [f"Clip {number}:", Clip(candidate)]
        return self._ask(
            "selector",
            lambda text, finish: parse_choice(text, finish, count),
            view,
            facts={"last_index": str(count - 1)},
            written={"task": task.prompt, "instruction": plan.instruction},
            shown={**_pictures(view, "start_frame"), "candidates": tuple(shown)},
            schema=choice_schema(count),
        )

    def _ask(
        self,
        role: Role,
        read: Callable[[str | None, str | None], R],
        view: View,
        *,
        facts: Mapping[str, str],
        written: Mapping[str, str],
        shown: Mapping[str, Sequence[Part]],
        schema: Mapping[str, Any] | None = None,
    ) -> Answer[R]:
        form = schema or SCHEMAS[role]
        told = {**facts, "schema": json.dumps(form)}
        filled = self.prompts.filled(role, facts=told, written=written, shown=shown)
        reply = self.client.ask(
            Question(role, filled.system, filled.parts, form, temperature=view.temperature, seed=view.seed)
        )
        return Answer(
            value=_read(reply, read), spend=reply.spend, raw=reply.text or "", model=reply.model, sent=reply.sent
        )


def _read(reply: Reply, read: Callable[[str | None, str | None], R]) -> R:
    """The value of a reply. What cannot be read keeps its cost, and is asked again before a default stands in."""
    raw = reply.text or ""
    try:
        value = read(reply.text, reply.finish_reason)
    except ReplyUnreadable as error:
        raise ReplyUnreadable(str(error), raw=raw, spend=reply.spend, sent=reply.sent) from None
    except ReplyBlocked as error:
        raise ReplyBlocked(str(error), raw=raw, spend=reply.spend, sent=reply.sent) from None
    reason: str = getattr(value, "reason", "")
    if isinstance(value, Route | Choice | Assessment) and reason.startswith(DEFAULTED):
        why = reason.removeprefix(DEFAULTED)
        raise ReplyUnreadable(why, raw=raw, spend=reply.spend, sent=reply.sent)
    return value


def _place(view: View) -> dict[str, str]:
    """Where in the job this is; the gate (step 0) is a job of one step."""
    step, steps = (view.step, view.max_steps) if view.step else (1, 1)
    return {"step": str(step), "max_steps": str(steps), "is_last": "Yes" if step >= steps else "No"}


def _pictures(view: View, name: str) -> dict[str, tuple[Part, ...]]:
    """The task's first picture always stands beside the current frame: a piece that covers its goal hides it."""
    return {"first_picture": (Picture(view.first_picture),), name: (Picture(view.current_frame),)}


def _history(view: View) -> str:
    lines = [f"step {line.step} ({line.progress}): {line.instruction}" for line in view.history]
    return "\n".join(lines) or NOTHING


def _finding(attempt: Attempt) -> str:
    """An attempt in a line or two: what the model was told, and what came of it."""
    head = f"clip {attempt.index}, told: {attempt.shot.prompt}"
    verdict = attempt.verdict
    if verdict is None:
        return f"{head}\n  no clip: {attempt.failed or 'not judged'}"
    found = f"{verdict.decision}, {verdict.failure or 'no failure named'}, progress {verdict.progress}"
    right = f"right for {verdict.good_fraction:.0%} of it"
    words = "; ".join(part for part in (verdict.reason, verdict.suggestion) if part)
    return f"{head}\n  {found}, {right}: {words}"


def model(client: VlmClient, options: VlmOptions) -> VlmModel:
    """A client in every role, with the prompts that its options name. Raises BackendMisconfigured."""
    prompts = load(options.prompts, few_shot=options.few_shot)
    return VlmModel(client, prompts, ask_seconds=options.timeout_seconds)


def figures(options: VlmOptions) -> dict[str, Any]:
    """What decides a model's behaviour beside its options: prompts and schemas. Raises BackendMisconfigured."""
    prompts = load(options.prompts, few_shot=options.few_shot)
    return {"prompts": prompts.digests(), "schemas": {role: dict(form) for role, form in SCHEMAS.items()}}
