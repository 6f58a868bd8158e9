"""`cliploop doctor`: whether this machine can run a job, each check with its remedy."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cliploop.choosing import Wanted
from cliploop.commands.boundary import guarded
from cliploop.commands.doctor_backends import Configured, configured, examined
from cliploop.commands.doctor_deep import small_job, tried
from cliploop.commands.doctor_service import named
from cliploop.commands.findings import Finding, checked, show
from cliploop.compose import Composition
from cliploop.terminal import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE, Terminal, one_line, version
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Size

MODULES = ("pydantic", "numpy", "scipy", "PIL", "av", "imageio_ffmpeg", "sqlalchemy", "fsspec", "typer", "rich")
DISTRIBUTIONS = {"PIL": "pillow"}
SETTINGS = "settings"
LEAST_FREE_MB = 500


def doctor_command(deep: bool, config: Path | None, terminal: Terminal, *, paid: bool = False) -> int:
    """Run the checks; exit 1 if one fails, 2 if only the settings are wrong, as a run with them would."""
    return guarded(terminal, lambda: _doctor(deep, paid, config, terminal))


def _doctor(deep: bool, paid: bool, config: Path | None, terminal: Terminal) -> int:
    findings: list[Finding] = []
    for finding in _findings(deep, paid, config):
        findings.append(finding)
        if terminal.live:
            terminal.clear_hint()
            terminal.hint(f"looked at {one_line(finding.name)} …")
        else:
            terminal.say(finding.line())
    if terminal.live:
        terminal.clear_hint()
        show(findings, terminal)
    failures = {finding.name for finding in findings if not finding.ok}
    ok = not failures
    only_settings = all(name == SETTINGS or ("." in name and " " not in name) for name in failures)
    code = EXIT_COMPLETED if ok else EXIT_USAGE if only_settings else EXIT_FAILED
    if ok and not deep:
        terminal.say("Ready. cliploop doctor --deep also solves a small task, and tries each backend once.")
    terminal.result({"ok": ok, "exit_code": code, "checks": [finding.told() for finding in findings]})
    return code


def _findings(deep: bool, paid: bool, config: Path | None) -> Iterator[Finding]:
    for name, check in (
        ("cliploop", version),
        ("python", _python),
        ("packages", _packages),
        ("sqlite", _sqlite),
        ("encoder", _encoder),
        ("disk", _disk),
    ):
        yield checked(name, check)
    yield from named(os.environ)
    yield checked(SETTINGS, lambda: _settings(config))
    with contextlib.suppress(BackendMisconfigured):  # which the settings' finding says
        composition = Composition.read(config, os.environ, Path())
        yield from _backends(deep, paid, composition)
    if deep:
        yield checked("a small job", small_job)


def _backends(deep: bool, paid: bool, composition: Composition) -> Iterator[Finding]:
    broken: set[str] = set()
    for finding in examined(composition):
        if not finding.ok:
            broken.add(finding.name.partition(" ")[0])
        yield finding
    if deep:
        found = [each for each in configured(composition) if isinstance(each, Configured)]
        yield from tried(found, composition, broken, paid=paid)


def _python() -> str:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _packages() -> str:
    missing: list[str] = []
    for module in MODULES:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing.append(f"{module} ({error})")
    if missing:
        raise RuntimeError(f"cannot import {', '.join(missing)}; pip install cliploop again")
    versions = [
        f"{module} {importlib.metadata.version(DISTRIBUTIONS.get(module, module))}"
        for module in ("numpy", "av", "PIL")
    ]
    return f"{len(MODULES)} importable: {', '.join(versions)}, …"


def _sqlite() -> str:
    from storage.database import Database

    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "journal.sqlite"):
        return f"{sqlite3.sqlite_version}, write-ahead log works"


def _encoder() -> str:
    import numpy as np

    from media.encode import encoder_version, mezzanine
    from orchestrator.records import Size

    frames = np.arange(3 * 32 * 48 * 3, dtype=np.uint32).reshape(3, 32, 48, 3).astype(np.uint8)
    data = mezzanine(frames, Size(width=48, height=32), 16.0)
    if not np.array_equal(_decoded(data), frames):
        raise RuntimeError("a lossless clip came back changed; reinstall imageio-ffmpeg and av")
    return encoder_version()


def _decoded(data: bytes) -> Any:
    import io

    import av
    import numpy as np

    with av.open(io.BytesIO(data), "r") as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def _settings(config: Path | None) -> str:
    composition = Composition.read(config, os.environ, Path())
    policy = composition.policy(Wanted(), Size(width=512, height=512))
    return f"{composition.settings.origin}: {policy.generator}, {policy.planner}, {policy.verifier}"


def _disk() -> str:
    free_mb = shutil.disk_usage(Path()).free // 1_000_000
    with tempfile.NamedTemporaryFile(dir=Path()):
        pass
    if free_mb < LEAST_FREE_MB:
        raise RuntimeError(f"{free_mb} MB free in this folder; free some space, or write elsewhere with -o")
    return f"{free_mb} MB free in this folder, writable"
