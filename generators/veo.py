"""Veo 3.1 through the Gemini API: submitted once, then found by the name of its operation, also after a restart.

The Gemini API takes no seed, so the same shot twice gives two clips, and it cannot stop an operation: a cancelled
job leaves at once, and what was begun is charged. A render that a safety filter withheld, or that is done without
a video, costs nothing and is repeated `filtered_retries` times; then the attempt is lost, never a reject.
Frames lie on the canvas when they leave here: what Veo adds around it is cut off, see `generators.remote_window`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from generators.remote import RenderEmpty, RenderFiltered, Watch
from generators.remote_clip import Wanted, clip_frames, duration
from generators.remote_window import window
from generators.veo_options import FPS, VeoOptions
from generators.veo_server import VeoServer
from media.frames import FrameReader
from media.pictures import Frame, encode_png
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from orchestrator.frame_counts import snap
from orchestrator.ports import Frames
from orchestrator.records import Capabilities, Shot

__all__ = ["Veo", "VeoOptions", "build", "figures"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Veo:
    """Implements orchestrator.ports.Generator. Holds no connection between two renders."""

    options: VeoOptions
    reader: FrameReader | None

    @property
    def capabilities(self) -> Capabilities:
        return self.options.capabilities()

    def check(self) -> None:
        """Whether the client and a key are there. Raises BackendMisconfigured."""
        VeoServer(self.options).close()

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """(T, H, W, 3) uint8 RGB on the canvas; T as the video has them, at the shot's rate.

        Raises BackendFailed, BackendUnavailable, BackendMisconfigured, JobCancelled.
        """
        watch = Watch(progress, cancelled)
        watch.stop_if_cancelled()
        start = self._start(shot)
        seconds = duration(self.options.durations, shot, self.capabilities)
        with closing(VeoServer(self.options)) as server:
            data = self._rendered(server, shot, start, seconds, resume, checkpoint, watch)
        lies = window(shot.canvas, self.options.frame_sizes, self.options.aspect)
        usd = seconds * self.options.price()[0]
        count = max(shot.num_frames, snap(shot.num_frames, self.capabilities))
        wanted = Wanted(shot.fps, count, lambda frame: lies.canvas_frame(frame, start), usd)
        frames = clip_frames(data, wanted)
        watch.tell(1.0)
        return frames

    def _rendered(
        self,
        server: VeoServer,
        shot: Shot,
        start: Frame,
        seconds: int,
        resume: str | None,
        checkpoint: Callable[[str], None],
        watch: Watch,
    ) -> bytes:
        """The video's file. A restart counts the repetitions anew."""
        name = resume
        left = self.options.filtered_retries
        while True:
            if name is None:
                name = server.submit(shot.prompt, self._picture(start, shot), self._wide(shot), seconds)
                checkpoint(name)
            try:
                return server.awaited(name, watch)
            except JobCancelled:
                _log.warning("%s goes on at Google and is charged: Veo cannot be stopped", name)
                raise
            except (RenderFiltered, RenderEmpty) as nothing:
                if not left:
                    raise
                _log.info("%s; once more, it cost nothing", nothing)
            name, left = None, left - 1
            watch.stop_if_cancelled()
            checkpoint("")  # that operation is over, and another is submitted now

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
        lies = window(shot.canvas, self.options.frame_sizes, self.options.aspect)
        return encode_png(lies.picture(start, self.options.fill))

    def _wide(self, shot: Shot) -> bool:
        size = window(shot.canvas, self.options.frame_sizes, self.options.aspect).frame_size
        return size.width > size.height


def build(options: VeoOptions, reader: FrameReader | None) -> Veo:
    """Nothing is asked of the server yet. Raises BackendMisconfigured for a model without a known price."""
    options.price()
    return Veo(options, reader)


def figures(options: VeoOptions) -> dict[str, Any]:
    """What it renders and costs, and who says so; how long it is waited for changes no frame."""
    usd, source = options.price()
    return {
        "options": options.model_dump(mode="json", exclude=set(options.OPERATIONAL)),
        "frame_sizes": [str(size) for size in options.frame_sizes],
        "fps": FPS,
        "durations": options.durations,
        "usd_per_second": usd,
        "price_source": source,
    }
