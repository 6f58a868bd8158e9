"""A site with its API, and a client that speaks to it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cliploop.site import Site
from service.app import create_app
from tests.service.serving import client_of, served
from tests.storage.conftest import small_file_system
from tests.workers.sites import a_site

__all__ = ["small_file_system"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    with served(create_app(site)) as address:
        yield address


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with client_of(address) as client:
        yield client
