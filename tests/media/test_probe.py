"""A probe counts what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.encode import mezzanine
from media.probe import boxes, probe
from orchestrator.errors import CliploopError
from tests.media.made import noise, size_of

DATA = Path(__file__).parents[1] / "data"


def test_foreign_videos_are_counted_by_decoding() -> None:
    found = probe(DATA / "vrbench" / "maze" / "00000" / "ground_truth.mp4")
    assert (found.num_frames, str(found.size), found.codec) == (37, "210x210", "h264")
    assert found.seconds * 24 == 37


def test_an_index_at_the_end_is_noticed() -> None:
    data = mezzanine(noise(3, 32, 32), size_of(noise(1, 32, 32)), 16.0)
    assert [name for name, _ in boxes(data)][-1] == b"moov"
    assert not probe(data).index_first


@pytest.mark.parametrize("data", [b"", b"no video", b"\0\0\0\x18ftypisom" + bytes(20)])
def test_what_is_no_video_is_said(data: bytes) -> None:
    with pytest.raises(CliploopError, match="no readable video"):
        probe(data)
