"""The page about adding a generator works as it stands: its files and commands, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "examples" / "add_a_generator.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED_AS = re.compile(r"Save this as `([\w.]+)`:\s*\Z")


def run(script: str, folder: Path) -> str:
    """A block of commands in the folder, as a shell of a stranger's runs it. What it said."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_every_block_of_the_page_works_as_it_stands(tmp_path: Path) -> None:
    said = ""
    kinds: list[str] = []
    for block in BLOCK.finditer(PAGE):
        kind, text = block.groups()
        kinds.append(kind)
        name = SAVED_AS.search(PAGE[: block.start()])
        if name is not None:
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif kind == "sh":
            said = run(text, tmp_path)
        else:
            assert kind == "text"
            assert said.endswith(text)
    assert kinds == ["python", "toml", "sh", "text", "sh", "python", "sh", "sh"]
    assert (tmp_path / "first" / "video.mp4").stat().st_size > 0


def test_what_the_page_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert links
    assert [link for link in links if not (ROOT / "examples" / link).exists()] == []
