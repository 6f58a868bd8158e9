"""What `help` says of the client's calls: methods with `self`, whose values are what they return."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator

import pytest

from cliploop.client import AsyncClient, Client, Event, Job

CALLS = (
    *("submit", "upload", "get", "page", "list", "events", "wait", "trajectory", "download", "cancel", "delete"),
    *("retry", "fork", "review", "health", "ready", "presets", "generators", "planners", "verifiers", "worlds"),
    "sample",
)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_shown_as_a_method(kind: type, name: str) -> None:
    told = inspect.signature(getattr(kind, name))
    assert next(iter(told.parameters)) == "self"
    assert "patience" not in told.parameters
    assert "Flow" not in str(told)


def test_a_call_returns_what_it_says() -> None:
    assert inspect.signature(Client.submit).return_annotation is Job
    assert inspect.signature(Client.delete).return_annotation is None
    assert inspect.signature(Client.events).return_annotation == Iterator[Event]
    assert inspect.signature(AsyncClient.events).return_annotation == AsyncIterator[Event]


def test_a_client_shows_its_calls_and_where_it_speaks_to() -> None:
    with Client() as client:
        public = {name for name in dir(client) if not name.startswith("_")}
    assert public == {*CALLS, "close", "patience", "url"}
