"""Which frames of footage stand for all of it: first and last always, the rest evenly between them."""

from __future__ import annotations

import math

from orchestrator.records import Footage


def sample(num_frames: int, seconds: float, *, per_second: float, least: int, most: int) -> tuple[int, ...]:
    """Frame numbers, rising. As many as the rate asks for, at least `least`, at most `most` and all there are.

    With two or more the first and the last are among them; one alone is the last. ValueError without a frame.
    """
    if num_frames < 1 or most < 1:
        raise ValueError(f"nothing to sample: {most} of {num_frames} frames")
    wanted = max(least, math.floor(seconds * per_second + 1e-6) + 1)
    count = min(wanted, most, num_frames)
    if count == 1:
        return (num_frames - 1,)
    return tuple(round(place * (num_frames - 1) / (count - 1)) for place in range(count))


def seconds_at(footage: Footage, index: int) -> float:
    """When frame `index` begins to be shown: each frame before it is held for 1 / fps of its segment."""
    passed = 0.0
    for segment in footage.segments:
        if index < segment.num_frames:
            return passed + index / segment.fps
        index -= segment.num_frames
        passed += segment.num_frames / segment.fps
    raise ValueError(f"the footage has no such frame: it ends {index} frames earlier")
