"""One ffmpeg child process: frames in through a pipe, a finished file's bytes out; killable, with a time limit.

Knows no codec: the caller gives the options.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, cast

import imageio_ffmpeg
import numpy as np

from media.pictures import Frame
from orchestrator.errors import CliploopError, JobWaiting

SECONDS_LIMIT = 600.0  # an 81-frame clip takes under a second; past this a child is stuck
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class EncodingFailed(CliploopError):
    """ffmpeg could not write the file; the message ends with its own last words."""


@functools.cache
def _ffmpeg() -> str:
    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise EncodingFailed(f"no ffmpeg found ({error}): reinstall imageio-ffmpeg") from error


@functools.cache
def version() -> str:
    """ffmpeg's own version, one word."""
    ran = subprocess.run([_ffmpeg(), "-version"], capture_output=True, text=True, timeout=60, check=False)
    match = re.match(r"ffmpeg version (\S+)", ran.stdout)
    return match.group(1) if match else "unknown"


def encode(
    frames: Iterable[Frame],
    width: int,
    height: int,
    fps: Fraction,
    options: Sequence[str],
    scratch: Path | None = None,
) -> bytes:
    """The MP4 file that ffmpeg makes of (H, W, 3) uint8 RGB frames with these output options.

    `scratch` is the folder of the temporary file. Raises EncodingFailed, and JobWaiting(disk) without room.
    """
    with _scratch_file(scratch) as file:
        _encode(frames, width, height, fps, options, file)
        return _content(file)


@contextmanager
def _scratch_file(folder: Path | None) -> Generator[IO[bytes]]:
    """A file without a name where the system has such (nothing is left behind by a kill), else a named one."""
    kind = tempfile.TemporaryFile if sys.platform == "linux" else tempfile.NamedTemporaryFile
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)  # somebody may have removed it meanwhile
        file = kind(suffix=".mp4", dir=folder)
    except OSError as error:
        where = folder or tempfile.gettempdir()
        remedy = "free some space there" if error.errno in _NO_ROOM else "make it a folder that can be written to"
        raise JobWaiting("disk", f"cannot write to {where} ({error.strerror}): {remedy}") from error
    with file:
        yield cast("IO[bytes]", file)


def _content(file: IO[bytes]) -> bytes:
    with Path(_name(file)).open("rb") as again:  # by name: the child wrote through its own handle
        return again.read()


def _name(file: IO[bytes]) -> str:
    return file.name if isinstance(file.name, str) else f"/dev/fd/{file.fileno()}"


def _encode(
    frames: Iterable[Frame], width: int, height: int, fps: Fraction, options: Sequence[str], file: IO[bytes]
) -> None:
    command = [_ffmpeg(), "-hide_banner", "-loglevel", "error", "-y"]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-framerate", str(fps)]
    command += ["-i", "pipe:0", "-an", *options, "-f", "mp4", _name(file)]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(file.fileno(),),
    )
    with _watched(child) as watch:
        count = _feed(cast("IO[bytes]", child.stdin), frames, (height, width, 3))
        code = child.wait()
    if watch.timed_out:
        raise EncodingFailed(f"ffmpeg made no end within {SECONDS_LIMIT:g} s and was stopped: run the job again")
    if code or not count:
        raise _failure(code, watch.words, count)


@dataclass
class _Watch:
    timed_out: bool = False
    words: str = ""  # what the child said on stderr, once it has ended


@contextmanager
def _watched(child: subprocess.Popen[bytes]) -> Generator[_Watch]:
    """Collects what the child says, ends it at the time limit, and leaves none behind, whatever happens."""
    watch = _Watch()
    stdin, stderr = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stderr)

    def expire() -> None:
        watch.timed_out = True
        child.kill()

    said: list[bytes] = []
    # Through a pipe: on a full disk a file could not hold the complaint.
    listener = threading.Thread(target=lambda: said.append(stderr.read()), daemon=True)
    timer = threading.Timer(SECONDS_LIMIT, expire)
    timer.daemon = True
    listener.start()
    timer.start()
    try:
        yield watch
    finally:
        timer.cancel()
        if child.poll() is None:
            child.kill()
            child.wait()
        with suppress(BrokenPipeError):  # what it did not read any more
            stdin.close()
        listener.join()
        stderr.close()
        watch.words = b"".join(said)[-20_000:].decode("utf-8", "replace")


def _feed(pipe: IO[bytes], frames: Iterable[Frame], shape: tuple[int, int, int]) -> int:
    """Write the frames; returns how many. A child that has died is noticed by its exit code, not here."""
    count = 0
    try:
        for frame in frames:
            if frame.shape != shape or frame.dtype != np.uint8:
                raise EncodingFailed(f"frame {count} is {frame.shape} {frame.dtype}, not {shape} uint8")
            pipe.write(np.ascontiguousarray(frame).data)
            count += 1
        pipe.close()
    except BrokenPipeError:
        with suppress(BrokenPipeError):
            pipe.close()
    return count


def _failure(code: int, words: str, count: int) -> CliploopError:
    last = next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "no message")
    said_so = any(os.strerror(number) in words for number in _NO_ROOM)
    if said_so or code == -signal.SIGXFSZ or code in {256 - number for number in _NO_ROOM}:
        return JobWaiting("disk", "no room for the encoded video: free some space")
    if not count:
        return EncodingFailed("there are no frames to encode")
    return EncodingFailed(f"ffmpeg could not encode the video (exit status {code}): {last[:300]}")
