"""The contact sheet: one PNG that tells a job's whole story, step by step, to someone who has seen nothing.

Equal trajectories give equal bytes: measured times (wall and GPU seconds) never appear.
"""

from __future__ import annotations

import io
import math

from PIL import Image

from media.frames import FrameReader
from media.lettering import clean, font, sentence, shorten, wrap
from media.sheet_parts import (
    AMBER,
    BLUE,
    FAINT,
    GREEN,
    GREY,
    MARGIN_PX,
    PADDING_PX,
    PAPER,
    SOFT,
    WIDTH_PX,
    Block,
    Colour,
    Pen,
    count,
    legend,
    thumbnail,
)
from media.sheet_steps import DENSE, ROOMY, step_card
from orchestrator.records import ArtifactKey, Attempt, Trajectory

_HEAD_PICTURE_PX = 220
_BETWEEN_PX = 20
_COLUMN_PX = 4000  # from here on the steps stand in several columns: a picture that still fits a screen
_COLUMNS_MAX = 4
_PNG_LEVEL = 4
_MANY_ATTEMPTS = 24  # from here on smaller frames and one line of reason: the file stays readable and small


def contact_sheet(trajectory: Trajectory, reader: FrameReader) -> bytes:
    """PNG of the whole trajectory: prompt, steps, attempts with frames, verdicts and reasons, outcome, spend.

    Raises CliploopError only if the job's own artifacts are damaged.
    """
    steps = [*([trajectory.gate] if trajectory.gate else []), *trajectory.steps]
    look = DENSE if sum(len(step.attempts) for step in steps) > _MANY_ATTEMPTS else ROOMY
    raw, most = trajectory.policy.num_shots > 0, trajectory.policy.max_attempts
    cards = [step_card(step, raw or step is trajectory.gate, most, reader, look) for step in steps]
    explained = [legend()] if any(_is_cut(attempt) for attempt in _attempts(trajectory)) else []
    blocks = [_header(trajectory, reader), *explained, *cards, _footer(trajectory)]
    columns = [_drawn(column) for column in _in_columns(blocks)]
    sheet = Image.new("RGB", (WIDTH_PX * len(columns), max(column.height for column in columns)), PAPER)
    for place, column in enumerate(columns):
        sheet.paste(column, (WIDTH_PX * place, 0))
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG", compress_level=_PNG_LEVEL)
    return buffer.getvalue()


def _is_cut(attempt: Attempt) -> bool:
    """Whether some of its frames are thrown away: then the bar under them needs a word."""
    rejected = attempt.verdict is not None and attempt.verdict.decision == "reject"
    return rejected and attempt.candidate is not None


def _in_columns(blocks: list[Block]) -> list[list[Block]]:
    """In reading order, from column to column, so that none is much higher than `_COLUMN_PX`."""
    total = sum(block.height + _BETWEEN_PX for block in blocks)
    share = total / min(_COLUMNS_MAX, math.ceil(total / _COLUMN_PX))
    columns: list[list[Block]] = [[]]
    filled = 0.0
    for block in blocks:
        taken = block.height + _BETWEEN_PX
        if columns[-1] and filled + taken / 2 > share * len(columns):
            columns.append([])
        columns[-1].append(block)
        filled += taken
    return columns


def _drawn(blocks: list[Block]) -> Image.Image:
    height = 2 * MARGIN_PX + sum(block.height for block in blocks) + _BETWEEN_PX * (len(blocks) - 1)
    pen = Pen(Image.new("RGB", (WIDTH_PX, height), PAPER))
    y = MARGIN_PX
    for block in blocks:
        block.draw(pen, y)
        y += block.height + _BETWEEN_PX
    return pen.image


# --- header and footer --------------------------------------------------------------------------------------


