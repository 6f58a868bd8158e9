"""The whole service over HTTP, on one machine with nothing configured and as docker-compose.yml runs it.

Two sites, one behaviour: what a job becomes does not depend on the site, and equals a plain `cliploop run`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cliploop.commandline import child
from tests.end_to_end.asking import (
    EXAMPLE,
    FINAL,
    clips,
    ended,
    fetched,
    followed,
    num_frames,
    read,
    submitted,
    until,
)
from tests.end_to_end.jobs import without_times
from tests.end_to_end.places import Place, many_machines, one_machine

pytestmark = pytest.mark.slow
ASKED = {"generator": "simulated", "seed": "7", "max_steps": "2"}
# Three clips, the second and the third behind a kept prefix; two clips of a second step; completed.
SITES = {"one machine": one_machine, "many machines": many_machines}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same task by a plain run; its folder."""
    folder = tmp_path_factory.mktemp("local")
    options = [word for name, value in ASKED.items() for word in (f"--{name.replace('_', '-')}", value)]
    picture, prompt = (str(EXAMPLE / name) for name in ("first_frame.png", "prompt.txt"))
    ran = child("run", "--image", picture, "--prompt", prompt, *options, "-o", "job", cwd=folder)
    assert ran.code == 0, ran.err
    return folder / "job"


