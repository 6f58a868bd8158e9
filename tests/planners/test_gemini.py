"""gemini against a server of its protocol on loopback, through the official client: what is sent, and read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from media.encode import browser_clip
from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured, ReplyBlocked, ReplyUnreadable
from orchestrator.records import Footage
from planners import gemini_media as media
from planners.catalog import PLANNERS, build
from planners.gemini import Gemini
from planners.gemini_media import looked_at
from planners.gemini_options import GeminiOptions
from planners.questions import Clip, Question
from planners.schemas import SCHEMAS
from tests.cliploop.commandline import DATA
from tests.generators.loopback import served
from tests.planners.gemini_server import GeminiServer, candidate
from tests.planners.vlm_desk import VlmDesk, moving
from tests.planners.vlm_server import ACCEPT, USUAL

KEY = "g-a-key-that-is-never-told"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


@pytest.fixture
def server() -> GeminiServer:
    return GeminiServer()


@pytest.fixture
def address(server: GeminiServer) -> Iterator[str]:
    with served(server) as address:
        yield address


@pytest.fixture(scope="module")
def desk() -> VlmDesk:
    return VlmDesk()


def verdict(address: str, desk: VlmDesk, candidate: Footage | None = None, **options: Any) -> Any:
    """The verifier's answer on the desk's clip, or on another."""
    model = build("gemini", {"base_url": address, "file_poll_seconds": 0.01, **options}, desk.reader)
    clip = candidate or desk.candidate
    return model.verify(desk.task, desk.plan, "told", clip, (), desk.view())


# --- what is sent -------------------------------------------------------------------------------------------


def test_a_clip_is_sent_as_video_for_eyes_with_every_frame_and_its_rate_on_the_part(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    server.answers = {"verifier": ACCEPT}
    answer = verdict(address, desk)
    (asked,) = server.asked
    (video,) = asked.videos
    assert (video.kind, video.how, video.pixel_format) == ("video/mp4", "inline", "h264 yuv420p")
    assert (len(video.frames), video.rate, video.fps) == (81, 16.0, 8.0)
    for got, drawn in zip(video.frames, moving(81), strict=True):
        assert float(np.abs(got.astype(int) - drawn.astype(int)).mean()) < 3
    assert [picture.frames[0].shape for picture in asked.pictures] == [(96, 160, 3)] * 2
    assert answer.value.decision == "accept"
    assert answer.sent[2].startswith("81 frames as video, 41 of them seen at 8 fps (")
    assert answer.sent[3:] == ("the reply's schema enforced", "temperature 0.2, seed 7")


def test_the_request_holds_schema_seed_temperature_and_limits(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    answer = verdict(
        address, desk, thinking_budget=2048, temperature=0.7, max_output_tokens=9000, media_resolution="low"
    )
    config = server.asked[0].config
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == SCHEMAS["verifier"]
    assert (config["temperature"], config["seed"], config["maxOutputTokens"]) == (0.7, 7, 9000)
    assert config["thinkingConfig"] == {"thinkingBudget": 2048}
    assert config["mediaResolution"] == "MEDIA_RESOLUTION_LOW"
    assert answer.sent[-1] == "temperature 0.7, seed 7, thinking budget 2048"


def test_by_default_it_is_gemini_2_5_pro_at_temperature_0_2_and_thinks_as_it_likes(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    verdict(address, desk)
    (asked,) = server.asked
    assert asked.model == "gemini-2.5-pro"
    assert asked.config["temperature"] == 0.2
    assert "thinkingConfig" not in asked.config
    assert asked.key == KEY


@pytest.mark.parametrize(
    ("num_frames", "fps", "wanted", "sent"),
    [(81, 16.0, 8.0, 8.0), (9, 4.0, 16.0, 4.0), (9, 30.0, 24.0, 24.0), (33, 24000 / 1001, 24.0, 23.976)],
)
def test_no_more_frames_are_asked_than_the_clip_has(
    num_frames: int, fps: float, wanted: float, sent: float
) -> None:
    """lmms-eval#874"""
    footage = VlmDesk(num_frames=num_frames).candidate
    at_rate = Footage(segments=tuple(each.model_copy(update={"fps": fps}) for each in footage.segments))
    assert looked_at(at_rate, wanted) == sent
    assert sent * at_rate.seconds <= num_frames


