"""The checks that do something: a small job, a tiny clip of each generator, one question to each VLM."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cliploop.commands.doctor_backends import Configured
from cliploop.commands.doctor_servers import OPENAIS
from cliploop.commands.findings import Finding, failed
from cliploop.compose import Composition
from cliploop.terminal import EXIT_COMPLETED, Stream, Terminal
from cliploop.vendor_faults import place
from media.canvas import choose
from media.canvas import place as placed
from media.frames import FrameReader
from media.measures import psnr
from media.pictures import Frame, encode_png
from orchestrator.frame_counts import clip_seconds, snap
from orchestrator.ports import Generator
from orchestrator.records import Shot, Size
from planners.catalog import build
from planners.questions import Picture, Question
from planners.replies import parse_assessment
from planners.roles import VlmModel
from planners.schemas import SCHEMAS
from storage.artifacts import MemoryArtifacts

SIDE_PX = 64
SQUARE = (30, 80, 200)


def small_job() -> str:
    """An easy maze, solved with the embedded backends."""
    from cliploop.commands.run import RunRequest, run_command

    with tempfile.TemporaryDirectory() as folder:
        request = RunRequest(
            world="maze",
            difficulty="easy",
            generator="simulated-perfect",
            planner="oracle",
            verifier="oracle",
            max_steps=3,
            output=str(Path(folder) / "job"),
        )
        silent = Terminal(json=False, out=Stream(None), err=Stream(None))
        code = run_command(request, silent)
        video = Path(folder) / "job" / "video.mp4"
        if code != EXIT_COMPLETED or not video.is_file():
            raise RuntimeError(
                f"an easy maze ended with exit code {code}; run cliploop run --world maze to see why"
            )
        return f"an easy maze was solved, the video has {video.stat().st_size // 1000} kB"


def tried(
    found: Collection[Configured], composition: Composition, broken: Collection[str], *, paid: bool
) -> Iterator[Finding]:
    """A clip or a reply of each; none of those that are broken, and no clip that costs money unless `paid`."""
    for each in found:
        is_generator = each.backend.role == "generator"
        name = f"{each.place} {'clip' if is_generator else 'reply'}"
        if each.place in broken:
            yield Finding(name, "skip", "it was not tried: see above")
        elif is_generator:
            yield _clip(name, each, composition, paid)
        elif server_asked(each.options):
            yield _reply(name, each)


def server_asked(options: Any) -> bool:
    """Whether it asks a VLM at all; an oracle does not."""
    return hasattr(options, "base_url")


def _clip(name: str, each: Configured, composition: Composition, paid: bool) -> Finding:
    artifacts = MemoryArtifacts()
    try:
        generator = composition.generator(each.backend.name, FrameReader(artifacts))
        if not paid and _costs(generator, each.options):
            return Finding(name, "skip", "a clip would cost money", "cliploop doctor --deep --paid renders one")
        shot, start = _shot(generator, artifacts)
        began = time.monotonic()
        frames: Any = generator.render(
            shot, resume=None, checkpoint=_ignored, progress=_ignored, cancelled=lambda: False
        )
        took = time.monotonic() - began
    except Exception as error:
        return failed(name, error)
    far, least = psnr(frames[0], start), generator.capabilities.first_frame_psnr_min
    told = (
        f"{len(frames)} frames of {frames.shape[2]}x{frames.shape[1]} in {took:.1f} s, first frame {far:.1f} dB"
    )
    if far < least:
        remedy = f"its clips cannot be chained: cliploop generators check {each.backend.name} says more"
        return Finding(name, "note", f"{told}, below {least:g}", remedy)
    return Finding(name, "ok", told)


def _costs(generator: Generator, options: Any) -> bool:
    address = str(getattr(options, "base_url", "") or "")
    return generator.capabilities.usd_per_video_second > 0 or place(address).startswith(OPENAIS)


def _shot(generator: Generator, artifacts: MemoryArtifacts) -> tuple[Shot, Frame]:
    """The shortest and smallest clip: a square that moves to the right."""
    can = generator.capabilities
    canvas = choose(Size(width=SIDE_PX, height=SIDE_PX), can)
    start = placed(Image.fromarray(_picture()), canvas)
    num_frames = snap(can.min_frames, can)
    shot = Shot(
        prompt="The blue square moves to the right.",
        start_frame=artifacts.put(encode_png(start), ".png"),
        seconds=clip_seconds(num_frames, can.fps),
        num_frames=num_frames,
        fps=can.fps,
        seed=1,
        canvas=canvas.size,
        denoising_steps=2,
        guidance=1.0,
    )
    return shot, start


def _picture() -> Frame:
    picture = np.full((SIDE_PX, SIDE_PX, 3), 200, dtype=np.uint8)
    picture[24:40, 8:24] = SQUARE
    return picture


def _ignored(_value: object) -> None:
    """Nobody watches."""


def _reply(name: str, each: Configured) -> Finding:
    artifacts = MemoryArtifacts()
    picture = artifacts.put(encode_png(_picture()), ".png")
    question = Question(
        "assessor",
        'Answer with a JSON object: {"reason": why in a few words, "task_complete": true or false}.',
        ("Is there a blue square in this picture?", Picture(picture)),
        SCHEMAS["assessor"],
    )
    try:
        model = build(each.backend.type, each.backend.given, FrameReader(artifacts))
        if not isinstance(model, VlmModel):
            return Finding(name, "skip", "it asks no VLM")
        began = time.monotonic()
        reply = model.client.ask(question)
        took = time.monotonic() - began
        found = parse_assessment(reply.text, reply.finish_reason)
    except Exception as error:
        return failed(name, error)
    cost = f"{reply.spend.vlm_tokens} tokens, ${reply.spend.usd:.4f}, {took:.1f} s"
    if found.reason.startswith("default: "):
        return Finding(name, "fail", f"{reply.model}: {found.reason.removeprefix('default: ')} ({cost})")
    if not found.task_complete:
        seen = "it sees no blue square where one is"
        return Finding(name, "note", f"{reply.model}: {seen} ({cost})", "name a model that sees pictures")
    return Finding(name, "ok", f"{reply.model} sees the picture ({cost})")