@pytest.fixture(scope="module", params=SITES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with SITES[request.param](tmp_path_factory.mktemp("site")) as place:
        yield place


@pytest.fixture
def client(place: Place) -> Iterator[httpx.Client]:
    with client_of(place) as client:
        yield client


def client_of(place: Place, number: int = 0) -> httpx.Client:
    return httpx.Client(base_url=place.addresses[number], headers=place.headers, timeout=60, trust_env=False)


@pytest.fixture(scope="module")
def solved(place: Place) -> dict[str, Any]:
    """A job that was followed to its end: the job, and its events."""
    with client_of(place) as client:
        answer = submitted(client, ASKED, key="maze-1")
        assert answer.status_code == 202, answer.text
        assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
        events = list(followed(client, answer.json()["id"]))
        return {"job": read(client, answer.json()["id"]), "events": events}


def test_a_submitted_job_is_told_step_by_step_to_its_end(solved: dict[str, Any]) -> None:
    events = solved["events"]
    numbers = [event.number for event in events if event.number is not None]
    assert numbers == list(range(1, len(numbers) + 1))
    states = [event.said["value"]["state"] for event in events if event.kind == "state"]
    assert states == ["queued", "running", "succeeded"]
    recorded = [event.said["key"] for event in events if event.kind == "record"]
    for key in ("step/1/plan", "step/1/attempt/2/cut", "step/2/attempt/1/verdict", "final/video"):
        assert key in recorded
    fractions = [event.said["fraction"] for event in events if event.kind == "progress"]
    assert fractions
    assert all(0 <= fraction <= 1 for fraction in fractions)
    job = solved["job"]
    assert (job["state"], job["outcome"]) == ("succeeded", "completed")
    assert job["progress"]["step"] == 2
    assert job["spend"]["vlm_calls"] > 0


def test_a_watcher_goes_on_where_it_stopped(client: httpx.Client, solved: dict[str, Any]) -> None:
    stored = [event for event in solved["events"] if event.number is not None]
    seen = stored[4].number
    assert [event.number for event in followed(client, solved["job"]["id"], seen)] == [
        event.number for event in stored[5:]
    ]


def test_what_comes_out_is_byte_for_byte_what_a_plain_run_makes(
    client: httpx.Client, solved: dict[str, Any], local: Path
) -> None:
    job_id = solved["job"]["id"]
    video = fetched(client, job_id, "video")
    assert video == (local / "video.mp4").read_bytes()
    assert num_frames(video) > 97
    told = json.loads(fetched(client, job_id, "trajectory"))
    plain = json.loads((local / "trajectory.json").read_text())
    assert without_times(told) == {**without_times(plain), "id": job_id}
    assert len(clips(told)) == 5
    sheet = fetched(client, job_id, "contact-sheet")
    assert sheet.startswith(b"\x89PNG")
    for step, attempts in ((1, 3), (2, 2)):
        for attempt in range(1, attempts + 1):
            clip = fetched(client, job_id, f"steps/{step}/attempts/{attempt}/clip")
            assert clip[4:8] == b"ftyp"


def test_the_video_comes_in_pieces_that_are_the_whole(client: httpx.Client, solved: dict[str, Any]) -> None:
    path = f"/v1/jobs/{solved['job']['id']}/video"
    whole = client.get(path)
    size, half = len(whole.content), len(whole.content) // 2
    pieces = [client.get(path, headers={"Range": f"bytes={span}"}) for span in (f"0-{half - 1}", f"{half}-")]
    assert [piece.status_code for piece in pieces] == [206, 206]
    assert pieces[1].headers["content-range"] == f"bytes {half}-{size - 1}/{size}"
    assert pieces[0].content + pieces[1].content == whole.content
    assert client.get(path, headers={"Range": f"bytes={size}-"}).status_code == 416
    assert client.get(path, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304


def test_the_same_request_again_is_the_same_job(client: httpx.Client, solved: dict[str, Any]) -> None:
    again = submitted(client, ASKED, key="maze-1")
    assert (again.status_code, again.json()["id"]) == (202, solved["job"]["id"])
    assert submitted(client, {**ASKED, "seed": "8"}, key="maze-1").status_code == 409


def test_a_job_that_is_cancelled_stops_and_shows_the_best_that_it_had(client: httpx.Client) -> None:
    job_id = submitted(client, {**ASKED, "seed": "46", "max_steps": "12"}).json()["id"]
    until(client, job_id, lambda job: job["progress"]["attempt"] is not None)
    answer = client.post(f"/v1/jobs/{job_id}/cancel")
    assert answer.status_code == 200
    assert answer.json()["state"] in ("cancelling", "cancelled")
    assert ended(client, job_id)["state"] == "cancelled"
    assert client.post(f"/v1/jobs/{job_id}/cancel").status_code == 409
    assert fetched(client, job_id, "video")
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    assert client.get(f"/v1/jobs/{job_id}").status_code == 404


def test_one_request_sent_to_two_apis_at_once_is_one_job(place: Place) -> None:
    begin = threading.Barrier(2)

    def send(address: int) -> tuple[int, str]:
        with client_of(place, address) as client:
            begin.wait()
            answer = submitted(client, {**ASKED, "generator": "simulated-perfect", "max_steps": "1"}, key="twins")
            return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor() as pool:
        first, second = pool.map(send, (0, -1))
    assert first == second
    assert first[0] == 202
    with client_of(place) as client:
        listed = [job["id"] for job in client.get("/v1/jobs").json()["data"]]
        assert listed.count(first[1]) == 1
        assert client.delete(f"/v1/jobs/{first[1]}").status_code == 204


@pytest.mark.parametrize("place", ["many machines"], indirect=True)
def test_every_health_check_tells_life_from_death(place: Place) -> None:
    assert set(place.checks) == {"api", "reason", "render"}
    assert all(check.passes() for check in place.checks.values())
    elsewhere = {"CLIPLOOP_REDIS_URL": "redis://127.0.0.1:1/0"}
    worker = replace(place.checks["render"], environment={**place.checks["render"].environment, **elsewhere})
    assert not worker.passes()


@pytest.mark.parametrize("place", ["many machines"], indirect=True)
def test_workers_that_are_killed_in_mid_job_cost_time_and_nothing_else(place: Place, local: Path) -> None:
    with client_of(place) as client:
        job_id = submitted(client, ASKED).json()["id"]
        rendering = until(client, job_id, lambda job: "2/clip" in job["progress"]["key"] or job["state"] in FINAL)
        assert rendering["state"] == "running"
        killed = ("render-1", "reason-1")
        for name in killed:
            place.processes.kill(name)
        for name in killed:
            place.start(name)
        job = ended(client, job_id)
        assert (job["state"], job["outcome"]) == ("succeeded", "completed")
        assert fetched(client, job_id, "video") == (local / "video.mp4").read_bytes()
        told = json.loads(fetched(client, job_id, "trajectory"))
        assert clips(told) == clips(json.loads((local / "trajectory.json").read_text()))
        keys = [event.said["key"] for event in followed(client, job_id) if event.kind in ("record", "failure")]
        assert len(keys) == len(set(keys))


def test_a_fork_shares_what_it_inherits_and_outlives_its_parent(
    client: httpx.Client, solved: dict[str, Any]
) -> None:
    """The last test of a site: it deletes the job."""
    parent = solved["job"]["id"]
    before = json.loads(fetched(client, parent, "trajectory"))
    fork = client.post(f"/v1/jobs/{parent}/fork", json={"step": 2}).json()
    assert fork["parent_id"] == parent
    assert ended(client, fork["id"])["state"] == "succeeded"
    after = json.loads(fetched(client, fork["id"], "trajectory"))
    assert json.loads(fetched(client, parent, "trajectory")) == before
    assert clips(after)[:3] == clips(before)[:3]
    assert client.delete(f"/v1/jobs/{parent}").status_code == 204
    for path in ("", "/video", "/events"):
        assert client.get(f"/v1/jobs/{parent}{path}").status_code == 404
    assert fetched(client, fork["id"], "video")
    assert fetched(client, fork["id"], "steps/1/attempts/1/clip")
