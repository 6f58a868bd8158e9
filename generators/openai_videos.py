"""Renders on any server with `POST /v1/videos`: vLLM-Omni, SGLang, adapters of LightX2V, another Cliploop.

What is rendered elsewhere is taken up by its id: a restart polls it, and never submits it again. What comes back:
- frames of the canvas' size are used as they are; those that only gained a pixel for even sides lose it again;
- of another size but the canvas' shape they are handed on as they are: the editor scales them to the canvas and
  records `rendered_size`;
- of another shape they are refused, naming the options that correct it: a stretched frame would be the start of
  every later clip;
- at another rate the frames nearest in time are taken, so that motion keeps its speed; frame 0 stays frame 0;
- as many as the video holds, also where that is not what was asked: the clip records how many.
Whether a server keeps the start picture as frame 0 is measured clip by clip; `chainable = false` says that it
does not (Sora 2 re-imagines it).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from cliploop.vendor_faults import place
from generators.openai_videos_options import OpenAIVideosOptions
from generators.openai_videos_server import VideoServer
from generators.remote import Watch
from generators.remote_clip import Wanted, clip_frames, duration, rule
from generators.remote_window import require_shape, window
from media.frames import FrameReader
from media.pictures import Frame, encode_png
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from orchestrator.frame_counts import clip_seconds, snap
from orchestrator.ports import Frames
from orchestrator.records import Capabilities, Shot, Size


@dataclass(frozen=True)
class OpenAIVideos:
    """Implements orchestrator.ports.Generator. Holds no connection between two renders."""

    options: OpenAIVideosOptions
    reader: FrameReader | None

    @property
    def capabilities(self) -> Capabilities:
        """As configured: such servers do not say what they can do."""
        given = self.options
        frames = (given.frame_step, given.frame_offset, given.min_frames, given.max_frames)
        if given.durations:
            frames = rule([round(seconds * given.fps) for seconds in given.durations])
        sides = [side for size in given.frame_sizes for side in (size.width, size.height)]
        return Capabilities(
            name=f"openai_videos ({given.model or place(given.base_url)})",
            size_multiple=1 if sides else given.size_multiple,
            min_side=given.min_side,
            max_side=max(sides, default=given.max_side),
            max_pixels=max((size.width * size.height for size in given.frame_sizes), default=given.max_pixels),
            frame_step=frames[0],
            frame_offset=frames[1] % frames[0],
            min_frames=frames[2],
            max_frames=frames[3],
            fps=given.fps,
            prompt_chars=given.prompt_chars,
            chainable=given.chainable,
            seeded=given.dialect != "openai",
            remote=True,
            usd_per_video_second=given.usd_per_video_second,
        )

    def check(self) -> None:
        """Whether the client is there, and a key where one is needed. Raises BackendMisconfigured."""
        VideoServer(self.options).close()

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """(T, H, W, 3) uint8 RGB, see the module. A cancelled job cancels the remote render and waits for that.

        Raises BackendFailed, BackendUnavailable, BackendMisconfigured, JobCancelled.
        """
        watch = Watch(progress, cancelled)
        start = self._start(shot)
        with closing(VideoServer(self.options)) as server:
            video_id = resume
            if video_id is None:
                watch.stop_if_cancelled()
                video_id = server.submit(self._fields(shot), self._picture(start, shot))
                checkpoint(video_id)
            try:
                watch.stop_if_cancelled()
                data = server.awaited(video_id, watch)
            except JobCancelled:
                server.abandon(video_id)
                raise
        frames = clip_frames(data, self._wanted(shot, start))
        watch.tell(1.0)
        return frames

    def _start(self, shot: Shot) -> Frame:
        if self.reader is None:
            raise BackendMisconfigured("this generator was built without artifacts: it cannot render")
        start = self.reader.picture(shot.start_frame)
        if start.shape[:2] != (shot.canvas.height, shot.canvas.width):
            raise BackendFailed(
                f"the start frame is {start.shape[1]}x{start.shape[0]}, the canvas is {shot.canvas}"
            )
        return start

    def _picture(self, start: Frame, shot: Shot) -> bytes:
        sizes = self.options.frame_sizes
        if not sizes:
            return encode_png(start)
        return encode_png(window(shot.canvas, sizes, self.options.aspect).picture(start, self.options.fill))

    def _fields(self, shot: Shot) -> dict[str, Any]:
        """What is sent beside the picture; numbers that OpenAI's own API lacks go into `extra_body`."""
        given = self.options
        sizes, count = given.frame_sizes, snap(shot.num_frames, self.capabilities)
        size = window(shot.canvas, sizes, given.aspect).frame_size if sizes else shot.canvas
        fields: dict[str, Any] = {"prompt": shot.prompt, "size": str(size)}
        if given.model:
            fields["model"] = given.model
        if given.durations:
            fields["seconds"] = str(duration(given.durations, shot, self.capabilities))
        elif given.dialect != "diffusion":
            fields["seconds"] = f"{clip_seconds(count, shot.fps):.6f}".rstrip("0").rstrip(".")
        if given.dialect == "diffusion":
            fields["extra_body"] = {
                "num_frames": count,
                "fps": round(shot.fps) if float(shot.fps).is_integer() else shot.fps,
                "seed": shot.seed,
                "num_inference_steps": shot.denoising_steps,
                "guidance_scale": shot.guidance,
            }
        elif given.dialect == "cliploop":
            fields["extra_body"] = {"seed": shot.seed, "strategy": "pass@1"}
        return fields

    def _wanted(self, shot: Shot, start: Frame) -> Wanted:
        usd = shot.seconds * self.options.usd_per_video_second
        sizes = self.options.frame_sizes
        count = max(shot.num_frames, snap(shot.num_frames, self.capabilities))
        if not sizes:
            return Wanted(shot.fps, count, lambda frame: _on_canvas(frame, shot.canvas), usd)
        lies = window(shot.canvas, sizes, self.options.aspect)

        def fit(frame: Frame) -> Frame:
            _require_shape(frame, lies.frame_size, "sizes")
            return lies.canvas_frame(frame, start)

        return Wanted(shot.fps, count, fit, usd)


def _on_canvas(frame: Frame, canvas: Size) -> Frame:
    """As the module's head says. Raises BackendMisconfigured for a frame of another shape."""
    height, width = frame.shape[:2]
    if (width, height) == (canvas.width + canvas.width % 2, canvas.height + canvas.height % 2):
        return np.ascontiguousarray(frame[: canvas.height, : canvas.width])
    if abs(width * canvas.height - height * canvas.width) > max(canvas.width, canvas.height):
        _require_shape(frame, canvas, "size_multiple, max_side, max_pixels or sizes", tolerance=0.0)
    return frame


def _require_shape(frame: Frame, wanted: Size, options: str, **tolerance: float) -> None:
    rendered = Size(width=frame.shape[1], height=frame.shape[0])
    try:
        require_shape(rendered, wanted, **tolerance)
    except BackendFailed as failure:
        raise BackendMisconfigured(f"{failure}: set {options} to what the server renders") from failure


def build(options: OpenAIVideosOptions, reader: FrameReader | None) -> OpenAIVideos:
    """Nothing is asked of the server yet."""
    return OpenAIVideos(options, reader)


def figures(options: OpenAIVideosOptions) -> dict[str, Any]:
    """The options say all that is known of a server."""
    return options.model_dump(mode="json", exclude=set(options.OPERATIONAL))
