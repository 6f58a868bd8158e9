"""Uploads become upright RGB pictures, or are refused in one line that names the remedy."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from media.pictures import Frame, decode_png
from media.png_chunks import PNG_SIGNATURE
from media.uploads import Upload, normalise
from orchestrator.errors import TaskRejected

IMAGES = Path(__file__).parents[1] / "data" / "images"
EXPECT: dict[str, dict[str, Any]] = {
    name: expected
    for name, expected in json.loads((IMAGES / "expect.json").read_text()).items()
    if not name.startswith("_")
}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
CMS = cast("Any", ImageCms)  # partly untyped
RED, WHITE = (200, 40, 40), (255, 255, 255)


def pixels(upload: Upload) -> Frame:
    return decode_png(upload.png)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def two_halves(mode: str = "RGB", size: tuple[int, int] = (40, 24)) -> Image.Image:
    """Red on the left, pale on the right."""
    image = Image.new("RGB", size, (245, 245, 240))
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    return image.quantize(8) if mode == "P" else image.convert(mode)


def near(found: np.ndarray, wanted: tuple[int, int, int], tolerance: int = 3) -> bool:
    return bool(np.abs(found.astype(int) - np.array(wanted)).max() <= tolerance)


def refusal(data: bytes, name: str = "") -> TaskRejected:
    with pytest.raises(TaskRejected) as caught:
        normalise(data, name=name)
    assert "\n" not in str(caught.value)
    return caught.value


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, depth: int, colour: int, raw: bytes, *extra: bytes, interlace: int = 0) -> bytes:
    """A PNG from its unpacked scan lines; `extra` chunks lie between header and pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    parts = [chunk(b"IHDR", header), *extra, chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")]
    return PNG_SIGNATURE + b"".join(parts)


def rows(width_bytes: int, height: int, line: bytes) -> bytes:
    assert len(line) == width_bytes
    return (b"\0" + line) * height


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
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
try:
    normalise(data)
except TaskRejected as error:
    print(error.reason, time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    bomb = str(IMAGES / "bomb_20000x20000.png")
    ran = subprocess.run([sys.executable, "-c", script, bomb], capture_output=True, text=True, check=True)
    reason, seconds, kilobytes = ran.stdout.split()
    assert reason == "too_many_pixels"
    assert float(seconds) < 0.1
    assert int(kilobytes) < 100_000


# --- kinds and modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "MPO"])
def test_every_kind_is_told_by_its_content_whatever_it_is_called(kind: str) -> None:
    options: dict[str, Any] = {"MPO": {"save_all": True}}.get(kind, {})
    upload = normalise(saved(two_halves(), kind, **options), name="holiday.pdf")
    assert (upload.size.width, upload.size.height) == (40, 24)
    picture = pixels(upload)
    assert near(picture[12, 5], RED, 12)
    assert near(picture[12, 35], (245, 245, 240), 12)


@pytest.mark.parametrize(
    ("kind", "mode", "options"),
    [
        ("JPEG", "RGB", {"progressive": True, "quality": 95}),
        ("JPEG", "CMYK", {"quality": 95}),
        ("JPEG", "L", {}),
        ("PNG", "1", {}),
        ("PNG", "L", {}),
        ("PNG", "P", {}),
        ("PNG", "RGBA", {}),
        ("PNG", "LA", {}),
        ("WEBP", "RGBA", {"lossless": True}),
        ("TIFF", "RGB", {"compression": "tiff_lzw"}),
        ("TIFF", "RGB", {"compression": "jpeg"}),
        ("TIFF", "CMYK", {}),
        ("TIFF", "LAB", {}),
        ("TIFF", "1", {"compression": "group4"}),
        ("BMP", "P", {}),
        ("GIF", "P", {"interlace": 1}),
    ],
)
def test_every_mode_becomes_rgb(kind: str, mode: str, options: dict[str, Any]) -> None:
    image = two_halves("RGB") if mode == "LAB" else two_halves(mode)
    if mode == "LAB":
        image = CMS.profileToProfile(image, CMS.createProfile("sRGB"), CMS.createProfile("LAB"), outputMode="LAB")
    picture = pixels(normalise(saved(image, kind, **options)))
    expected = np.asarray(two_halves("L" if mode in ("L", "LA", "1") else "RGB").convert("RGB"))
    if mode != "1":
        assert near(picture[12, 5], tuple(expected[12, 5]), 12)
    assert near(picture[12, 35], tuple(expected[12, 35]), 12)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_every_exif_orientation_is_applied_once(orientation: int, kind: str) -> None:
    upright = Image.new("RGB", (48, 32), (245, 245, 240))
    upright.paste(RED, (0, 0, 16, 16))  # top left
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = upright.transpose(undo[orientation]) if orientation in undo else upright
    upload = normalise(saved(stored, kind, exif=exif))
    assert (upload.size.width, upload.size.height) == (48, 32)
    picture = pixels(upload)
    assert near(picture[4, 4], RED, 10)
    assert near(picture[28, 44], (245, 245, 240), 10)


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_ignored(value: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = value
    assert normalise(saved(two_halves(), "JPEG", exif=exif)).size.width == 40


def test_sixteen_bit_greys_are_divided_by_257() -> None:
    values = np.linspace(0, 65535, 32 * 32).astype(np.uint16).reshape(32, 32)
    wanted = np.round(values / 257).astype(np.uint8)
    for data in (
        saved(Image.fromarray(values), "PNG"),
        saved(Image.fromarray(values), "TIFF"),
        big_endian_tiff(values),
    ):
        picture = pixels(normalise(data))
        assert np.array_equal(picture[..., 0], wanted)
        assert np.array_equal(picture[..., 0], picture[..., 2])


def big_endian_tiff(values: np.ndarray) -> bytes:
    """A one-strip 16-bit grey TIFF in Motorola order."""
    height, width = values.shape
    entries = [(256, 4, width), (257, 4, height), (258, 3, 16), (259, 3, 1), (262, 3, 1), (273, 4, 122)]
    entries += [(277, 3, 1), (278, 4, height), (279, 4, width * height * 2)]
    body = b"".join(
        struct.pack(">HHIHH", tag, 3, 1, value, 0) if type_ == 3 else struct.pack(">HHII", tag, type_, 1, value)
        for tag, type_, value in entries
    )
    head = b"MM\0*" + struct.pack(">IH", 8, len(entries)) + body + b"\0\0\0\0"
    return head.ljust(122, b"\0") + values.astype(">u2").tobytes()


def test_sixteen_bit_colour_keeps_its_upper_half() -> None:
    line = struct.pack(">3H", 51400, 10280, 10280) * 20
    assert near(pixels(normalise(png(20, 20, 16, 2, rows(120, 20, line))))[5, 5], (200, 40, 40), 1)


@pytest.mark.parametrize(
    ("depth", "colour", "line", "transparent", "there"),
    [
        (1, 0, bytes(3), struct.pack(">H", 0), True),
        (2, 0, bytes([0b01010101] * 5), struct.pack(">H", 1), True),
        (4, 0, bytes([0x55] * 10), struct.pack(">H", 5), True),
        (8, 0, bytes([90] * 20), struct.pack(">H", 90), True),
        (8, 0, bytes([90] * 20), struct.pack(">H", 91), False),
        (16, 0, struct.pack(">H", 30000) * 20, struct.pack(">H", 30000), True),
        (16, 0, struct.pack(">H", 30000) * 20, struct.pack(">H", 30001), False),
        (8, 2, bytes([9, 90, 200] * 20), struct.pack(">3H", 9, 90, 200), True),
        (8, 2, bytes([9, 90, 200] * 20), struct.pack(">3H", 9, 90, 201), False),
        (16, 2, struct.pack(">3H", 512, 30000, 9) * 20, struct.pack(">3H", 512, 30000, 9), True),
    ],
)
def test_one_transparent_value_becomes_white(
    depth: int, colour: int, line: bytes, transparent: bytes, there: bool
) -> None:
    data = png(20, 20, depth, colour, rows(len(line), 20, line), chunk(b"tRNS", transparent))
    assert near(pixels(normalise(data))[10, 10], WHITE, 0) is there


def test_a_palette_with_transparency_lies_over_white() -> None:
    palette = chunk(b"PLTE", bytes([200, 40, 40, 0, 0, 255]))
    line = bytes([0] * 10 + [1] * 10)
    picture = pixels(normalise(png(20, 20, 8, 3, rows(20, 20, line), palette, chunk(b"tRNS", bytes([255, 0])))))
    assert near(picture[5, 5], RED, 0)
    assert near(picture[5, 15], WHITE, 0)


def test_half_transparent_pixels_are_mixed_with_white() -> None:
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 128))
    upload = normalise(saved(image, "PNG"))
    assert near(pixels(upload)[3, 3], (127, 127, 127), 1)
    assert any("white" in note for note in upload.notes)


def test_interlaced_pngs_are_read() -> None:
    whole = np.asarray(two_halves(size=(19, 17)))
    raw = b""
    for x, y, dx, dy in ADAM7:
        for line in whole[y::dy, x::dx]:
            raw += b"\0" + line.tobytes()
    assert np.array_equal(pixels(normalise(png(19, 17, 8, 2, raw, interlace=1))), whole)
    assert refusal(png(19, 17, 8, 2, raw[:-60], interlace=1)).reason == "truncated"


# --- animations and pages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame_of_several_counts(kind: str) -> None:
    others = [Image.new("RGB", (40, 24), (0, 0, 255))] * 3
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {}
    upload = normalise(saved(two_halves(), kind, save_all=True, append_images=others, **options))
    assert near(pixels(upload)[12, 5], RED)
    assert any("first" in note for note in upload.notes)


def test_a_gif_frame_smaller_than_its_canvas_lies_on_white() -> None:
    plain = bytearray(saved(Image.new("P", (20, 16), 0), "GIF"))
    plain[6:10] = struct.pack("<HH", 60, 48)  # the logical screen
    at = plain.index(b"\x2c")
    plain[at + 1 : at + 5] = struct.pack("<HH", 30, 20)
    picture = pixels(normalise(bytes(plain)))
    assert picture.shape == (48, 60, 3)
    assert near(picture[28, 40], (0, 0, 0), 0)
    assert near(picture[5, 5], WHITE, 0)


def test_a_gif_frame_that_reaches_far_outside_its_canvas_is_refused_before_decoding() -> None:
    data = bytearray(saved(Image.new("P", (20, 16), 0), "GIF"))
    at = data.index(b"\x2c")
    data[at + 5 : at + 9] = struct.pack("<HH", 65535, 65535)
    assert refusal(bytes(data)).reason == "too_many_pixels"


# --- metadata -----------------------------------------------------------------------------------------------


def test_bombs_in_text_and_profile_chunks_do_no_harm() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    extra = (
        chunk(b"zTXt", b"Comment\0\0" + bomb),
        chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + bomb),
        chunk(b"iCCP", b"icc\0\0" + bomb),
        chunk(b"tEXt", b"Comment\0" + bytes(3_000_000)),
    )
    line = bytes(RED) * 20
    assert near(pixels(normalise(png(20, 20, 8, 2, rows(60, 20, line), *extra)))[5, 5], RED, 0)


