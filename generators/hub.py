"""Checkpoints from a hub: what would be fetched, how large it is, and fetching it into the local cache."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from generators.checkpoints import INDEX
from generators.diffusers_calls import first_line
from orchestrator.errors import BackendMisconfigured, BackendUnavailable

_LIGHT = ("*.json", "*.txt", "*.model", "*.jinja")
_VARIANTS = ("*.fp16.*", "*.bf16.*", "*.non_ema.*", "*.onnx*", "*.msgpack")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository; `size` in bytes."""

    name: str
    size: int


def wanted_files(model: str, *, revision: str | None = None) -> list[RemoteFile]:
    """What a pull fetches, that is already here or not. Raises BackendMisconfigured, BackendUnavailable."""
    try:
        told: Any = _library().HfApi().model_info(model, revision=revision, files_metadata=True)
    except Exception as error:
        raise _explained(model, revision, error) from error
    siblings: list[Any] = told.siblings or []
    files = [RemoteFile(each.rfilename, each.size or 0) for each in siblings]
    return chosen(files, model)


def chosen(files: Sequence[RemoteFile], model: str) -> list[RemoteFile]:
    """Of a repository's files those that a pipeline is loaded from: its components, in safetensors if it can be.

    Raises BackendMisconfigured for one that is not in diffusers' layout.
    """
    names = {each.name for each in files}
    if INDEX not in names:
        raise BackendMisconfigured(
            f"model {model}: the repository has no {INDEX}: it is not in diffusers' layout; name one that is,"
            " such as Wan-AI/Wan2.2-I2V-A14B-Diffusers"
        )
    components = [each for each in files if "/" in each.name or each.name == INDEX]
    safe = {each.name.partition("/")[0] for each in components if each.name.endswith(".safetensors")}
    return [each for each in components if _is_needed(each.name, safe)]


def _is_needed(name: str, safe: set[str]) -> bool:
    if any(fnmatch(name, pattern) for pattern in _VARIANTS):
        return False
    if any(fnmatch(name, pattern) for pattern in (*_LIGHT, "*.safetensors")):
        return True
    return name.endswith(".bin") and name.partition("/")[0] not in safe


def pull(model: str, *, revision: str | None = None) -> Path:
    """Fetch what is not in the local cache; the folder. What was begun before goes on where it stopped.

    Raises BackendMisconfigured, BackendUnavailable.
    """
    wanted = [each.name for each in wanted_files(model, revision=revision)]
    try:
        return Path(_library().snapshot_download(model, revision=revision, allow_patterns=wanted))
    except Exception as error:
        raise _explained(model, revision, error) from error


def cache_folder() -> Path:
    """Where checkpoints of the hub are kept: HF_HOME or HF_HUB_CACHE decide. Raises BackendMisconfigured."""
    _library()
    return Path(importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE)


def _explained(model: str, revision: str | None, error: Exception) -> Exception:
    """What the hub's client raised, as what to do about it."""
    kind = type(error).__name__
    if isinstance(error, BackendMisconfigured | BackendUnavailable):
        return error
    if kind == "GatedRepoError":
        return BackendMisconfigured(
            f"model {model}: its licence must be agreed to on the hub, and HF_TOKEN set to a token of that"
            " account"
        )
    if kind == "RepositoryNotFoundError":
        return BackendMisconfigured(
            f"model {model}: the hub has no such repository, or HF_TOKEN may not see it: correct the name"
        )
    if kind == "RevisionNotFoundError":
        return BackendMisconfigured(
            f"model {model}: it has no revision {revision!r}: correct it, or leave it out"
        )
    if kind == "HFValidationError":
        return BackendMisconfigured(f"model {model}: that is no id of a repository: write OWNER/NAME")
    return BackendUnavailable(
        f"model {model}: it cannot be fetched ({first_line(error)}): look at the network, the free disk, or"
        " HF_ENDPOINT, and call again, it goes on where it stopped"
    )


def _library() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise BackendMisconfigured(
            f"fetching a checkpoint needs packages that are missing ({error}): pip install 'cliploop[wan]'"
        ) from error
