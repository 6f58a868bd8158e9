"""Uploads become upright RGB pictures, or are refused in one line that names the remedy."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from media.png_chunks import PNG_SIGNATURE
from media.uploads import normalise
from orchestrator.errors import TaskRejected
from tests.media.uploaded import RED, chunk, near, pixels, png, refusal, rows, saved, two_halves

IMAGES = Path(__file__).parents[1] / "data" / "images"
EXPECT: dict[str, dict[str, Any]] = {
    name: expected
    for name, expected in json.loads((IMAGES / "expect.json").read_text()).items()
    if not name.startswith("_")
}


# --- the cases ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPECT)
def test_every_case_becomes_what_its_file_expects(name: str) -> None:
    expected, data = EXPECT[name], (IMAGES / name).read_bytes()
    if expected["result"] == "refused":
        assert refusal(data, name).reason == expected["reason"]
        return
    upload = normalise(data, name=name)
    assert [upload.size.width, upload.size.height] == expected["size"]
    picture = pixels(upload)
    for pixel in expected["pixels"]:
        x, y = pixel["xy"]
        assert near(picture[y, x], tuple(pixel["rgb"]), expected["tolerance"])


def test_the_bomb_is_refused_from_its_header_in_no_time_and_memory() -> None:
    script = """
import resource, sys, time
from media.uploads import normalise
from orchestrator.errors import TaskRejected
data = open(sys.argv[1], "rb").read()
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
try:
    normalise(data)
