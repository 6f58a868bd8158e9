"""Pictures and video for the loop: place, store, cut out a frame, check, deliver (port `Editor`)."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from media import encode
from media.canvas import deliverable_size, fit_frame, place
from media.checks import examine
from media.ffmpeg import EncodingFailed
from media.frames import FrameReader
from media.measures import psnr, ssim
from media.pictures import Frames, encode_png
from media.probe import probe
from media.timing import timeline
from orchestrator.errors import BackendFailed, CliploopError
from orchestrator.ports import Artifacts
from orchestrator.records import ArtifactKey, Canvas, Check, Clip, Footage, Shot, Size, Task, Video

MEZZANINE_SUFFIX = ".mp4"


class VideoEditor:
    """Edits over stored artifacts. `scratch` is where encoders write; None: the system's temporary folder."""

    def __init__(self, artifacts: Artifacts, reader: FrameReader, *, scratch: Path | None = None) -> None:
        self._artifacts = artifacts
        self._reader = reader
        self._scratch = scratch

    def place(self, task: Task, canvas: Canvas) -> ArtifactKey:
        """The task's picture on the canvas, as PNG."""
        with Image.open(io.BytesIO(self._artifacts.read(task.picture)), formats=["PNG"]) as picture:
            return self._artifacts.put(encode_png(place(picture, canvas)), ".png")

    def store(self, frames: Any, shot: Shot) -> Clip:
        """Write what a backend returned: lossless, on the canvas; measure frame 0 against the start frame.

        `frames`: (T, H, W, 3) uint8 RGB, T ≥ 2; another H × W is stretched to the canvas and recorded.
        Raises BackendFailed for anything else, EncodingFailed, JobWaiting(disk).
        """
        checked = _checked(frames)
        rendered = Size(width=checked.shape[2], height=checked.shape[1])
        checked = _on_canvas(checked, shot.canvas)
        data = encode.mezzanine(checked, shot.canvas, shot.fps, scratch=self._scratch)
        written = probe(data, decode=False)
        if (written.num_frames, written.size) != (len(checked), shot.canvas):
            raise EncodingFailed(
                f"the encoder wrote {written.num_frames} frames of {written.size},"
                f" not {len(checked)} of {shot.canvas}: run the job again"
            )
        start = self._reader.picture(shot.start_frame)
        mezzanine = self._artifacts.put(data, MEZZANINE_SUFFIX)
        clip = Clip(
            mezzanine=mezzanine,
            last_frame=self._artifacts.put(encode_png(checked[-1]), ".png"),
            num_frames=len(checked),
            fps=shot.fps,
            size=shot.canvas,
            rendered_size=rendered,
            frames_digest=hashlib.sha256(checked.data).hexdigest(),
            first_frame_psnr=round(psnr(checked[0], start), 4),
            first_frame_ssim=round(ssim(checked[0], start), 6),
        )
        self._reader.keep(mezzanine, checked, copy=True)  # a backend may use its buffer again
        return clip

    def frame(self, footage: Footage, index: int) -> ArtifactKey:
        """Frame `index` as PNG, bit for bit; negative counts from the end. Raises CliploopError out of range."""
        return self._artifacts.put(encode_png(self._reader.frame(footage, index)), ".png")

    def check(self, candidate: Footage, clip: Clip, first_picture: ArtifactKey, *, psnr_min: float) -> Check:
        """Quick checks: rejects `no_motion` and `first_frame`, notes, and drift against the first picture."""
        new_frames = candidate.segments[-1].num_frames if candidate.segments else 0
        return examine(
            self._reader.iterate(candidate),
            candidate.num_frames - new_frames,
            clip,
            self._reader.picture(first_picture),
            psnr_min=psnr_min,
        )

    def deliver(self, footage: Footage, canvas: Canvas, size: Size, *, long_side_max: int) -> Video:
        """Encode the answer once, at the picture's own size, and make sure of what was written.

        Every frame of the footage, each for its own 1 / fps. Raises CliploopError if there is nothing to show,
        EncodingFailed, JobWaiting(disk).
        """
        if not footage.num_frames:
            raise CliploopError("there is no video to deliver: no frame of any attempt was kept")
        times = timeline(footage)
        shown, notes = deliverable_size(size, long_side_max)
        framing = _back_to_size(canvas, size, shown)
        frames = self._reader.iterate(footage)
        data = encode.deliverable(frames, canvas.size, times, framing, scratch=self._scratch)
        return Video(
            artifact=self._artifacts.put(data, ".mp4"),
            num_frames=times.num_frames,
            seconds=float(times.seconds),
            size=shown,
            notes=notes,
        )


def _checked(frames: Any) -> Frames:
    """The frames as one block of the right kind. Raises BackendFailed."""
    try:
        block: Any = np.asarray(cast("Any", frames)) if isinstance(frames, list | tuple) else frames
    except ValueError as error:
        raise BackendFailed("the backend returned frames of different sizes") from error
    if not isinstance(block, np.ndarray):
        raise BackendFailed(f"the backend returned {type(cast('Any', frames)).__name__}, not an array of frames")
    block = cast("npt.NDArray[Any]", block)
    kind = f"{block.dtype} {'×'.join(map(str, block.shape))}"
    if block.dtype != np.uint8 or block.ndim != 4 or block.shape[3] != 3:
        raise BackendFailed(f"the backend returned {kind}, not uint8 frames × height × width × 3 (RGB, 0–255)")
    if len(block) < 2 or 0 in block.shape:
        raise BackendFailed(f"the backend returned {kind}: no clip, which has at least two frames of some size")
    return block


def _on_canvas(frames: Frames, canvas: Size) -> Frames:
    """The frames at the canvas's size, one after the other in memory."""
    if frames.shape[1:3] == (canvas.height, canvas.width):
        return np.ascontiguousarray(frames)
    return np.stack([fit_frame(frame, canvas) for frame in frames])


def _back_to_size(canvas: Canvas, size: Size, shown: Size) -> encode.Framing:
    """Undo the canvas: cut the picture's rectangle out, scale it to its own size, make the sides even."""
    content = canvas.content
    capped = max(shown.width, shown.height) < max(size.width, size.height)
    scaled = shown if capped else size
    return encode.Framing(
        crop=(content.left, content.top, content.width, content.height),
        scaled=(scaled.width, scaled.height),
        even=(shown.width, shown.height),
    )
