"""One call of a diffusers pipeline: steps that report and can be stopped, memory, frames that come back.

Knows no class of pipelines. Torch is imported inside.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.knob_options import Knobs, lower
from generators.knobs import place, refusals
from media.frames import FrameReader
from media.pictures import Frame, Frames
from orchestrator.errors import BackendFailed, BackendMisconfigured, CliploopError, JobCancelled
from orchestrator.records import Shot, Size


@dataclass
class Steps:
    """What a pipeline calls after every denoising step. `total`: how many a render has."""

    total: int
    progress: Callable[[float], None]
    cancelled: Callable[[], bool]
    done: int = 0
    told: float = 0.0

    def begin(self) -> None:
        """Before the first step. Raises JobCancelled."""
        self.done = 0
        self._go_on()

    def __call__(self, _pipeline: Any, _step: int, _timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        """Raises JobCancelled: what the pipeline computed so far is dropped."""
        self.done += 1
        self._go_on()
        return tensors

    def _go_on(self) -> None:
        if self.cancelled():
            raise JobCancelled("the render was cancelled")
        self.told = max(self.told, min(self.done / (self.total + 1), 1.0))  # the last part is the VAE's
        self.progress(self.told)


def start_picture(reader: FrameReader | None, shot: Shot) -> Frame:
    """What the clip begins with: (H, W, 3) uint8 RGB of the canvas' size. Raises BackendFailed."""
    if reader is None:
        raise BackendMisconfigured("this generator was built without artifacts: it cannot render")
    start = reader.picture(shot.start_frame)
    if start.shape[:2] != (shot.canvas.height, shot.canvas.width):
        raise BackendFailed(f"the start frame is {start.shape[1]}x{start.shape[0]}, the canvas is {shot.canvas}")
    return start


def of_size(frames: Frames, size: Size) -> Frames:
    """The frames, if they have that size. Raises BackendFailed."""
    if frames.shape[1:3] != (size.height, size.width):
        raise BackendFailed(
            f"asked for {size}, rendered {frames.shape[2]}x{frames.shape[1]}: correct size_multiple, or set sizes"
        )
    return frames


@contextmanager
def stepping(pipeline: Any, steps: Steps) -> Generator[None]:
    """For a pipeline whose call takes no callback: its scheduler's steps are counted instead."""
    scheduler = pipeline.scheduler
    step = scheduler.step

    def counted(*given: Any, **named: Any) -> Any:
        made = step(*given, **named)
        steps(pipeline, steps.done, None, {})
        return made

    scheduler.step = counted
    try:
        yield
    finally:
        del scheduler.step


def cpu_generator(seed: int) -> Any:
    """Random numbers that are the same on every device."""
    torch: Any = importlib.import_module("torch")
    return torch.Generator().manual_seed(seed)


def called(pipeline: Any, what: str, **given: Any) -> Frames:
    """The clip of one call: (T, H, W, 3) uint8 RGB, of whatever size came back. `what` is for messages.

    Raises BackendFailed for what the pipeline raises, but for errors of ours and memory that ran out.
    """
    return called_many(pipeline, what, 1, **given)[0]


def called_many(pipeline: Any, what: str, many: int, **given: Any) -> Frames:
    """The clips of one call: (many, T, H, W, 3) uint8 RGB. Raises as `called`."""
    name = type(pipeline).__name__
    try:
        made = pipeline(**given, output_type="np").frames
    except CliploopError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise BackendFailed(f"{name} at {what}: {first_line(error)}") from error
    finally:
        pipeline.maybe_free_model_hooks()
    return _whole_levels(np.asarray(made), name, many)


def _whole_levels(made: Any, name: str, many: int) -> Frames:
    """(many, T, H, W, 3) float in 0 … 1 as uint8. Raises BackendFailed for what is no such clips."""
    if made.ndim != 5 or made.shape[0] != many or made.shape[-1] != 3:
        wanted = "one clip" if many == 1 else f"{many} clips"
        raise BackendFailed(f"{name} returned an array of shape {made.shape}, not {wanted} of RGB frames")
    if not np.isfinite(made).all():
        raise BackendFailed(f"{name} returned frames that are no numbers (NaN): set dtype to bfloat16 or float32")
    return np.rint(made.clip(0, 1) * 255).astype(np.uint8)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an accelerator's memory, or the processor's, did not suffice."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OutOfMemoryError", "MemoryError"})


def with_less_memory(
    pipeline: Any, knobs: Knobs, device: str, render: Callable[[], Frames]
) -> tuple[Frames, Knobs]:
    """Render; where memory runs out, once more with the next lower profile, which then stays.

    Raises BackendFailed that says what to set where that does not suffice, or there is none.
    """
    said = ""
    try:
        return render(), knobs
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        said = first_line(error)
    free_memory()  # outside the except block, where the error still holds tensors
    less = lower(knobs, refusals(pipeline, device))
    if less is not None:
        place(pipeline, less, device=device)
        try:
            return render(), less
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        free_memory()
    raise BackendFailed(
        f"out of memory ({said}): set vae_tiling, offload or quantization (docs/gpu.md), or render fewer or"
        " smaller frames"
    )


@contextmanager
def fitting(model: str) -> Generator[None]:
    """While a model is loaded. Raises BackendMisconfigured where memory does not suffice."""
    said = ""
    try:
        yield
        return
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        said = first_line(error)
    free_memory()  # outside the except block, where the error still holds tensors
    raise BackendMisconfigured(
        f"model {model}: it does not fit into memory ({said}): set offload or quantization (docs/gpu.md), or end"
        " what else uses the device"
    )


def first_line(error: BaseException) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def free_memory() -> None:
    """Give back to the device what nothing holds any more."""
    torch: Any = importlib.import_module("torch")
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def chosen_device() -> str:
    """The first GPU, or the CPU."""
    torch: Any = importlib.import_module("torch")
    return "cuda" if torch.cuda.is_available() else "cpu"
