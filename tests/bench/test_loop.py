"""The table of what the loop costs: real measurements, aims beside them."""

from __future__ import annotations

import pytest

from bench.loop import ROWS, measure, table


def test_a_figure_over_its_aim_is_marked() -> None:
    figures = {row.key: 1.0 for row in ROWS}
    text = table({"here": figures, "there": {**figures, "hand_off": 151.0}})
    assert text.count("!") == 1
    assert "≤ 150 ms" in text
    assert "151 ms!" in text


@pytest.mark.slow
def test_every_row_is_measured_with_the_real_parts() -> None:
    figures = measure((64, 48, 9), "natural", runs=1)
    assert all(figures[row.key] > 0 for row in ROWS)
    assert figures["delivered_frames"] == 3 * 9 - 2
