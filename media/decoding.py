"""From the bytes of a picture of a known kind to upright 8-bit RGB. Knows no limits; the caller checks them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from PIL import Image, ImageCms

from media import sniff
from media.png_chunks import CleanPng, DamagedPng, clean

_cms = cast("Any", ImageCms)  # partly untyped
_ORIENTATION_TAG = 0x0112
_MAX_SCANS = 200  # a progressive JPEG has about 10; thousands would keep the decoder busy for minutes
_STRIP_PIXELS = 1 << 21  # converted at a time: a conversion has several copies of what it works on
_UPRIGHT: dict[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Damaged(Exception):
    """The file's kind is known but its picture cannot be decoded."""


class Unsupported(Exception):
    """A whole file whose pixels have no agreed meaning in 8 bits; str(error) says which."""


@dataclass(frozen=True)
class Decoded:
    """An upright RGB image, and what was changed, in words."""

    image: Image.Image
    notes: tuple[str, ...]


def decode(data: bytes, kind: str, check_limits: Callable[[int, int], None]) -> Decoded:
    """Decode with Pillow's decoder for `kind` and no other.

    `check_limits(width, height)` is asked again once the decoder has read the header, before it decodes.
    Raises Damaged, Unsupported and what `check_limits` raises.
    """
    png = _clean_png(data) if kind == "PNG" else None
    if kind == "JPEG" and data.count(b"\xff\xda") > _MAX_SCANS:
        raise Damaged
    if kind == "JPEG" and _guarded(lambda: sniff.jpeg_promises_too_much(data)):
        raise Damaged
    image = _guarded(lambda: Image.open(io.BytesIO(png.data if png else data), formats=[kind]))
    try:
        return _decoded(image, kind, png, check_limits)
    finally:
        image.close()


def _decoded(
    image: Image.Image, kind: str, png: CleanPng | None, check_limits: Callable[[int, int], None]
) -> Decoded:
    notes: list[str] = []
    check_limits(*image.size)
    drawn = _first_frame_box(image, kind)
    _guarded(image.load)
    if (png and png.animated) or getattr(image, "is_animated", False):
        notes.append("of several frames or pages the first was taken")
    orientation = _orientation(image, png)
    profile = png.profile if png else cast("bytes | None", image.info.get("icc_profile"))
    rgb = _guarded(lambda: _in_strips(image, profile, png.transparent if png else None, notes))
    image.close()  # its memory goes before more is taken
    if drawn is not None:
        _whiten_around(rgb, drawn)
    if orientation in _UPRIGHT:
        rgb = rgb.transpose(_UPRIGHT[orientation])
        notes.append("turned upright as its EXIF orientation says")
    return Decoded(image=rgb, notes=tuple(notes))


def _guarded(read: Callable[[], Any]) -> Any:
    """Decoders raise almost anything on a hostile file; only Damaged and Unsupported leave here."""
    try:
        return read()
    except (Damaged, Unsupported):
        raise
    except Exception as error:
        raise Damaged from error


def _clean_png(data: bytes) -> CleanPng:
    try:
        return clean(data)
    except DamagedPng as error:
        raise Damaged from error


def _first_frame_box(image: Image.Image, kind: str) -> tuple[int, int, int, int] | None:
    """Where the first frame of a GIF lies, if it does not fill the canvas: the rest is transparent."""
    tiles = cast("list[Any]", getattr(image, "tile", []))
    if kind != "GIF" or not tiles:
        return None
    box = cast("tuple[int, int, int, int]", tuple(tiles[0][1]))
    return None if box == (0, 0, *image.size) else box


def _whiten_around(rgb: Image.Image, box: tuple[int, int, int, int]) -> None:
    (width, height), (left, top, right, bottom) = rgb.size, box
    for outside in (
        (0, 0, width, top),
        (0, bottom, width, height),
        (0, 0, left, height),
        (right, 0, width, height),
    ):
        if outside[0] < outside[2] and outside[1] < outside[3]:
            rgb.paste((255, 255, 255), outside)


