"""What goes wrong with the Gemini API as a VLM: each fault in its own words, none with the key in it."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestrator.asking import patiently
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, ReplyUnreadable
from planners.catalog import build
from tests.end_to_end.places import free_port
from tests.generators.certificates import self_signed
from tests.generators.loopback import Reply, as_html, as_json, served
from tests.generators.veo_server import refusal
from tests.planners.gemini_server import GeminiServer
from tests.planners.test_gemini import KEY
from tests.planners.vlm_desk import VlmDesk
from tests.planners.vlm_server import USUAL


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


def planned(address: str, desk: VlmDesk, **options: Any) -> Any:
    model = build("gemini", {"base_url": address, "timeout_seconds": 10, **options}, desk.reader)
    return model.plan(desk.task, desk.view())


def failed(address: str, desk: VlmDesk, **options: Any) -> CliploopError:
    """How an ask ends; the key is in none of the errors that led to it."""
    with pytest.raises(CliploopError) as caught:
        planned(address, desk, **options)
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
RETRY_INFO = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]
LONG = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (BAD_KEY, BackendMisconfigured, "key was refused.*GEMINI_API_KEY or GOOGLE_API_KEY"),
        (refusal(401, f"who is {KEY}?"), BackendMisconfigured, r"key was refused \(401.*GEMINI_API_KEY"),
        (refusal(403, "billing is off"), BackendMisconfigured, "403: billing is off"),
        (refusal(404, "models/x is not found"), BackendMisconfigured, "not know the model 'gemini-2.5-pro'"),
        (refusal(400, LONG), BackendMisconfigured, "too long for gemini-2.5-pro.*lower video_fps"),
        (refusal(400, "Request payload size exceeds"), BackendMisconfigured, "lower inline_megabytes"),
        (refusal(413, "too large"), BackendMisconfigured, "413: too large.*lower inline_megabytes"),
        (
            refusal(400, "Budget 0 is invalid"),
            BackendMisconfigured,
            "refused what was asked.*Budget 0 is invalid",
        ),
        (refusal(429, "quota exceeded", "RESOURCE_EXHAUSTED", RETRY_INFO), BackendUnavailable, "quota.*429"),
        (refusal(429, "slow down", retry_after="9"), BackendUnavailable, "429: slow down"),
        (refusal(500, "oops"), BackendUnavailable, "500: oops"),
        (refusal(503, "overloaded"), BackendUnavailable, "503: overloaded"),
        (as_html(503), BackendUnavailable, "503: Sign in Please sign in"),
        (as_html(), BackendMisconfigured, "HTML page.*is base_url a Gemini API"),
        (Reply(302, b"", {"location": "/elsewhere"}), BackendMisconfigured, "answers 302, it has moved"),
        (Reply(200, b'{"candidates": [', {"content-type": "application/json"}), BackendUnavailable, "breaks off"),
        (as_json({"candidates": [{"finishReason": {}}]}), BackendUnavailable, "none of a Gemini API"),
        (as_json({"candidates": "none"}), ReplyUnreadable, "reply is empty"),
        (as_json([1, 2]), ReplyUnreadable, "holds no candidate"),
        (Reply(hangs_up=True), BackendUnavailable, "connection broke off"),
        (Reply(200, b'{"cand', {"content-type": "application/json"}, claims=99), BackendUnavailable, "broke off"),
    ],
)
def test_a_fault_says_what_to_do(
    server: GeminiServer, address: str, desk: VlmDesk, reply: Reply, kind: type[CliploopError], says: str
) -> None:
    server.faults["ask"] = [reply]
    error = failed(address, desk)
    assert type(error) is kind, error
    assert re.search(says, str(error)), str(error)
    assert server.count("ask") == 1  # the client itself tries nothing twice


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (refusal(429, "quota", "RESOURCE_EXHAUSTED", RETRY_INFO), 37.0),
        (refusal(429, "slow down", retry_after="9"), 9.0),
        (refusal(503, "busy", retry_after="4"), 4.0),
        (refusal(503, "busy"), None),
    ],
)
def test_when_to_come_back_is_handed_on(
    server: GeminiServer, address: str, desk: VlmDesk, reply: Reply, seconds: float | None
) -> None:
    server.faults["ask"] = [reply]
    error = failed(address, desk)
    assert isinstance(error, BackendUnavailable)
    assert error.retry_after_seconds == seconds


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_a_busy_server_is_asked_again_with_backoff_and_never_read_as_a_reject(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    """cookbook#425: 503, 503, 200; the second says when to come back."""
    server.faults["ask"] = [refusal(503, "busy"), refusal(503, "busy", retry_after="5")]
    clock = Clock()
    answer = patiently(clock, 7, "step/1/plan", lambda: planned(address, desk))
    assert answer.value.instruction == USUAL["planner"]["instruction"]
    assert 0.5 <= clock.pauses[0] <= 1.0
    assert clock.pauses[1] == 5.0
    assert server.count("ask") == 3


