"""A whole `cliploop run` with Gemini's protocol in every role, and what the trajectory tells of it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cliploop.commandline import TASK, command
from tests.generators.loopback import served
from tests.generators.veo_server import refusal
from tests.planners.gemini_server import GeminiServer, candidate
from tests.planners.test_whole_loop import instructions
from tests.planners.vlm_server import ACCEPT, USUAL

KEY = "g-a-key-that-is-never-told"
SETTINGS = """
[defaults]
generator = "simulated-perfect"
planner = "gemini"
verifier = "strict"
selector = "gemini"
first_step_seconds = 1.0
step_seconds = 1.0

[vlms.gemini]
type = "gemini"
base_url = "URL"

[planners.gemini]
vlm = "gemini"

[verifiers.strict]
type = "single"
vlm = "gemini"
"""


def server() -> GeminiServer:
    """Plans two steps: the first is rejected twice and falls back on the selector's pick; the second is fine."""
    rejected = {**USUAL["verifier"], "good_fraction": 0.5}
    return GeminiServer(
        answers={
            "planner": [{**USUAL["planner"], "instruction": text} for text in instructions()],
            "verifier": [rejected, rejected, ACCEPT],
            "router": USUAL["router"],
            "selector": USUAL["selector"],
            "assessor": {"reason": "The red disc rests on the green square.", "task_complete": True},
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    return tmp_path


def played(gemini: GeminiServer, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The trajectory of a job that ended well."""
    with served(gemini) as url:
        Path("cliploop.toml").write_text(SETTINGS.replace("URL", url))
        limits = ("--max-steps", "2", "--max-attempts", "2")
        ran = command(capsys, "run", *TASK, *limits, "-o", "out", "--json")
    assert ran.code == 0, ran.out + ran.err
    return command(capsys, "trajectory", "show", "out", "--json").json["trajectory"]


@pytest.mark.slow
def test_gemini_plays_every_role_and_each_ask_tells_what_was_shown_and_what_it_cost(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gemini = server()
    gemini.faults["ask"] = [refusal(503, "overloaded", retry_after="0")]
    gemini.replies = [candidate(None, "MAX_TOKENS")]  # the first plan is cut, and asked for again
    told = played(gemini, capsys)
    assert told["outcome"]["kind"] == "completed"
    assert [step["status"] for step in told["steps"]] == ["best_effort", "accepted"]
    asked = [each.role for each in gemini.asked]
    count = {role: asked.count(role) for role in USUAL}
    assert count == {"planner": 3, "verifier": 3, "router": 1, "selector": 1, "assessor": 1}
    assert told["spend"]["vlm_calls"] == 9
    assert told["spend"]["vlm_tokens"] == 9 * 13_000
    assert told["spend"]["usd"] == pytest.approx(9 * 0.025)
    shown = {each["key"]: each for each in told["shown"]}
    assert "17 frames as video, 9 of them seen at 8 fps" in "; ".join(
        shown["step/1/attempt/1/verdict/try/1"]["sent"]
    )
    looked_at = [[len(video.frames) for video in each.videos] for each in gemini.asked if each.videos]
    assert looked_at == [[17], [25], [17, 25], [17]]  # the kept prefix too, and both clips for the selector
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
