"""Whole jobs through real pipelines of Wan with tiny random weights, and real clients of two vendors' models.

Random weights make noise, so no clip begins with the picture that it was given: by default such a job ends with
what to do; with the override every model sees every clip, and the best of what was rejected is propagated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.cliploop.commandline import PICTURE, Said, command
from tests.generators.loopback import served
from tests.generators.tiny_i2v import ltx, saved
from tests.generators.tiny_wan import checkpoint
from tests.generators.veo_server import VeoServer
from tests.generators.videos_server import VideosServer
from tests.planners.gemini_server import GeminiServer
from tests.planners.vlm_server import USUAL, VlmServer

Vendor = Literal["gemini", "qwen"]
PROMPT = "Move the red disc to the green square."
KEYS = {"GEMINI_API_KEY": "g-a-key-that-is-never-told", "OPENAI_API_KEY": "sk-a-key-that-is-never-told"}
SETTINGS = """
[defaults]
first_step_seconds = 0.5
step_seconds = 0.5
denoising_steps = 2

[vlms.gemini]
type = "gemini"
base_url = "{gemini}"

[vlms.qwen]
type = "openai_compatible"
base_url = "{qwen}/v1"
model = "Qwen/Qwen3.5-27B"

[planners.gemini]
vlm = "gemini"
[planners.qwen]
vlm = "qwen"
[verifiers.gemini]
type = "single"
vlm = "gemini"
[verifiers.qwen]
type = "single"
vlm = "qwen"

[generators.a14b]
type = "wan"
model = "{models}/a14b"
dtype = "float32"
min_side = 32
max_side = 64
max_pixels = 4096
max_frames = 17

[generators.ti2v]
type = "wan"
model = "{models}/ti2v"
dtype = "float32"
min_side = 32
max_side = 64
max_pixels = 4096
max_frames = 17

[generators.ltx]
type = "diffusers_i2v"
pipeline = "LTXImageToVideoPipeline"
model = "{models}/ltx"
dtype = "float32"
min_side = 32
max_side = 64
max_pixels = 4096
max_frames = 17

[generators.veo]
type = "veo"
base_url = "{veo}"
poll_seconds = 0.01

[generators.box]
type = "openai_videos"
base_url = "{box}/v1"
min_side = 64
max_frames = 17
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("a14b", "ti2v"):
        checkpoint(name, folder / name)
    saved(ltx, folder / "ltx")
    return folder


@dataclass
class Servers:
    """What stands in for the vendors, in front of their own clients."""

    gemini: GeminiServer
    qwen: VlmServer
    veo: VeoServer
    box: VideosServer
    settings: str

    def asked(self, vendor: Vendor) -> list[str]:
        """The roles in which a vendor's model was asked, in order."""
        found = self.gemini.asked if vendor == "gemini" else self.qwen.answered
        return [each.role for each in found]

    def clips_seen(self, vendor: Vendor) -> list[int]:
        """How many frames of the candidate each question to the verifier held."""
        if vendor == "gemini":
            return [len(each.videos[0].frames) for each in self.gemini.asked if each.role == "verifier"]
        return [len(chat.images) - 2 for chat in self.qwen.asked_of("verifier")]


@contextlib.contextmanager
def serving(models: Path) -> Generator[Servers]:
    gemini, qwen, veo, box = GeminiServer(), VlmServer(dict(USUAL)), VeoServer(), VideosServer()
    with contextlib.ExitStack() as all_of_them:
        named = {"gemini": gemini, "qwen": qwen, "veo": veo, "box": box}
        urls = {name: all_of_them.enter_context(served(server)) for name, server in named.items()}
        yield Servers(gemini, qwen, veo, box, SETTINGS.format(models=models, **urls))


@pytest.fixture
def servers(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Servers]:
    monkeypatch.chdir(tmp_path)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with serving(models) as servers:
        yield servers


def ran(capsys: pytest.CaptureFixture[str], servers: Servers, **chosen: object) -> tuple[Said, dict[str, Any]]:
    """The same command each time; only cliploop.toml differs. What it said, and its trajectory."""
    said = "".join(f"{key} = {value!r}\n".replace("True", "true") for key, value in chosen.items())
    Path("cliploop.toml").write_text(servers.settings.replace("[defaults]\n", f"[defaults]\n{said}", 1))
    words = ("--image", PICTURE, "--prompt", PROMPT, "-o", "out", "--fresh", "--json")
    told = command(capsys, "run", *words)
    assert told.out, told.err
    trajectory = command(capsys, "trajectory", "show", "out", "--json").json["trajectory"]
    return told, trajectory


@pytest.mark.slow
@pytest.mark.parametrize("generator", ["a14b", "ti2v"])
def test_a_model_that_loses_the_first_frame_is_not_chained_and_the_remedy_is_named(
    servers: Servers, capsys: pytest.CaptureFixture[str], generator: str
) -> None:
    said, told = ran(capsys, servers, generator=generator, planner="qwen", verifier="qwen", max_steps=2)
    assert said.code == 3
    assert told["outcome"]["kind"] == "exhausted"
    assert "no clip began with the picture that it was given" in told["outcome"]["reason"]
    assert "or set allow_unchainable" in told["outcome"]["reason"]
    attempts = [attempt for step in told["steps"] for attempt in step["attempts"]]
    assert {attempt["verdict"]["source"] for attempt in attempts} == {"quick_check"}
    assert {attempt["verdict"]["failure"] for attempt in attempts} == {"first_frame"}
    assert "verifier" not in servers.asked("qwen"), "no model is paid for a clip that measuring rejects"
    assert all(step["footage"]["segments"] == [] for step in told["steps"])
    assert Path("out/video.mp4").stat().st_size > 1000, "the best effort is delivered all the same"


