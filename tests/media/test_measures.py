"""PSNR, SSIM and drift say what they should of pictures whose difference is known."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter

from media.measures import Blocks, drift, psnr, sharpness_ratio, ssim
from media.pictures import Frame, to_array
from tests.media.made import drawing, noise, photograph


def enhanced(frame: Frame, saturation: float = 1, brightness: float = 1) -> Frame:
    image = ImageEnhance.Brightness(ImageEnhance.Color(Image.fromarray(frame)).enhance(saturation)).enhance(
        brightness
    )
    return to_array(image)


def test_identical_pictures_score_100_decibels_and_1() -> None:
    frame = photograph()
    assert psnr(frame, frame.copy()) == 100.0
    assert ssim(frame, frame.copy()) == 1.0


def test_psnr_follows_its_formula() -> None:
    black = np.zeros((20, 30, 3), np.uint8)
    assert psnr(black, black + 255) == pytest.approx(0)
    assert psnr(black, black + 10) == pytest.approx(20 * np.log10(25.5))
    one = black.copy()
    one[3, 4, 1] = 1
    assert psnr(one, black) == pytest.approx(10 * np.log10(255**2 * 1800))


def test_ssim_of_a_constant_shift_follows_its_formula() -> None:
    first, second = np.full((32, 32, 3), 100, np.uint8), np.full((32, 32, 3), 150, np.uint8)
    c1 = (0.01 * 255) ** 2
    assert ssim(first, second) == pytest.approx((2 * 100 * 150 + c1) / (100**2 + 150**2 + c1), abs=1e-4)


def test_ssim_falls_with_noise_and_is_symmetric() -> None:
    clean = photograph(grain=0)
    little = np.clip(clean + np.random.default_rng(0).normal(0, 5, clean.shape), 0, 255).astype(np.uint8)
    much = np.clip(clean + np.random.default_rng(0).normal(0, 40, clean.shape), 0, 255).astype(np.uint8)
    assert 1 > ssim(clean, little) > 0.6 > ssim(clean, much)
    assert ssim(clean, much) == pytest.approx(ssim(much, clean), abs=1e-5)
    assert ssim(noise(1, 64, 64, 1)[0], noise(1, 64, 64, 2)[0]) < 0.1


def test_ssim_takes_pictures_smaller_than_its_window() -> None:
    assert -1 <= ssim(noise(1, 4, 5, 1)[0], noise(1, 4, 5, 2)[0]) <= 1


def test_no_change_is_no_drift() -> None:
    found = drift(photograph(), photograph())
    assert (found.saturation, found.brightness, found.sharpness, found.colour_levels) == (1, 1, 1, 0)


@pytest.mark.parametrize("ground", [photograph(grain=1), drawing()])
@pytest.mark.parametrize("factor", [0.8, 1.03, 1.19])
def test_saturation_and_brightness_drift_are_found_at_their_size(ground: Frame, factor: float) -> None:
    coloured = ground.copy()
    coloured[:40] = np.clip(coloured[:40] * np.array([0.8, 0.6, 0.4]), 0, 255).astype(np.uint8)
    assert drift(enhanced(coloured, saturation=factor), coloured).saturation == pytest.approx(factor, abs=0.03)
    dark = (coloured * 0.7).astype(np.uint8)
    assert drift(enhanced(dark, brightness=factor), dark).brightness == pytest.approx(factor, abs=0.03)


def test_a_piece_that_moves_is_no_drift() -> None:
    before = drawing()
    after = before.copy()
    after[64:84, 96:116] = (90, 90, 90)  # a grey piece that now covers the green goal
    found = drift(after, before)
    assert found.saturation == pytest.approx(1, abs=0.03)
    assert found.sharpness == pytest.approx(1, abs=0.03)
    assert found.colour_levels < 0.3


def test_blur_lowers_and_grain_raises_sharpness() -> None:
    for ground in (drawing(), photograph(grain=4)):
        blurred = to_array(Image.fromarray(ground).filter(ImageFilter.GaussianBlur(1.5)))
        grainy = np.clip(ground + np.random.default_rng(1).normal(0, 12, ground.shape), 0, 255).astype(np.uint8)
        assert sharpness_ratio(Blocks(blurred), Blocks(ground)) < 0.8
        assert sharpness_ratio(Blocks(grainy), Blocks(ground)) > 1.1


def test_ratios_of_nothing_are_finite() -> None:
    grey, colour = np.full((32, 32, 3), 90, np.uint8), np.tile(np.array([200, 40, 40], np.uint8), (32, 32, 1))
    assert drift(grey, grey).saturation == 1
    assert drift(colour, grey).saturation < 1000
    black = np.zeros((32, 32, 3), np.uint8)
    assert drift(black, black).brightness == 1
    assert drift(grey, black).brightness < 1000
