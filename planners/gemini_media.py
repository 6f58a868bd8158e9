"""What a Gemini is shown: text, PNGs, and clips as the video that they are; uploaded where they are large.

It knows the client's parts and the Files API, no role.
"""

from __future__ import annotations

import io
import json
import logging
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cliploop.vendor_gemini import GeminiApi
from media.encode import browser_clip
from media.frames import FrameReader
from media.pictures import encode_png
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError
from orchestrator.records import Footage
from planners.gemini_options import FPS_MAX, GeminiOptions
from planners.questions import Clip, Part, Picture

MP4, PNG = "video/mp4", "image/png"
CLIPS_KEPT = 4  # as files: one that is asked about again is not encoded again
DELETE_SECONDS = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Media:
    """A picture or a clip as a file. `fps`: how many frames of a clip are looked at in a second."""

    data: bytes
    kind: str
    told: str
    fps: float | None = None

    @property
    def inline_bytes(self) -> int:
        """In a request, where it is base64."""
        return 4 * math.ceil(len(self.data) / 3)


Shown = str | Media


def looked_at(footage: Footage, wanted: float) -> float:
    """Frames a second that are asked for: never more than there are, or the model would see some twice."""
    exact = min(wanted, FPS_MAX, footage.num_frames / footage.seconds)
    return math.floor(exact * 1000 + 1e-6) / 1000


@dataclass
class Projector:
    """Makes files of pictures and clips, and remembers the last ones."""

    reader: FrameReader
    video_fps: float
    _kept: dict[Footage, bytes] = field(default_factory=dict[Footage, bytes])

    def shown(self, parts: Sequence[Part]) -> list[Shown]:
        """The parts in their order."""
        return [part if isinstance(part, str) else self._media(part) for part in parts]

    def _media(self, part: Picture | Clip) -> Media:
        if isinstance(part, Picture):
            data = encode_png(self.reader.picture(part.key))
            return Media(data, PNG, f"a picture ({_kilobytes(data)})")
        footage = part.footage
        if footage.num_frames == 1:
            data = encode_png(self.reader.frame(footage, 0))
            return Media(data, PNG, f"1 frame as a picture ({_kilobytes(data)})")
        data = self._mp4(footage)
        fps = looked_at(footage, self.video_fps)
        seen = min(footage.num_frames, math.ceil(footage.seconds * fps - 1e-6))
        told = f"{footage.num_frames} frames as video, {seen} of them seen at {fps:g} fps ({_kilobytes(data)})"
        return Media(data, MP4, told, fps)

    def _mp4(self, footage: Footage) -> bytes:
        """H.264 yuv420p at the canvas' size."""
        if footage not in self._kept:
            while len(self._kept) >= CLIPS_KEPT:
                self._kept.pop(next(iter(self._kept)))
            with tempfile.TemporaryDirectory(prefix="cliploop-") as folder:
                path = Path(folder) / "clip.mp4"
                browser_clip(footage, self.reader, path)
                self._kept[footage] = path.read_bytes()
        return self._kept[footage]


def too_large(shown: Sequence[Shown], other_bytes: int, limit_bytes: float) -> set[int]:
    """Which of these go as files, so that the rest fits into one request: the largest first."""
    media = {number: each for number, each in enumerate(shown) if isinstance(each, Media)}
    total = other_bytes + sum(each.inline_bytes for each in media.values())
    total += sum(len(json.dumps(each)) for each in shown if isinstance(each, str))
    chosen: set[int] = set()
    for number in sorted(media, key=lambda number: -media[number].inline_bytes):
        if total <= limit_bytes:
            break
        chosen.add(number)
        total -= media[number].inline_bytes
    return chosen


class Uploads:
    """Files at Google for the length of one question. `until`: when the question itself is given up."""

    def __init__(self, api: GeminiApi, options: GeminiOptions, until: float) -> None:
        self._api, self._options, self._until = api, options, until
        self._names: list[str] = []

    def add(self, media: Media) -> Any:
        """The file, once it can be used. Raises BackendUnavailable, BackendMisconfigured."""
        sent = self._guarded(lambda: self._uploaded(media))
        if not sent.name:
            raise BackendMisconfigured(f"{self._api.place}: it took a file and gave it no name")
        self._names.append(sent.name)
        return self._ready(sent)

    def _uploaded(self, media: Media) -> Any:
        config = self._api.types.UploadFileConfig(mime_type=media.kind)
        try:
            return self._api.client.files.upload(file=io.BytesIO(media.data), config=config)
        except json.JSONDecodeError as error:
            raise self._none(self._api.told(error.doc)) from None
        except KeyError as error:  # the client's words where the protocol is not kept
            raise self._none(self._api.told(error)) from None
        except ValueError as error:
            raise BackendUnavailable(f"{self._api.place}: it did not take an upload ({error})") from None

    def _ready(self, file: Any) -> Any:
        given = min(self._until, time.monotonic() + self._options.file_seconds)
        while True:
            state = "" if file.state is None else str(file.state.value)
            if state == "ACTIVE":
                return file
            if state == "FAILED":
                why = file.error.message if file.error is not None else None
                raise BackendUnavailable(
                    f"{self._api.place}: it could not read the video that was uploaded"
                    f" ({self._api.told(why or 'no reason given')})"
                )
            pause = self._options.file_poll_seconds
            if time.monotonic() + pause > given:
                raise BackendUnavailable(
                    f"{self._api.place}: the uploaded video was not ready in"
                    f" {self._options.file_seconds:g} s ({state or 'no state'}): raise file_seconds and"
                    " timeout_seconds"
                )
            time.sleep(pause)
            file = self._guarded(partial(self._api.client.files.get, name=file.name))

    def _guarded(self, call: Callable[[], Any]) -> Any:
        return self._api.guarded(call, refused=self._refused, size_option="video_fps")

    def _refused(self, status: int, words: str) -> CliploopError | None:
        return self._none(words) if status == 404 else None

    def _none(self, words: str) -> BackendMisconfigured:
        return BackendMisconfigured(
            f"{self._api.place}: it takes no uploads ({words}): raise inline_megabytes, or lower the clip's size"
        )

    def __enter__(self) -> Uploads:
        return self

    def __exit__(self, *_: object) -> None:
        """They would go by themselves after two days; one that cannot be deleted is no reason to fail."""
        types = self._api.types
        for name in self._names:
            config = types.DeleteFileConfig(http_options=types.HttpOptions(timeout=round(DELETE_SECONDS * 1000)))
            try:
                self._api.client.files.delete(name=name, config=config)
            except Exception as error:
                _log.info("%s was not deleted: %s", name, self._api.told(error))


def _kilobytes(data: bytes) -> str:
    return f"{max(1, round(len(data) / 1000)):,} KB"
