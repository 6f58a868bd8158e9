"""Veo through Google's own client against a loopback server: the way that goes well, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from generators.catalog import GENERATORS, build
from generators.conformance import check
from generators.remote import RenderEmpty, RenderFiltered
from generators.veo import Veo, VeoOptions
from media.frames import FrameReader
from media.measures import psnr
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from storage.artifacts import MemoryArtifacts
from tests.generators.loopback import Reply, as_html, served
from tests.generators.vendor_clips import Heard, Studio, render
from tests.generators.veo_server import FILTERED, VeoServer, done, sent_picture


@pytest.fixture
def server() -> VeoServer:
    return VeoServer()


@pytest.fixture
def address(server: VeoServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("GEMINI_API_KEY", "g-a-key-that-is-never-told")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with served(server) as address:
        yield address


def veo(address: str, reader: FrameReader | None, **options: Any) -> Veo:
    built = build("veo", {"base_url": address, "poll_seconds": 0.001, **options}, reader)
    assert isinstance(built, Veo)
    return built


def test_a_shot_goes_out_in_veos_own_terms_and_comes_back_on_the_canvas(server: VeoServer, address: str) -> None:
    server.polls = 3
    studio = Studio()
    generator = veo(address, studio.reader, negative_prompt="text", person_generation="allow_adult")
    shot, heard = studio.shot(generator, num_frames=96), Heard()
    frames = render(generator, shot, heard)
    assert frames.shape == (96, 128, 192, 3)
    assert psnr(frames[0], studio.start(shot)) > 30
    assert heard.tokens == ["models/veo-3.1-generate-preview/operations/op1"]
    assert heard.fractions == sorted(heard.fractions)
    assert heard.fractions[-1] == 1.0
    assert [kind for kind, _ in server.asked] == ["submit", *["look"] * 4, "load"]
    assert {request.headers["x-goog-api-key"] for _, request in server.asked} == {"g-a-key-that-is-never-told"}
    (said,) = server.submitted
    assert said["instances"][0]["prompt"] == shot.prompt
    assert said["parameters"] == {
        "sampleCount": 1,
        "durationSeconds": 4,
        "aspectRatio": "16:9",
        "resolution": "720p",
        "negativePrompt": "text",
        "personGeneration": "allow_adult",
    }


def test_the_canvas_is_padded_with_its_edge_up_to_veos_frame(server: VeoServer, address: str) -> None:
    studio = Studio(128, 128)
    generator = veo(address, studio.reader)
    shot = studio.shot(generator, num_frames=96)
    frames = render(generator, shot)
    assert frames.shape[1:3] == (128, 128)
    sent = sent_picture(server.submitted[0])
    assert sent.shape == (720, 1280, 3)
    assert np.array_equal(sent[:, :280], np.repeat(sent[:, 280:281], 280, axis=1))
    render(veo(address, studio.reader, fill="black"), shot)
    assert not sent_picture(server.submitted[1])[:, :280].any()


def test_a_tall_canvas_is_rendered_in_a_tall_frame(server: VeoServer, address: str) -> None:
    studio = Studio(120, 200)
    generator = veo(address, studio.reader)
    frames = render(generator, studio.shot(generator, num_frames=96))
    assert frames.shape[1:3] == (200, 120)
    assert server.submitted[0]["parameters"]["aspectRatio"] == "9:16"


def test_a_cut_renders_the_middle_and_leaves_the_rest_still(server: VeoServer, address: str) -> None:
    studio = Studio(128, 128)
    generator = veo(address, studio.reader, aspect="crop")
    shot = studio.shot(generator, num_frames=96)
    frames, start = render(generator, shot), studio.start(shot)
    assert all(
        np.array_equal(frame[:28], start[:28]) and np.array_equal(frame[100:], start[100:]) for frame in frames
    )
    assert not np.array_equal(frames[20][28:100], frames[0][28:100])


@pytest.mark.parametrize(
    ("num_frames", "fps", "seconds", "comes_back"),
    [(96, None, 4, 96), (144, None, 6, 144), (100, None, 4, 96), (81, 16, 6, 96), (33, 16, 4, 64)],
)
def test_a_shot_has_one_of_the_three_durations(
    server: VeoServer, address: str, num_frames: int, fps: float | None, seconds: int, comes_back: int
) -> None:
    """At another rate than Veo's 24 it keeps its speed: frames are taken by their time."""
    server.shrink = 4
    studio = Studio()
    generator = veo(address, studio.reader)
    frames = render(generator, studio.shot(generator, num_frames=num_frames, fps=fps))
    assert server.submitted[0]["parameters"]["durationSeconds"] == seconds
    assert len(frames) == comes_back


def test_above_720p_every_clip_lasts_eight_seconds() -> None:
    able = build("veo", {"resolution": "1080p"}, None).capabilities
    assert (able.min_frames, able.max_frames, able.max_side) == (192, 192, 1920)
    able = build("veo", {}, None).capabilities
    assert (able.min_frames, able.frame_step, able.frame_offset, able.max_frames) == (96, 48, 0, 192)
    assert (able.fps, able.seeded, able.remote) == (24.0, False, True)


