"""A site with its API on a loopback port, a finished job in it, and both kinds of client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from cliploop.client import Client
from cliploop.site import Site
from service.app import create_app
from tests.cliploop.client.connections import Calls
from tests.service.asking import PERFECT, maze, work
from tests.service.serving import served
from tests.workers.sites import a_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def app(site: Site) -> FastAPI:
    return create_app(site)


@pytest.fixture(scope="module")
def address(app: FastAPI) -> Iterator[str]:
    with served(app) as address:
        yield address


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[Client]:
    with Client(address) as client:
        yield client


@pytest.fixture(scope="module")
def finished(site: Site, client: Client) -> str:
    """A job that has ended; its id."""
    job = submitted(client)
    work(site)
    return job


@pytest.fixture(params=["blocking", "asynchronous"])
def calls(request: pytest.FixtureRequest, address: str) -> Calls:
    return Calls(request.param, address)


def submitted(client: Client, seed: int = 3, folder: Path | None = None) -> str:
    """A small maze; its id."""
    png, prompt = maze(seed)
    return client.submit(png, prompt, generator=PERFECT, max_steps=6, seed=seed).id
