"""`cliploop generators`: name those that can be used here, and run the conformance suite on one."""

from __future__ import annotations

from pathlib import Path

from cliploop.terminal import Terminal


def list_command(config: Path | None, terminal: Terminal) -> int:
    """Every name that --generator takes."""
    raise NotImplementedError


def check_command(name: str, config: Path | None, terminal: Terminal) -> int:
    """Exit 1 if the generator fails a check."""
    raise NotImplementedError
