"""The embedded generator: understands a shot, moves the picture's own pixels, and fails by a profile.

Outside the swept cells every frame equals the start frame bit for bit, colour drift and collapse aside.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from generators import effects
from generators.profile import PROFILES, Profile, load_profile
from generators.script import Script, write_script
from generators.seeing import Seen, see
from media.frames import FrameReader
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from orchestrator.frame_counts import snap
from orchestrator.records import Capabilities, Record, Shot
from worlds.motion import move
from worlds.world import Frame, Frames

SHOTS_KEPT = 8
MAX_SIDE = 1920  # pixels; a larger picture is rendered smaller: clips of it would take gigabytes


class SimulatedOptions(Record):
    """Options of a simulated generator."""

    profile: Literal["vbvr-wan2.2", "veo-3.1", "cosmos-2.5", "perfect"] = "vbvr-wan2.2"


assert set(PROFILES) == {"vbvr-wan2.2", "veo-3.1", "cosmos-2.5", "perfect"}


class SimulatedGenerator:
    """Implements orchestrator.ports.Generator. Keeps what it understood of the last few shots, nothing else."""

    def __init__(self, reader: FrameReader | None, profile: Profile) -> None:
        self._reader = reader
        self._profile = profile
        self._seen: OrderedDict[tuple[str, str], Seen | None] = OrderedDict()

    @property
    def capabilities(self) -> Capabilities:
        """The canvas is the picture, at most 1920 pixels wide and high; frame counts are 4k + 1, like Wan's."""
        return Capabilities(
            name=f"simulated ({self._profile.name})",
            size_multiple=1,
            max_side=MAX_SIDE,
            max_pixels=MAX_SIDE * MAX_SIDE,
            frame_step=4,
            frame_offset=1,
            min_frames=5,
            max_frames=257,
            fps=16.0,
            prompt_chars=8000,
            one_shot_strong=self._profile.name == "veo-3.1",
        )

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """(T, H, W, 3) uint8 RGB of the canvas' size, T snapped to 4k + 1. Raises BackendFailed, JobCancelled."""
        for step in range(shot.denoising_steps):
            if cancelled():
                raise JobCancelled("the render was cancelled")
            progress(step / shot.denoising_steps)
        start = self._picture(shot)
        if start.shape[:2] != (shot.canvas.height, shot.canvas.width):
            raise BackendFailed(
                f"the start frame is {start.shape[1]}x{start.shape[0]}, the canvas is {shot.canvas}"
            )
        num_frames = snap(shot.num_frames, self.capabilities)
        seen = self._understood(start, shot)
        frames = self._rendered(start, seen, shot, num_frames)
        progress(1.0)
        return frames

    def script(self, shot: Shot) -> Script | None:
        """What `render` will show of a shot, for tests; None if it makes no sense to the generator."""
        seen = self._understood(self._picture(shot), shot)
        return None if seen is None else self._script(seen, shot, snap(shot.num_frames, self.capabilities))

    def _picture(self, shot: Shot) -> Frame:
        if self._reader is None:
            raise BackendMisconfigured("this generator was built without artifacts: it cannot render")
        return self._reader.picture(shot.start_frame)

    def _understood(self, start: Frame, shot: Shot) -> Seen | None:
        key = (shot.start_frame, shot.prompt)
        if key not in self._seen:
            self._seen[key] = see(start, shot.prompt)
            while len(self._seen) > SHOTS_KEPT:
                self._seen.popitem(last=False)
        return self._seen[key]

    def _script(self, seen: Seen, shot: Shot, num_frames: int) -> Script:
        return write_script(
            seen.scene.world,
            seen.reading,
            seen.actions,
            self._profile,
            seed=shot.seed,
            num_frames=num_frames,
            corrected=seen.corrected,
            instructed=seen.instructed,
        )

    def _rendered(self, start: Frame, seen: Seen | None, shot: Shot, num_frames: int) -> Frames:
        if seen is None:
            return np.repeat(start[np.newaxis], num_frames, axis=0)
        script = self._script(seen, shot, num_frames)
        moving = script.moving_frames
        frames = move(seen.scene, start, seen.reading, script.path, moving, num_frames - moving)
        rng = np.random.default_rng([shot.seed, 104729])
        if script.collapse_from is not None:
            effects.collapse(frames, script.collapse_from, rng)
        if script.drift_levels:
            effects.drift(frames, script.drift_levels, rng)
        if script.reimagined:
            effects.reimagine(frames, rng)
        return frames


def build(options: SimulatedOptions, reader: FrameReader | None) -> SimulatedGenerator:
    """A generator of the profile that the options name. Raises BackendMisconfigured."""
    return SimulatedGenerator(reader, load_profile(options.profile))


def figures(options: SimulatedOptions) -> dict[str, Any]:
    """The profile's figures."""
    return load_profile(options.profile).model_dump(mode="json")