def test_a_wide_colour_profile_is_converted_to_srgb_and_the_common_one_left_alone() -> None:
    image = Image.new("RGB", (20, 20), RED)
    srgb: bytes = CMS.ImageCmsProfile(CMS.createProfile("sRGB")).tobytes()
    untouched = normalise(saved(image, "PNG", icc_profile=srgb))
    assert near(pixels(untouched)[3, 3], RED, 0)
    broken = normalise(saved(image, "PNG", icc_profile=b"not a profile" * 40))
    assert near(pixels(broken)[3, 3], RED, 0)
    assert any("ignored" in note for note in broken.notes)
    renamed = srgb.replace("sRGB".encode("utf-16-be"), "wide".encode("utf-16-be")).replace(b"sRGB", b"wide")
    wide = bytearray(renamed)
    at = wide.index(b"rXYZ", 200) if b"rXYZ" in wide[200:] else wide.index(b"rXYZ")
    offset = struct.unpack_from(">I", wide, at + 4)[0]
    struct.pack_into(">i", wide, offset + 8, int(0.6 * 65536))  # a redder red
    converted = normalise(saved(image, "JPEG", quality=98, icc_profile=bytes(wide)))
    assert any("sRGB" in note for note in converted.notes)
    assert pixels(converted)[3, 3, 0] > 205


def test_the_normalised_picture_carries_no_metadata() -> None:
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    upload = normalise(saved(two_halves(), "JPEG", exif=exif, comment=b"secret place"))
    assert b"secret" not in upload.png
    assert set(Image.open(io.BytesIO(upload.png)).info) == set()


def test_equal_pictures_give_equal_bytes() -> None:
    as_png, as_bmp = (normalise(saved(two_halves(), kind)).png for kind in ("PNG", "BMP"))
    assert as_png == as_bmp


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