def _orientation(image: Image.Image, png: CleanPng | None) -> int:
    """EXIF orientation 1–8; 1 if there is none or it cannot be read. TIFF pages come upright already."""
    try:
        if png is None:
            exif = image.getexif()
        else:
            exif = Image.Exif()
            exif.load(png.exif or b"")
        value = exif.get(_ORIENTATION_TAG, 1)
    except Exception:  # metadata of any make: what cannot be read says nothing
        return 1
    return value if isinstance(value, int) else 1


def _in_strips(
    image: Image.Image, profile: bytes | None, transparent: tuple[int, ...] | None, notes: list[str]
) -> Image.Image:
    """RGB of its own, converted some rows at a time; every conversion is one of single pixels."""
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // width)
    rgb = Image.new("RGB", image.size)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        said: list[str] = []
        rgb.paste(_to_rgb(strip, profile, transparent, said), (0, top))
        notes.extend(note for note in said if note not in notes)
    return rgb


def _to_rgb(
    image: Image.Image, profile: bytes | None, transparent: tuple[int, ...] | None, notes: list[str]
) -> Image.Image:
    if image.mode == "F" or image.mode.startswith("I;16") or image.mode == "I":
        image, alpha = _eight_bit_grey(image, transparent)
        notes.append("16-bit greys were reduced to 8 bits")
    elif transparent is not None:
        alpha = _mask_of_other_values(image, transparent)
    elif image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        alpha = image.getchannel("A")
    else:
        alpha = None
    rgb = _in_srgb(image, profile, notes)
    if alpha is None or alpha.getextrema() == (255, 255):
        return rgb
    notes.append("transparent parts were laid over white")
    white = Image.new("RGB", rgb.size, (255, 255, 255))
    white.paste(rgb, mask=alpha)
    return white


def _eight_bit_grey(
    image: Image.Image, transparent: tuple[int, ...] | None
) -> tuple[Image.Image, Image.Image | None]:
    """Greys 0 … 65535 divided by 257, rounded. Raises Unsupported for other ranges."""
    if image.mode == "F":
        raise Unsupported("its floating-point pixels have no fixed range")
    values = np.asarray(image)
    if values.size and (int(values.min()) < 0 or int(values.max()) > 65535):
        raise Unsupported("its 32-bit pixels have no fixed range")
    alpha = Image.fromarray(np.where(values == transparent[0], 0, 255).astype(np.uint8)) if transparent else None
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8)), alpha


def _mask_of_other_values(image: Image.Image, transparent: tuple[int, ...]) -> Image.Image:
    """255 where the pixel is not the one value that counts as transparent."""
    image = image.convert("L") if len(transparent) == 1 else image.convert("RGB")
    values = np.asarray(image).reshape(image.height, image.width, -1)
    same = (values == np.array(transparent, dtype=np.uint8)).all(axis=2)
    return Image.fromarray(np.where(same, 0, 255).astype(np.uint8))


def _in_srgb(image: Image.Image, profile: bytes | None, notes: list[str]) -> Image.Image:
    """RGB, through the embedded profile if it fits the pixels; a profile that cannot be used is said."""
    if image.mode == "LAB":
        return _transformed(image, _cms.ImageCmsProfile(_cms.createProfile("LAB")))
    if not profile:
        return image.convert("RGB")
    try:
        described = _cms.ImageCmsProfile(io.BytesIO(profile))
        if "sRGB" in _cms.getProfileDescription(described):
            return image.convert("RGB")
        space = str(described.profile.xcolor_space).strip()
        pixels = image if image.mode == "CMYK" else image.convert("RGB")
        if pixels.mode != space:
            return image.convert("RGB")
        converted = _transformed(pixels, described)
    except Exception:  # a broken profile is no reason to refuse the picture
        notes.append("its colour profile could not be used and was ignored")
        return image.convert("RGB")
    notes.append("colours were converted to sRGB from its colour profile")
    return converted


def _transformed(image: Image.Image, source: Any) -> Image.Image:
    target = _cms.ImageCmsProfile(_cms.createProfile("sRGB"))
    intent = ImageCms.Intent.RELATIVE_COLORIMETRIC
    converted = _cms.profileToProfile(image, source, target, renderingIntent=intent, outputMode="RGB")
    return cast("Image.Image", converted)
