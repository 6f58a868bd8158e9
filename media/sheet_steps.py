"""A step on the contact sheet: its plan on the left; on the right its attempts, their frames and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from media.frames import FrameReader
from media.lettering import font, sentence, shorten, wrap
from media.sheet_parts import (
    AMBER,
    BLUE,
    FAINT,
    GAP_PX,
    GREEN,
    GREY,
    INK,
    MARGIN_PX,
    PADDING_PX,
    RED,
    SOFT,
    WIDTH_PX,
    Block,
    Colour,
    Pen,
    Shown,
    Strip,
    count,
    draw_strip,
    strip_height,
    thumbnail,
    tint,
)
from orchestrator.records import Attempt, Footage, Route, Step

_PLAN_PX = 330  # the left column: what was planned
_LABEL_PX = 78

_STATUS: dict[str, tuple[str, Colour]] = {
    "accepted": ("ACCEPTED", GREEN),
    "best_effort": ("BEST EFFORT", AMBER),
    "empty": ("NOTHING KEPT", GREY),
    "split": ("SPLIT INTO SMALLER STEPS", BLUE),
    "unverified": ("NOT JUDGED", GREY),
    "running": ("UNDER WAY", BLUE),
}

_ROUTES = {
    "regenerate": "try again afresh",
    "split": "split the action",
    "fallback": "go on with the best attempt",
}


@dataclass(frozen=True)
class Look:
    """How large frames are shown, how many of an attempt, and how many lines a text may have."""

    frames: int
    frame_px: int
    text_lines: int
    plan_lines: int

    @property
    def cell(self) -> int:
        space = WIDTH_PX - 2 * MARGIN_PX - 2 * PADDING_PX - _PLAN_PX
        return (space - (self.frames - 1) * GAP_PX) // self.frames


ROOMY = Look(frames=6, frame_px=176, text_lines=3, plan_lines=9)
DENSE = Look(frames=6, frame_px=84, text_lines=1, plan_lines=3)


def step_card(step: Step, is_shot: bool, max_attempts: int, reader: FrameReader, look: Look) -> Block:
    """The card of one step, or of a single shot of the task.

    The router's word stands where it was spoken, after `max_attempts` attempts.
    """
    plan = _plan_block(step, is_shot, look)
    rows = [_attempt_block(step, position, reader, look) for position in range(len(step.attempts))]
    if step.route is not None:
        rows.insert(max_attempts, _route_block(step.route, look))
    if not rows:
        rows.append(_note_block("No clip was rendered in this step."))
    inner = max(plan.height, sum(row.height for row in rows) + 22 * (len(rows) - 1))
    height = inner + 2 * PADDING_PX

    def draw(pen: Pen, top: int) -> None:
        pen.card((MARGIN_PX, top, WIDTH_PX - MARGIN_PX, top + height))
        plan.draw(pen, top + PADDING_PX)
        y = top + PADDING_PX
        for place, row in enumerate(rows):
            if place:
                pen.block((_rows_left(), y - 12, WIDTH_PX - MARGIN_PX - PADDING_PX, y - 11), tint(FAINT, 0.3))
            row.draw(pen, y)
            y += row.height + 22

    return Block(height, draw)


def _rows_left() -> int:
    return MARGIN_PX + PADDING_PX + _PLAN_PX


def _plan_block(step: Step, is_shot: bool, look: Look) -> Block:
    room = _PLAN_PX - 36
    instruction = wrap(step.plan.instruction, font(20, "Semibold"), room, look.plan_lines)
    target = wrap(step.plan.target_state, font(17), room, (1 + look.plan_lines) // 2)
    height = 40 + 34 + 26 * len(instruction) + (34 + 22 * len(target) if target else 0)

    def draw(pen: Pen, top: int) -> None:
        x = MARGIN_PX + PADDING_PX
        pen.text((x, top - 6), _title(step) if is_shot else f"Step {step.index}", font(32, "Bold"), INK)
        pen.chip((x, top + 38), *_STATUS[step.status], solid=False)
        y = pen.lines((x, top + 78), instruction, font(20, "Semibold"), 26)
        if target:
            pen.text((x, y + 8), "should then show", font(15), FAINT)
            pen.lines((x, y + 28), target, font(17), 22, SOFT)

    return Block(height + 20, draw)


def _title(step: Step) -> str:
    return "Single shot" if len(step.attempts) < 2 else f"{len(step.attempts)} shots"


def _attempt_block(step: Step, position: int, reader: FrameReader, look: Look) -> Block:
    attempt = step.attempts[position]
    room = WIDTH_PX - MARGIN_PX - PADDING_PX - _rows_left()
    label, colour = ("CHOSEN", BLUE) if _is_choice(step, attempt) else _verdict_chip(attempt)
    reason = wrap(sentence(_reason(attempt)), font(18), room, look.text_lines)
    remarks = [
        (name, name_colour, lines)
        for name, name_colour, text in (*_remarks(attempt), *_choice(step, attempt))
        if (lines := wrap(sentence(text), font(18), room - _LABEL_PX, look.text_lines))
    ]
    strip = _strip(step, position, reader, look, colour)
    num_lines = len(reason) + sum(len(lines) for _, _, lines in remarks)
    height = 36 + 24 * num_lines + (10 if num_lines else 8) + (strip_height(strip) if strip else 0)

    def draw(pen: Pen, top: int) -> None:
        x = _rows_left()
        end = pen.text((x, top), f"Attempt {attempt.index}", font(20, "Bold"), INK)
        end = pen.chip((end + 12, top), label, colour)
        facts = shorten(_facts(step, position), font(16), x + room - end - 14)
        pen.text((end + 14, top + 4), facts, font(16), FAINT)
        y = pen.lines((x, top + 36), reason, font(18), 24)
        for name, name_colour, lines in remarks:
            pen.text((x, y), name, font(18, "Semibold"), name_colour)
            y = pen.lines((x + _LABEL_PX, y), lines, font(18), 24, SOFT)
        if strip:
            draw_strip(pen, (x, y + 8), strip, look.cell)

    return Block(height, draw)


def _verdict_chip(attempt: Attempt) -> tuple[str, Colour]:
    verdict = attempt.verdict
    if attempt.failed is not None or (attempt.clip is None and verdict is None):
        return ("FAILED" if attempt.failed is not None else "UNDER WAY"), GREY
    if verdict is None:
        return "NOT JUDGED", GREY
    kind = f": {verdict.failure.replace('_', ' ')}" if verdict.failure else ""
    if verdict.decision == "accept":
        return ("ACCEPTED" if verdict.progress == "complete" else f"ACCEPTED, {verdict.progress}"), GREEN
    if verdict.decision == "reject":
        return f"REJECTED{kind}", RED
    return f"UNCLEAR{kind}", AMBER


def _reason(attempt: Attempt) -> str:
    if attempt.failed is not None:
        return attempt.failed
    if attempt.verdict is not None:
        return attempt.verdict.reason
    return attempt.check.reason if attempt.check else ""


def _remarks(attempt: Attempt) -> Iterator[tuple[str, Colour, str]]:
    """What the quick checks noticed, and the suggestion that the next attempt is given."""
    if attempt.check is not None and attempt.check.notes:
        accepted = attempt.verdict is not None and attempt.verdict.decision == "accept"
        yield "noticed", FAINT if accepted else AMBER, "; ".join(attempt.check.notes)
    if attempt.verdict is not None and attempt.verdict.suggestion:
        yield "advice", BLUE, attempt.verdict.suggestion


def _is_choice(step: Step, attempt: Attempt) -> bool:
    """Whether it was chosen among several that nobody judged."""
    return step.status == "unverified" and len(step.attempts) > 1 and step.chosen_attempt == attempt.index


def _choice(step: Step, attempt: Attempt) -> Iterator[tuple[str, Colour, str]]:
    if step.choice is not None and step.choice.reason and _is_choice(step, attempt):
        yield "chosen", BLUE, step.choice.reason


def _facts(step: Step, position: int) -> str:
    attempt = step.attempts[position]
    parts: list[str] = []
    if attempt.kept is not None:
        kept = attempt.kept.footage.num_frames
        parts.append(f"keeps {count(kept, 'frame')} of attempt {attempt.index - 1}")
    if attempt.clip is not None:
        seconds = (attempt.clip.num_frames - 1) / attempt.clip.fps
        parts.append(f"{count(attempt.clip.num_frames, 'frame')} in {seconds:.2f} s")
    following = _kept_by_next(step, position)
    if following is not None and attempt.candidate is not None:
        share = f"{following.num_frames} of {attempt.candidate.num_frames} frames"
        parts.append(f"{share} kept for attempt {attempt.index + 1}")
    parts.append(f"seed {attempt.shot.seed}")
    if (step.chosen_attempt == attempt.index and step.status == "best_effort") or _is_choice(step, attempt):
        parts.insert(0, "used in the video")
    return "  ·  ".join(parts)


def _route_block(route: Route, look: Look) -> Block:
    said = "; ".join(part for part in (route.reason, route.suggestion, " / ".join(route.sub_actions)) if part)
    room = WIDTH_PX - MARGIN_PX - PADDING_PX - _rows_left()
    lines = wrap(sentence(said), font(18), room, look.text_lines)

    def draw(pen: Pen, top: int) -> None:
        end = pen.text((_rows_left(), top), "Router", font(20, "Bold"), INK)
        pen.chip((end + 12, top), _ROUTES[route.action], BLUE, solid=False)
        pen.lines((_rows_left(), top + 36), lines, font(18), 24)

    return Block(36 + 24 * len(lines), draw)


def _note_block(note: str) -> Block:
    return Block(30, lambda pen, top: (pen.text((_rows_left(), top + 2), note, font(18), SOFT), None)[1])


# --- frames -------------------------------------------------------------------------------------------------


def _strip(step: Step, position: int, reader: FrameReader, look: Look, colour: Colour) -> Strip | None:
    attempt = step.attempts[position]
    footage = attempt.candidate
    if footage is None or not footage.num_frames:
        return None
    cut = min(attempt.kept.footage.num_frames if attempt.kept else 0, footage.num_frames)
    shown: list[Shown] = []
    for number in picks(footage.num_frames, cut, look.frames):
        shown.append(Shown(number, thumbnail(reader.frame(footage, number), look.cell, look.frame_px)))
    fps = footage.segments[0].fps
    return Strip(tuple(shown), footage.num_frames, cut, _kept_until(step, position, footage), colour, fps)


def _kept_by_next(step: Step, position: int) -> Footage | None:
    following = step.attempts[position + 1].kept if position + 1 < len(step.attempts) else None
    return following.footage if following is not None else None


def _kept_until(step: Step, position: int, footage: Footage) -> int | None:
    """The last frame that something else goes on from: None is all of them, −1 is none."""
    attempt = step.attempts[position]
    if attempt.verdict is not None and attempt.verdict.decision == "accept":
        return None
    if (following := _kept_by_next(step, position)) is not None:
        return following.num_frames - 1
    if step.chosen_attempt == attempt.index and step.status in ("best_effort", "unverified"):
        return step.footage.num_frames - 1
    return -1


def picks(num_frames: int, cut: int, wanted: int) -> list[int]:
    """Up to `wanted` frame numbers, evenly spread, with the first, the last, and the one that was cut at."""
    wanted = min(wanted, num_frames)
    if wanted == 1:
        return [num_frames - 1]
    numbers = [round(place * (num_frames - 1) / (wanted - 1)) for place in range(wanted)]
    if wanted > 2 and 1 < cut < num_frames and cut - 1 not in numbers:
        nearest = min(range(1, wanted - 1), key=lambda place: abs(numbers[place] - (cut - 1)))
        numbers[nearest] = cut - 1
    return sorted(set(numbers))
