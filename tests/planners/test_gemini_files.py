"""Clips that are too large for one request: uploaded, waited for, deleted; real encodings on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.errors import BackendMisconfigured, BackendUnavailable, ReplyUnreadable
from planners.catalog import build
from planners.gemini_media import Media, too_large
from tests.generators.loopback import Reply, as_html, served
from tests.generators.veo_server import refusal
from tests.planners.gemini_server import GeminiServer
from tests.planners.test_gemini import KEY
from tests.planners.vlm_desk import VlmDesk

SMALL = 0.006  # megabytes: the question fits, a clip does not


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


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


def verdict(address: str, desk: VlmDesk, **options: Any) -> Any:
    given = {"base_url": address, "file_poll_seconds": 0.01, "inline_megabytes": SMALL, **options}
    model = build("gemini", given, desk.reader)
    return model.verify(desk.task, desk.plan, "told", desk.candidate, (), desk.view())


def test_above_the_limit_a_clip_is_uploaded_asked_about_and_deleted(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    answer = verdict(address, desk)
    (video,) = server.asked[0].videos
    assert (video.how, len(video.frames), video.fps, video.kind) == ("file", 81, 8.0, "video/mp4")
    assert answer.sent[2].endswith("KB), uploaded")
    assert "files/u1" in server.deleted
    assert server.files == {}
    assert server.log[-1][0] == "delete"


def test_a_file_that_is_still_processing_is_waited_for(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    """python-genai PR#2191: PROCESSING three times, then ACTIVE; the server fails a question before that."""
    server.processing = 3
    verdict(address, desk)
    assert len(server.asked[0].videos[0].frames) == 81
    looks = [request.path for what, request in server.log if what == "look"]
    assert looks.count("/v1beta/files/u1") == 3


def test_a_file_that_fails_is_no_verdict_and_is_deleted(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    server.processing, server.ends = 1, "FAILED"
    with pytest.raises(BackendUnavailable, match=r"could not read the video .*the container is damaged"):
        verdict(address, desk)
    assert server.asked == []
    assert server.files == {}


def test_a_file_that_is_never_ready_is_given_up_in_time(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    server.processing = 10**6
    began = time.monotonic()
    with pytest.raises(BackendUnavailable, match=r"was not ready in 0.3 s \(PROCESSING\): raise file_seconds"):
        verdict(address, desk, file_seconds=0.3)
    assert time.monotonic() - began < 3
    assert server.files == {}


def test_only_as_much_is_uploaded_as_must_be_the_largest_first() -> None:
    shown = ["words", *(Media(bytes(size), "video/mp4", "") for size in (3_000, 9_000, 6_000))]
    inline = [each.inline_bytes for each in shown if isinstance(each, Media)]
    assert inline == [4_000, 12_000, 8_000]
    assert too_large(shown, 0, 24_100) == set()
    assert too_large(shown, 0, 13_000) == {2}
    assert too_large(shown, 0, 5_000) == {2, 3}
    assert too_large(shown, 5_000, 5_000) == {1, 2, 3}


@pytest.mark.parametrize("fault", [refusal(503, "busy", x_goog_upload_status="active"), Reply(hangs_up=True)])
def test_an_upload_that_fails_is_asked_again_later(
    server: GeminiServer, address: str, desk: VlmDesk, fault: Reply
) -> None:
    server.faults["begin"] = [fault]
    with pytest.raises(BackendUnavailable):
        verdict(address, desk)
    assert server.asked == []
    verdict(address, desk)
    assert len(server.asked) == 1


def test_an_upload_that_is_cut_half_way_is_told_as_such(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    server.faults["piece"] = [Reply(200, b"{}", {"x-goog-upload-status": "cancelled"})]
    with pytest.raises(BackendUnavailable, match="did not take an upload"):
        verdict(address, desk)


def test_a_server_without_uploads_says_what_to_do(server: GeminiServer, address: str, desk: VlmDesk) -> None:
    server.faults["begin"] = [refusal(404, "not found"), as_html()]
    for _ in range(2):
        with pytest.raises(BackendMisconfigured, match=r"takes no uploads.*raise inline_megabytes"):
            verdict(address, desk)


def test_a_file_that_cannot_be_deleted_is_no_reason_to_fail(
    server: GeminiServer, address: str, desk: VlmDesk, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults["delete"] = [refusal(503, f"busy {KEY}"), Reply(hangs_up=True), refusal(404, "gone")]
    with caplog.at_level("INFO", logger="planners"):
        assert verdict(address, desk).raw
    assert "files/u1 was not deleted" in caplog.text
    assert KEY not in caplog.text


def test_a_file_is_deleted_also_where_the_reply_cannot_be_read(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    server.replies = [{"candidates": []}]
    with pytest.raises(ReplyUnreadable) as caught:
        verdict(address, desk)
    assert "uploaded" in caught.value.sent[2]
    assert server.files == {}
