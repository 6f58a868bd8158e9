"""Runs the command line for tests: in this process for speed, as a child for what only a child can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cliploop.cli import invoke

DATA = Path(__file__).parent.parent / "data"
MAZE = DATA / "vrbench" / "maze" / "00000"
PICTURE = str(MAZE / "first_frame.png")
PROMPT = str(MAZE / "prompt.txt")
TASK = ("--image", PICTURE, "--prompt", PROMPT)


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Its one object; fails if stdout holds anything else."""
        return json.loads(self.out)


def command(capsys: pytest.CaptureFixture[str], *words: str) -> Said:
    """Run it in this process."""
    capsys.readouterr()
    code = invoke(list(words))
    captured = capsys.readouterr()
    return Said(code, captured.out, captured.err)


def child_environment(**more: str) -> Mapping[str, str]:
    """A clean environment: no settings, no terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLIPLOOP_")}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


def child(*words: str, cwd: Path, **more: Any) -> Said:
    """Run it as a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "cliploop.cli", *words],
        cwd=cwd,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **more,
    )
    return Said(ran.returncode, ran.stdout, ran.stderr)
