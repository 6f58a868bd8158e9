"""`cliploop keys`: the secret is said once, and never again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliploop.site import Addresses
from storage.keys import by_digest, find
from storage.submissions import Request, submit
from tests.cliploop.commandline import command
from tests.storage.jobs_for_tests import POLICY, TASK


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("CLIPLOOP_DATA", "CLIPLOOP_DATABASE_URL", "CLIPLOOP_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_key_is_made_listed_and_revoked_without_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    made = command(capsys, "keys", "create", "lab", "--concurrent-jobs", "8")
    assert made.code == 0
    secret = made.out.strip()
    assert secret.startswith("clp_")
    assert secret not in made.err
    with Addresses.of({}).opened_database() as database:
        key = find(by_digest(database), secret)
    assert key is not None
    assert (key.name, key.concurrent_jobs, key.requests_per_minute) == ("lab", 8, None)
    listed = command(capsys, "keys", "list")
    assert key.id in listed.out
    assert "8 jobs at a time" in listed.out
    assert secret.removeprefix("clp_") not in listed.out + listed.err
    revoked = command(capsys, "keys", "revoke", key.id)
    assert revoked.code == 0
    assert "no key is left" in revoked.out
    assert "revoked" in command(capsys, "keys", "list").out


def test_as_json_it_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    made = command(capsys, "keys", "create", "lab", "--json").json
    assert made["ok"] is True
    assert made["secret"].startswith("clp_")
    assert "secret" not in made["key"]
    listed = command(capsys, "keys", "list", "--json")
    assert [key["id"] for key in listed.json["keys"]] == [made["key"]["id"]]
    assert made["secret"] not in listed.out
    assert command(capsys, "keys", "revoke", made["key"]["id"], "--json").json["key"]["revoked_at"] > 0


def test_jobs_without_a_key_are_mentioned_and_adopted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Addresses(tmp_path / "d", "").opened_database() as database:
        submit(database, "job-1", TASK, POLICY, Request("", "default"))
    assert "--adopt" in command(capsys, "keys", "create", "one", "--data", "d").err
    assert "--adopt" not in command(capsys, "keys", "create", "two", "--data", "d", "--adopt").err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("create", ""), "name"),
        (("create", "a\nb"), "name"),
        (("create", "lab", "--requests-per-minute", "0"), "requests per minute"),
        (("create", "lab", "--concurrent-jobs", "-1"), "concurrent jobs"),
        (("create", "lab", "--concurrent-jobs", "many"), "--concurrent-jobs"),
        (("create",), "NAME"),
        (("revoke", "key-nobody"), "key-nobody"),
        (("revoke", "\x1b[2J"), "no API key"),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    said = command(capsys, "keys", *words)
    assert said.code == 2
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert "\x1b" not in said.err
    assert said.out == ""


def test_looking_makes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "no API key" in command(capsys, "keys", "list").out
    assert command(capsys, "keys", "revoke", "key-nobody").code == 2
    assert list(tmp_path.iterdir()) == []
