"""What goes wrong with the Gemini API: each fault in its own words, none with the key in it."""

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
from tests.generators.loopback import Reply, Request, as_html, as_json, served
from tests.generators.vendor_clips import Heard, Studio, render
from tests.generators.veo_server import VeoServer, refusal

KEY = "g-a-key-that-is-never-told"


@pytest.fixture
def server() -> VeoServer:
    return VeoServer(shrink=8)


@pytest.fixture
def address(server: VeoServer) -> Iterator[str]:
    with served(server) as address:
        yield address


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


def failed(address: str, resume: str | None = None, **options: Any) -> CliploopError:
    """How a render ends; the key is in none of the errors that led to it."""
    studio = Studio()
    given = {"base_url": address, "poll_seconds": 0.001, "request_seconds": 5, **options}
    veo = build("veo", given, studio.reader)
    with pytest.raises(CliploopError) as caught:
        render(veo, studio.shot(veo, num_frames=96), Heard(), resume)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in f"{error} {error.__dict__}"
        error = error.__cause__
    return caught.value


BAD_KEY = refusal(
    400,
    f"API key not valid: {KEY}",
    "INVALID_ARGUMENT",
    [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
)
QUOTA = refusal(
    429,
    "You exceeded your current quota",
    "RESOURCE_EXHAUSTED",
    [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}],
)


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (BAD_KEY, BackendMisconfigured, "key was refused.*GEMINI_API_KEY or GOOGLE_API_KEY"),
        (refusal(401, "unauthenticated"), BackendMisconfigured, r"key was refused \(401"),
        (refusal(403, "billing is off"), BackendMisconfigured, "403: billing is off"),
        (
            refusal(404, "models/veo-3.1-generate-preview is not found"),
            BackendMisconfigured,
            "not know the model",
        ),
        (refusal(400, "`resolution` must be 720p"), BackendMisconfigured, "refused what was asked.*must be 720p"),
        (refusal(400, "The prompt violates Responsible AI practices"), RenderFiltered, "safety filter refused"),
        (QUOTA, BackendUnavailable, "quota.*429: You exceeded"),
        (refusal(429, "slow down", retry_after="9"), BackendUnavailable, "429: slow down"),
        (refusal(500, "oops"), BackendUnavailable, "500: oops"),
        (refusal(503, "overloaded"), BackendUnavailable, "503: overloaded"),
        (as_html(503), BackendUnavailable, "503: Sign in Please sign in"),
        (as_html(), BackendMisconfigured, "HTML page.*is base_url a Gemini API"),
        (as_json({}), BackendMisconfigured, "without an operation's name"),
        (Reply(200, b'{"name": "mo', {"content-type": "application/json"}), SubmissionUnknown, "may have begun"),
        (refusal(504, "deadline"), SubmissionUnknown, "504 while a render was submitted"),
        (Reply(hangs_up=True), SubmissionUnknown, "broke off while a render was submitted"),
    ],
)
def test_a_refused_submission_says_what_to_do(
    server: VeoServer, address: str, reply: Reply, kind: type[CliploopError], says: str
) -> None:
    server.faults["submit"] = [reply]
    error = failed(address)
    assert type(error) is kind, error
    assert re.search(says, str(error)), str(error)
    if reply is QUOTA:
        assert isinstance(error, BackendUnavailable)
        assert error.retry_after_seconds == 37.0
    if "retry-after" in reply.headers:
        assert isinstance(error, BackendUnavailable)
        assert error.retry_after_seconds == 9.0
    assert server.count("submit") == 1  # the client itself tries nothing twice


def test_no_answer_in_time_leaves_it_open_whether_the_render_began(server: VeoServer, address: str) -> None:
    def late(_request: Any) -> Reply:
        time.sleep(0.4)
        return Reply(hangs_up=True)

    server.answer = late  # type: ignore[method-assign]
    error = failed(address, request_seconds=0.1)
    assert type(error) is SubmissionUnknown
    assert "no answer in time" in str(error)