def test_a_second_costs_what_the_list_says_and_who_says_so_is_named() -> None:
    figures = GENERATORS.content("veo", {})["figures"]
    assert figures["usd_per_second"] == 0.40
    assert "ai.google.dev/gemini-api/docs/pricing" in figures["price_source"]
    able = build("veo", {}, None).capabilities
    assert able.usd_per_video_second * (96 - 1) / 24 == pytest.approx(4 * 0.40)  # four seconds are charged
    fast = VeoOptions(model="veo-3.1-fast-generate-preview", resolution="1080p")
    assert fast.price()[0] == 0.12
    with pytest.raises(BackendMisconfigured, match=r"no price is known of 'veo-9'.*usd_per_video_second"):
        build("veo", {"model": "veo-9"}, None)
    assert VeoOptions(model="veo-9", usd_per_video_second=0.1).price()[0] == 0.1


def test_taken_up_by_its_operation_it_is_polled_and_not_paid_twice(server: VeoServer, address: str) -> None:
    studio, heard, again = Studio(), Heard(), Heard()
    generator = veo(address, studio.reader)
    shot = studio.shot(generator, num_frames=96)
    first = render(generator, shot, heard)
    assert np.array_equal(render(generator, shot, again, resume=heard.tokens[0]), first)
    assert (server.count("submit"), again.tokens) == (1, [])


@pytest.mark.parametrize(
    ("end", "kind", "says"),
    [
        (done(**FILTERED), RenderFiltered, "safety filter withheld.*may show a real person"),
        (done(raiMediaFilteredCount=1), RenderFiltered, "no reason given"),
        (done(generatedSamples=[]), RenderEmpty, "is done without a video"),
        (done(), RenderEmpty, "is done without a video"),
        ({"done": True}, RenderEmpty, "is done without a video"),
        (done(generatedSamples=[{}]), RenderEmpty, "is done without a video"),
    ],
)
def test_a_render_that_gave_nothing_is_repeated_once_and_then_lost(
    server: VeoServer, address: str, end: Any, kind: type[BackendFailed], says: str
) -> None:
    studio, heard = Studio(), Heard()
    server.ends, server.shrink = [end], 4
    generator = veo(address, studio.reader)
    shot = studio.shot(generator, num_frames=96)
    assert len(render(generator, shot, heard)) == 96
    assert [token[-3:] for token in heard.tokens] == ["op1", "", "op2"]
    server.ends = [end] * 9
    with pytest.raises(kind, match=says) as lost:
        render(generator, shot)
    assert server.count("submit") == 4
    assert lost.value.spend.usd == 0  # Google charges for videos, and there is none


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        ({"code": 13, "message": "Internal error"}, BackendFailed, r"failed \(13\): Internal error"),
        ({"code": 3, "message": "violates our usage guidelines"}, RenderFiltered, "safety filter stopped"),
    ],
)
def test_an_operation_that_failed_is_a_lost_attempt(
    server: VeoServer, address: str, error: Any, kind: type[BackendFailed], says: str
) -> None:
    studio = Studio()
    server.ends = [{"done": True, "error": error}]
    generator = veo(address, studio.reader, filtered_retries=0)
    with pytest.raises(kind, match=says):
        render(generator, studio.shot(generator, num_frames=96))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (Reply(200, b""), "is empty"),
        (as_html(), "HTML page"),
        (Reply(200, bytes(3 << 20)), "larger than 2 MiB"),
        (Reply(200, b"\0\0\0\x18ftypmp42" + bytes(900)), "is cut"),
    ],
)
def test_what_is_no_video_is_told_apart(server: VeoServer, address: str, content: Reply, says: str) -> None:
    studio = Studio()
    server.content, server.shrink = lambda _data: content, 8
    generator = veo(address, studio.reader, max_mebibytes=2)
    with pytest.raises(BackendFailed, match=says) as lost:
        render(generator, studio.shot(generator, num_frames=96))
    if "larger" not in says:
        assert lost.value.spend.usd == pytest.approx(4 * 0.40)  # it was rendered, and is charged


def test_another_shape_than_asked_is_never_stretched(server: VeoServer, address: str) -> None:
    server.draw = lambda png, count, seed: VeoServer().draw(png, count, seed)[:, :, :300]
    studio = Studio()
    generator = veo(address, studio.reader)
    with pytest.raises(BackendFailed, match=r"300x360, asked for was 1280x720.*not stretched"):
        render(generator, studio.shot(generator, num_frames=96))


def test_a_cancelled_job_leaves_at_once_and_says_what_goes_on(
    server: VeoServer, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.never_done = True
    studio = Studio()
    generator = veo(address, studio.reader)
    with pytest.raises(JobCancelled):
        render(generator, studio.shot(generator, num_frames=96), Heard(cancelled_after=3))
    assert "operations/op1 goes on at Google and is charged" in caplog.text


def test_a_file_that_lies_elsewhere_is_followed(server: VeoServer, address: str) -> None:
    server.shrink = 4
    server.faults["load"] = [Reply(302, b"", {"location": f"{address}/v1beta/files/f1:download?alt=media"})]
    studio = Studio()
    generator = veo(address, studio.reader)
    assert len(render(generator, studio.shot(generator, num_frames=96))) == 96


@pytest.mark.slow
def test_it_conforms(server: VeoServer, address: str) -> None:
    artifacts = MemoryArtifacts()
    found = {finding.name: finding for finding in check(veo(address, FrameReader(artifacts)), artifacts)}
    assert [finding for finding in found.values() if not finding.passed] == []
    assert "takes no seed" in found["seeds"].detail
    assert "token" in found["checkpoint"].detail
