"""Moving pictures to measure with: flat as drawings are, natural as photographs are. Made, not loaded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) uint8 RGB

SPECTRAL_SLOPE = 1.2


def flat(width: int, height: int, num_frames: int, *, seed: int = 0) -> Frames:
    """A grid of squares in a few colours with a disc that moves: (T, H, W, 3) uint8 RGB."""
    rng = np.random.default_rng(seed)
    cell = max(8, min(width, height) // 9)
    palette = np.array([[255, 255, 255], [173, 216, 230], [240, 240, 240]], dtype=np.uint8)
    cells = rng.integers(0, len(palette), size=(height // cell + 1, width // cell + 1))
    ground = palette[cells].repeat(cell, axis=0).repeat(cell, axis=1)[:height, :width]
    frames = np.broadcast_to(ground, (num_frames, height, width, 3)).copy()
    rows, columns = np.ogrid[:height, :width]
    for index in range(num_frames):
        centre = cell + (width - 2 * cell) * index / max(1, num_frames - 1)
        disc = (rows - height / 2) ** 2 + (columns - centre) ** 2 <= (0.4 * cell) ** 2
        frames[index][disc] = (220, 20, 20)
    return frames


def natural(width: int, height: int, num_frames: int, *, seed: int = 0) -> Frames:
    """A camera panning over a texture with a natural spectrum and sensor noise: (T, H, W, 3) uint8 RGB.

    The amplitude of natural images falls as 1 / f ** 1.2 on average (D. J. Tolhurst et al., 1992). The noise,
    one level of standard deviation, is what makes photographs hard to compress without loss.
    """
    rng = np.random.default_rng(seed)
    wide = width + 2 * num_frames
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(wide)[None, :])
    frequency[0, 0] = 1.0
    shared, own = (_texture(rng, frequency, (height, wide), channels) for channels in (1, 3))
    ground = 128 + 45 * shared + 15 * own  # channels of natural pictures are strongly correlated
    frames = np.empty((num_frames, height, width, 3), dtype=np.uint8)
    for index in range(num_frames):
        view = ground[:, 2 * index : 2 * index + width] + rng.standard_normal((height, width, 3), np.float32)
        frames[index] = np.clip(view, 0, 255)
    return frames


def _texture(
    rng: np.random.Generator, frequency: np.ndarray, shape: tuple[int, int], channels: int
) -> npt.NDArray[np.float32]:
    """Noise of unit variance with a natural spectrum, slightly blurred: (H, W, channels) float32."""
    planes: list[np.ndarray] = []
    for _ in range(channels):
        lens = np.exp(-((3.0 * frequency) ** 2))  # a lens blurs by about a pixel
        spectrum = np.fft.rfft2(rng.standard_normal(shape, np.float32)) * lens / frequency**SPECTRAL_SLOPE
        plane = np.fft.irfft2(spectrum, shape)
        planes.append((plane - plane.mean()) / plane.std())
    return np.stack(planes, axis=-1).astype(np.float32)
