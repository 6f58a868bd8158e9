"""A whole `cliploop run` with a chat server in every role, and what the trajectory tells of it afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from planners.questions import Role
from planners.schemas import SCHEMAS
from tests.cliploop.commandline import MAZE, PICTURE, TASK, command
from tests.generators.loopback import served
from tests.planners.vlm_server import ACCEPT, USUAL, VlmServer, refusal
from worlds.catalog import understand

SETTINGS = """
[defaults]
generator = "simulated-perfect"
planner = "qwen"
verifier = "strict"
selector = "qwen"
first_step_seconds = 1.0
step_seconds = 1.0

[vlms.qwen]
type = "openai_compatible"
base_url = "URL/v1"
model = "Qwen/Qwen3.5-27B"
usd_per_million_input_tokens = 1.0

[planners.qwen]
vlm = "qwen"

[verifiers.strict]
type = "single"
vlm = "qwen"
"""


def instructions() -> tuple[str, str]:
    """The maze's way in two halves, in words that the simulated generator follows."""
    scene = understand(np.asarray(Image.open(PICTURE).convert("RGB")), (MAZE / "prompt.txt").read_text())
    assert scene is not None
    actions = scene.world.oracle_plan(scene.start.state)
    half = len(actions) // 2
    return tuple(scene.world.describe(part, scene.legend) for part in (actions[:half], actions[half:]))  # pyright: ignore[reportReturnType]


def server() -> VlmServer:
    """Plans two steps: the first is rejected twice and falls back on the selector's pick; the second is fine."""
    first, second = instructions()
    rejected = {**USUAL["verifier"], "good_fraction": 0.5}
    answers: dict[Role, Any] = {
        "planner": [{**USUAL["planner"], "instruction": text} for text in (first, second)],
        "verifier": [rejected, rejected, ACCEPT],
        "assessor": {"reason": "The red disc rests on the green square.", "task_complete": True},
    }
    return VlmServer(answers)


@pytest.fixture
def played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[VlmServer], dict[str, Any]]:
    """Runs a job in an empty folder against a server, then shows it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-tell")

    def play(vlm: VlmServer) -> dict[str, Any]:
        with served(vlm) as url:
            Path("cliploop.toml").write_text(SETTINGS.replace("URL", url))
            limits = ("--max-steps", "2", "--max-attempts", "2")
            ran = command(capsys, "run", *TASK, *limits, "-o", "out", "--json")
        assert ran.code == 0, ran.out + ran.err
        return command(capsys, "trajectory", "show", "out", "--json").json["trajectory"]

    return play


def test_one_model_plays_every_role_and_each_ask_tells_what_was_shown(
    played: Callable[[VlmServer], dict[str, Any]], tmp_path: Path
) -> None:
    vlm = server()
    vlm.faults = [refusal(503, "loading")]
    told = played(vlm)
    assert told["outcome"]["kind"] == "completed"
    assert [step["status"] for step in told["steps"]] == ["best_effort", "accepted"]
    assert told["steps"][0]["chosen_attempt"] == 2
    count = {role: len(vlm.asked_of(role)) for role in SCHEMAS}
    assert count == {"planner": 2, "verifier": 3, "router": 1, "selector": 1, "assessor": 1}
    assert told["spend"]["vlm_calls"] == 8
    assert told["spend"]["vlm_tokens"] == 8 * 1200
    assert told["spend"]["usd"] == pytest.approx(8 * 1000 / 1e6)
    assert [chat.schema for chat in vlm.asked_of("verifier")] == [SCHEMAS["verifier"]] * 3
    shown = {each["key"]: each for each in told["shown"]}
    assert {each["model"] for each in told["shown"]} == {"qwen-served"}
    assert len(shown) == 8
    assert "8 of 17 frames at 7 fps as images" in "; ".join(shown["step/1/attempt/1/verdict/try/1"]["sent"])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"sk-do-not-tell" in path.read_bytes()]


def test_the_first_picture_always_stands_beside_the_current_frame(
    played: Callable[[VlmServer], dict[str, Any]],
) -> None:
    vlm = server()
    played(vlm)
    first = vlm.asked_of("planner")[0].images[0].picture.tobytes()
    for chat in vlm.answered:
        assert chat.images[0].picture.tobytes() == first
        assert len(chat.images) >= 2
    last_planned = vlm.asked_of("planner")[1].images
    assert last_planned[1].picture.tobytes() != first


def test_a_reply_that_stays_unreadable_is_recorded_with_what_was_shown(
    played: Callable[[VlmServer], dict[str, Any]],
) -> None:
    vlm = server()
    vlm.answers["router"] = ["{", "{", "I cannot say"]
    told = played(vlm)
    assert told["steps"][0]["route"]["action"] == "fallback"
    assert [each["key"] for each in told["shown"] if "/route/" in each["key"]] == [
        f"step/1/route/try/{number}" for number in (1, 2, 3)
    ]
    assert json.dumps(told).count("qwen-served") == 7
