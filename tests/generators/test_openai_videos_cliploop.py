"""Another Cliploop as the generator: its own server, in this process, renders one plain clip for each shot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cliploop.site import Site
from generators.catalog import build
from media.canvas import choose
from media.measures import psnr
from media.pictures import decode_png
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from orchestrator.ports import Generator
from orchestrator.records import Shot, Size
from service.app import create_app
from storage.submissions import listed
from tests.generators.vendor_clips import Heard, Studio, render
from tests.service.asking import PERFECT, maze
from tests.service.openai_videos.clients import working
from tests.service.serving import served
from tests.workers.sites import a_site

PNG, PROMPT = maze()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("remote")) as site:
        yield site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with served(create_app(site)) as address:
        yield address


def elsewhere(address: str, studio: Studio, **options: object) -> Generator:
    given = {"base_url": f"{address}/v1", "dialect": "cliploop", "model": PERFECT, "poll_seconds": 0.05}
    return build("openai_videos", {**given, **options}, studio.reader)


def shot_of(studio: Studio, generator: Generator, prompt: str = PROMPT) -> Shot:
    studio.picture = decode_png(PNG)
    height, width = studio.picture.shape[:2]
    studio.size = Size(width=width, height=height)
    assert choose(studio.size, generator.capabilities).fit == "identity"
    return studio.shot(generator, num_frames=17).model_copy(update={"prompt": prompt})


def test_one_plain_clip_comes_back_and_goes_on_from_the_start_picture(site: Site, address: str) -> None:
    studio, heard = Studio(), Heard()
    generator = elsewhere(address, studio)
    shot = shot_of(studio, generator)
    with working(site):
        frames = render(generator, shot, heard)
    assert frames.shape == (17, 128, 128, 3)
    assert psnr(frames[0], studio.start(shot)) > 30
    assert not np.array_equal(frames[-1], frames[0])
    (job,) = listed(site.database, None, limit=10)
    assert heard.tokens == [job.job.id]
    policy = job.job.policy
    assert (policy["strategy"], policy["seed"], policy["generator"]) == ("pass@1", shot.seed, PERFECT)


def test_a_cancelled_render_is_gone_from_the_other_server(site: Site, address: str) -> None:
    studio, heard = Studio(), Heard(cancelled_after=2)
    generator = elsewhere(address, studio)
    with pytest.raises(JobCancelled):
        render(generator, shot_of(studio, generator), heard)
    assert heard.tokens[0] not in {each.job.id for each in listed(site.database, None, limit=100)}


def test_its_refusals_are_understood(address: str, tmp_path: Path) -> None:
    studio = Studio()
    unknown = elsewhere(address, studio, model="wan-9")
    with pytest.raises(BackendMisconfigured, match="does not know the model 'wan-9'"):
        render(unknown, shot_of(studio, unknown))
    generator = elsewhere(address, studio)
    with pytest.raises(BackendFailed, match="refused the prompt"):
        render(generator, shot_of(studio, generator, ""))
    other = elsewhere(address, studio, dialect="diffusion")
    with pytest.raises(BackendMisconfigured, match=r"num_frames.*dialect"):
        render(other, shot_of(studio, other))
