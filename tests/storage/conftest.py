"""Faults made real."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture
def small_file_system(tmp_path: Path) -> Generator[Path]:
    """A file system of 2 MiB where mounting is permitted; else a plain folder, and the test limits file sizes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    yield folder
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
