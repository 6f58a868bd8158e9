"""OpenAI's official client runs unchanged: create, follow, list, download, delete."""

# pyright: reportDeprecated=false

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from PIL import Image
from sqlalchemy import update

from cliploop.site import Site
from media.probe import probe
from orchestrator.errors import BackendUnavailable
from service.app import create_app
from service.openai_views import video_view
from storage.keys import create as create_key
from storage.leases import hand_back, take
from storage.submissions import cancel, listed
from storage.tables import JobRow
from tests.service.asking import PERFECT, as_data_url, submission, work
from tests.service.openai_videos.clients import (
    async_client,
    breaking_once,
    sync_client,
    working,
)
from tests.service.openai_videos.creating import PNG, PROMPT, created, refused
from tests.service.serving import served
from tests.workers.sites import a_site

ROOT = Path(__file__).parents[3]


def test_the_official_client_goes_the_whole_way_unchanged(site: Site, client: openai.OpenAI) -> None:
    with working(site):
        video = client.videos.create_and_poll(
            prompt=PROMPT, input_reference=("maze.png", PNG, "image/png"), model=PERFECT, seconds="12"
        )
    assert (video.status, video.progress, video.model, video.object) == ("completed", 100, PERFECT, "video")
    assert video.error is None
    assert video.completed_at is not None
    assert video.created_at <= video.completed_at
    assert 0 < float(video.seconds) <= 12.2
    assert video.size == "128x128"
    assert client.videos.retrieve(video.id) == video
    assert video.id in [each.id for each in client.videos.list(limit=100)]
    content = client.videos.download_content(video.id)
    assert content.response.headers["content-type"] == "video/mp4"
    found = probe(content.read())
    assert f"{found.size.width}x{found.size.height}" == video.size
    assert float(found.seconds) == pytest.approx(float(video.seconds), abs=0.1)
    gone = client.videos.delete(video.id)
    assert (gone.id, gone.deleted, gone.object) == (video.id, True, "video.deleted")
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(video.id)
    with pytest.raises(openai.NotFoundError):
        client.videos.download_content(video.id)


def test_the_asynchronous_client_does_too_and_a_data_url_is_a_picture(site: Site, address: str) -> None:
    async def whole_way() -> None:
        async with async_client(address) as client:
            picture = {"image_url": as_data_url(PNG)}  # as a part of a form: input_reference[image_url]
            video = await client.videos.create(
                prompt=PROMPT, model=PERFECT, extra_body={"input_reference": picture, "max_steps": 1}
            )
            video = await client.videos.poll(video.id)
            assert video.status == "completed"
            content = await client.videos.download_content(video.id, variant="thumbnail")
            assert content.read()
            await client.videos.delete(video.id)

    with working(site):
        asyncio.run(whole_way())


def test_thumbnail_and_spritesheet_show_the_video(client: openai.OpenAI, done: str) -> None:
    thumbnail = client.videos.download_content(done, variant="thumbnail")
    assert thumbnail.response.headers["content-type"] == "image/webp"
    picture = Image.open(io.BytesIO(thumbnail.read()))
    assert (picture.format, picture.size) == ("WEBP", (128, 128))
    sheet = client.videos.download_content(done, variant="spritesheet")
    assert sheet.response.headers["content-type"] == "image/jpeg"
    sprites = Image.open(io.BytesIO(sheet.read())).convert("L")
    assert sprites.size == (5 * 128, 2 * 128)
    first, last = sprites.crop((0, 0, 128, 128)), sprites.crop((512, 128, 640, 256))
    assert _changed(first, last) > 20 > 4 * _changed(last, picture.convert("L"))
    again = client.videos.download_content(done, variant="spritesheet")
    assert again.response.headers["etag"] == sheet.response.headers["etag"]


def _changed(one: Image.Image, other: Image.Image) -> int:
    """How many pixels differ by more than what compression does."""
    return sum(abs(a - b) > 60 for a, b in zip(one.tobytes(), other.tobytes(), strict=True))


