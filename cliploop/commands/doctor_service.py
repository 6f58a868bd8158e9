"""What the variables of a service name: its broker, database and store, and the libraries that these need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from cliploop.commands.doctor_backends import libraries
from cliploop.commands.findings import Finding, checked, failed
from cliploop.site import Addresses
from orchestrator.errors import CliploopError
from storage.queue import Messages


def named(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Nothing where no variable names a part: the embedded ones need nothing."""
    addresses = Addresses.of(environ)
    if addresses.database:
        yield libraries("database packages", "postgres")
    if addresses.artifacts:
        yield libraries("store packages", "s3")
    if addresses.broker:
        try:
            messages = Messages(addresses.broker)
        except CliploopError as error:
            yield failed("broker", error)
            return
        with closing(messages):
            yield checked("broker", lambda: _answers(messages))


def _answers(messages: Messages) -> str:
    messages.ping()
    return "CLIPLOOP_REDIS_URL answers"
