"""Cutting and joining as arithmetic on edit lists: no frame is decoded or encoded here."""

from __future__ import annotations

import math

from orchestrator.records import ArtifactKey, Clip, Footage, Segment

KEEP_ABOVE = 0.2  # a good fraction up to this is not worth continuing (CollabVR)


def whole(clip: Clip) -> Footage:
    """All frames of a clip."""
    return Footage(segments=(Segment(mezzanine=clip.mezzanine, first=0, stop=clip.num_frames, fps=clip.fps),))


def still(picture: ArtifactKey, fps: float) -> Footage:
    """A picture shown for one frame: where a step starts from."""
    return Footage(segments=(Segment(mezzanine=picture, first=0, stop=1, fps=fps),))


def join(earlier: Footage, later: Footage) -> Footage:
    """Both in order: the earlier frame is kept at the join and the later footage's frame 0 dropped."""
    if not earlier.segments:
        return later
    return Footage(segments=earlier.segments + _cut_range(later, 1, later.num_frames))


def first_frames(footage: Footage, count: int) -> Footage:
    """The first `count` frames; ValueError if there are fewer or count < 1."""
    if not 1 <= count <= footage.num_frames:
        raise ValueError(f"cannot keep {count} of {footage.num_frames} frames")
    return Footage(segments=_cut_range(footage, 0, count))


def last_good_index(good_fraction: float, num_frames: int) -> int | None:
    """Index k of the last frame to keep, or None if nothing is kept.

    k = min(floor(g · n + 1e-6), n − 1); kept only if g > 0.2.
    """
    if good_fraction <= KEEP_ABOVE:
        return None
    return min(math.floor(good_fraction * num_frames + 1e-6), num_frames - 1)


def _cut_range(footage: Footage, start: int, stop: int) -> tuple[Segment, ...]:
    kept: list[Segment] = []
    offset = 0
    for segment in footage.segments:
        low, high = max(start - offset, 0), min(stop - offset, segment.num_frames)
        if low < high:
            kept.append(segment.model_copy(update={"first": segment.first + low, "stop": segment.first + high}))
        offset += segment.num_frames
    return tuple(kept)