def test_an_answer_that_stops_half_way_is_given_up_in_time(desk: VlmDesk) -> None:
    over = threading.Event()

    class Stopping(GeminiServer):
        def answer(self, request: Any) -> Reply:
            return Reply(200, b'{"cand', {"content-type": "application/json"}, claims=10**6, holds=over)

    with served(Stopping()) as address:
        began = time.monotonic()
        error = failed(address, desk, timeout_seconds=0.4)
        assert time.monotonic() - began < 3
        over.set()
    assert type(error) is BackendUnavailable
    assert "no whole answer within 0.4 s: raise timeout_seconds" in str(error)


class Trickling(BaseHTTPRequestHandler):
    """A byte now and then, without end: no single read takes long."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "1000000")
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.02)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def test_an_answer_that_trickles_is_given_up_in_time(desk: VlmDesk) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Trickling)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    began = time.monotonic()
    error = failed(f"http://127.0.0.1:{server.server_address[1]}", desk, timeout_seconds=0.5)
    assert time.monotonic() - began < 3
    server.shutdown()
    server.server_close()
    thread.join()
    assert type(error) is BackendUnavailable
    assert "no whole answer within 0.5 s" in str(error)


def test_without_a_key_nothing_is_asked(
    server: GeminiServer, address: str, desk: VlmDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    error = failed(address, desk)
    assert type(error) is BackendMisconfigured
    assert "gemini: no key for http://127.0.0.1" in str(error)
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in str(error)
    assert "MY_KEY" in str(failed(address, desk, api_key_env="MY_KEY"))
    assert server.log == []
    monkeypatch.setenv("GOOGLE_API_KEY", "g-2")
    planned(address, desk)
    assert server.asked[0].key == "g-2"


def test_a_model_that_the_server_does_not_have_is_named(
    server: GeminiServer, address: str, desk: VlmDesk
) -> None:
    prices = {"usd_per_million_input_tokens": 1, "usd_per_million_output_tokens": 1}
    error = failed(address, desk, model="gemini-9", **prices)
    assert type(error) is BackendMisconfigured
    assert "does not know the model 'gemini-9'" in str(error)


def test_a_server_that_is_down_is_told_by_its_address(desk: VlmDesk) -> None:
    port = free_port()
    error = failed(f"http://127.0.0.1:{port}", desk)
    assert type(error) is BackendUnavailable
    assert f"http://127.0.0.1:{port}: connection refused" in str(error)


def test_a_certificate_that_nobody_vouches_for_is_named_and_can_be_trusted(
    server: GeminiServer, desk: VlmDesk, tmp_path: Path
) -> None:
    tls, authority = self_signed(tmp_path)
    with served(server, tls) as address:
        error = failed(address, desk)
        assert type(error) is BackendMisconfigured
        assert "TLS certificate is not trusted" in str(error)
        assert planned(address, desk, ca_file=str(authority)).raw


def test_a_password_in_the_address_is_refused_without_being_repeated() -> None:
    with pytest.raises(BackendMisconfigured, match="must be an address alone") as caught:
        build("gemini", {"base_url": "https://me:secret@host"}, None)
    assert "secret" not in str(caught.value)
