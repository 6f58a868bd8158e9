"""The client against a real server: every call, typed results, typed errors, and answers that are lost."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cliploop.client import (
    AsyncClient,
    Client,
    Job,
    KeyRefused,
    NotThere,
    NotUnderstood,
    RequestRejected,
    ServerFailed,
    ServerUnreachable,
    TryLater,
    WrongMoment,
)
from cliploop.site import Site
from orchestrator.records import Budget
from service.views import NewJob
from storage.journal import SqlJournal
from tests.cliploop.client.conftest import submitted
from tests.cliploop.client.connections import Calls, after_bytes, losing
from tests.service.asking import PERFECT, maze, work

SECRET = "clk-secret-0123456789"


def test_a_job_is_submitted_from_a_file_read_listed_and_told(calls: Calls, site: Site, tmp_path: Path) -> None:
    png, prompt = maze(5)
    (tmp_path / "maze.png").write_bytes(png)
    job = calls(
        "submit", tmp_path / "maze.png", prompt, generator=PERFECT, max_steps=5, max_attempts=2, seed=5,
        budget=Budget(video_seconds=600, vlm_calls=400), priority="high",
    )  # fmt: skip
    assert (job.state, job.prompt, job.seed, job.priority) == ("queued", prompt, 5, "high")
    assert job.progress.max_steps == 5
    assert not job.ended
    work(site)
    told = calls("get", job.id)
    assert told.ended
    assert (told.state, told.outcome) == ("succeeded", "completed")
    assert told.spend.video_seconds > 0
    trajectory = calls("trajectory", job.id)
    assert trajectory.policy.budget.vlm_calls == 400
    assert trajectory.outcome.kind == "completed"
    assert calls("wait", job.id) == told
    assert job.id in [each.id for each in calls("list", states=["succeeded"])]


def test_a_job_has_all_that_the_server_says_of_it() -> None:
    assert set(NewJob.model_fields) - {"object"} == set(Job.model_fields)


def test_a_job_that_no_worker_would_begin_says_so(calls: Calls, client: Client) -> None:
    job_id = submitted(client)
    assert calls("get", job_id).waits_for == "a reason worker"


def test_all_jobs_are_iterated_over_page_by_page(calls: Calls, client: Client) -> None:
    mine = [submitted(client) for _ in range(3)]
    page = calls("page", limit=2)
    assert [job.id for job in page.data] == mine[:0:-1]
    assert calls("page", limit=1, after=page.after).data[0].id == mine[0]
    assert [job.id for job in calls("list", page_size=2)][:3] == mine[::-1]
    for job_id in mine:
        calls("delete", job_id)


def test_the_same_key_is_the_same_job_and_without_one_each_is_its_own(calls: Calls) -> None:
    png, prompt = maze()
    one, two = (calls("submit", png, prompt, generator=PERFECT, idempotency_key="mine").id for _ in range(2))
    assert one == two
    with pytest.raises(WrongMoment) as refused:
        calls("submit", png, prompt, generator=PERFECT, seed=9, idempotency_key="mine")
    assert (refused.value.status, refused.value.code) == (409, "idempotency_key_reused")
    other = calls("submit", png, prompt, generator=PERFECT).id
    assert other != one
    for job_id in (one, other):
        calls("delete", job_id)


def test_a_submission_whose_answer_is_lost_is_sent_again_and_is_one_job(calls: Calls) -> None:
    png, prompt = maze()
    before = len(calls("list"))
    with losing(calls.address, after_bytes(1), after_bytes(40)) as lossy:
        job = calls.through(lossy)("submit", png, prompt, generator=PERFECT)
    assert len(calls("list")) == before + 1
    calls("delete", job.id)


def test_a_job_is_cancelled_and_deleted_once_however_often_it_is_asked(calls: Calls, client: Client) -> None:
    job_id = submitted(client)
    with losing(calls.address, after_bytes(1)) as lossy:
        assert calls.through(lossy)("cancel", job_id).state == "cancelled"
    assert calls("cancel", job_id).state == "cancelled"
    with losing(calls.address, after_bytes(1)) as lossy:
        assert calls.through(lossy)("delete", job_id) is None
    with pytest.raises(NotThere):
        calls("delete", job_id)
    with pytest.raises(NotThere) as gone:
        calls("get", job_id)
    assert gone.value.status == 404


def test_a_finished_job_is_not_cancelled(calls: Calls, finished: str) -> None:
    with pytest.raises(WrongMoment) as refused:
        calls("cancel", finished)
    assert "succeeded" in str(refused.value)


def test_a_job_is_retried_and_forked(calls: Calls, finished: str) -> None:
    with pytest.raises(WrongMoment, match="nothing to retry"):
        calls("retry", finished)
    stopped = calls("submit", *maze()).id
    calls("cancel", stopped)
    again = calls("retry", stopped, max_steps=9, priority="low")
    assert (again.parent_id, again.priority) == (stopped, "low")
    assert again.progress.max_steps == 9
    other = calls("fork", finished, 1, instruction="The blue circle moves right.")
    assert other.parent_id == finished
    with pytest.raises(RequestRejected):
        calls("fork", finished, 999)
    for job in (again, other):
        calls("delete", job.id)


def test_an_uploaded_picture_is_named_by_a_submission(calls: Calls, tmp_path: Path) -> None:
    png, prompt = maze(6)
    (tmp_path / "maze.png").write_bytes(png)
    uploaded = calls("upload", tmp_path / "maze.png")
    assert uploaded.size.width == 128
    job = calls("submit", uploaded, prompt, generator=PERFECT, max_steps=4, budget="vlm_calls=40", seed=6)
    assert (job.seed, job.progress.max_steps) == (6, 4)
    assert calls("trajectory", job.id).task.picture == uploaded.id
    calls("delete", job.id)
    with pytest.raises(RequestRejected, match="not a picture"):
        calls("upload", b"text")


def test_a_job_that_waits_is_reviewed(calls: Calls, site: Site, client: Client) -> None:
    job_id = submitted(client)
    with pytest.raises(WrongMoment, match="queued"):
        calls("review", job_id, "resume")
    journal = SqlJournal(site.database, job_id)
    journal.set_state("running")
    journal.set_state("waiting", reason="unclear", message="no clear reply", key="step/1/plan")
    with pytest.raises(WrongMoment):
        calls("review", job_id, "reject", failure="wrong_direction", suggestion="Go left.", good_fraction=0.5)
    assert calls("get", job_id).state == "waiting"
    assert calls("review", job_id, "resume").state == "running"
    work(site)
    assert calls("get", job_id).ended


def test_the_server_says_what_it_offers(calls: Calls, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.crew.KEPT_SECONDS", 0.0)  # others looked a moment ago
    assert calls("health") is True
    site.messages.beat("reason@here:1")
    site.messages.beat("render@here:2", ["simulated"])
    assert calls("ready").ready
    assert calls("presets") == []
    offered = {each.name: each for each in calls("generators")}
    assert offered["simulated"].capabilities.name
    assert "oracle" in [each.name for each in calls("planners")]
    assert "oracle" in [each.name for each in calls("verifiers")]
    assert "maze" in [each.name for each in calls("worlds")]
    sample = calls("sample", "maze", difficulty="easy", seed=3, side_px=128)
    assert (sample.picture, sample.prompt) == maze(3)
    with pytest.raises(NotThere):
        calls("sample", "mase")


def test_what_is_wrong_with_a_request_is_said_by_field(calls: Calls) -> None:
    png, prompt = maze()
    with pytest.raises(RequestRejected) as rejected:
        calls("submit", png, prompt, max_steps=0)
    assert rejected.value.faults[0][0] == "max_steps"
    assert rejected.value.status == 422
    with pytest.raises(RequestRejected, match="not a picture"):
        calls("submit", b"text", prompt)
    with pytest.raises(RequestRejected, match="simulatd"):
        calls("submit", png, prompt, generator="simulatd")
    with pytest.raises(NotThere):
        calls("get", "../../healthz")
    with pytest.raises(FileNotFoundError):
        calls("submit", "none.png", prompt)


def test_nobody_there_is_said_when_patience_is_over(calls: Calls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = Calls(calls.kind, f"http://127.0.0.1:{port}", patience_seconds=0.3)
    with pytest.raises(ServerUnreachable) as lost:
        away("health")
    assert f"127.0.0.1:{port}" in str(lost.value)


class Scripted(BaseHTTPRequestHandler):
    """Answers as the test says; notes what it was asked."""

    answers: list[tuple[int, dict[str, str], bytes]]
    asked: list[tuple[str, dict[str, str]]]

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.asked.append((f"{self.command} {self.path}", dict(self.headers.items())))
        status, headers, body = self.answers.pop(0)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@pytest.fixture
def scripted(calls: Calls) -> Any:
    """A server of which the test says every answer: `scripted(answer, …)` gives the calls and what was asked."""
    servers: list[ThreadingHTTPServer] = []

    def start(*answers: tuple[int, dict[str, str], bytes]) -> tuple[Calls, list[Any]]:
        asked: list[Any] = []
        kind = type("Told", (Scripted,), {"answers": list(answers), "asked": asked})
        server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return Calls(calls.kind, f"http://127.0.0.1:{server.server_port}", api_key=SECRET), asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def problem(code: str, detail: str = "so it is") -> bytes:
    return json.dumps({"code": code, "detail": detail, "title": "T", "status": 0, "type": "t"}).encode()


JOB = json.dumps({"id": "job-1", "state": "queued"}).encode()
BUSY = (429, {"Retry-After": "0"}, problem("busy"))


def test_a_busy_server_is_asked_again_as_it_says_with_the_same_key(scripted: Any) -> None:
    calls, asked = scripted(
        BUSY, (503, {"Retry-After": "0"}, problem("unavailable")), (502, {}, b""), (202, {}, JOB)
    )
    assert calls("submit", b"x", "Go.").id == "job-1"
    assert len({headers["Idempotency-Key"] for _, headers in asked}) == 1
    assert len(asked) == 4
    assert {headers["Authorization"] for _, headers in asked} == {f"Bearer {SECRET}"}


def test_a_server_that_asks_for_more_patience_than_there_is_is_left(scripted: Any) -> None:
    calls, asked = scripted((429, {"Retry-After": "3600"}, problem("busy", "at most 3 requests a minute")))
    with pytest.raises(TryLater, match="at most 3") as later:
        calls("get", "job-1")
    assert later.value.retry_after_seconds == 3600
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, problem("unauthorized"), KeyRefused),
        (403, problem("forbidden"), KeyRefused),
        (404, b"<html>", NotThere),
        (409, problem("illegal_state"), WrongMoment),
        (418, b"", RequestRejected),
        (500, problem("internal"), ServerFailed),
        (301, b"", NotUnderstood),
        (200, b"<html>hello</html>", NotUnderstood),
        (200, b'{"id": 3}', NotUnderstood),
    ],
)
def test_errors_are_named_by_what_to_do_and_never_hold_the_key(
    scripted: Any, status: int, body: bytes, kind: type[Exception]
) -> None:
    headers = {"Location": "http://127.0.0.1:9/elsewhere"} if status == 301 else {}
    calls, asked = scripted((status, headers, body))
    with pytest.raises(kind) as raised:
        calls("get", "job-1")
    assert len(asked) == 1
    assert SECRET not in f"{raised.value!r} {raised.value} {vars(raised.value)}"


def test_the_key_is_in_no_repr_and_in_no_message() -> None:
    async def shown() -> str:
        async with AsyncClient(api_key=SECRET) as client:
            return f"{client!r} {client}"

    with Client(api_key=SECRET) as client:
        assert SECRET not in f"{client!r} {client} {asyncio.run(shown())}"
    for key in ("", f"{SECRET}\n", f"{SECRET} ", "clé"):
        with pytest.raises(ValueError, match="visible ASCII") as refused:
            Client(api_key=key)
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://host", "http://", "http://host/?a=b", "http://[::1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Client(url)
    with pytest.raises(ValueError, match="password") as refused:
        Client("http://me:hunter2@host")
    assert "hunter2" not in str(refused.value)


def test_an_address_with_a_path_is_kept() -> None:
    assert Client("http://host/prefix/").url == "http://host/prefix"


def test_a_picture_of_a_data_url_is_read_as_it_was_sent(client: Client) -> None:
    sample = client.sample("maze", seed=1)
    assert base64.b64encode(sample.picture).startswith(b"iVBORw0KGgo")
