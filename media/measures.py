"""How alike two pictures are, and how far a picture has drifted from another. All on (H, W, 3) uint8 RGB."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from media.pictures import Frame
from orchestrator.records import Drift

PSNR_IDENTICAL = 100.0  # dB, stands for infinity; no two different 8-bit pictures under 1,600 MP reach it
Plane: TypeAlias = npt.NDArray[np.float32]  # (H, W)
Mask: TypeAlias = npt.NDArray[np.bool_]  # (h, w)

_ndimage = cast("Any", ndimage)
_gaussian = cast("Callable[..., Plane]", _ndimage.gaussian_filter)
_dilation = cast("Callable[..., Mask]", _ndimage.binary_dilation)
_SSIM_SIGMA, _SSIM_RADIUS = 1.5, 5
_SSIM_C1, _SSIM_C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
_LUMA_WEIGHTS = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # ITU-R BT.601
_DRIFT_LEVELS_MAX = 48.0  # of a block; a saturation 1.35 times as high changes (200, 40, 40) by 38
_SHARPNESS_LEVELS_MAX = 20.0  # an outline that was filled has changed by more, one that was blurred by less
_FAINT_COLOUR, _FAINT_EDGES = 1.0, 0.1  # levels; a ratio of two quantities below it says nothing


def psnr(first: Frame, second: Frame) -> float:
    """Peak signal-to-noise ratio in dB over all pixels and channels; 100.0 when identical."""
    error = np.square(np.subtract(first, second, dtype=np.int32)).mean(dtype=np.float64)
    return PSNR_IDENTICAL if error == 0 else min(PSNR_IDENTICAL, float(10 * np.log10(255**2 / error)))


def ssim(first: Frame, second: Frame) -> float:
    """Mean structural similarity of the luma, −1 … 1: Wang, Bovik, Sheikh, Simoncelli, IEEE TIP 13(4), 2004.

    Gaussian window of 11 × 11, σ 1.5, K1 0.01, K2 0.03; edges mirrored, so pictures may be smaller than it.
    """
    if np.array_equal(first, second):
        return 1.0
    x, y = luma(first), luma(second)
    mean_x, mean_y = _window(x), _window(y)
    var_x = _window(x * x) - mean_x * mean_x
    var_y = _window(y * y) - mean_y * mean_y
    covariance = _window(x * y) - mean_x * mean_y
    luminance = (2 * mean_x * mean_y + _SSIM_C1) / (mean_x**2 + mean_y**2 + _SSIM_C1)
    structure = (2 * covariance + _SSIM_C2) / (var_x + var_y + _SSIM_C2)
    return float(np.clip((luminance * structure).mean(dtype=np.float64), -1.0, 1.0))


def _window(plane: Plane) -> Plane:
    return _gaussian(plane, _SSIM_SIGMA, radius=_SSIM_RADIUS, mode="mirror")


def luma(frame: Frame) -> Plane:
    """Brightness 0 … 255 by BT.601 weights: (H, W) float32."""
    return cast("Plane", frame.astype(np.float32) @ _LUMA_WEIGHTS)


def drift(frame: Frame, reference: Frame) -> Drift:
    """How `frame` differs from `reference` as a whole: ratios, 1.0 = unchanged; colour in levels.

    A piece that has moved is no drift: blocks that changed by more than drift does are left out, unless they
    are most of the picture.
    """
    now, then = Blocks(frame), Blocks(reference)
    still = _most(now.change(then) <= _DRIFT_LEVELS_MAX)
    colours, before = now.means[still], then.means[still]  # (n, 3)
    return Drift(
        saturation=_ratio(_chroma(colours), _chroma(before), _FAINT_COLOUR),
        brightness=_ratio(_brightness(colours), _brightness(before), _FAINT_COLOUR),
        sharpness=sharpness_ratio(now, then),
        colour_levels=round(float(np.abs(colours.mean(axis=0) - before.mean(axis=0)).mean()), 4),
    )


def sharpness_ratio(frame: Blocks, reference: Blocks) -> float:
    """Sharpness of a frame in units of `reference`'s, where both show the same things; 1.0 = unchanged.

    Root mean square of the luma steps between neighbours: squared, because blur spreads an edge over more
    pixels without changing the sum of its steps.
    """
    moved = frame.change(reference) > _SHARPNESS_LEVELS_MAX
    still = _most(~_dilation(moved, structure=np.ones((3, 3), dtype=np.bool_)))
    now, then = (float(np.sqrt(picture.step_energy[still].mean())) for picture in (frame, reference))
    return _ratio(now, then, _FAINT_EDGES)


class Blocks:
    """A picture by blocks of 8 × 8 pixels, measured once however often it is compared. `frame`: (H, W, 3)."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @functools.cached_property
    def means(self) -> npt.NDArray[np.float32]:
        """Means of whole blocks: (h, w, 3)."""
        side = _block_side(self._frame)
        height, width = (length // side * side for length in self._frame.shape[:2])
        return np.asarray(
            Image.fromarray(np.ascontiguousarray(self._frame[:height, :width])).reduce(side), dtype=np.float32
        )

    @functools.cached_property
    def step_energy(self) -> npt.NDArray[np.float64]:
        """Mean squared luma step to the right and downwards, per block: (h, w)."""
        plane = np.asarray(Image.fromarray(np.ascontiguousarray(self._frame)).convert("L"))
        energy = np.zeros(plane.shape, dtype=np.uint32)
        energy[:, :-1] += _squared_steps(plane[:, 1:], plane[:, :-1])
        energy[:-1] += _squared_steps(plane[1:], plane[:-1])
        side = _block_side(self._frame)
        height, width = (length // side for length in plane.shape)
        rows = energy[: height * side, : width * side].reshape(height, side, width * side).sum(axis=1)
        return rows.reshape(height, width, side).sum(axis=2) / side**2

    def change(self, other: Blocks) -> Plane:
        """Largest difference of any channel's means, in levels: (h, w)."""
        change = np.abs(self.means - other.means)
        return np.maximum(np.maximum(change[..., 0], change[..., 1]), change[..., 2])


def _squared_steps(after: npt.NDArray[np.uint8], before: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    return np.square(np.maximum(after, before) - np.minimum(after, before), dtype=np.uint16)


def _block_side(frame: Frame) -> int:
    return max(1, min(8, *frame.shape[:2]))


def _most(still: Mask) -> Mask:
    """The blocks that show the same thing in both; all of them, if less than half do."""
    return still if still.mean() >= 0.5 else np.ones_like(still)


def _chroma(colours: npt.NDArray[np.float32]) -> float:
    """Mean of the largest less the smallest channel, in levels: 0 for greys, in proportion to saturation."""
    return float((colours.max(axis=1) - colours.min(axis=1)).mean())


def _brightness(colours: npt.NDArray[np.float32]) -> float:
    return float((colours @ _LUMA_WEIGHTS).mean())


def _ratio(value: float, reference: float, faint: float) -> float:
    """value / reference; 1.0 where both are too faint to tell, and never infinite."""
    if reference < faint:
        return 1.0 if value < faint else round((value + faint) / (reference + faint), 4)
    return round(value / reference, 4)
