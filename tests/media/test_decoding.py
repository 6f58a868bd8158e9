"""Every kind and mode of picture becomes the RGB pixels that its owner sees."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image, ImageCms

from media.uploads import normalise
from tests.media.uploaded import ADAM7, RED, WHITE, chunk, near, pixels, png, refusal, rows, saved, two_halves

CMS = cast("Any", ImageCms)  # partly untyped


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