@pytest.mark.slow
@pytest.mark.parametrize("vendor", ["gemini", "qwen"])
@pytest.mark.parametrize("generator", ["a14b", "ti2v"])
def test_with_the_override_every_clip_is_seen_and_the_best_of_the_rejected_is_propagated(
    servers: Servers, capsys: pytest.CaptureFixture[str], generator: str, vendor: Vendor
) -> None:
    half = {**USUAL["verifier"], "good_fraction": 0.5, "progress": "partial"}
    (servers.gemini if vendor == "gemini" else servers.qwen).answers["verifier"] = [USUAL["verifier"], half, half]
    chosen = {"generator": generator, "planner": vendor, "verifier": vendor, "allow_unchainable": True}
    said, told = ran(capsys, servers, **chosen, max_steps=2, max_attempts=2)
    assert said.code == 3
    assert [step["status"] for step in told["steps"]] == ["best_effort"] * 2
    assert [step["chosen_attempt"] for step in told["steps"]] == [2, 1]
    attempts = [attempt for step in told["steps"] for attempt in step["attempts"]]
    assert len(attempts) == 4
    for attempt in attempts:
        assert attempt["verdict"]["source"] == "verifier"
        assert attempt["check"]["failure"] is None
        assert attempt["check"]["notes"][0].startswith("the clip does not begin with its start frame (")
    roles = servers.asked(vendor)
    assert roles.count("verifier") == 4
    assert roles.count("router") == 2
    assert roles[-1] == "assessor"
    assert all(seen >= 8 for seen in servers.clips_seen(vendor))
    assert told["outcome"]["best_effort"] is True
    second = told["steps"][1]["attempts"][0]["shot"]
    assert second["start_frame"] == told["steps"][0]["last_frame"] != told["first_frame"]
    written = [path for path in Path().rglob("*") if path.is_file()]
    assert not [path for path in written for key in KEYS.values() if key.encode() in path.read_bytes()]


def test_a_generator_that_cannot_render_is_refused_before_a_model_is_asked_and_leaves_nothing(
    servers: Servers, capsys: pytest.CaptureFixture[str], models: Path
) -> None:
    chosen = "[defaults]\ngenerator = 'a14b'\nplanner = 'qwen'\nverifier = 'qwen'\n"
    settings = servers.settings.replace("[defaults]\n", chosen, 1)
    absent = "/models/wan2.2-i2v"
    Path("cliploop.toml").write_text(settings.replace(f"{models}/a14b", absent))
    said = command(capsys, "run", "--image", PICTURE, "--prompt", PROMPT, "-o", "out")
    assert said.code == 2
    assert said.err.startswith(f"cliploop: model {absent}: no such folder; name a checkpoint")
    assert len(said.err.splitlines()) == 1
    rehearsed = command(capsys, "run", "--image", PICTURE, "--prompt", PROMPT, "-o", "out", "--dry-run")
    assert (rehearsed.code, rehearsed.err) == (2, said.err)
    assert servers.asked("qwen") == []
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"planner": "gemini", "verifier": "qwen"}, "gemini: no key for http://127.0.0.1"),
        ({"generator": "veo", "planner": "qwen", "verifier": "qwen"}, "veo: no key for http://127.0.0.1"),
    ],
)
def test_without_a_key_nothing_is_begun_and_nobody_is_asked(
    servers: Servers,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    chosen: dict[str, str],
    says: str,
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    said = "".join(f"{key} = {value!r}\n" for key, value in chosen.items())
    Path("cliploop.toml").write_text(servers.settings.replace("[defaults]\n", f"[defaults]\n{said}", 1))
    for words in ((), ("--dry-run",)):
        told = command(capsys, "run", "--image", PICTURE, "--prompt", PROMPT, "-o", "out", *words)
        assert told.code == 2
        assert told.err.startswith(f"cliploop: {says}")
        assert "set the environment variable GEMINI_API_KEY or GOOGLE_API_KEY" in told.err
    assert servers.asked("qwen") == servers.asked("gemini") == []
    assert not Path("out").exists()


@pytest.mark.slow
def test_swapping_generator_or_model_touches_only_the_settings(
    servers: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[tuple[str, Vendor], str] = {}
    vendors: tuple[Vendor, ...] = ("gemini", "qwen")
    for generator in ("a14b", "ltx", "veo", "box"):
        for vendor in vendors:
            asked = len(servers.asked(vendor))
            chosen = {"generator": generator, "planner": vendor, "verifier": vendor, "allow_unchainable": True}
            _, told = ran(capsys, servers, **chosen, max_steps=1, max_attempts=1)
            (step,) = told["steps"]
            assert step["attempts"][0]["clip"] is not None, step["attempts"][0]["failed"]
            assert step["attempts"][0]["verdict"]["source"] == "verifier"
            assert servers.asked(vendor)[asked:] == ["planner", "verifier", "router", "assessor"]
            assert told["policy"]["generator"] == generator
            seen[generator, vendor] = step["attempts"][0]["clip"]["frames_digest"]
    assert servers.veo.count("submit") == servers.box.count("create") == 2
    for generator in ("a14b", "ltx"):
        assert seen[generator, "gemini"] == seen[generator, "qwen"], "same seed, same prompt, same clip"
    assert len({digest for (_, vendor), digest in seen.items() if vendor == "qwen"}) == 4
