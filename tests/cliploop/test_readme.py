"""What the README says is understood is understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cliploop.commandline import DATA, command

README = Path(__file__).parent.parent.parent / "README.md"
PICTURES = {
    "maze": "vrbench/maze",
    "field of traps": "vrbench/trapfield",
    "sokoban": "vrbench/sokoban",
    "sliding puzzle": "sliding_puzzle",
    "circles to sort": "sort_circles",
    "tower of Hanoi": "hanoi",
}


def prompts() -> dict[str, str]:
    """{kind of picture: prompt}, from the table."""
    table = README.read_text(encoding="utf-8").split("| picture | prompt |\n|---|---|\n")[1].split("\n\n")[0]
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE))


@pytest.mark.parametrize("kind", PICTURES)
def test_each_example_prompt_is_accepted_with_its_kind_of_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    picture = DATA / PICTURES[kind] / "00000" / "first_frame.png"
    if "/" not in PICTURES[kind]:
        assert command(capsys, "worlds", "sample", PICTURES[kind], "--difficulty", "easy", "-o", ".").code == 0
        picture = Path(f"{PICTURES[kind]}-easy-0") / "first_frame.png"
    assert set(prompts()) == set(PICTURES)
    said = command(capsys, "run", "--image", str(picture), "--prompt", prompts()[kind], "--dry-run")
    assert said.code == 0, said.err
