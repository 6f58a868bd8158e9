"""`make demo` shows what the README promises: a maze solved, with a clip that was rejected and repaired."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.records import Trajectory

ROOT = Path(__file__).resolve().parents[2]


def demo_command() -> list[str]:
    """What the Makefile runs, with this environment's own program."""
    text = (ROOT / "Makefile").read_text()
    (seed,) = re.findall(r"^SEED \?= (\d+)$", text, flags=re.MULTILINE)
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", text, flags=re.MULTILINE)
    *_, line = recipe.replace("\\\n", " ").replace("$(SEED)", seed).strip().splitlines()
    program, *arguments = shlex.split(line.strip().removeprefix("@"))
    assert program == "$(BIN)/cliploop"
    return [str(Path(sys.executable).parent / "cliploop"), *arguments]


@pytest.mark.slow
def test_the_demo_solves_the_maze_with_a_repaired_clip_and_does_it_again(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    first, again = (
        subprocess.run(demo_command(), cwd=tmp_path, capture_output=True, text=True, timeout=300)
        for _ in range(2)
    )
    assert first.returncode == again.returncode == 0, first.stdout + first.stderr
    assert first.stdout == again.stdout
    assert "rejected" in first.stdout
    for name in ("video.mp4", "trajectory.json", "contact-sheet.png"):
        assert f"out/demo/{name}" in first.stdout
        assert (tmp_path / "out" / "demo" / name).stat().st_size > 0
    trajectory = Trajectory.model_validate_json((tmp_path / "out" / "demo" / "trajectory.json").read_text())
    assert trajectory.outcome is not None
    assert trajectory.outcome.kind == "completed"
    repaired = [step for step in trajectory.steps if step.status == "accepted" and step.chosen_attempt != 1]
    continued = [a for step in repaired for a in step.attempts if a.kept is not None]
    assert repaired
    assert continued, "no clip continues the good part of a rejected one"
