"""What goes wrong with a chat server: each its own message, with a remedy, and never the key in it."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.asking import patiently
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, JobWaiting
from planners.catalog import build
from tests.generators.certificates import self_signed
from tests.generators.loopback import Reply, as_html, as_json, served
from tests.planners.vlm_desk import VlmDesk
from tests.planners.vlm_server import ACCEPT, VlmServer, completion, refusal

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_KEY", KEY)


@pytest.fixture(scope="module")
def desk() -> VlmDesk:
    return VlmDesk(num_frames=9)


def model(url: str, desk: VlmDesk, **options: Any) -> Any:
    given = {"base_url": f"{url}/v1", "model": "qwen", "api_key_env": "BOX_KEY", **options}
    return build("openai_compatible", given, desk.reader)


def fault(server: VlmServer, desk: VlmDesk, **options: Any) -> CliploopError:
    """What one question to it raises."""
    with served(server) as url, pytest.raises(CliploopError) as raised:
        desk.verdict(model(url, desk, **options))
    assert KEY not in str(raised.value)
    assert len(server.asked) <= 2  # the client retries nothing by itself
    return raised.value


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (
            refusal(401, f"Incorrect API key provided: {KEY}"),
            BackendMisconfigured,
            "the key was refused.*BOX_KEY",
        ),
        (refusal(403, "no"), BackendMisconfigured, "the key was refused"),
        (
            refusal(404, "The model `qwen` does not exist."),
            BackendMisconfigured,
            "does not know the model 'qwen'",
        ),
        (refusal(400, "model qwen not found"), BackendMisconfigured, "does not know the model 'qwen'.*/models"),
        (refusal(404, "Not Found"), BackendMisconfigured, r"no chat API at this address.*end in /v1"),
        (refusal(405, "Method Not Allowed"), BackendMisconfigured, r"no chat API at this address"),
        (refusal(400, "n must be 1"), BackendMisconfigured, r"refused what was asked \(400\): n must be 1"),
        (refusal(400, "qwen is not a multimodal model"), BackendMisconfigured, "takes no pictures"),
        (refusal(503, "loading"), BackendUnavailable, r"cannot do it now \(503: loading"),
        (refusal(500, "Internal Server Error"), BackendUnavailable, r"cannot do it now \(500"),
        (as_html(), BackendMisconfigured, "web page instead of JSON.*Sign in"),
        (as_html(502), BackendUnavailable, r"cannot do it now \(502"),
        (Reply(302, b"", {"location": "https://elsewhere/"}), BackendMisconfigured, "it has moved"),
        (Reply(200, b'{"choices": [', {"content-type": "application/json"}), BackendUnavailable, "breaks off"),
        (as_json(["no", "object"]), BackendMisconfigured, "no chat completion"),
        (
            as_json({"error": {"message": "busy", "code": 503}}),
            BackendUnavailable,
            r"cannot do it now \(503: busy",
        ),
        (as_json({"error": {"message": f"bad key {KEY}", "code": 401}}), BackendMisconfigured, "key was refused"),
        (as_json({"choices": []}), CliploopError, "the reply is empty"),
        (Reply(hangs_up=True), BackendUnavailable, "the connection broke off"),
        (Reply(200, b"{", {"content-type": "application/json"}, claims=99), BackendUnavailable, "broke off"),
    ],
)
def test_each_fault_has_its_own_message(
    reply: Reply, kind: type[CliploopError], says: str, desk: VlmDesk
) -> None:
    raised = fault(VlmServer(faults=[reply]), desk)
    assert isinstance(raised, kind)
    assert re.search(says, str(raised)), str(raised)


def test_a_quota_says_when_to_come_back(desk: VlmDesk) -> None:
    server = VlmServer(faults=[refusal(429, "Rate limit reached", **{"retry-after": "17"})])
    raised = fault(server, desk)
    assert isinstance(raised, BackendUnavailable)
    assert raised.retry_after_seconds == 17
    assert "too many requests, or the quota is used up (429" in str(raised)


class Sleepless:
    """A clock that notes how long it was asked to wait."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_a_busy_server_is_asked_again_and_is_never_a_reject(desk: VlmDesk) -> None:
    """cookbook#425: 503, 503, 200"""
    server = VlmServer({"verifier": ACCEPT}, [refusal(503, "busy"), refusal(503, "busy", **{"retry-after": "9"})])
    clock = Sleepless()
    with served(server) as url:
        answer = patiently(clock, 1, "step/1", lambda: desk.verdict(model(url, desk)))
    assert answer.value.decision == "accept"
    assert len(server.asked) == 3
    assert 0.5 <= clock.slept[0] <= 1
    assert clock.slept[1] == 9


