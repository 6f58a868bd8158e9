"""`cliploop models pull`: fetch a checkpoint from the hub into the local cache, once, before it is used."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliploop.commands.boundary import guarded
from cliploop.compose import Composition
from cliploop.terminal import EXIT_COMPLETED, Terminal, one_line
from generators.catalog import GENERATORS
from generators.hub import RemoteFile, free_bytes, in_words, pull, require_room, wanted_files
from orchestrator.errors import BackendMisconfigured

LARGEST_TOLD = 5


@dataclass(frozen=True)
class Repository:
    """What is to be fetched: a repository of the hub, at a revision or its newest."""

    model: str
    revision: str | None = None


def pull_command(name: str, dry_run: bool, config: Path | None, terminal: Terminal) -> int:
    """Fetch what the generator of that name, or a repository, consists of; or only say what that is."""

    def body() -> int:
        found = _repository(name, config)
        files = wanted_files(found.model, revision=found.revision)
        _tell(found, files, terminal)
        require_room(found.model, files)
        told: dict[str, Any] = {
            **{"ok": True, "exit_code": EXIT_COMPLETED, "model": found.model, "dry_run": dry_run},
            **{"files": len(files), "bytes": sum(each.size for each in files), "bytes_here": _bytes_here(files)},
        }
        if dry_run:
            terminal.say("Nothing was fetched: leave --dry-run out.")
        else:
            _quiet_bars(terminal)
            folder = pull(found.model, revision=found.revision)
            terminal.say(f"{one_line(found.model)} is in {folder}", whole=True)
            told["folder"] = str(folder)
        terminal.result(told)
        return EXIT_COMPLETED

    return guarded(terminal, body)


def _repository(name: str, config: Path | None) -> Repository:
    """Of a configured generator, or as it stands. Raises BackendMisconfigured where nothing is to be fetched."""
    composition = Composition.read(config, os.environ, Path())
    if name not in composition.generator_names() and "/" in name:
        return Repository(name)
    entry = composition.entry("generators", name)
    options = GENERATORS.options(entry.type, entry.given).model_dump()
    model = str(options.get("model") or "")
    if not model or "base_url" in options:
        raise BackendMisconfigured(f"the generator {name!r} has no checkpoint: there is nothing to fetch")
    if Path(model).expanduser().is_dir():
        raise BackendMisconfigured(
            f"the generator {name!r} has its checkpoint in the folder {model}: nothing to fetch"
        )
    return Repository(model, options.get("revision"))


def _tell(found: Repository, files: list[RemoteFile], terminal: Terminal) -> None:
    here = _bytes_here(files)
    kept = f", {in_words(here)} of them here" if here else ""
    size, free = in_words(sum(each.size for each in files)), in_words(free_bytes())
    terminal.say(f"{one_line(found.model)}: {len(files)} files, {size}{kept}; {free} free on the disk")
    for each in sorted(files, key=lambda file: file.size, reverse=True)[:LARGEST_TOLD]:
        terminal.say(f"  {in_words(each.size):>10}  {one_line(each.name)}")
    if len(files) > LARGEST_TOLD:
        terminal.say(f"  and {len(files) - LARGEST_TOLD} smaller")


def _bytes_here(files: list[RemoteFile]) -> int:
    return sum(each.size for each in files if each.here)


def _quiet_bars(terminal: Terminal) -> None:
    """The hub's own bars are for people at a terminal."""
    if terminal.json or not sys.stderr.isatty():
        importlib.import_module("huggingface_hub.utils").disable_progress_bars()
