"""How frames go bad: a scene that melts, colours that drift, a first picture that is imagined anew."""

from __future__ import annotations

import numpy as np

from worlds.world import Frames

MELT_FRAMES = 6  # from whole to gone
BLOCKS = 6  # per side of the picture, in what a melted scene leaves
REIMAGINED_LEVELS = 14.0  # noise, standard deviation: PSNR near 25 dB


def collapse(frames: Frames, first: int, rng: np.random.Generator) -> None:
    """Melt the scene in place, from frame `first` on, into shuffled blocks of colour."""
    height, width = frames.shape[1:3]
    rows = np.linspace(0, BLOCKS, height, endpoint=False).astype(np.int64)
    cols = np.linspace(0, BLOCKS, width, endpoint=False).astype(np.int64)
    picture = frames[min(first, len(frames) - 1)]
    palette = picture[rng.integers(height, size=(BLOCKS, BLOCKS)), rng.integers(width, size=(BLOCKS, BLOCKS))]
    left = (palette[rows][:, cols].astype(np.float32) + rng.normal(0, 25, (height, width, 3))).clip(0, 255)
    for index in range(first, len(frames)):
        share = min(1.0, 0.4 + (index - first) / MELT_FRAMES)
        frames[index] = (frames[index] * (1 - share) + left * share).astype(np.uint8)


def drift(frames: Frames, levels: float, rng: np.random.Generator) -> None:
    """Shift the colours in place, evenly from none in frame 0 to `levels` in the last frame."""
    shift = rng.choice(np.array([-1.0, 1.0]), 3) * levels
    last = max(1, len(frames) - 1)
    for index in range(1, len(frames)):
        frames[index] = (frames[index] + np.rint(shift * index / last)).clip(0, 255).astype(np.uint8)


def reimagine(frames: Frames, rng: np.random.Generator) -> None:
    """Paint every frame anew in place, alike but not the same."""
    grain = rng.normal(0, REIMAGINED_LEVELS, frames.shape[1:])
    for index in range(len(frames)):
        frames[index] = (frames[index] + grain).clip(0, 255).astype(np.uint8)
