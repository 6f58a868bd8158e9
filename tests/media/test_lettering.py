"""Any text becomes lines that fit and characters that can be drawn."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from media.lettering import clean, font, shorten, wrap

FACE = font(18)


def test_controls_and_direction_marks_are_gone_and_blanks_are_joined() -> None:
    assert clean("a\x00b\u202e \t\n c\u200d") == "ab c"


def test_letters_of_many_languages_stay_and_the_rest_become_few_boxes() -> None:
    assert clean("naïve Ωμέγα Привет → ≤ “x”") == "naïve Ωμέγα Привет → ≤ “x”"
    assert clean("中文字符测试 end") == "���… end"


def test_words_wrap_and_what_is_cut_says_so() -> None:
    lines = wrap("one two three four five six seven eight nine ten", FACE, 110, 2)
    assert len(lines) == 2
    assert lines[0] == "one two three"
    assert lines[1].endswith("…")
    assert wrap("short", FACE, 400, 3) == ["short"]
    assert wrap("", FACE, 400, 3) == []


def test_a_word_wider_than_a_line_is_broken() -> None:
    lines = wrap("W" * 10_000, FACE, 200, 3)
    assert len(lines) == 3
    assert all(FACE.getlength(line) <= 200 for line in lines)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=200), width_px=st.integers(60, 400), lines_max=st.integers(1, 4))
def test_lines_always_fit(text: str, width_px: int, lines_max: int) -> None:
    lines = wrap(text, FACE, width_px, lines_max)
    assert len(lines) <= lines_max
    assert all(FACE.getlength(line) <= width_px for line in lines)
    assert FACE.getlength(shorten(clean(text), FACE, width_px)) <= width_px