def test_the_video_comes_in_ranges(plain: httpx.Client, done: str) -> None:
    path = f"/v1/videos/{done}/content"
    whole = plain.get(path).content
    assert plain.get(path, headers={"Range": "bytes=0-99"}).content == whole[:100]
    beyond = plain.get(path, headers={"Range": "bytes=999999999-"})
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(whole)}"
    assert beyond.json()["error"]["code"] == "range"
    head = plain.head(path)
    assert (head.headers["content-length"], head.content) == (str(len(whole)), b"")


def test_progress_never_goes_back_and_is_100_only_when_the_video_is_there(
    site: Site, client: openai.OpenAI
) -> None:
    video = created(client, model="simulated", extra_body={"max_steps": 3, "seed": 5})
    seen = [video.progress]
    while work(site, messages=1):
        video = client.videos.retrieve(video.id)
        seen.append(video.progress)
        assert (video.progress == 100) == (video.status == "completed"), video
    assert video.status == "completed"
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_progress_of_several_shots_counts_them(site: Site, client: openai.OpenAI) -> None:
    video = created(client, model="simulated", extra_body={"strategy": "pass@4"})
    seen = set[int]()
    while work(site, messages=1):
        seen.add(client.videos.retrieve(video.id).progress)
    assert {25, 50, 75, 99, 100} <= seen


def test_progress_is_the_same_for_a_process_that_was_not_there(site: Site, client: openai.OpenAI) -> None:
    video = created(client, model="simulated", extra_body={"max_steps": 3, "seed": 5})
    work(site, messages=3)
    seen = client.videos.retrieve(video.id).progress
    assert 1 < seen < 100
    cancel(site.database, video.id, None)
    with served(create_app(site)) as other, sync_client(other) as newcomer:
        assert newcomer.videos.retrieve(video.id).progress == seen
    work(site)


def test_the_wait_between_two_looks_is_said_until_the_end(
    site: Site, client: openai.OpenAI, plain: httpx.Client, done: str
) -> None:
    video = created(client)
    assert int(plain.get(f"/v1/videos/{video.id}").headers["openai-poll-after-ms"]) > 0
    assert "openai-poll-after-ms" not in plain.get(f"/v1/videos/{done}").headers
    cancel(site.database, video.id, None)


def test_lists_are_paged_either_way_and_hold_jobs_of_the_native_api(
    site: Site, client: openai.OpenAI, plain: httpx.Client
) -> None:
    native = plain.post("/v1/jobs", json=submission(max_steps=2)).json()["id"]
    created(client)
    stored = [job.job.id for job in listed(site.database, "", limit=100)]
    assert [video.id for video in client.videos.list(limit=1)] == stored
    assert [video.id for video in client.videos.list(limit=2, order="asc")] == stored[::-1]
    page = client.videos.list(limit=1, after=stored[1])
    assert [video.id for video in page.data] == [stored[2]]
    shown = client.videos.retrieve(native)
    assert (shown.model, shown.status, shown.seconds) == ("default", "queued", "9")
    with pytest.raises(openai.NotFoundError):
        client.videos.list(after="job-nobody")
    for video_id in stored[:2]:
        client.videos.delete(video_id)


def test_seconds_limit_the_answer(site: Site, client: openai.OpenAI) -> None:
    shorter = created(client, seconds="1")
    assert shorter.seconds == "1"
    work(site)
    video = client.videos.retrieve(shorter.id)
    assert video.status == "completed"
    assert 0.9 <= float(video.seconds) <= 1.2
    for wrong in ("0", "-4", "many", "nan", "1e3", "99999", ""):
        error = refused(client, seconds=wrong)
        assert (error.status_code, error.param) == (400, "seconds"), wrong


def test_a_budget_that_is_used_up_gives_the_best_video_and_says_so(site: Site, client: openai.OpenAI) -> None:
    video_id = created(client, extra_body={"budget": {"video_seconds": 7}, "max_steps": 6}).id
    work(site)
    video = client.videos.retrieve(video_id)
    assert (video.status, video.progress) == ("completed", 100)
    assert (video.model_extra or {})["cliploop"]["outcome"] == "exhausted"
    assert client.videos.download_content(video_id).read()


