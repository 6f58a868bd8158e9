"""Safety checkers with the methods of NVIDIA's, of which each has one opinion."""

from __future__ import annotations

from typing import Any


class Lenient:
    """Lets everything through. `seen`: the prompts and the videos' shapes that the latest one was shown."""

    latest: Any = None

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.device: Any = None
        Lenient.latest = self

    def to(self, device: Any) -> None:
        self.device = device

    def check_text_safety(self, prompt: str) -> bool:
        self.seen.append(prompt)
        return True

    def check_video_safety(self, frames: Any) -> Any:
        self.seen.append((frames.shape, str(frames.dtype)))
        return frames


class NoPrompts(Lenient):
    def check_text_safety(self, prompt: str) -> bool:
        return False


class NoVideos(Lenient):
    def check_video_safety(self, frames: Any) -> Any:
        return None


class Blurs(Lenient):
    """Makes a corner black."""

    def check_video_safety(self, frames: Any) -> Any:
        changed = frames.copy()
        changed[:, :8, :8] = 0
        return changed


class Cuts(Lenient):
    def check_video_safety(self, frames: Any) -> Any:
        return frames[1:]


class Half:
    def to(self, device: Any) -> None:
        pass


class Absent(Lenient):
    def __init__(self) -> None:
        raise OSError("its models are not in the local cache")
