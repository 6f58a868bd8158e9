"""No message about a database or a broker shows a password, however its URL is written."""

from __future__ import annotations

import pytest

from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage.postgres import PostgresDatabase
from storage.queue import Messages

SECRET = "s3cretpw"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=u&password={SECRET}",
        f"postgresql://127.0.0.1:1/db?sslpassword={SECRET}",
        f"postgresql://u:{SECRET}@127.0.0.1:x/db",
        f"postgresql://u:a@{SECRET}@127.0.0.1:1/db",
        f"postgresql://u:a/{SECRET}@127.0.0.1:1/db",
        f"postgresql://u:{SECRET}@127.0.0.1:1/db?bogus=1",
        f"postgresql://u:{SECRET}@/db?host=/nonexistent",
        f"postgresql://u:{SECRET}@[::1/db",
        f"mysql://u:{SECRET}@127.0.0.1/db",
        f"postgresql:{SECRET}",
    ],
)
def test_a_database_is_named_without_its_password(url: str) -> None:
    with pytest.raises((BackendMisconfigured, BackendUnavailable)) as raised:
        PostgresDatabase(url)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@127.0.0.1:1/0",
        f"redis://127.0.0.1:1?password={SECRET}",
        f"redis://:{SECRET}#x@127.0.0.1:1",
        f"redis://:a/{SECRET}@127.0.0.1:1",
        f"redis://:{SECRET}@127.0.0.1:x",
        f"redis://127.0.0.1:1?bogus={SECRET}",
        f"redis://127.0.0.1:1?socket_timeout={SECRET}",
        f"unix://:{SECRET}@/nonexistent",
        f"http://:{SECRET}@127.0.0.1",
        f"redis://[{SECRET}",
    ],
)
def test_a_broker_is_named_without_its_password(url: str) -> None:
    with pytest.raises((BackendMisconfigured, BackendUnavailable)) as raised:
        Messages(url).ping()
    assert SECRET not in str(raised.value)
