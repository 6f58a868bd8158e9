"""What the loop itself costs on one kind of clip, measured in this process: prints one JSON object.

Real parts on a real disk: editor, artifacts, journal. The generator's frames are made beforehand.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from bench.content import Frames, flat, natural
from bench.memory import PeakMemory
from media import encode, ffmpeg
from media.editor import VideoEditor
from media.frames import FrameReader
from media.pictures import encode_png
from orchestrator.footage import first_frames, join, whole
from orchestrator.records import (
    Box,
    Canvas,
    Capabilities,
    Clip,
    Footage,
    Policy,
    Shot,
    Size,
    Spend,
    Task,
    Verdict,
)
from storage.artifacts import LocalArtifacts
from storage.database import Database
from storage.jobs import create_job
from storage.journal import SqlJournal

CONTENT: dict[str, Callable[[int, int, int], Frames]] = {"flat": flat, "natural": natural}
CLIPS_STITCHED = 3
JOURNAL_ENTRIES = 200
FPS = 16.0


def milliseconds(effect: Callable[[], object]) -> float:
    """How long the effect takes."""
    started = time.perf_counter()
    effect()
    return (time.perf_counter() - started) * 1000.0


@dataclass(frozen=True)
class Bench:
    """A folder with artifacts, and the clip that is measured with."""

    folder: Path
    width: int
    height: int
    num_frames: int
    content: str

    @property
    def canvas(self) -> Canvas:
        box = Box(left=0, top=0, width=self.width, height=self.height)
        return Canvas(size=Size(width=self.width, height=self.height), content=box, fit="identity")

    @property
    def artifacts(self) -> LocalArtifacts:
        return LocalArtifacts(self.folder / "artifacts")

    def editor(self) -> VideoEditor:
        """A new one: nothing that was read before is at hand."""
        return VideoEditor(self.artifacts, FrameReader(self.artifacts))

    def frames(self, seed: int = 0) -> Frames:
        return CONTENT[self.content](self.width, self.height, self.num_frames, seed=seed)  # type: ignore[call-arg]

    def shot(self, start_frame: str) -> Shot:
        return Shot(
            prompt="measure",
            start_frame=start_frame,
            seconds=(self.num_frames - 1) / FPS,
            num_frames=self.num_frames,
            fps=FPS,
            seed=0,
            canvas=self.canvas.size,
            denoising_steps=1,
            guidance=1.0,
        )

    def store(self, frames: Frames, editor: VideoEditor | None = None) -> Clip:
        start = self.artifacts.put(encode_png(frames[0]), ".png")
        return (editor or self.editor()).store(frames, self.shot(start))


def attempt_costs(bench: Bench, runs: int) -> dict[str, float]:
    """Milliseconds per attempt, as the loop spends them: mezzanine, checks, hand-off. Medians.

    `hand_off_cold` has nothing at hand: what a process pays that takes up a job another one left.
    """
    frames = bench.frames()
    start = bench.artifacts.put(encode_png(frames[0]), ".png")
    shot, clip = bench.shot(start), bench.store(frames)
    k = bench.num_frames * 2 // 3
    kept = first_frames(whole(clip), k + 1)
    samples: dict[str, list[float]] = {}

    def sample(name: str, effect: Callable[[], object]) -> None:
        samples.setdefault(name, []).append(milliseconds(effect))

    for _ in range(runs):
        editor, resumed = bench.editor(), bench.editor()
        sample("mezzanine", lambda editor=editor: editor.store(frames, shot))
        sample("check", lambda editor=editor: editor.check(whole(clip), clip, start, psnr_min=30.0))
        sample("hand_off", lambda editor=editor: editor.frame(kept, k))
        sample("hand_off_cold", lambda resumed=resumed: resumed.frame(kept, k))
    return {name: statistics.median(values) for name, values in samples.items()}


def stitched(bench: Bench, editor: VideoEditor) -> Footage:
    """Three different clips, joined as the loop joins them."""
    footage = Footage()
    for seed in range(CLIPS_STITCHED):
        footage = join(footage, whole(bench.store(bench.frames(seed), editor)))
    return footage


def deliver_costs(bench: Bench, runs: int) -> dict[str, float]:
    """Milliseconds to stitch and deliver three clips, by the process that stored them and by another. Medians."""
    editor = bench.editor()
    footage = stitched(bench, editor)

    def deliver(by: VideoEditor) -> float:
        return milliseconds(lambda: by.deliver(footage, bench.canvas, bench.canvas.size, long_side_max=1920))

    return {
        "deliver": statistics.median(deliver(editor) for _ in range(runs)),
        "deliver_cold": statistics.median(deliver(bench.editor()) for _ in range(runs)),
        "delivered_frames": float(footage.num_frames),
    }


def one_go_costs(bench: Bench, runs: int) -> dict[str, float]:
    """Milliseconds to encode the same frames, already in memory, as one deliverable. Median."""
    frames = [frame for index in range(CLIPS_STITCHED) for frame in bench.frames(index)[min(index, 1) :]]

    options = ["-vf", encode._TO_BT709, *encode._FOR_EYES, *encode._REPEATABLE]  # the deliverable's own

    def encode_all() -> bytes:
        return ffmpeg.encode(frames, bench.width, bench.height, Fraction(FPS), options)

    return {"one_go": statistics.median(milliseconds(encode_all) for _ in range(runs))}


def journal_costs(bench: Bench) -> dict[str, float]:
    """Milliseconds per journal entry as the loop writes them. Median and 95th percentile."""
    picture = bench.artifacts.put(encode_png(bench.frames()[0]), ".png")
    task = Task(prompt="measure", picture=picture, size=bench.canvas.size)
    policy = Policy(
        generator="measured", planner="measured", verifier="measured", router="measured", assessor="measured",
        capabilities=Capabilities(name="measured"), canvas=bench.canvas, encoder="measured",
    )  # fmt: skip
    verdict = Verdict(decision="accept", progress="complete", reason="the disc reached row 3", good_fraction=1)
    inputs = {"task": task, "shot": bench.shot(picture), "spend": Spend(video_seconds=5.0)}
    with Database(bench.folder / "journal.sqlite") as database:
        create_job(database, "measured", task, policy)
        journal = SqlJournal(database, "measured")

        def record(number: int) -> float:
            key = f"step/1/attempt/{number}/verdict"
            return milliseconds(lambda: journal.once(key, inputs, Verdict, lambda: verdict))

        samples = sorted(record(number) for number in range(JOURNAL_ENTRIES))
    return {"journal": statistics.median(samples), "journal_p95": samples[int(0.95 * len(samples))]}


@contextlib.contextmanager
def opened(width: int, height: int, num_frames: int, content: str) -> Generator[Bench]:
    """A bench in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="cliploop-bench-") as folder:
        yield Bench(Path(folder), width, height, num_frames, content)


def main() -> None:
    """Measure one kind of clip and print the figures."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["loop", "one_go"])
    parser.add_argument("content", choices=sorted(CONTENT))
    for name in ("width", "height", "num_frames", "runs"):
        parser.add_argument(name, type=int)
    given = parser.parse_args()
    with opened(given.width, given.height, given.num_frames, given.content) as bench:
        if given.part == "one_go":
            figures = one_go_costs(bench, given.runs)
        else:
            figures = journal_costs(bench)  # before memory is watched: that costs a tenth of a core
            with PeakMemory() as memory:
                figures |= attempt_costs(bench, given.runs) | deliver_costs(bench, given.runs)
            figures["memory_mib"] = memory.mib
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