def test_size_is_the_pictures_own(site: Site, client: openai.OpenAI) -> None:
    for right in ("128x128", "auto"):
        assert created(client, size=right).size == "128x128"
    error = refused(client, size="1280x720")
    assert (error.status_code, error.param, error.code) == (400, "size", "size_mismatch")
    assert "size='128x128'" in error.message
    assert refused(client, size="big").param == "size"


def test_a_model_is_a_preset_a_generator_or_the_default(client: openai.OpenAI) -> None:
    assert created(client, model="default").model == "default"
    error = refused(client, model="sora-2")
    assert isinstance(error, openai.NotFoundError)
    assert (error.param, error.code) == ("model", "model_not_found")
    assert "simulated-perfect" in error.message
    both = refused(client, extra_body={"generator": "simulated"})
    assert (both.status_code, both.param) == (400, "generator")


def test_content_that_is_not_there_yet_is_a_conflict_that_is_not_asked_for_again(
    site: Site, client: openai.OpenAI, plain: httpx.Client
) -> None:
    video = created(client)
    early = plain.get(f"/v1/videos/{video.id}/content")
    assert (early.status_code, early.headers["x-should-retry"]) == (409, "false")
    with pytest.raises(openai.ConflictError) as caught:
        client.videos.download_content(video.id)
    assert caught.value.code == "not_ready"
    wrong = plain.get(f"/v1/videos/{video.id}/content?variant=sound")
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "variant")
    cancel(site.database, video.id, None)
    video = client.videos.poll(video.id)
    assert video.status == "failed"
    assert video.error is not None
    assert (video.error.code, video.progress) == ("cancelled", 0)
    with pytest.raises(openai.NotFoundError):
        client.videos.download_content(video.id)


