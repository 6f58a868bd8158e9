"""Commands against a server that says what is not so: one line, and nothing written where it does not belong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cliploop.commandline import Said

Say = Callable[..., Said]
Lying = tuple[str, dict[str, object]]


@pytest.fixture
def lying() -> Iterator[Lying]:
    """An address, and the job that every answer there is."""
    job: dict[str, object] = {"id": "job-1", "state": "running"}

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = json.dumps(job).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815  (the names that it is called by)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", job
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("state", ["running", "queued", "succeeded"])
def test_cancel_says_the_state_that_the_answer_has(say: Say, lying: Lying, state: str) -> None:
    address, job = lying
    job["state"] = state
    told = say("cancel", "job-1", "--url", address)
    assert told.code == 1
    assert state in told.err
    assert told.err.count("\n") == 1
    for stopped in ("cancelling", "cancelled"):
        job["state"] = stopped
        assert say("cancel", "job-1", "--url", address).code == 0


def test_a_job_that_is_called_like_a_place_is_not_written_there(say: Say, lying: Lying, tmp_path: Path) -> None:
    address, job = lying
    job |= {"id": "../../elsewhere", "state": "succeeded"}
    told = say("download", "job-1", "--url", address)
    assert told.code == 1
    assert told.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("download",), ("cancel",), ("delete",), ("watch",), ("retry",)])
@pytest.mark.parametrize("name", ["", " ", "..", "a\nb"])
def test_what_can_be_no_id_is_refused_in_one_line(say: Say, words: tuple[str, ...], name: str) -> None:
    told = say(*words, name)
    assert told.code == 2
    assert told.err.count("\n") == 1
    assert "internal" not in told.err


def test_a_link_in_the_place_of_a_part_is_not_written_through(say: Say, finished: str, tmp_path: Path) -> None:
    own, folder = tmp_path / "own.txt", tmp_path / "out"
    own.write_text("mine")
    folder.mkdir()
    (folder / ".trajectory.json.part").symlink_to(own)
    (folder / "trajectory.json").symlink_to(own)
    assert say("download", finished, "-o", str(folder)).code == 0
    assert own.read_text() == "mine"
    assert not (folder / "trajectory.json").is_symlink()
