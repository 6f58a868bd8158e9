"""What goes wrong with a server of `POST /v1/videos`: each fault in its own words, none with the key in it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generators.catalog import build
from generators.remote import RenderFiltered
from orchestrator.errors import (
    BackendFailed,
    BackendMisconfigured,
    BackendUnavailable,
    CliploopError,
    SubmissionUnknown,
)
from tests.end_to_end.places import free_port
from tests.generators.certificates import self_signed
from tests.generators.loopback import Reply, as_html, as_json, served
from tests.generators.vendor_clips import Heard, Studio, render
from tests.generators.videos_server import VideosServer, refusal

KEY = "sk-a-key-that-is-never-told"


@pytest.fixture
def server() -> VideosServer:
    return VideosServer()


@pytest.fixture
def address(server: VideosServer) -> Iterator[str]:
    with served(server) as address:
        yield address


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def failed(address: str, resume: str | None = None, **options: Any) -> CliploopError:
    """How a render ends; the key is in none of the errors that led to it."""
    studio = Studio()
    given = {"base_url": f"{address}/v1", "model": "wan-9", "request_seconds": 5, **options}
    wan = build("openai_videos", given, studio.reader)
    with pytest.raises(CliploopError) as caught:
        render(wan, studio.shot(wan), Heard(), resume)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in f"{error} {error.__dict__}"
        error = error.__cause__
    return caught.value


ECHO = f"Incorrect API key provided: {KEY}"


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (refusal(401, ECHO, "invalid_api_key"), BackendMisconfigured, r"key was refused \(401.*OPENAI_API_KEY"),
        (refusal(403, "no access"), BackendMisconfigured, r"403: no access.*OPENAI_API_KEY"),
        (
            refusal(404, "no such model", "model_not_found"),
            BackendMisconfigured,
            "does not know the model 'wan-9'",
        ),
        (refusal(404, "Not Found"), BackendMisconfigured, "no video API at this address.*end in /v1"),
        (refusal(400, "size must be 720x1280", param="size"), BackendMisconfigured, "400.*size must be 720x1280"),
        (refusal(422, "too long", param="prompt"), BackendFailed, "refused the prompt"),
        (refusal(400, "not allowed", "moderation_blocked"), RenderFiltered, "safety filter.*not allowed"),
        (refusal(413, "too large"), BackendMisconfigured, "max_side"),
        (refusal(409, "busy", retry_after="7"), BackendUnavailable, "409: busy"),
        (refusal(429, "slow down", retry_after="7"), BackendUnavailable, "quota.*429: slow down"),
        (refusal(500, "oops"), BackendUnavailable, "500: oops"),
        (refusal(503, "loading"), BackendUnavailable, "503: loading"),
        (as_html(503), BackendUnavailable, r"503: Sign in Please sign in"),
        (as_html(), BackendMisconfigured, "without a video's id.*base_url"),
        (as_json({"ok": True}), BackendMisconfigured, "without a video's id"),
        (as_json([1, 2]), BackendMisconfigured, "without a video's id"),
        (Reply(302, b"", {"location": "https://elsewhere/"}), BackendMisconfigured, "moved"),
        (Reply(200, b"{cut", {"content-type": "application/json"}), SubmissionUnknown, "may have begun"),
        (refusal(504, "gateway timeout"), SubmissionUnknown, "504 while a render was submitted"),
        (Reply(hangs_up=True), SubmissionUnknown, "broke off while a render was submitted"),
    ],
)
def test_a_refused_submission_says_what_to_do(
    server: VideosServer, address: str, reply: Reply, kind: type[CliploopError], says: str
) -> None:
    server.faults["create"] = [reply]
    error = failed(address)
    assert type(error) is kind
    assert re.search(says, str(error)), str(error)
    if isinstance(error, BackendUnavailable) and "retry-after" in reply.headers:
        assert error.retry_after_seconds == 7.0
    assert server.count("create") == 1  # the client itself tries nothing twice


def test_no_answer_in_time_leaves_it_open_whether_the_render_began(server: VideosServer, address: str) -> None:
    def late(request: Any) -> Reply:
        time.sleep(0.4)
        return Reply(hangs_up=True)

    server.answer = late  # type: ignore[method-assign]
    error = failed(address, request_seconds=0.1)
    assert isinstance(error, SubmissionUnknown)
    assert "no answer in time" in str(error)


def test_a_server_that_is_down_is_told_by_its_address() -> None:
    port = free_port()
    error = failed(f"http://127.0.0.1:{port}")
    assert type(error) is BackendUnavailable
    assert f"http://127.0.0.1:{port}/v1: connection refused" in str(error)


def test_a_certificate_that_nobody_vouches_for_is_named_and_can_be_trusted(
    server: VideosServer, tmp_path: Path
) -> None:
    tls, authority = self_signed(tmp_path)
    with served(server, tls) as address:
        error = failed(address)
        assert type(error) is BackendMisconfigured
        assert "TLS certificate is not trusted" in str(error)
        assert "ca_file" in str(error)
        studio = Studio()
        wan = build("openai_videos", {"base_url": f"{address}/v1", "ca_file": str(authority)}, studio.reader)
        assert len(render(wan, studio.shot(wan))) == 17
    assert "ca_file" in str(failed("https://127.0.0.1:1", ca_file=str(tmp_path / "none.pem")))


def test_https_to_a_server_that_speaks_http_is_told(address: str) -> None:
    error = failed(address.replace("http://", "https://"))
    assert isinstance(error, BackendUnavailable)
    assert "http:// instead of https://" in str(error)


def test_failed_looks_in_a_row_are_no_failed_render(server: VideosServer, address: str) -> None:
    wait = {"retry_after_ms": "5"}
    server.faults["look"] = [
        refusal(503, "busy", **wait),
        Reply(hangs_up=True),
        as_html(),
        refusal(429, "", **wait),
    ]
    studio = Studio()
    wan = build("openai_videos", {"base_url": f"{address}/v1"}, studio.reader)
    assert len(render(wan, studio.shot(wan))) == 17
    assert server.count("create") == 1


def test_a_render_that_the_server_lost_is_a_lost_attempt(server: VideosServer, address: str) -> None:
    error = failed(address, resume="video_of_yesterday")
    assert type(error) is BackendFailed
    assert "video_of_yesterday is gone" in str(error)
    assert server.count("create") == 0


@pytest.mark.parametrize(
    ("failure", "kind", "says"),
    [
        (
            {"code": "moderation_blocked", "message": "the output was blocked"},
            RenderFiltered,
            "output was blocked",
        ),
        ({"code": "cancelled", "message": "by its owner"}, BackendFailed, "cancelled.*by its owner"),
        ({"code": "", "message": f"CUDA out of memory {KEY}"}, BackendFailed, "CUDA out of memory …"),
        ("something", BackendFailed, "failed: something"),
        (None, BackendFailed, "failed"),
    ],
)
def test_a_render_that_failed_is_told_in_the_servers_words(
    server: VideosServer, address: str, failure: Any, kind: type[CliploopError], says: str
) -> None:
    server.failure = failure or {}
    error = failed(address)
    assert type(error) is kind
    assert re.search(says, str(error)), str(error)


def test_a_download_that_breaks_off_is_loaded_again_by_the_id(server: VideosServer, address: str) -> None:
    server.faults["load"] = [Reply(200, b"half of it", {"content-type": "video/mp4"}, claims=5000)]
    error = failed(address)
    assert type(error) is BackendUnavailable
    assert "broke off" in str(error)
    studio = Studio()
    wan = build("openai_videos", {"base_url": f"{address}/v1"}, studio.reader)
    assert len(render(wan, studio.shot(wan), resume="video_1")) == 17
    assert server.count("create") == 1


def test_openais_own_address_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    error = failed("https://api.openai.com")
    assert type(error) is BackendMisconfigured
    assert "OPENAI_API_KEY" in str(error)