def test_a_server_that_stays_away_makes_the_job_wait(desk: VlmDesk) -> None:
    server = VlmServer(faults=[refusal(503, "busy")] * 9)
    with served(server) as url, pytest.raises(JobWaiting, match="503: busy") as waiting:
        patiently(Sleepless(), 1, "step/1", lambda: desk.verdict(model(url, desk)))
    assert waiting.value.reason == "backend"


def test_a_server_that_is_down_is_named(desk: VlmDesk) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(BackendUnavailable, match=rf"127\.0\.0\.1:{port}/v1: connection refused: is the server"):
        desk.verdict(model(f"http://127.0.0.1:{port}", desk))


@pytest.mark.parametrize(
    "slow",
    [
        Reply(200, b'{"choi', {"content-type": "application/json"}, claims=999),
        Reply(200, b'{"choices": ' + b" " * 400, {"content-type": "application/json"}, trickles=0.05),
    ],
)
def test_a_slow_answer_is_not_waited_for_longer_than_said(slow: Reply, desk: VlmDesk) -> None:
    ended = threading.Event()
    server = VlmServer(faults=[replace(slow, holds=ended)])
    began = time.monotonic()
    raised = fault_of_slow(server, desk, ended)
    assert time.monotonic() - began < 4
    assert isinstance(raised, BackendUnavailable)
    assert "no whole answer within 0.5 s: raise timeout_seconds" in str(raised)


def fault_of_slow(server: VlmServer, desk: VlmDesk, ended: threading.Event) -> CliploopError:
    with served(server) as url:
        with pytest.raises(CliploopError) as raised:
            desk.verdict(model(url, desk, timeout_seconds=0.5))
        ended.set()
    return raised.value


def test_a_certificate_of_ones_own_making_is_named_and_can_be_trusted(desk: VlmDesk, tmp_path: Path) -> None:
    context, authority = self_signed(tmp_path)
    server = VlmServer({"verifier": ACCEPT})
    with served(server, context) as url:
        with pytest.raises(BackendMisconfigured, match=r"its TLS certificate is not trusted.*set ca_file"):
            desk.verdict(model(url, desk))
        assert desk.verdict(model(url, desk, ca_file=str(authority))).value.decision == "accept"
        with pytest.raises(BackendMisconfigured, match=r"ca_file: .* holds no certificates"):
            desk.verdict(model(url, desk, ca_file=str(tmp_path / "none.pem")))


def test_the_key_is_read_at_the_call_and_goes_nowhere_but_to_the_server(desk: VlmDesk) -> None:
    server = VlmServer({"verifier": completion(json.dumps({**ACCEPT, "reason": "It moves."}))})
    with served(server) as url:
        asked = model(url, desk)
        answer = desk.verdict(asked)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in answer.model_dump_json() + json.dumps(server.asked[0].body) + repr(asked)


def test_the_vendors_own_address_needs_a_key(desk: VlmDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOX_KEY")
    with pytest.raises(BackendMisconfigured, match=r"no key for https://api\.openai\.com/v1.*BOX_KEY"):
        desk.verdict(model("https://api.openai.com", desk))


def test_what_was_learned_of_a_server_is_forgotten_when_it_goes_away(desk: VlmDesk) -> None:
    server = VlmServer({"verifier": ACCEPT}, max_images=3)
    with served(server) as url:
        asked = model(url, desk)
        desk.verdict(asked)
        server.max_images = None
        server.faults = [Reply(hangs_up=True)]
        with pytest.raises(BackendUnavailable):
            desk.verdict(asked)
        desk.verdict(asked)
    assert [len(chat.images) for chat in server.answered] == [3, 10]
