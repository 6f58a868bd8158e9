"""One site for the tests of this folder's modules, and clients that speak to it."""

# pyright: reportDeprecated=false

from __future__ import annotations

from collections.abc import Iterator

import httpx
import openai
import pytest

from cliploop.site import Site
from service.app import create_app
from storage.submissions import cancel, listed
from tests.service.asking import work
from tests.service.openai_videos.clients import (
    farewell_unheard,
    sync_client,
)
from tests.service.openai_videos.creating import created
from tests.service.serving import client_of, served
from tests.workers.sites import a_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("openai")) as site:
        yield site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with served(create_app(site)) as address:
        yield address


@pytest.fixture(autouse=True)
def _farewell() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with farewell_unheard():
        yield


@pytest.fixture(autouse=True)
def _tidy(site: Site) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """What a test left queued is not worked on in the next."""
    yield
    for job in listed(site.database, None, states=("queued",), limit=100):
        cancel(site.database, job.job.id, None)


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with sync_client(address) as client:
        yield client


@pytest.fixture
def plain(address: str) -> Iterator[httpx.Client]:
    with client_of(address) as client:
        yield client


@pytest.fixture(scope="module")
def done(site: Site, address: str) -> str:
    """A video that is completed."""
    with farewell_unheard(), sync_client(address) as client:
        video_id = created(client, extra_body={"max_steps": 6, "seed": 3}).id
    work(site)
    return video_id