def test_the_rate_is_settable_and_what_was_sent_is_told(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    answer = verdict(address, desk, video_fps=2)
    assert server.asked[0].videos[0].fps == 2.0
    assert "81 frames as video, 11 of them seen at 2 fps" in answer.sent[2]


def test_a_single_frame_is_sent_as_the_picture_that_it_is(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    segment = desk.candidate.segments[0]
    one = Footage(segments=(segment.model_copy(update={"first": 5, "stop": 6}),))
    answer = verdict(address, desk, one)
    assert server.asked[0].videos == []
    assert np.array_equal(server.asked[0].pictures[2].frames[0], moving(81)[5])
    assert answer.sent[2].startswith("1 frame as a picture (")


def test_parts_stand_in_the_order_of_the_question(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    client = Gemini(GeminiOptions(base_url=address), desk.reader)
    parts = ("before", Clip(desk.candidate), "after")
    client.ask(Question("verifier", "You check clips.", parts, SCHEMAS["verifier"]))
    came = server.asked[0].body["contents"][0]["parts"]
    assert [next(iter(part)) for part in came] == ["text", "inlineData", "text"]
    assert [part.get("text") for part in came] == ["before", None, "after"]


def test_a_clip_that_is_asked_about_again_is_encoded_once(
    server: GeminiServer, address: str, desk: VlmDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Footage] = []

    def counted(clip: Footage, reader: FrameReader, path: Path) -> None:
        encoded.append(clip)
        browser_clip(clip, reader, path)

    monkeypatch.setattr(media, "browser_clip", counted)
    model = build("gemini", {"base_url": address}, desk.reader)
    for _ in range(2):
        model.verify(desk.task, desk.plan, "told", desk.candidate, (), desk.view())
    assert len(encoded) == 1
    assert len(server.asked[0].videos[0].frames) == len(server.asked[1].videos[0].frames) == 81


# --- what comes back ----------------------------------------------------------------------------------------


def test_thoughts_are_charged_as_output_and_no_part_of_the_reply(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    thought = {"text": "It may be an accept.", "thought": True}
    said = candidate(None)
    said["candidates"][0]["content"] = {"role": "model", "parts": [thought, {"text": json.dumps(ACCEPT)}]}
    server.replies = [said]
    answer = verdict(address, desk)
    assert answer.value.decision == "accept"
    assert "may be" not in answer.raw
    assert (answer.spend.vlm_calls, answer.spend.vlm_tokens) == (1, 13_000)
    assert answer.spend.usd == pytest.approx(12_000 * 1.25e-6 + 1_000 * 10e-6)
    assert answer.model == "gemini-2.5-pro-001"


def test_a_fenced_reply_is_read(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    """js-genai#976"""
    server.replies = [candidate(f"```json\n{json.dumps(ACCEPT)}\n```")]
    assert verdict(address, desk).value.decision == "accept"


def test_a_reply_without_text_at_the_token_limit_is_never_a_verdict(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    """python-genai#1039: text and parsed are None when thinking used the budget up."""
    server.replies = [candidate(None, "MAX_TOKENS")]
    found = verdict(address, desk).value
    assert found.decision == "unclear"
    assert found.reason == "the reply is not finished (MAX_TOKENS): raise max_output_tokens"


def test_half_an_object_is_never_a_verdict(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    """python-genai#2266, finished or not."""
    server.replies = [candidate('{"verdict": "accept", "rea', "MAX_TOKENS"), candidate('{"verdict": "accept", ')]
    assert [verdict(address, desk).value.decision for _ in range(2)] == ["unclear", "unclear"]


CASES = [json.loads(line) for line in (DATA / "replies" / "replies.jsonl").read_text().splitlines()]


def test_the_client_changes_nothing_of_any_known_reply(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    client = Gemini(GeminiOptions(base_url=address), desk.reader)
    seen = 0
    for case in CASES:
        text, finish = case["text"], case["finish_reason"]
        if finish not in ("STOP", "MAX_TOKENS") or (finish == "STOP" and not (text or "").strip()):
            continue  # other vendors' words, and what is an error of its own
        server.replies = [candidate(text, finish)]
        reply = client.ask(Question("verifier", "You check clips.", ("Look.",), SCHEMAS["verifier"]))
        assert (reply.text, reply.finish_reason) == (text, finish), case["id"]
        seen += 1
    assert seen > 40


def test_a_finish_reason_that_the_client_does_not_know_yet_is_no_accept(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    server.replies = [candidate(json.dumps(ACCEPT), "TIRED")]
    with pytest.warns(UserWarning, match="TIRED"):
        found = verdict(address, desk).value
    assert (found.decision, found.reason) == ("unclear", "the reply is not finished (TIRED)")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"candidates": []}, "holds no candidate"),
        ({}, "holds no candidate"),
        (candidate(""), r"reply is empty \(STOP\)"),
        (candidate(None, "OTHER"), r"reply is empty \(OTHER\)"),
        (candidate(None, None), "reply is empty"),
    ],
)
def test_an_answer_without_a_reply_is_unreadable_and_keeps_its_cost(
    server: GeminiServer, address: str, desk: VlmDesk, said: Any, why: str
) -> None:
    """python-genai#774"""
    server.replies = [said]
    with pytest.raises(ReplyUnreadable, match=why) as caught:
        verdict(address, desk)
    assert caught.value.spend.vlm_tokens == 13_000
    assert "81 frames as video" in caught.value.sent[2]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, r"refused the question \(SAFETY\)"),
        (
            {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "unsupported"}},
            "OTHER: unsupported",
        ),
        (candidate(None, "SAFETY"), r"withheld the reply \(SAFETY\)"),
        (candidate(json.dumps(ACCEPT), "RECITATION"), r"withheld the reply \(RECITATION\)"),
        (candidate(None, "PROHIBITED_CONTENT"), r"withheld the reply \(PROHIBITED_CONTENT\)"),
    ],
)
def test_what_a_safety_filter_took_is_blocked_and_never_a_verdict(
    server: GeminiServer, address: str, desk: VlmDesk, said: Any, why: str
) -> None:
    server.replies = [said]
    with pytest.raises(ReplyBlocked, match=why) as caught:
        verdict(address, desk)
    assert caught.value.spend.vlm_calls == 1
    assert caught.value.sent


def test_every_role_is_asked_with_its_own_schema(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    model = build("gemini", {"base_url": address}, desk.reader)
    view = desk.view()
    assert model.plan(desk.task, view).value.instruction == USUAL["planner"]["instruction"]
    assert model.route(desk.task, desk.plan, (), view).value.action == "fallback"
    assert model.select(desk.task, desk.plan, (desk.candidate,) * 2, view).value.index == 1
    assert model.assess(desk.task, view).value.task_complete is False
    assert [len(asked.videos) for asked in server.asked] == [0, 0, 2, 0]
    fields = [set(asked.config["responseJsonSchema"]["properties"]) for asked in server.asked]
    assert fields == [set(USUAL[role]) for role in ("planner", "router", "selector", "assessor")]


# --- prices -------------------------------------------------------------------------------------------------


def test_the_listed_price_has_a_dearer_tier_and_a_cheaper_cache() -> None:
    pro = GeminiOptions()
    assert pro.charged(200_000, 0, 1_000).usd == pytest.approx(0.25 + 0.01)
    assert pro.charged(200_001, 0, 1_000).usd == pytest.approx(200_001 * 2.5e-6 + 0.015)
    assert pro.charged(100_000, 40_000, 0).usd == pytest.approx(0.075 + 0.005)
    assert pro.charged(400_000, 400_000, 0).usd == pytest.approx(400_000 * 0.25e-6)
    assert GeminiOptions(model="models/gemini-2.5-flash").charged(10**6, 0, 10**6).usd == pytest.approx(2.8)


def test_a_price_that_is_given_is_the_price() -> None:
    own = GeminiOptions(model="gemini-own", usd_per_million_input_tokens=2.0, usd_per_million_output_tokens=6.0)
    own.require_price()
    assert own.charged(300_000, 100_000, 1_000).usd == pytest.approx(0.6 + 0.006)
    kept = GeminiOptions(**own.model_dump())
    assert kept == own  # what a job froze is what it is charged by later


def test_a_model_without_a_known_price_is_refused_before_it_costs_anything() -> None:
    says = r"no price is known of 'gemini-own': set usd_per_million_input"
    with pytest.raises(BackendMisconfigured, match=says):
        build("gemini", {"model": "gemini-own"}, None)
    with pytest.raises(BackendMisconfigured, match=says):
        PLANNERS.content("gemini", {"model": "gemini-own"})
