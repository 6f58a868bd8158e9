"""Words of colours and how far they are from pixels."""

from __future__ import annotations

import pytest

from worlds.legend import RGB, colour_of, contrast, distance, name_of


@pytest.mark.parametrize(
    ("words", "right", "wrong"),
    [
        ("white", (231, 231, 231), (172, 214, 230)),
        ("light blue", (172, 214, 230), (255, 255, 255)),
        ("pink", (253, 120, 120), (254, 231, 89)),
        ("red", (253, 66, 66), (250, 150, 40)),
        ("green", (67, 255, 67), (68, 66, 254)),
        ("gray", (116, 116, 116), (255, 255, 255)),
        ("grey", (116, 116, 116), (20, 20, 20)),
        ("dark grey", (60, 60, 60), (190, 190, 190)),
        ("turquoise", (50, 210, 200), (40, 90, 220)),
        ("violet", (140, 80, 220), (220, 40, 40)),
        ("navy", (20, 30, 90), (130, 180, 240)),
        ("beige", (240, 230, 210), (239, 173, 54)),
        ("pale bluish gray", (195, 200, 215), (200, 120, 60)),
        ("lime-green", (60, 215, 60), (30, 90, 160)),
        ("#3af", (51, 170, 255), (255, 170, 51)),
        ("rgb(10, 20, 30)", (10, 20, 30), (110, 120, 130)),
    ],
)
def test_a_colour_word_is_nearer_to_its_colour_than_to_another(words: str, right: RGB, wrong: RGB) -> None:
    colour = colour_of(words)
    assert colour is not None
    assert distance(right, colour) < 0.1
    assert distance(right, colour) + 0.05 < distance(wrong, colour)


@pytest.mark.parametrize("words", ["", "square", "the red", "light", "rgb(300, 0, 0)", "#12345", "x"])
def test_what_names_no_colour_is_none(words: str) -> None:
    assert colour_of(words) is None


@pytest.mark.parametrize(
    ("rgb", "name"),
    [((255, 0, 0), "red"), ((173, 214, 230), "light blue"), ((116, 116, 116), "gray"), ((0, 127, 0), "green")],
)
def test_colours_get_plain_names(rgb: RGB, name: str) -> None:
    assert name_of(rgb) == name


def test_contrast_is_symmetric_and_zero_for_the_same_colour() -> None:
    assert contrast((1, 2, 3), (1, 2, 3)) == 0.0
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(contrast((255, 255, 255), (0, 0, 0)))
