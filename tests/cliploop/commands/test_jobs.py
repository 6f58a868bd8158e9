"""`cliploop submit`, `list`, `download`, `cancel`, `retry`, `fork` and `delete` against a real server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cliploop.client import Client
from cliploop.commands.jobs import age
from orchestrator.records import Trajectory
from service.access import FRESH_SECONDS
from service.app import create_app
from storage import keys
from tests.cliploop.client.conftest import submitted
from tests.cliploop.commandline import Said
from tests.service.asking import PERFECT, maze
from tests.service.serving import served
from tests.workers.sites import a_site

Say = Callable[..., Said]


@pytest.fixture
def queued(client: Client) -> Iterator[str]:
    job_id = submitted(client)
    yield job_id
    if job_id in [job.id for job in client.list(states=["queued"])]:
        client.delete(job_id)


def one_line(told: Said) -> str:
    """Its one line on stderr."""
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(lines) == 1, told.err
    assert lines[0].startswith("cliploop: ")
    return lines[0]


def test_a_job_is_submitted_and_says_how_to_go_on(say: Say, client: Client) -> None:
    png, prompt = maze()
    Path("maze.png").write_bytes(png)
    Path("prompt.txt").write_text(prompt)
    words = (
        "submit", "--image", "maze.png", "--prompt", "prompt.txt", "--generator", PERFECT, "--max-steps", "4",
        "--seed", "7", "--budget", "vlm_calls=400", "--priority", "high",
    )  # fmt: skip
    told = say(*words)
    assert told.code == 0, told
    job = next(client.list())
    assert (job.prompt, job.seed, job.priority, job.generator) == (prompt, 7, "high", PERFECT)
    assert f"Job {job.id} submitted (queued" in told.out
    for what in ("watch", "download"):
        assert f" {what} {job.id}" in told.out
    other = say(*words, "--json").json
    assert other["ok"]
    assert other["id"] != job.id
    assert other["job"]["progress"]["max_steps"] == 4
    for job_id in (job.id, other["id"]):
        client.delete(job_id)


def test_a_task_of_the_servers_worlds_is_submitted(say: Say, client: Client) -> None:
    told = say("submit", "--world", "maze", "--difficulty", "easy", "--seed", "3", "--json")
    assert client.get(told.json["id"]).seed == 3
    client.delete(told.json["id"])
    assert "did you mean 'maze'" in one_line(say("submit", "--world", "mase"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--image and --prompt are missing"),
        (("--prompt", "Go."), "--image is missing"),
        (("--world", "maze", "--prompt", "Go."), "leave out --image and --prompt"),
        (("--image", "none.png", "--prompt", "Go."), "no such file"),
        (("--world", "maze", "--max-steps", "0"), "--max-steps: "),
        (("--world", "maze", "--priority", "urgent"), "high, normal, low"),
        (("--world", "maze", "--generator", "simulatd"), "did you mean 'simulated'"),
        (("--world", "maze", "--url", "nowhere"), "--url"),
    ],
)
def test_what_cannot_be_submitted_is_one_line(
    say: Say, client: Client, words: tuple[str, ...], says: str
) -> None:
    before = len(list(client.list()))
    told = say("submit", *words)
    assert told.code == 2
    assert says in one_line(told)
    assert say("submit", *words, "--json").json["exit_code"] == 2
    assert len(list(client.list())) == before


def test_jobs_are_listed_newest_first(say: Say, finished: str, queued: str) -> None:
    head, first, *_ = say("list").out.splitlines()
    assert head.split() == ["ID", "STATE", "STEP", "AGE", "PRESET", "PROMPT"]
    assert first.startswith(f"{queued}  queued (needs a reason worker)")
    told = say("list", "--state", "succeeded", "--state", "failed", "--json").json
    assert finished in [job["id"] for job in told["jobs"]]
    assert {job["state"] for job in told["jobs"]} <= {"succeeded", "failed"}
    assert len(say("list", "--limit", "1", "--json").json["jobs"]) == 1
    assert "no jobs" in say("list", "--state", "cancelling").out
    assert "running" in one_line(say("list", "--state", "runing"))
    assert say("list", "--limit", "0").code == 2


def test_what_a_job_made_is_fetched_into_a_folder(say: Say, finished: str) -> None:
    told = say("download", finished, "--clips", "-o", "got", "--json")
    files = told.json["files"]
    assert {"video.mp4", "trajectory.json", "contact-sheet.png", "steps/1/attempt-1.mp4"} <= set(files)
    assert all(Path(path).stat().st_size for path in files.values())
    assert Trajectory.model_validate_json(Path("got/trajectory.json").read_bytes()).id == finished
    assert sorted(str(path.relative_to("got")) for path in Path("got").rglob("*") if path.is_file()) == sorted(
        files
    )
    assert say("download", finished).out.splitlines()[1] == f"out/{finished}/video.mp4"
    Path("taken").write_text("")
    told = say("download", finished, "-o", "taken")
    assert told.code == 1
    assert "taken" in one_line(told)


def test_a_job_that_goes_on_has_no_files_yet(say: Say, queued: str) -> None:
    told = say("download", queued)
    assert told.code == 4
    assert f"watch {queued}" in one_line(told)
    assert list(Path().iterdir()) == []


def test_a_job_is_cancelled_and_deleted(say: Say, finished: str, queued: str) -> None:
    assert say("cancel", queued).out == f"Job {queued}: cancelled\n"
    assert say("cancel", queued, "--json").json["state"] == "cancelled"
    told = say("cancel", finished)
    assert told.code == 1
    assert "succeeded" in one_line(told)
    assert say("download", queued).out.splitlines()[1:] == [
        f"job {queued} ended before anything was rendered: it has no video"
    ]
    assert f"Job {queued} is deleted" in say("delete", queued).out
    told = say("delete", queued)
    assert told.code == 2
    assert queued in one_line(told)


def test_a_job_is_retried_and_forked(say: Say, client: Client, finished: str, queued: str) -> None:
    done = say("retry", finished)
    assert done.code != 0
    assert "there is nothing to retry" in one_line(done)
    client.cancel(queued)
    again = say("retry", queued, "--max-steps", "9", "--priority", "low", "--json").json["job"]
    assert (again["parent_id"], again["priority"], again["progress"]["max_steps"]) == (queued, "low", 9)
    words = ("fork", finished, "--from-step", "1", "--instruction", "The blue circle moves right.")
    told = say(*words)
    other = next(client.list())
    assert f"Job {other.id} submitted" in told.out
    assert other.parent_id == finished
    assert "step 99" in one_line(say("fork", finished, "--from-step", "99"))
    assert "--budget" in one_line(say("retry", finished, "--budget", "money=3"))
    assert "--instruction is empty" in one_line(say(*words[:-1], ""))
    for job_id in (again["id"], other.id):
        client.delete(job_id)


def test_where_nobody_answers_the_remedy_is_named(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cliploop.commands.talking.PATIENCE_SECONDS", 0.1)
    monkeypatch.setenv("CLIPLOOP_URL", "http://127.0.0.1:9")
    told = say("list")
    assert told.code == 1
    assert "is `cliploop up` running?" in one_line(told)
    assert say("list", "--json").json["error"]["reason"] == "unreachable"


def test_the_key_comes_from_the_environment_and_is_never_shown(
    say: Say, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_site(tmp_path_factory.mktemp("guarded")) as site, served(create_app(site)) as address:
        monkeypatch.setenv("CLIPLOOP_URL", address)
        _key, secret = keys.create(site.database, "tests")
        time.sleep(FRESH_SECONDS)
        told = say("list")
        assert told.code == 2
        assert "set CLIPLOOP_API_KEY" in one_line(told)
        monkeypatch.setenv("CLIPLOOP_API_KEY", secret)
        told = say("list", "--json")
        assert told.json["ok"]
        assert secret not in told.out + told.err
        for wrong in (secret[:-2] + "xx", "two words"):
            monkeypatch.setenv("CLIPLOOP_API_KEY", wrong)
            told = say("watch", "job-1")
            assert told.code == 2
            assert wrong not in one_line(told)


def test_an_age_is_told_in_the_unit_that_suits_it() -> None:
    assert [age(seconds) for seconds in (-3, 0, 59, 60, 7200, 3e5)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min",
        "2 h",
        "3 d",
    ]
