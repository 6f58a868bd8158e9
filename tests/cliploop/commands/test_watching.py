"""`cliploop watch`: the lines of a run here, through restarts of the API, with the exit code of the job's end."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI

from cliploop.client import Client
from cliploop.site import Site
from service.app import create_app
from storage.jobs import JobState
from storage.journal import SqlJournal
from tests.cliploop.client.conftest import submitted
from tests.cliploop.commandline import Said
from tests.service.asking import maze, work
from tests.service.serving import served

Say = Callable[..., Said]


def story(said: str) -> list[str]:
    """Its lines from the first step to what was spent."""
    lines = said.splitlines()
    return [line for line in lines if line.startswith((" ", "Step", "The planner", "Assess", "Compl", "Exhaus"))]


def once_watched(app: FastAPI, job_id: str, call: Callable[..., object], *given: object) -> None:
    """Call it, in a thread, when somebody follows the job."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while job_id not in app.state.hub._feeds:
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)
        call(*given)

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize("seed", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_it_tells_a_job_in_the_lines_of_a_run_here(say: Say, site: Site, seed: int) -> None:
    png, prompt = maze(seed)
    Path("maze.png").write_bytes(png)
    options = ("--image", "maze.png", "--prompt", prompt, "--seed", str(seed), "--max-steps", "2")
    here = say("run", *options, "-o", "here")
    job_id = say("submit", *options, "--json").json["id"]
    worker = threading.Thread(target=work, args=[site])
    worker.start()
    there = say("watch", job_id)
    worker.join()  # it would work on the jobs of the tests that follow
    assert story(there.out) == story(here.out)
    assert len(story(there.out)) > 4
    assert there.code == here.code
    again = say("watch", job_id)  # told from the journal alone
    assert again.out == there.out
    told, ran = say("watch", job_id, "--json"), say("run", *options, "-o", "here", "--json")
    for key in ("ok", "exit_code", "state", "outcome", "resume", "error"):
        assert told.json[key] == ran.json[key] or key == "outcome"
    assert told.json["outcome"]["kind"] == ran.json["outcome"]["kind"]
    assert story(told.err) == story(here.out)


def test_submit_can_watch_at_once(say: Say, site: Site, finished: str) -> None:
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            work(site, messages=1)
            time.sleep(0.01)

    worker = threading.Thread(target=serve)
    worker.start()
    told = say("fork", finished, "--from-step", "1", "--watch", "--json")
    done.set()
    worker.join()
    assert told.code == 0
    assert told.json["outcome"]["kind"] == "completed"
    assert told.json["id"] != finished


@pytest.mark.slow
def test_it_goes_on_when_the_api_is_started_again_and_says_so(say: Say, site: Site) -> None:
    began: queue.Queue[str] = queue.Queue()
    told = threading.Event()
    servers = threading.Thread(target=_served_twice, args=[site, began, told])
    servers.start()
    address = began.get(timeout=30)
    with Client(address) as client:
        job_id = submitted(client)
    work(site, messages=1)
    said = say("watch", job_id, "--url", address)
    told.set()
    servers.join()
    lines = said.out.splitlines()
    assert said.code == 0, said
    assert [line for line in lines if line.startswith("connection lost")]
    assert "connected again" in lines
    assert len([line for line in lines if line.startswith("Step 1 ")]) == 1


def _served_twice(site: Site, began: queue.Queue[str], told: threading.Event) -> None:
    """Serve it until somebody watches; then again, with a worker, until all is told."""
    app = create_app(site)
    with served(app) as address:
        began.put(address)
        while not app.state.hub._feeds and not told.is_set():
            time.sleep(0.01)
    time.sleep(0.5)
    with served(create_app(site), int(address.rpartition(":")[2])):
        work(site)
        told.wait(60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_watching_and_not_the_job(say: Say, app: FastAPI, client: Client, number: int) -> None:
    job_id = submitted(client)
    once_watched(app, job_id, os.kill, os.getpid(), number)
    told = say("watch", job_id)
    assert told.code == 130
    assert f"job {job_id} goes on" in told.err
    assert f"watch {job_id}" in told.err
    assert client.get(job_id).state == "queued"
    client.delete(job_id)


class Finalised:
    """Takes long to be finalised; an exception that is raised meanwhile is lost."""

    def __del__(self) -> None:
        time.sleep(30)


@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_finaliser_swallows_is_heard_all_the_same(
    say: Say, app: FastAPI, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submitted(client)
    once_watched(app, job_id, os.kill, os.getpid(), signal.SIGINT)

    def show(_watch: object, _event: object) -> bool:
        Finalised()
        return False

    monkeypatch.setattr("cliploop.commands.watching._Watch._show", show)
    began = time.monotonic()
    assert say("watch", job_id).code == 130
    assert time.monotonic() - began < 25
    client.delete(job_id)


def test_a_job_that_waits_for_a_person_ends_the_watch_with_4(
    say: Say, app: FastAPI, site: Site, client: Client
) -> None:
    job_id = submitted(client)
    journal = SqlJournal(site.database, job_id)
    journal.set_state("running")
    journal.set_state("waiting", reason="unclear", message="no clear reply", key="step/1/plan")
    told = say("watch", job_id)
    assert told.code == 4
    assert "Waiting (unclear): no clear reply" in told.out
    assert f"watch {job_id}" in told.out
    said = say("watch", job_id, "--json").json
    assert (said["state"], said["exit_code"], said["error"]["reason"]) == ("waiting", 4, "unclear")
    journal.set_state("running")
    journal.set_state("waiting", reason="backend", message="away", key="step/1/plan")
    once_watched(app, job_id, _fail, journal)
    told = say("watch", job_id)
    assert "Waiting (backend): away; the service tries again by itself" in told.out
    assert "Failed: given up" in told.out
    assert told.code == 1
    client.delete(job_id)


def _fail(journal: SqlJournal) -> None:
    assert journal.state() == JobState("waiting", "backend", "away", "step/1/plan")
    journal.set_state("failed", message="given up")


def test_cancelled_and_deleted_jobs_end_it_with_1_and_unknown_ones_with_2(
    say: Say, app: FastAPI, client: Client
) -> None:
    job_id = submitted(client)
    once_watched(app, job_id, client.cancel, job_id)
    told = say("watch", job_id)
    assert told.code == 1
    assert "Cancelled" in told.out
    client.delete(job_id)
    told = say("watch", job_id)
    assert told.code == 2
    assert "there is no job" in told.err
