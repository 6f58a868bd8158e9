"""A server of `POST /v1/videos`, asked by the official client: the way that goes well, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from generators.catalog import build
from generators.conformance import check
from generators.openai_videos import OpenAIVideos
from media.frames import FrameReader
from media.measures import psnr
from media.pictures import decode_png
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from storage.artifacts import MemoryArtifacts
from tests.generators.loopback import Reply, as_html, as_json, served
from tests.generators.vendor_clips import Heard, Studio, index_first, moving, reimagined, render
from tests.generators.videos_server import VideosServer, refusal

KEY = "sk-a-key-that-is-never-told"


@pytest.fixture
def server() -> VideosServer:
    return VideosServer()


@pytest.fixture
def address(server: VideosServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with served(server) as address:
        yield address


def generator(address: str, reader: FrameReader | None, **options: Any) -> OpenAIVideos:
    given = {"base_url": f"{address}/v1", "min_side": 64, "cancel_seconds": 2, **options}
    built = build("openai_videos", given, reader)
    assert isinstance(built, OpenAIVideos)
    return built


def test_a_shot_goes_out_with_all_that_the_server_takes_and_comes_back_as_frames(
    server: VideosServer, address: str
) -> None:
    server.polls, server.progress = 3, (10, 55, 90)
    studio = Studio()
    wan = generator(address, studio.reader, model="Wan-AI/Wan2.2-I2V-A14B-Diffusers")
    shot, heard = studio.shot(wan), Heard()
    frames = render(wan, shot, heard)
    assert frames.shape == (17, 128, 192, 3)
    assert psnr(frames[0], studio.start(shot)) > 30
    assert psnr(frames[8], moving(studio.artifacts.read(shot.start_frame), 17, 5)[8]) > 30
    assert heard.tokens == ["video_1"]
    assert heard.fractions == sorted(heard.fractions)
    assert {round(0.95 * part, 4) for part in (0.1, 0.55, 0.9, 1.0)} <= {round(f, 4) for f in heard.fractions}
    assert heard.fractions[-1] == 1.0
    fields = server.submitted[0]
    name, kind, png = fields.pop("input_reference")
    assert (name, kind) == ("start.png", "image/png")
    assert np.array_equal(decode_png(png), studio.start(shot))
    assert fields == {
        "prompt": shot.prompt,
        "model": "Wan-AI/Wan2.2-I2V-A14B-Diffusers",
        "size": "192x128",
        "num_frames": "17",
        "fps": "16",
        "seed": "5",
        "num_inference_steps": "4",
        "guidance_scale": "5.0",
    }
    assert {request.headers["authorization"] for _, request in server.asked} == {f"Bearer {KEY}"}
    assert [what for what, _ in server.asked] == ["create", *["look"] * 4, "load"]


def test_a_server_without_a_key_is_asked_without_one(
    server: VideosServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    studio = Studio()
    wan = generator(address, studio.reader)
    assert len(render(wan, studio.shot(wan))) == 17
    monkeypatch.setenv("GPU_BOX_KEY", "k-2")
    render(generator(address, studio.reader, api_key_env="GPU_BOX_KEY"), studio.shot(wan))
    assert server.asked[-1][1].headers["authorization"] == "Bearer k-2"


def test_the_server_says_when_to_look_again_and_else_the_options_do(server: VideosServer, address: str) -> None:
    server.polls = 2
    studio = Studio()
    patient = generator(address, studio.reader, poll_seconds=30, limit_seconds=10)
    assert len(render(patient, studio.shot(patient))) == 17  # at its own pace it would be given up
    server.poll_after_ms = None
    quick = generator(address, studio.reader, poll_seconds=0.01, limit_seconds=10)
    assert len(render(quick, studio.shot(quick))) == 17


def test_taken_up_by_its_id_it_is_polled_and_not_submitted_again(server: VideosServer, address: str) -> None:
    studio, heard = Studio(), Heard()
    wan = generator(address, studio.reader)
    shot = studio.shot(wan)
    first = render(wan, shot, heard)
    again = Heard()
    assert np.array_equal(render(wan, shot, again, resume=heard.tokens[0]), first)
    assert (server.count("create"), again.tokens) == (1, [])


def test_it_conforms_on_a_server_that_goes_on_from_the_start_picture(server: VideosServer, address: str) -> None:
    artifacts = MemoryArtifacts()
    wan = generator(address, FrameReader(artifacts), min_side=16)
    found = {finding.name: finding for finding in check(wan, artifacts)}
    assert [finding for finding in found.values() if not finding.passed] == []
    assert "3 of 3 other seeds" in found["seeds"].detail
    assert "token" in found["checkpoint"].detail


def test_a_server_that_reimagines_the_picture_is_found_not_chainable(server: VideosServer, address: str) -> None:
    server.draw = reimagined
    artifacts = MemoryArtifacts()
    wan = generator(address, FrameReader(artifacts), min_side=16)
    failed = [finding for finding in check(wan, artifacts) if not finding.passed]
    assert [finding.name for finding in failed] == ["first frame"]
    assert "cannot be chained" in failed[0].detail
    assert not generator(address, None, chainable=False).capabilities.chainable


def test_fixed_sizes_and_durations_are_met_by_padding_that_is_cut_off_again(
    server: VideosServer, address: str
) -> None:
    """As Sora had them: four sizes, three durations, no seed."""
    server.fps = 24
    studio = Studio(160, 160)
    options = {"dialect": "openai", "sizes": "320x180,180x320", "seconds": "1,2,3", "fps": 24}
    sora = generator(address, studio.reader, **options)
    able = sora.capabilities
    assert (able.min_frames, able.frame_step, able.frame_offset, able.max_frames) == (24, 24, 0, 72)
    assert not able.seeded
    shot = studio.shot(sora, num_frames=24)
    frames = render(sora, shot)
    assert frames.shape == (24, 160, 160, 3)
    assert psnr(frames[0], studio.start(shot)) > 30
    fields = server.submitted[0]
    assert (fields["size"], fields["seconds"]) == ("320x180", "1")
    assert not {"seed", "num_frames", "fps"} & set(fields)
    sent = decode_png(fields["input_reference"][2])
    assert sent.shape == (180, 320, 3)
    assert np.array_equal(sent[:, :70], np.repeat(sent[:, 70:71], 70, axis=1))  # its edge, replicated


def test_a_cut_shows_the_middle_and_leaves_the_rest_of_the_picture_still(
    server: VideosServer, address: str
) -> None:
    studio = Studio(160, 160)
    cut = generator(address, studio.reader, sizes="320x160", aspect="crop")
    shot = studio.shot(cut)
    frames = render(cut, shot)
    start = studio.start(shot)
    assert all(
        np.array_equal(frame[:40], start[:40]) and np.array_equal(frame[120:], start[120:]) for frame in frames
    )
    assert psnr(frames[0], start) > 30
    assert not np.array_equal(frames[8][40:120], frames[0][40:120])


def test_a_video_at_another_rate_keeps_its_speed(server: VideosServer, address: str) -> None:
    server.fps = 32
    studio = Studio()
    wan = generator(address, studio.reader)
    shot = studio.shot(wan)
    frames = render(wan, shot)
    rendered = moving(studio.artifacts.read(shot.start_frame), 33, 5)
    assert len(frames) == 17
    for number, frame in enumerate(frames):
        assert psnr(frame, rendered[2 * number]) > 30


def test_more_or_fewer_frames_than_asked_are_handed_on_as_they_are(server: VideosServer, address: str) -> None:
    server.draw = lambda png, _count, seed: moving(png, 9, seed)
    studio = Studio()
    wan = generator(address, studio.reader)
    assert len(render(wan, studio.shot(wan))) == 9


def test_a_pixel_gained_for_even_sides_is_cut_off(server: VideosServer, address: str) -> None:
    studio = Studio(161, 121)
    odd = generator(address, studio.reader, size_multiple=1)
    shot = studio.shot(odd)
    frames = render(odd, shot)
    assert frames.shape[1:3] == (121, 161)
    assert psnr(frames[0], studio.start(shot)) > 30


def test_the_same_shape_in_another_size_is_handed_on_so_that_it_is_recorded(
    server: VideosServer, address: str
) -> None:
    server.draw = lambda png, count, seed: np.repeat(np.repeat(moving(png, count, seed), 2, axis=1), 2, axis=2)
    studio = Studio()
    wan = generator(address, studio.reader)
    assert render(wan, studio.shot(wan)).shape == (17, 256, 384, 3)


def test_another_shape_is_refused_and_the_options_named(server: VideosServer, address: str) -> None:
    server.draw = lambda png, count, seed: moving(png, count, seed)[:, :, :128]
    studio = Studio()
    wan = generator(address, studio.reader)
    with pytest.raises(BackendMisconfigured, match=r"128x128, asked for was 192x128.*size_multiple"):
        render(wan, studio.shot(wan))


def mp4(data: bytes) -> Reply:
    return Reply(200, data, {"content-type": "video/mp4"})


CONTENTS: dict[str, Callable[[bytes], Reply]] = {
    "is empty": lambda _data: mp4(b""),
    "HTML page": lambda _data: as_html(),
    "JSON": lambda _data: as_json({"error": "no"}),
    "is cut": lambda data: mp4(data[: len(data) // 2]),
    "no video of a known kind": lambda _data: mp4(bytes(5000)),
    "has no index": lambda _data: mp4(b"\0\0\0\x10ftypisom" + bytes(5000)),
    "larger than 2 MiB": lambda _data: mp4(bytes(3 << 20)),
}


@pytest.mark.parametrize("says", CONTENTS)
def test_what_is_no_video_is_told_apart_and_lost(server: VideosServer, address: str, says: str) -> None:
    server.content = CONTENTS[says]
    studio = Studio()
    wan = generator(address, studio.reader, usd_per_video_second=0.5, max_mebibytes=2)
    with pytest.raises(BackendFailed, match=says) as lost:
        render(wan, studio.shot(wan))
    if "larger" not in says:
        assert lost.value.spend.usd == pytest.approx(0.5)  # it was rendered, and is charged


def test_a_file_cut_behind_its_index_is_noticed_too(server: VideosServer, address: str) -> None:
    studio = Studio()
    wan = generator(address, studio.reader)
    whole = index_first(moving(studio.artifacts.read(studio.shot(wan).start_frame), 17), 16)
    server.content = lambda _data: mp4(whole[: len(whole) * 2 // 3])
    with pytest.raises(BackendFailed, match=r"is cut after .* its last part is not whole"):
        render(wan, studio.shot(wan))


@pytest.mark.parametrize("progress", [(None,), ("soon",), (-5,), (250,), (80, 20), ([],), (float("nan"),)])
def test_any_progress_becomes_a_fraction_that_never_falls(
    server: VideosServer, address: str, progress: tuple[Any, ...]
) -> None:
    server.progress, server.polls = progress, 3
    studio, heard = Studio(), Heard()
    wan = generator(address, studio.reader)
    render(wan, studio.shot(wan, num_frames=5), heard)
    assert heard.fractions == sorted(heard.fractions)
    assert heard.fractions[0] >= 0.0
    assert heard.fractions[-1] == 1.0


def test_a_cancelled_job_cancels_the_remote_render(server: VideosServer, address: str) -> None:
    server.never_done = True
    studio = Studio()
    wan = generator(address, studio.reader)
    with pytest.raises(JobCancelled):
        render(wan, studio.shot(wan), Heard(cancelled_after=3))
    assert server.asked[-1][0] == "delete"
    assert server.jobs == {}


def test_it_waits_while_the_server_is_still_stopping_but_not_for_ever(server: VideosServer, address: str) -> None:
    server.never_done = True
    busy = refusal(409, "it is asked to stop and has not stopped yet", "still_stopping", retry_after_ms="10")
    server.faults["delete"] = [busy, busy]
    studio = Studio()
    wan = generator(address, studio.reader)
    with pytest.raises(JobCancelled):
        render(wan, studio.shot(wan), Heard(cancelled_after=3))
    assert (server.count("delete"), server.jobs) == (3, {})
    server.faults["delete"] = [busy] * 100
    hasty = generator(address, studio.reader, cancel_seconds=0)
    with pytest.raises(JobCancelled):
        render(hasty, studio.shot(hasty), Heard(cancelled_after=3))
    assert server.count("delete") == 4


def test_cancelled_while_nobody_was_there_it_is_cancelled_when_taken_up(
    server: VideosServer, address: str
) -> None:
    studio, heard = Studio(), Heard()
    wan = generator(address, studio.reader)
    render(wan, studio.shot(wan), heard)
    with pytest.raises(JobCancelled):
        render(wan, studio.shot(wan), Heard(cancelled_after=0), resume=heard.tokens[0])
    assert server.jobs == {}


def test_cancelled_before_it_began_nothing_is_submitted(server: VideosServer, address: str) -> None:
    studio = Studio()
    wan = generator(address, studio.reader)
    with pytest.raises(JobCancelled):
        render(wan, studio.shot(wan), Heard(cancelled_after=0))
    assert server.asked == []


def test_a_render_that_takes_too_long_is_given_up_and_cancelled(server: VideosServer, address: str) -> None:
    server.never_done = True
    studio = Studio()
    wan = generator(address, studio.reader, limit_seconds=0.05)
    with pytest.raises(BackendFailed, match=r"not done after 0\.05 s.*limit_seconds"):
        render(wan, studio.shot(wan))
    assert server.jobs == {}


def test_options_are_checked_where_they_are_given() -> None:
    with pytest.raises(BackendMisconfigured, match="base_url is missing"):
        build("openai_videos", {}, None)
    with pytest.raises(BackendMisconfigured, match="api_key_env") as told:
        build("openai_videos", {"base_url": f"http://user:{KEY}@a/v1"}, None)
    assert KEY not in str(told.value)
    with pytest.raises(BackendMisconfigured, match="1280x720,720x1280"):
        build("openai_videos", {"base_url": "http://a/v1", "sizes": "720p"}, None)
    with pytest.raises(BackendMisconfigured, match="evenly"):
        build("openai_videos", {"base_url": "http://a/v1", "seconds": "4,6,12"}, None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_frames": 500, "max_frames": 5}, "no number of frames between min_frames and max_frames"),
        ({"frame_step": 10**9}, "no number of frames between min_frames and max_frames"),
        ({"min_side": 500, "max_side": 100}, "max_side cannot be less than min_side"),
        ({"sizes": "²x3"}, "sizes are written like"),
        ({"sizes": "99999999x99999999"}, "sizes are written like"),
        ({"seconds": "9" * 400}, "durations are whole seconds"),
        ({"api_key_env": "sk-secret"}, "must be the name of an environment variable"),
    ],
)
def test_options_that_contradict_or_are_none_are_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(BackendMisconfigured, match=says) as refused:
        build("openai_videos", {"base_url": "http://127.0.0.1:9/v1", **options}, None)
    assert "secret" not in str(refused.value)
