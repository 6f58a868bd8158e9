"""What a job has made, over HTTP: whole, in parts, and for browsers."""

from __future__ import annotations

import base64
import hashlib
import re
import threading

import httpx
import pytest

from cliploop.site import Site
from media.probe import probe
from orchestrator.errors import BackendUnavailable
from orchestrator.records import Trajectory
from service.making import AT_ONCE, Made
from service.ranges import spans_of
from storage.leases import hand_back, take
from storage.submissions import find
from tests.service.asking import posted, work


@pytest.fixture
def done(site: Site, client: httpx.Client) -> str:
    job_id = posted(client)
    work(site)
    return job_id


def test_the_video_is_whole_and_in_ranges(client: httpx.Client, done: str) -> None:
    path = f"/v1/jobs/{done}/video"
    whole = client.get(path)
    assert whole.status_code == 200
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    size = len(whole.content)
    assert probe(whole.content).num_frames > 1
    digest = base64.b64encode(hashlib.sha256(whole.content).digest()).decode("ascii")
    assert whole.headers["repr-digest"] == f"sha-256=:{digest}:"
    head = client.head(path)
    assert (head.headers["content-length"], head.content) == (str(size), b"")
    pieces = [client.get(path, headers={"Range": f"bytes={at}-{at + 999}"}) for at in range(0, size, 1000)]
    assert all(piece.status_code == 206 for piece in pieces)
    assert pieces[-1].headers["content-range"] == f"bytes {size - size % 1000}-{size - 1}/{size}"
    assert b"".join(piece.content for piece in pieces) == whole.content
    assert client.get(path, headers={"Range": "bytes=-10"}).content == whole.content[-10:]
    assert client.get(path, headers={"Range": f"bytes={size - 3}-"}).content == whole.content[-3:]


def test_ranges_that_cannot_be_had_and_headers_that_are_ignored(client: httpx.Client, done: str) -> None:
    path = f"/v1/jobs/{done}/video"
    whole = client.get(path)
    size = len(whole.content)
    for beyond in ("bytes=999999999-", f"bytes={size}-", "bytes=-0"):
        refused = client.get(path, headers={"Range": beyond})
        assert refused.status_code == 416, beyond
        assert refused.headers["content-range"] == f"bytes */{size}"
        assert refused.headers["content-type"] == "application/problem+json"
    many = "bytes=" + ",".join(f"{at}-{at}" for at in range(0, 10_000, 2))
    for ignored in ("items=0-1", "bytes", "bytes=", "bytes=5-1", "bytes=a-b", "bytes=-", many):
        assert client.get(path, headers={"Range": ignored}).status_code == 200, ignored[:40]
    etag = whole.headers["etag"]
    assert client.get(path, headers={"If-None-Match": f'"other", {etag}'}).status_code == 304
    assert client.get(path, headers={"Range": "bytes=0-1", "If-Range": etag}).status_code == 206
    assert client.get(path, headers={"Range": "bytes=0-1", "If-Range": '"other"'}).status_code == 200


def test_several_ranges_are_parts_of_one_answer(client: httpx.Client, done: str) -> None:
    path = f"/v1/jobs/{done}/video"
    whole = client.get(path).content
    parts = client.get(path, headers={"Range": f"bytes=0-3,10-13,{10**9}-"})
    assert parts.status_code == 206
    boundary = parts.headers["content-type"].removeprefix("multipart/byteranges; boundary=")
    assert int(parts.headers["content-length"]) == len(parts.content)
    bodies = re.findall(rb"\r\n\r\n(.{4})\r\n--" + boundary.encode(), parts.content, re.DOTALL)
    assert bodies == [whole[0:4], whole[10:14]]
    touching = client.get(path, headers={"Range": "bytes=0-3,4-7"})
    assert touching.headers["content-range"] == f"bytes 0-7/{len(whole)}"