except TaskRejected as error:
    print(error.reason, time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    bomb = str(IMAGES / "bomb_20000x20000.png")
    ran = subprocess.run([sys.executable, "-c", script, bomb], capture_output=True, text=True, check=True)
    reason, seconds, kilobytes = ran.stdout.split()
    assert reason == "too_many_pixels"
    assert float(seconds) < 0.1
    assert int(kilobytes) < 100_000


def test_a_conversion_has_two_copies_of_a_large_picture_and_no_more() -> None:
    script = """
import resource, sys
from media.uploads import normalise
from tests.media.uploaded import png
data = png(5000, 5000, 16, 6, bytes(5000 * 40001))
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
def peak_kilobytes():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
before = peak_kilobytes()
normalise(data)
print(peak_kilobytes() - before)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 280_000  # a copy has 100 MB


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff" + bytes(30 << 20),
        b"\xff\xd8" + b"\xff" * (30 << 20),
        b"\xff\xd8\xff" + b"\xff\x01" * (15 << 20),
        b"\xff\xd8" + b"\xff\xe0\0\2" * (7 << 20),
        b"GIF89a\x10\0\x10\0\0\0\0\x21\xfe" + b"\1a" * (15 << 20),
        b"GIF89a\x10\0\x10\0\0\0\0" + b"\x21\xfe\0" * (10 << 20),
        PNG_SIGNATURE
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0))
        + chunk(b"teXt", b"") * (2 << 20),
    ],
    ids=["zeros", "fill", "bare markers", "empty segments", "GIF blocks", "GIF extensions", "PNG chunks"],
)
def test_a_large_file_without_a_picture_is_refused_soon(data: bytes) -> None:
    assert refusal(data).reason == "truncated"  # byte by byte each would take many seconds


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_promises_more_than_it_has_is_damaged(progressive: bool) -> None:
    jpeg = bytearray(saved(two_halves(size=(64, 64)), "JPEG", progressive=progressive))
    at = jpeg.index(b"\xff\xc2" if progressive else b"\xff\xc0") + 5
    struct.pack_into(">HH", jpeg, at, 7000, 7000)
    assert refusal(bytes(jpeg)).reason == "truncated"
    plain = Image.new("L", (4000, 4000), 128)
    for optimised in (False, True):
        whole = saved(plain, "JPEG", progressive=progressive, optimize=optimised, quality=1)
        assert normalise(whole).size.width == 4000


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"%PDF-1.7 ...", "PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9999 9999\n", "PostScript"),
        (b"\xc5\xd0\xd3\xc6" + bytes(40), "PostScript"),
        (b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"PK\x03\x04" + bytes(40), "ZIP"),
        (b"8BPS\0\1" + bytes(40), "Photoshop"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isommp41", "video"),
        (b"\0\0\1\0\1\0\x10\x10" + bytes(40), "icon"),
        (b"P6\n20 20\n255\n" + bytes(1200), "unknown"),
        (bytes(range(256)), "unknown"),
        (b"\0" * 100, "unknown"),
    ],
)
def test_what_is_no_picture_is_named_and_never_decoded(data: bytes, word: str) -> None:
    error = refusal(data, "photo.png")
    assert error.reason == "not_a_picture"
    assert word in str(error)
    assert "upload a PNG" in str(error)


def test_limits_are_read_from_every_kind_of_header() -> None:
    webp = bytearray(saved(two_halves(), "WEBP", lossless=True))
    struct.pack_into("<I", webp, 21, (16382) | (16382 << 14))
    bmp = bytearray(saved(two_halves(), "BMP"))
    struct.pack_into("<ii", bmp, 18, 20000, -20000)
    jpeg = bytearray(saved(two_halves(), "JPEG"))
    struct.pack_into(">HH", jpeg, jpeg.index(b"\xff\xc0") + 5, 65000, 65000)
    gif = bytearray(saved(two_halves("P"), "GIF"))
    struct.pack_into("<HH", gif, 6, 65000, 65000)
    tiff = bytearray(saved(two_halves(), "TIFF"))
    for tag in (256, 257):
        at = tiff.index(struct.pack("<H", tag), struct.unpack_from("<I", tiff, 4)[0])
        struct.pack_into("<HII", tiff, at + 2, 4, 1, 100_000)
    avif = bytearray(saved(two_halves(), "AVIF"))
    struct.pack_into(">II", avif, avif.index(b"ispe") + 8, 30000, 30000)
    for data in (webp, bmp, jpeg, gif, tiff, avif):
        assert refusal(bytes(data)).reason == "too_many_pixels"


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ((15, 15), "too_small"),
        ((15, 400), "too_small"),
        ((101, 20), "extreme_aspect"),
        ((20, 101), "extreme_aspect"),
    ],
)
def test_sizes_outside_the_policy_are_refused(size: tuple[int, int], reason: str) -> None:
    assert refusal(saved(Image.new("RGB", size), "PNG")).reason == reason


@pytest.mark.parametrize("size", [(16, 16), (16, 80), (100, 20)])
def test_sizes_on_the_policy_s_edge_are_taken(size: tuple[int, int]) -> None:
    assert normalise(saved(Image.new("RGB", size), "PNG")).size.width == size[0]


def test_a_png_whose_pixels_are_not_all_there_is_refused_however_it_ends() -> None:
    line = bytes(RED) * 20
    assert refusal(png(20, 20, 8, 2, rows(60, 12, line))).reason == "truncated"  # a whole stream, too short
    whole = png(20, 20, 8, 2, rows(60, 20, line))
    at = whole.index(b"IDAT")
    flipped = whole[: at + 12] + bytes([whole[at + 12] ^ 0x55]) + whole[at + 13 :]
    assert refusal(flipped).reason == "truncated"  # wrong checksum
    wrong_header_sum = whole[:29] + bytes([whole[29] ^ 1]) + whole[30:]
    assert refusal(wrong_header_sum).reason == "truncated"
    for length in range(9, len(whole) - 16, 7):
        assert refusal(whole[:length]).reason == "truncated"
    assert normalise(whole[:-12]).size.width == 20  # only IEND is missing: the picture is whole
    assert normalise(whole + b"trailing").size.width == 20


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
def test_half_a_file_is_refused(kind: str) -> None:
    data = saved(Image.effect_noise((200, 160), 60).convert("RGB"), kind)
    for share in (0.1, 0.5, 0.8):
        assert refusal(data[: int(len(data) * share)]).reason == "truncated"


@pytest.mark.parametrize(("depth", "colour"), [(3, 2), (16, 3), (8, 5), (1, 2), (0, 0)])
def test_a_png_header_that_cannot_be_is_damaged(depth: int, colour: int) -> None:
    assert refusal(png(20, 20, depth, colour, bytes(5000))).reason == "truncated"


def test_a_palette_png_without_palette_is_damaged() -> None:
    assert refusal(png(20, 20, 8, 3, rows(20, 20, bytes(20)))).reason == "truncated"


def test_a_jpeg_with_thousands_of_scans_is_refused_without_decoding() -> None:
    data = saved(two_halves(), "JPEG", progressive=True)
    assert refusal(data[:-2] + b"\xff\xda\0\x08\1\1\0\0\x3f\0" * 3000 + b"\xff\xd9").reason == "truncated"


@pytest.mark.parametrize("values", [np.full((20, 20), 0.5, np.float32), np.full((20, 20), 1 << 20, np.int32)])
def test_pixels_without_a_fixed_range_are_refused_and_say_so(values: np.ndarray) -> None:
    error = refusal(saved(Image.fromarray(values), "TIFF"))
    assert error.reason == "unsupported"
    assert "8-bit" in str(error)


@pytest.mark.parametrize("name", ["", "a" * 300 + ".png", "evil\n\x1b[31m.png", "../../passwd", "\u202egnp.exe"])
def test_a_refusal_is_one_printable_line_whatever_the_file_is_called(name: str) -> None:
    error = refusal(b"hello", name)
    assert str(error).isprintable()
    assert len(str(error)) < 250


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8),
    cut=st.floats(0.05, 1),
)
def test_a_file_with_broken_bytes_is_read_or_refused_and_nothing_else(
    kind: str, edits: list[tuple[float, int]], cut: float
) -> None:
    data = bytearray(saved(two_halves(), kind))
    for place, value in edits:
        data[int(place * (len(data) - 1))] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            upload = normalise(bytes(data[: max(1, int(cut * len(data)))]))
        except TaskRejected:
            return
    assert pixels(upload).shape == (upload.size.height, upload.size.width, 3)
