"""An H.264 round trip, as a deliverable goes through it."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np

from worlds.world import Frames


def round_trip(frames: Frames, *, crf: int = 23) -> Frames:
    """(T, H, W, 3) uint8 RGB to H.264 yuv420p and back; odd sizes gain a replicated pixel meanwhile."""
    height, width = frames.shape[1:3]
    even = np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=16, options={"crf": str(crf), "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = even.shape[2], even.shape[1], "yuv420p"
        for picture in even:
            container.mux(
                stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24"))
            )
        container.mux(stream.encode())
    buffer.seek(0)
    return decoded(buffer)[:, :height, :width]


def decoded(source: io.BytesIO | Path) -> Frames:
    """Every frame of a video, (T, H, W, 3) uint8 RGB."""
    with av.open(source if isinstance(source, io.BytesIO) else str(source), "r") as container:
        frames = [np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) for frame in container.decode(video=0)]
    return np.stack(frames)