def test_spans() -> None:
    assert spans_of("bytes=0-0", 10) == [(0, 1)]
    assert spans_of("bytes=0-999999999999999999", 10) == [(0, 10)]
    assert spans_of("bytes=-99", 10) == [(0, 10)]
    assert spans_of("bytes=8-9,0-1", 10) == [(0, 2), (8, 10)]
    assert spans_of("bytes=0-", 0) == []


def test_the_trajectory_is_the_jobs_own(client: httpx.Client, done: str) -> None:
    told = Trajectory.model_validate_json(client.get(f"/v1/jobs/{done}/trajectory").content)
    assert told.id == done
    assert told.outcome is not None
    spend = client.get(f"/v1/jobs/{done}").json()["spend"]
    assert told.spend.model_dump() == pytest.approx(spend)


def test_clips_and_contact_sheet_are_made_on_demand_and_are_the_jobs(
    site: Site, client: httpx.Client, done: str
) -> None:
    path = f"/v1/jobs/{done}/steps/1/attempts/1/clip"
    clip = client.get(path)
    assert clip.status_code == 200, clip.text
    assert probe(clip.content).num_frames > 1
    assert client.get(path).headers["etag"] == clip.headers["etag"]
    sheet = client.get(f"/v1/jobs/{done}/contact-sheet")
    assert sheet.content.startswith(b"\x89PNG")
    for missing in ("steps/99/attempts/1/clip", "steps/1/attempts/99/clip", "steps/0/attempts/1/clip"):
        assert client.get(f"/v1/jobs/{done}/{missing}").status_code == 404
    assert client.get(f"/v1/jobs/{done}/steps/one/attempts/1/clip").status_code == 422
    assert client.delete(f"/v1/jobs/{done}").status_code == 204
    assert client.get(path).status_code == 404


def test_what_is_not_there_yet_is_a_conflict_with_a_time_to_come_back(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    for name in ("video", "contact-sheet"):
        early = client.get(f"/v1/jobs/{job_id}/{name}")
        assert early.status_code == 409
        assert early.headers["retry-after"] == "2"
    assert client.get(f"/v1/jobs/{job_id}/trajectory").json()["steps"] == []
    client.post(f"/v1/jobs/{job_id}/cancel")
    assert client.get(f"/v1/jobs/{job_id}/video").json()["code"] == "no_video"
    for name in ("video", "contact-sheet", "trajectory", "steps/1/attempts/1/clip"):
        assert client.get(f"/v1/jobs/job-nobody/{name}").status_code == 404


def test_a_cancelled_job_offers_the_best_of_what_it_rendered(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    while client.get(f"/v1/jobs/{job_id}").json()["spend"]["video_seconds"] == 0:
        work(site, messages=1)
    assert client.get(f"/v1/jobs/{job_id}/contact-sheet").status_code == 200
    lease = take(site.database, f"clip/{job_id}/x", "somebody")
    assert lease is not None
    client.post(f"/v1/jobs/{job_id}/cancel")
    hand_back(site.database, lease)
    work(site)
    assert find(site.database, job_id, "").job.state.state == "cancelled"
    video = client.get(f"/v1/jobs/{job_id}/video")
    assert video.status_code == 200, video.text
    assert probe(video.content).num_frames > 1


def test_who_waits_too_long_for_what_is_made_on_demand_is_told_to_come_back(site: Site) -> None:
    made, begun, end = Made(site, wait_seconds=0.05), threading.Semaphore(0), threading.Event()

    def slow() -> bytes:
        begun.release()
        assert end.wait(60)
        return b"made"

    makers = [threading.Thread(target=made.passing, args=[slow], daemon=True) for _ in range(AT_ONCE)]
    for maker in makers:
        maker.start()
    for _ in makers:
        assert begun.acquire(timeout=60)
    with pytest.raises(BackendUnavailable):
        made.passing(bytes)
    end.set()
    for maker in makers:
        maker.join(60)
    assert made.passing(lambda: b"mine") == b"mine"