def _header(trajectory: Trajectory, reader: FrameReader) -> Block:
    pictures = [("start", reader.picture(trajectory.first_frame))]
    if (end := _last_frame(trajectory)) is not None:
        pictures.append(("end", reader.picture(end)))
    thumbnails = [(name, thumbnail(pixels, _HEAD_PICTURE_PX, _HEAD_PICTURE_PX)) for name, pixels in pictures]
    inner = WIDTH_PX - 2 * MARGIN_PX - 2 * PADDING_PX
    text_px = inner - len(thumbnails) * (_HEAD_PICTURE_PX + 24) - 8
    prompt = wrap(trajectory.task.prompt, font(26, "Semibold"), text_px, 3)
    said = _outcome_reason(trajectory)
    reason = wrap(said, font(19), text_px, 3)
    text_height = 40 + 34 * len(prompt) + 14 + 42 + 25 * len(reason)
    tallest = max(image.height for _, image in thumbnails)
    height = 2 * PADDING_PX + max(text_height, tallest + 28)

    def draw(pen: Pen, top: int) -> None:
        pen.card((MARGIN_PX, top, WIDTH_PX - MARGIN_PX, top + height))
        x, y = MARGIN_PX + PADDING_PX, top + PADDING_PX
        end = pen.text((x, y), "CLIPLOOP", font(17, "Bold"), BLUE)
        pen.text((end + 14, y), shorten(clean(f"job {trajectory.id}"), font(17), text_px - 140), font(17), FAINT)
        y = pen.lines((x, y + 40), prompt, font(26, "Semibold"), 34) + 14
        right = pen.chip((x, y), *_outcome_chip(trajectory), size=17)
        pen.text((right + 14, y + 3), _tally(trajectory), font(19), SOFT)
        pen.lines((x, y + 42), reason, font(19), 25, SOFT)
        left = WIDTH_PX - MARGIN_PX - PADDING_PX - len(thumbnails) * (_HEAD_PICTURE_PX + 24) + 24
        for name, image in thumbnails:
            pen.picture((left, top + PADDING_PX, 0, 0), image)
            pen.text((left, top + PADDING_PX + image.height + 6), name, font(16), SOFT)
            left += _HEAD_PICTURE_PX + 24

    return Block(height, draw)


def _last_frame(trajectory: Trajectory) -> ArtifactKey | None:
    for step in reversed(trajectory.steps or ((trajectory.gate,) if trajectory.gate else ())):
        if step.footage.num_frames:
            return step.last_frame
    return None


def _outcome_chip(trajectory: Trajectory) -> tuple[str, Colour]:
    if trajectory.outcome is None:
        return "NOT FINISHED", GREY
    if trajectory.outcome.kind == "completed":
        return "COMPLETED", GREEN
    return "EXHAUSTED", AMBER


def _outcome_reason(trajectory: Trajectory) -> str:
    said = [trajectory.outcome.reason if trajectory.outcome else ""]
    if trajectory.assessment and trajectory.assessment.reason not in said[0]:
        said.append(trajectory.assessment.reason)
    many = len(_attempts(trajectory))
    if trajectory.policy.num_shots and many:
        clips = "no clip was judged: one of them was chosen" if many > 1 else "the clip was not judged"
        said.append(f"Nothing was planned, and {clips}.")
    elif trajectory.outcome and trajectory.outcome.best_effort:
        said.append("Some of the footage was never accepted.")
    return " ".join(sentence(part) for part in said if part)


def _tally(trajectory: Trajectory) -> str:
    attempts = _attempts(trajectory)
    rejected = sum(1 for attempt in attempts if attempt.verdict and attempt.verdict.decision == "reject")
    parts = [count(len(trajectory.steps), "step"), count(len(attempts), "attempt"), f"{rejected} rejected"]
    if trajectory.policy.num_shots:
        parts = [f"{len(attempts)} shots" if len(attempts) > 1 else "single shot", "not judged"]
    if trajectory.outcome and trajectory.outcome.video:
        video = trajectory.outcome.video
        parts.append(f"video of {video.seconds:.2f} s, {count(video.num_frames, 'frame')}, {video.size}")
    return "  ·  ".join(parts)


def _attempts(trajectory: Trajectory) -> list[Attempt]:
    steps = [*([trajectory.gate] if trajectory.gate else []), *trajectory.steps]
    return [attempt for step in steps for attempt in step.attempts]


def _footer(trajectory: Trajectory) -> Block:
    spend, policy = trajectory.spend, trajectory.policy
    used = [f"{spend.video_seconds:.2f} s of video rendered", count(spend.vlm_calls, "model call")]
    if spend.vlm_tokens:
        used.append(count(spend.vlm_tokens, "token"))
    if spend.usd:
        used.append(f"${spend.usd:.3f}")
    asked = [f"planner {policy.planner}", f"verifier {policy.verifier}"]
    if policy.num_shots:
        selector = [f"selector {policy.selector}"] if policy.selector is not None else []
        asked = [*selector, f"assessor {policy.assessor}"]
    how = [
        f"strategy {policy.strategy}",
        f"generator {policy.generator}",
        *asked,
        f"seed {policy.seed}",
        f"canvas {policy.canvas.size}",
    ]

    def draw(pen: Pen, top: int) -> None:
        room = WIDTH_PX - 2 * MARGIN_PX
        pen.text(
            (MARGIN_PX, top), shorten("  ·  ".join(used), font(18, "Semibold"), room), font(18, "Semibold"), SOFT
        )
        pen.text((MARGIN_PX, top + 26), shorten(clean("  ·  ".join(how)), font(16), room), font(16), FAINT)

    return Block(50, draw)