def test_without_a_key_nothing_is_asked(server: VeoServer, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    error = failed(address)
    assert type(error) is BackendMisconfigured
    assert "no key" in str(error)
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in str(error)
    assert server.asked == []
    assert "MY_KEY" in str(failed(address, api_key_env="MY_KEY"))
    monkeypatch.setenv("GOOGLE_API_KEY", "g-2")
    studio = Studio()
    veo = build("veo", {"base_url": address, "poll_seconds": 0.001}, studio.reader)
    render(veo, studio.shot(veo, num_frames=96))
    assert server.asked[0][1].headers["x-goog-api-key"] == "g-2"


def test_a_server_that_is_down_is_told_by_its_address() -> None:
    port = free_port()
    error = failed(f"http://127.0.0.1:{port}")
    assert type(error) is BackendUnavailable
    assert f"http://127.0.0.1:{port}: connection refused" in str(error)


def test_a_certificate_that_nobody_vouches_for_is_named_and_can_be_trusted(
    server: VeoServer, tmp_path: Path
) -> None:
    tls, authority = self_signed(tmp_path)
    with served(server, tls) as address:
        error = failed(address)
        assert type(error) is BackendMisconfigured
        assert "TLS certificate is not trusted" in str(error)
        studio = Studio()
        given = {"base_url": address, "ca_file": str(authority), "poll_seconds": 0.001}
        veo = build("veo", given, studio.reader)
        assert len(render(veo, studio.shot(veo, num_frames=96))) == 96


def test_failed_looks_in_a_row_are_no_failed_render(server: VeoServer, address: str) -> None:
    busy = refusal(503, "busy", retry_after_ms="5")
    server.faults["look"] = [busy, Reply(hangs_up=True), as_html(), busy]
    studio = Studio()
    veo = build("veo", {"base_url": address, "poll_seconds": 0.001}, studio.reader)
    assert len(render(veo, studio.shot(veo, num_frames=96))) == 96
    assert server.count("submit") == 1


def test_an_operation_that_has_expired_is_a_lost_attempt(server: VeoServer, address: str) -> None:
    error = failed(address, resume="models/veo-3.1-generate-preview/operations/yesterdays")
    assert type(error) is BackendFailed
    assert "operations/yesterdays is gone" in str(error)
    assert server.count("submit") == 0


def test_a_download_that_breaks_off_is_loaded_again_by_the_operation(server: VeoServer, address: str) -> None:
    server.faults["load"] = [Reply(200, b"half of it", {"content-type": "video/mp4"}, claims=5000)]
    error = failed(address)
    assert type(error) is BackendUnavailable
    assert "broke off" in str(error)
    studio = Studio()
    veo = build("veo", {"base_url": address, "poll_seconds": 0.001}, studio.reader)
    name = "models/veo-3.1-generate-preview/operations/op1"
    assert len(render(veo, studio.shot(veo, num_frames=96), resume=name)) == 96
    assert server.count("submit") == 1


@pytest.mark.parametrize("status", [302, 307, 308])
@pytest.mark.parametrize("kind", ["submit", "look", "load"])
def test_the_key_goes_to_no_other_host_wherever_a_redirect_leads(
    server: VeoServer, address: str, kind: str, status: int
) -> None:
    studio = Studio()
    generator = build("veo", {"base_url": address, "poll_seconds": 0.001, "filtered_retries": 0}, studio.reader)
    shot = studio.shot(generator, num_frames=96)

    class Elsewhere:
        def __init__(self) -> None:
            self.asked: list[Request] = []

        def answer(self, request: Request) -> Reply:
            self.asked.append(request)
            return Reply(404)

    elsewhere = Elsewhere()
    with served(elsewhere) as other:
        to = {"location": f"{other.replace('127.0.0.1', 'localhost')}/x"}
        server.faults[kind] = [Reply(status, b"", to)] * 9
        with pytest.raises(CliploopError):
            render(generator, shot)
    assert not [request for request in elsewhere.asked if "x-goog-api-key" in request.headers or request.body]
    assert kind == "load" or not elsewhere.asked


@pytest.mark.parametrize("body", [b"5", b"[" * 100_000, b'{"name": 5}', b'{"name": {}}', b'{"name": ["a"]}'])
def test_a_submission_whose_answer_is_nonsense_may_have_begun(
    server: VeoServer, address: str, body: bytes
) -> None:
    studio = Studio()
    generator = build("veo", {"base_url": address, "poll_seconds": 0.001}, studio.reader)
    server.faults["submit"] = [Reply(200, body, {"content-type": "application/json"})]
    with pytest.raises((SubmissionUnknown, BackendMisconfigured)):
        render(generator, studio.shot(generator, num_frames=96))
