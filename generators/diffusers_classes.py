"""Pipeline classes of diffusers by name, and checkpoints loaded with them; refusals say what to correct.

Only names that diffusers exports are looked up: nothing is imported because a configuration names it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import re
from pathlib import Path
from typing import Any

from generators.checkpoints import folder_of, lacking, read, require_whole
from generators.diffusers_calls import first_line, is_out_of_memory
from generators.diffusers_options import DiffusersI2vOptions, call_of
from generators.diffusers_rules import RULES
from generators.knobs import Knobs, loading
from orchestrator.errors import BackendMisconfigured
from orchestrator.faults import suggest

_LIKE_ONE = re.compile(r"(?!Wan|Cosmos|.*Modular).*(ImageToVideo|Image2Video|I2V)")  # what is suggested


def pipeline_class(options: DiffusersI2vOptions) -> Any:
    """The class of that name in diffusers. Raises BackendMisconfigured if it renders no video of a picture."""
    diffusers, name = diffusers_library(), options.pipeline
    exported = [other for other in dir(diffusers) if other.endswith("Pipeline")]
    near = {other for other in exported if _LIKE_ONE.match(other)} | set(RULES)
    if name not in exported:
        raise BackendMisconfigured(f"diffusers has no pipeline {name!r}{suggest(name, near)}")
    kind = getattr(diffusers, name)
    if not (inspect.isclass(kind) and issubclass(kind, diffusers.DiffusionPipeline)):
        needs = ", ".join(getattr(kind, "_backends", ())) or "another version of diffusers"
        raise BackendMisconfigured(f"the pipeline {name} of diffusers cannot be used without {needs}: install it")
    takes = inspect.signature(kind.__call__).parameters
    lacks = [argument for argument in ("image", "prompt", options.frames_argument) if argument not in takes]
    if lacks:
        raise BackendMisconfigured(
            f"the pipeline {name} of diffusers does not make a video from a picture and a prompt: its call takes"
            f" no {', '.join(lacks)}{suggest(name, near)}"
        )
    if "safety_checker" in inspect.signature(kind.__init__).parameters:
        raise BackendMisconfigured(
            f"the pipeline {name} of diffusers has a safety checker, which this backend does not serve: choose"
            " another, or type = 'cosmos'"
        )
    return kind


def check_call(kind: Any, options: DiffusersI2vOptions) -> None:
    """Raise BackendMisconfigured for an argument that the pipeline's call does not take."""
    takes = inspect.signature(kind.__call__).parameters
    asked = {f"call.{name}": name for name in call_of(options)}
    asked["guidance_argument"] = options.guidance_argument.replace("guider", "")
    asked["fps_argument"] = options.fps_argument
    for option, name in asked.items():
        if name and name not in takes:
            known = set(takes) - {"self", "kwargs"}
            raise BackendMisconfigured(
                f"{option}: a call of {kind.__name__} takes no argument {name!r}{suggest(name, known)}"
            )


def loaded(
    kind: Any, model: str, knobs: Knobs, *, allow_download: bool, revision: str | None = None, **parts: Any
) -> Any:
    """The checkpoint as a pipeline of that class, on the CPU; `parts` stand in for the checkpoint's own.

    Raises BackendMisconfigured that names the checkpoint, or its file, and what is wrong with it.
    """
    folder = folder_of(model, revision=revision, allow_download=allow_download)
    require_whole(read(folder))
    try:
        pipeline = kind.from_pretrained(str(folder), local_files_only=True, **loading(knobs), **parts)
    except BackendMisconfigured:
        raise
    except Exception as error:  # a file that is cut, absent or of another model: each library its own class
        if is_out_of_memory(error):
            raise
        raise BackendMisconfigured(
            f"model {model}: it cannot be loaded as {kind.__name__}"
            f" ({first_line(error)}): name a whole checkpoint of that pipeline"
        ) from error
    _check_kinds(pipeline, model)
    _require_filled(pipeline, folder)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _check_kinds(pipeline: Any, model: str) -> None:
    """Raise BackendMisconfigured for a checkpoint of another pipeline: diffusers loads it with a warning."""
    wanted: Any = pipeline._get_signature_types()
    for name in ("transformer", "vae"):
        part: Any = pipeline.components.get(name)
        kinds: tuple[Any, ...] = tuple(kind for kind in wanted.get(name, ()) if inspect.isclass(kind))
        if part is not None and kinds and not isinstance(part, kinds):
            raise BackendMisconfigured(
                f"model {model}: its {name} is a {type(part).__name__}, {type(pipeline).__name__} has a"
                f" {' or '.join(kind.__name__ for kind in kinds)}: correct pipeline, or name another checkpoint"
            )


def _require_filled(pipeline: Any, folder: Path) -> None:
    """Raise BackendMisconfigured for weights that no file holds: diffusers leaves them without values."""
    for name, part in pipeline.components.items():
        weights = part.named_parameters() if hasattr(part, "named_parameters") else ()
        if empty := sorted(weight for weight, held in weights if held.is_meta):
            raise lacking(folder / name, empty, "its config.json asks for")


def require_libraries() -> None:
    """Raise BackendMisconfigured where what diffusers needs is not installed; nothing of it is loaded."""
    missing = [name for name in ("torch", "diffusers", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        raise BackendMisconfigured(
            f"diffusers pipelines need packages that are missing ({names}): pip install 'cliploop[wan]'"
        )


def diffusers_library() -> Any:
    """Raises BackendMisconfigured where it, or torch, is not installed."""
    try:
        importlib.import_module("torch")
        for name in ("torch.utils._pytree", "torchao"):  # what these remark says nothing to whoever runs this
            logging.getLogger(name).setLevel(logging.ERROR)
        for library in ("transformers", "diffusers"):
            says = importlib.import_module(f"{library}.utils.logging")
            says.set_verbosity_error()
            says.disable_progress_bar()  # workers' logs are no terminals
        return importlib.import_module("diffusers")
    except ImportError as error:
        raise BackendMisconfigured(
            f"diffusers pipelines need packages that are missing ({error}): pip install 'cliploop[wan]'"
        ) from error
