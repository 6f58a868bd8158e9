"""`cliploop doctor`: whether this machine can run a job, each check with its remedy."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliploop.commands.boundary import guarded
from cliploop.terminal import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE, Terminal, one_line, version

MODULES = ("pydantic", "numpy", "scipy", "PIL", "av", "imageio_ffmpeg", "sqlalchemy", "fsspec", "typer", "rich")
DISTRIBUTIONS = {"PIL": "pillow"}
SETTINGS = "settings"
LEAST_FREE_MB = 500


@dataclass(frozen=True)
class Finding:
    """One check: what was found, or what is wrong and what to do."""

    name: str
    ok: bool
    detail: str


def doctor_command(deep: bool, config: Path | None, terminal: Terminal) -> int:
    """Run the checks; exit 1 if one fails, 2 if only the settings are wrong, as a run with them would."""
    return guarded(terminal, lambda: _doctor(deep, config, terminal))


def _doctor(deep: bool, config: Path | None, terminal: Terminal) -> int:
    checks: list[tuple[str, Callable[[], str]]] = [
        ("cliploop", version),
        ("python", _python),
        ("packages", _packages),
        ("sqlite", _sqlite),
        ("encoder", _encoder),
        (SETTINGS, lambda: _settings(config)),
        ("disk", _disk),
    ]
    if deep:
        checks.append(("a small job", _small_job))
    findings: list[Finding] = []
    for finding in _findings(checks):
        findings.append(finding)
        terminal.say(f"{'ok  ' if finding.ok else 'FAIL'} {finding.name:12} {one_line(finding.detail)}")
    failed = {finding.name for finding in findings if not finding.ok}
    ok = not failed
    code = EXIT_COMPLETED if ok else EXIT_USAGE if failed == {SETTINGS} else EXIT_FAILED
    if ok and not deep:
        terminal.say("Ready. cliploop doctor --deep solves a small task as well.")
    terminal.result({"ok": ok, "exit_code": code, "checks": [vars(finding) for finding in findings]})
    return code


def _findings(checks: list[tuple[str, Callable[[], str]]]) -> Iterator[Finding]:
    for name, check in checks:
        try:
            yield Finding(name, True, check())
        except Exception as error:  # a doctor reports whatever it meets
            yield Finding(name, False, str(error) or type(error).__name__)


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
    from cliploop.choosing import Wanted
    from cliploop.compose import Composition
    from orchestrator.records import Size

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


def _small_job() -> str:
    from cliploop.commands.run import RunRequest, run_command
    from cliploop.terminal import Stream

    with tempfile.TemporaryDirectory() as folder:
        request = RunRequest(
            world="maze",
            difficulty="easy",
            generator="simulated-perfect",
            planner="oracle",
            verifier="oracle",
            max_steps=3,
            output=str(Path(folder) / "job"),
        )
        silent = Terminal(json=False, out=Stream(None), err=Stream(None))
        code = run_command(request, silent)
        video = Path(folder) / "job" / "video.mp4"
        if code != EXIT_COMPLETED or not video.is_file():
            raise RuntimeError(
                f"an easy maze ended with exit code {code}; run cliploop run --world maze to see why"
            )
        return f"an easy maze was solved, the video has {video.stat().st_size // 1000} kB"
