"""How frames go bad: a scene that melts, colours that drift, a first picture that is imagined anew."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worlds.world import Frame, Frames

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
    gone = None  # a wholly melted frame, which all from there on are
    for index in range(first, len(frames)):
        share = min(1.0, 0.4 + (index - first) / MELT_FRAMES)
        if gone is None:
            frames[index] = (frames[index] * (1 - share) + left * share).astype(np.uint8)
            gone = frames[index] if share == 1.0 else None
        else:
            frames[index] = gone


def drift(frames: Frames, levels: float, rng: np.random.Generator) -> None:
    """Shift the colours in place, evenly from none in frame 0 to `levels` in the last frame."""
    shift = rng.choice(np.array([-1.0, 1.0]), 3) * levels
    last = max(1, len(frames) - 1)
    for index in range(1, len(frames)):
        _Shift(np.broadcast_to(np.rint(shift * index / last), frames.shape[2:])).apply(frames[index])


def reimagine(frames: Frames, rng: np.random.Generator) -> None:
    """Paint every frame anew in place, alike but not the same."""
    shift = _Shift(np.floor(rng.normal(0, REIMAGINED_LEVELS, frames.shape[1:])))
    for frame in frames:
        shift.apply(frame)


class _Shift:
    """Whole levels added to pixels in place, clipped to 0 … 255: in bytes, eight times as quick as in floats.

    `levels` must broadcast to the frames.
    """

    def __init__(self, levels: npt.NDArray[np.float64]) -> None:
        whole = levels.clip(-255, 255).astype(np.int16)
        self._least, self._most = (
            (-whole).clip(0, 255).astype(np.uint8),
            (255 - whole).clip(0, 255).astype(np.uint8),
        )
        self._levels = whole.astype(np.uint8)  # modulo 256, as the sum is

    def apply(self, frame: Frame) -> None:
        np.maximum(frame, self._least, out=frame)
        np.minimum(frame, self._most, out=frame)
        np.add(frame, self._levels, out=frame)
