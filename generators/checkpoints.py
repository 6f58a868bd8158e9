"""Checkpoints in diffusers' layout on disk: where one is, what its files say, and whether they are whole.

Loads no weights and no torch. What a model's own files must say is its backend's business.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from generators.diffusers_calls import first_line
from orchestrator.errors import BackendMisconfigured, BackendUnavailable

INDEX = "model_index.json"
_TOKENIZER_FILES = ("tokenizer.json", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "vocab.txt")
_WEIGHTS = ("diffusion_pytorch_model", "model")  # diffusers' and transformers' names for them


@dataclass(frozen=True)
class Checkpoint:
    """A folder with a pipeline in it. `parts`: the class of each component that it has, by name."""

    folder: Path
    pipeline: str
    parts: Mapping[str, str]
    index: Mapping[str, Any]

    def config(self, part: str) -> Mapping[str, Any]:
        """What a component's config.json says. Raises BackendMisconfigured that names the file."""
        return _json(self.folder / part / "config.json")


def folder_of(model: str, *, revision: str | None = None, allow_download: bool = False) -> Path:
    """The folder of a checkpoint that is named by a folder or the id of a hub repository.

    Raises BackendMisconfigured if it is not here and may not be fetched, BackendUnavailable if it cannot be now.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if _is_path(path, model):
        what = "it is a file, not a folder" if path.exists() else "no such folder"
        raise BackendMisconfigured(f"model {model}: {what}; name a checkpoint, or the id of a repository")
    cached = _cached(model, revision)
    if allow_download:
        from generators.hub import pull  # brings the hub's client

        try:
            return pull(model, revision=revision)
        except BackendUnavailable:
            if cached is None:
                raise
    if cached is None:
        raise BackendMisconfigured(
            f"model {model}: it is not in the local cache: cliploop models pull {model}, or set"
            " allow_download = true, or name a folder"
        )
    return cached


def is_here(model: str, revision: str | None = None) -> bool:
    """Whether a checkpoint is on this machine, however whole. Raises BackendMisconfigured for no name of one."""
    path = Path(model).expanduser()
    return path.is_dir() or (not _is_path(path, model) and _cached(model, revision) is not None)


def _is_path(path: Path, model: str) -> bool:
    """Whether it can be no repository."""
    return path.is_absolute() or model.startswith((".", "~")) or path.exists()


def _cached(model: str, revision: str | None) -> Path | None:
    """The folder of a repository in the local cache, however whole it is; None if it is not there."""
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise BackendMisconfigured(
            f"model {model}: no such folder, and a repository needs huggingface_hub: pip install 'cliploop[wan]'"
        ) from error
    try:
        index = hub.try_to_load_from_cache(model, INDEX, revision=revision)
    except ValueError as error:  # HFValidationError
        raise BackendMisconfigured(
            f"model {model}: no such folder, and no id of a repository; name one, such as"
            " Wan-AI/Wan2.2-I2V-A14B-Diffusers"
        ) from error
    return Path(index).parent if isinstance(index, str) else None


def read(folder: Path) -> Checkpoint:
    """What a folder holds. Raises BackendMisconfigured where that is no pipeline of diffusers."""
    if not (folder / INDEX).is_file():
        raise BackendMisconfigured(f"model {folder}: there is no {INDEX} in it{_looks_like(folder)}")
    index = _json(folder / INDEX)
    parts = {
        name: str(cast("list[Any]", said)[1])
        for name, said in index.items()
        if isinstance(said, list) and len(cast("list[Any]", said)) == 2 and cast("list[Any]", said)[1]
    }
    return Checkpoint(folder, str(index.get("_class_name", "")), parts, index)


def _looks_like(folder: Path) -> str:
    """What else the folder may be, and what to do then."""
    names = {path.name for path in folder.iterdir()}
    if any(name.endswith(".pth") for name in names) or {"high_noise_model", "low_noise_model"} & names:
        return (
            ": it holds the original layout of Wan's weights, not that of diffusers; get the repository whose"
            " name ends in -Diffusers, such as Wan-AI/Wan2.2-I2V-A14B-Diffusers"
        )
    if any(name.endswith((".safetensors", ".gguf", ".ckpt")) for name in names) and "config.json" not in names:
        return ": it holds single files of weights; get the model in diffusers' layout, a folder per component"
    if (folder.parent / INDEX).is_file():
        return f": it is one component of {folder.parent}; name that"
    return "; name a checkpoint in diffusers' layout"


def require_whole(checkpoint: Checkpoint) -> None:
    """Raise BackendMisconfigured that names the first file that is absent, cut or no weights."""
    for part, kind in checkpoint.parts.items():
        folder = checkpoint.folder / part
        if not folder.is_dir():
            raise _incomplete(folder, f"{INDEX} names it ({kind}) and it is not there")
        for path in sorted(folder.glob("*.json")):
            _parsed(path)
        if "Tokenizer" in kind:
            wordless = "ByT5" in kind  # its tokens are bytes
            if not wordless and not any((folder / name).is_file() for name in _TOKENIZER_FILES):
                raise _incomplete(folder, f"there is none of {', '.join(_TOKENIZER_FILES)} in it")
        elif "Scheduler" in kind:
            _json(folder / "scheduler_config.json")
        elif "Processor" in kind or "FeatureExtractor" in kind:
            _json(folder / "preprocessor_config.json")
        elif _is_model(folder):
            checkpoint.config(part)
            _require_weights(folder)


def _is_model(folder: Path) -> bool:
    """Whether it has weights; a guider, say, has settings in a file of its own name."""
    settings = {path.name for path in folder.glob("*.json")}
    return bool(list(folder.glob("*.safetensors"))) or settings <= {"config.json"}


def _require_weights(folder: Path) -> None:
    for name in _WEIGHTS:
        index, single = folder / f"{name}.safetensors.index.json", folder / f"{name}.safetensors"
        if index.is_file():
            shards = cast("Mapping[str, str]", _json(index).get("weight_map", {}))
            if not shards:
                raise _incomplete(index, "it names no files of weights")
            for shard in sorted(set(shards.values())):
                named = {name for name, place in shards.items() if place == shard}
                there = _require_file(folder / shard, f", which {index.name} names")
                if there is not None and (lacks := sorted(named - there)):
                    raise lacking(folder / shard, lacks, f"{index.name} says are in it")
            return
        if single.is_file():
            _require_file(single, "")
            return
        if (folder / f"{name}.bin").is_file() or (folder / f"{name}.bin.index.json").is_file():
            return  # an older format, which says nothing of its own length
    raise _incomplete(
        folder, f"there are no weights in it ({_WEIGHTS[0]}.safetensors or {_WEIGHTS[1]}.safetensors)"
    )


def _require_file(path: Path, who: str) -> frozenset[str] | None:
    """The names of its tensors, where they can be read. A file of weights says in its head how long it is."""
    if not path.is_file():
        raise _incomplete(path, f"there is no such file{who}")
    try:
        safetensors: Any = importlib.import_module("safetensors")
    except ImportError:  # without the extra nothing is loaded either
        return None
    try:
        with safetensors.safe_open(str(path), framework="np") as file:
            return frozenset(file.keys())
    except Exception as error:  # its own class, which is not exported everywhere
        raise _incomplete(
            path, f"it is cut or damaged ({first_line(error)}), {path.stat().st_size} bytes"
        ) from error


def lacking(place: Path, names: Sequence[str], who: str) -> BackendMisconfigured:
    """That files lack these tensors; `who` goes on from "tensors that"."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return _incomplete(place, f"it lacks tensors that {who}: {names[0]}{more}")


def _incomplete(path: Path, what: str) -> BackendMisconfigured:
    return BackendMisconfigured(
        f"{path}: {what}; get the checkpoint anew (cliploop models pull) or copy it again, whole"
    )


def _json(path: Path) -> Mapping[str, Any]:
    """Raises BackendMisconfigured that names the file."""
    said = _parsed(path)
    if not isinstance(said, dict):
        raise _incomplete(path, "it holds no JSON object")
    return cast("Mapping[str, Any]", said)


def _parsed(path: Path) -> Any:
    """Raises BackendMisconfigured that names the file."""
    try:
        if not path.is_file():  # a pipe would be waited for
            raise _incomplete(path, "there is no such file")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _incomplete(path, f"it cannot be read ({first_line(error)})") from error
