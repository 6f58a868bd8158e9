"""Checkpoints from a hub: what would be fetched, how large it is, and fetching it into the local cache."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """A file of a repository; `size` in bytes; `here`: whether it is in the local cache."""

    name: str
    size: int
    here: bool = False


def wanted_files(model: str, *, revision: str | None = None) -> list[RemoteFile]:
    """What a pull fetches, that is already here or not. Raises BackendMisconfigured, BackendUnavailable."""
    try:
        told: Any = _library().HfApi().model_info(model, revision=revision, files_metadata=True)
    except Exception as error:
        raise _explained(model, revision, error) from error
    siblings: list[Any] = told.siblings or []
    files = chosen([RemoteFile(each.rfilename, each.size or 0) for each in siblings], model)
    kept = _library().try_to_load_from_cache
    return [replace(each, here=isinstance(kept(model, each.name, revision=told.sha), str)) for each in files]


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
    files = wanted_files(model, revision=revision)
    require_room(model, files)
    wanted = [each.name for each in files]
    try:
        return Path(_library().snapshot_download(model, revision=revision, allow_patterns=wanted))
    except Exception as error:
        raise _explained(model, revision, error) from error


def require_room(model: str, files: Sequence[RemoteFile]) -> None:
    """Raise BackendMisconfigured where the cache's disk has no room for those that are not here."""
    folder, free = cache_folder(), free_bytes()
    begun = (folder / f"models--{model.replace('/', '--')}" / "blobs").glob("*.incomplete")
    missing = sum(each.size for each in files if not each.here) - sum(part.stat().st_size for part in begun)
    if missing > free:
        raise BackendMisconfigured(
            f"model {model}: {in_words(missing)} are to be fetched, and {in_words(free)} are free on the disk of"
            f" {folder}: make room there, or set HF_HOME to a folder on another disk"
        )


def free_bytes() -> int:
    """On the disk of the cache, which need not exist yet."""
    folder = cache_folder()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def in_words(size: float) -> str:
    """`28.6 GB`: in units of 1000, as the hub tells them."""
    units = ("bytes", "kB", "MB", "GB", "TB")
    place = 0
    while size >= 1000 and place < len(units) - 1:
        size, place = size / 1000, place + 1
    return f"{size:.{min(place, 1)}f} {units[place]}"


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