def test_a_video_that_is_being_made_is_deleted_when_its_work_has_stopped(
    site: Site, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(site)  # what other tests left
    video = created(client)
    work(site, messages=1)
    assert client.videos.retrieve(video.id).status == "in_progress"
    lease = take(site.database, f"clip/{video.id}/step/1/attempt/1/clip", "a render worker")
    assert lease is not None
    monkeypatch.setattr("service.jobs.DELETE_WAITS_SECONDS", 0.3)
    with working(site):
        with pytest.raises(openai.ConflictError) as caught:
            client.with_options(max_retries=0).videos.delete(video.id)
        assert caught.value.code == "still_stopping"
        assert "x-should-retry" not in caught.value.response.headers
        assert client.videos.retrieve(video.id).status == "in_progress"
        hand_back(site.database, lease)
        site.messages.advance(video.id)
        monkeypatch.undo()
        assert client.videos.delete(video.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(video.id)


def test_an_answer_that_was_lost_on_its_way_gives_the_same_video_again(site: Site, address: str) -> None:
    before = {job.job.id for job in listed(site.database, None, limit=100)}
    with breaking_once(address) as (way, heads), sync_client(way) as client:
        video = created(client)
    assert len(heads) == 2
    assert b"x-stainless-retry-count: 1" in heads[1].lower()
    after = {job.job.id for job in listed(site.database, None, limit=100)}
    assert after - before == {video.id}


@pytest.mark.parametrize(
    "fault", [RuntimeError("broken"), BackendUnavailable("the database is away", retry_after_seconds=1)]
)
def test_a_fault_after_the_job_was_stored_gives_the_same_video_again(
    site: Site, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    before = {job.job.id for job in listed(site.database, None, limit=100)}
    faults = [fault]

    def shown(*asked: Any) -> Any:
        if faults:
            raise faults.pop()
        return video_view(*asked)

    monkeypatch.setattr("service.openai_videos.video_view", shown)
    seed = 1 + isinstance(fault, RuntimeError)  # no other test's words
    video = created(client, extra_body={"seed": seed, "max_steps": 4})
    assert not faults
    after = {job.job.id for job in listed(site.database, None, limit=100)}
    assert after - before == {video.id}


def test_only_a_clients_own_repetition_is_the_same_request(plain: httpx.Client) -> None:
    def posted(**headers: str) -> str:
        files = {"input_reference": ("a.png", PNG, "image/png")}
        response = plain.post("/v1/videos", data={"prompt": PROMPT}, files=files, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()["id"]

    first = posted()
    second = posted(**{"x-stainless-retry-count": "0"})
    assert first != second
    assert posted(**{"x-stainless-retry-count": "1"}) == second
    assert posted(**{"x-stainless-retry-count": "many"}) not in (first, second)
    named = posted(**{"Idempotency-Key": "one"})
    assert posted(**{"Idempotency-Key": "one"}) == named
    response = plain.post(
        "/v1/videos",
        json={"prompt": PROMPT, "input_reference": as_data_url(PNG), "seconds": "4"},
        headers={"Idempotency-Key": "one"},
    )
    assert (response.status_code, response.headers["x-should-retry"]) == (409, "false")


def test_a_remix_is_a_new_job_on_the_same_picture(site: Site, client: openai.OpenAI, done: str) -> None:
    remixed = client.videos.remix(done, prompt=PROMPT)
    assert remixed.remixed_from_video_id == done
    assert (remixed.status, remixed.model, remixed.size) == ("queued", PERFECT, "128x128")
    work(site)
    assert client.videos.retrieve(remixed.id).status == "completed"
    with pytest.raises(openai.BadRequestError):
        client.videos.remix(done, prompt="Paint the sky.")
    with pytest.raises(openai.NotFoundError):
        client.videos.remix("job-nobody", prompt=PROMPT)


@pytest.mark.slow
def test_the_documentations_example_runs_as_it_stands(
    site: Site, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (ROOT / "docs/openai.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert "127.0.0.1:8000" in code
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    with working(site):
        exec(code.replace("http://127.0.0.1:8000", address).replace('"default"', f'"{PERFECT}"'), {})
    assert probe(tmp_path / "video.mp4").num_frames > 1
    assert (tmp_path / "spritesheet.jpg").read_bytes().startswith(b"\xff\xd8")


def test_a_job_of_another_version_is_shown_and_not_remixed(site: Site, client: openai.OpenAI) -> None:
    video_id = created(client).id
    with site.database.write() as connection:
        connection.execute(update(JobRow).where(JobRow.id == video_id).values(policy={"generator": "old"}))
    assert client.videos.retrieve(video_id).seconds == "0"
    with pytest.raises(openai.ConflictError) as caught:
        client.videos.remix(video_id, prompt=PROMPT)
    assert caught.value.code == "other_version"


def test_each_key_sees_its_own_videos(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        _each_sees_its_own(site)


def _each_sees_its_own(site: Site) -> None:
    secrets = [create_key(site.database, name, concurrent_jobs=1)[1] for name in ("first", "second")]
    with (
        served(create_app(site)) as other,
        sync_client(other, "clp_wrong") as nobody,
        sync_client(other, secrets[0]) as first,
        sync_client(other, secrets[1]) as second,
    ):
        with pytest.raises(openai.AuthenticationError) as unknown:
            nobody.videos.list()
        assert unknown.value.type == "authentication_error"
        mine = created(first)
        assert [video.id for video in first.videos.list()] == [mine.id]
        for theirs in (second.videos.retrieve, second.videos.delete, second.videos.download_content):
            with pytest.raises(openai.NotFoundError):
                theirs(mine.id)
        assert second.videos.list().data == []
        with pytest.raises(openai.RateLimitError) as many:
            created(first.with_options(max_retries=0), seconds="4")
        assert (many.value.type, many.value.code) == ("rate_limit_error", "too_many_jobs")
        assert int(many.value.response.headers["retry-after"]) > 0
