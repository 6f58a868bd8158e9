"""Thumbnail and spritesheet of a video, made from the video itself."""

from __future__ import annotations

import io
import math

from PIL import Image

from cliploop.site import Site
from media.frames import FrameReader
from media.probe import probe
from orchestrator.records import ArtifactKey, Footage, Segment

SPRITES = 10
COLUMNS = 5
SPRITE_PX = 320  # the longer side
THUMBNAIL_PX = 640
_QUALITY = 88


def thumbnail(site: Site, video: ArtifactKey) -> bytes:
    """WebP of the last frame, which shows what the job came to. Raises CliploopError for a damaged video."""
    return _encoded(_pictures(site, video, 1, THUMBNAIL_PX)[-1], "WEBP")


def spritesheet(site: Site, video: ArtifactKey) -> bytes:
    """JPEG of at most ten frames, evenly spaced from the first to the last, row by row."""
    sprites = _pictures(site, video, SPRITES, SPRITE_PX)
    width, height = sprites[0].size
    columns = min(COLUMNS, len(sprites))
    sheet = Image.new("RGB", (columns * width, math.ceil(len(sprites) / columns) * height))
    for place, sprite in enumerate(sprites):
        sheet.paste(sprite, (place % columns * width, place // columns * height))
    return _encoded(sheet, "JPEG")


def _pictures(site: Site, video: ArtifactKey, count: int, side_px: int) -> list[Image.Image]:
    """So many frames of the video or as many as it has, the last one always, no side longer than `side_px`."""
    found = probe(site.artifacts.path(video), decode=False)
    last, rest = found.num_frames - 1, min(count, found.num_frames) - 1
    wanted = {last if not rest else round(index * last / rest) for index in range(rest + 1)}
    footage = Footage(segments=(Segment(mezzanine=video, first=0, stop=found.num_frames, fps=1.0),))
    pictures: list[Image.Image] = []
    for index, frame in enumerate(FrameReader(site.artifacts).iterate(footage)):
        if index in wanted:
            picture = Image.fromarray(frame)
            picture.thumbnail((side_px, side_px), Image.Resampling.LANCZOS)
            pictures.append(picture)
    return pictures


def _encoded(picture: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, quality=_QUALITY)
    return buffer.getvalue()
