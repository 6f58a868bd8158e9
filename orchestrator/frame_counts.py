"""From seconds to a number of frames that a backend can render."""

from __future__ import annotations

import math

from orchestrator.records import Capabilities

MIN_CLIP_SECONDS = 1.0


def snap(wanted: int, capabilities: Capabilities) -> int:
    """The nearest number of frames that the backend renders, the larger one on a tie.

    Valid counts: `(n − frame_offset) % frame_step == 0`, within `min_frames` and `max_frames`.
    """
    step, offset = capabilities.frame_step, capabilities.frame_offset
    lowest = offset + step * math.ceil((capabilities.min_frames - offset) / step)
    highest = offset + step * math.floor((capabilities.max_frames - offset) / step)
    nearest = offset + step * math.floor((wanted - offset) / step + 0.5)
    return max(lowest, min(nearest, highest))


def frames_for(seconds: float, fps: float, capabilities: Capabilities) -> int:
    """Frames of a clip of that length: n frames last (n − 1) / fps seconds from the first to the last."""
    return snap(round(seconds * fps) + 1, capabilities)


def clip_seconds(num_frames: int, fps: float) -> float:
    """(frames − 1) / fps, as Spend counts it."""
    return (num_frames - 1) / fps


def retry_seconds(step_seconds: float, kept_frames: int, fps: float) -> float:
    """What is left of a step's own seconds after a kept prefix, at least a second."""
    kept = clip_seconds(kept_frames, fps) if kept_frames else 0.0
    return max(MIN_CLIP_SECONDS, step_seconds - kept)
