"""The same server as the client's tests have, and commands that speak to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cliploop.client.conftest import address, app, client, finished, site
from tests.cliploop.commandline import Said, command

__all__ = ["address", "app", "client", "finished", "say", "site"]


@pytest.fixture
def say(
    capsys: pytest.CaptureFixture[str], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """Run a command in an empty folder, with CLIPLOOP_URL set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLIPLOOP_URL", address)
    monkeypatch.delenv("CLIPLOOP_API_KEY", raising=False)
    return lambda *words: command(capsys, *words)
