"""Keys of vendors' services come from the environment, at each call."""

from __future__ import annotations

import pytest

from cliploop.vendor_keys import key_from


def test_the_first_key_that_is_set_counts_each_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_KEY", "  ")
    monkeypatch.setenv("TWO_KEY", "k-2\n")
    assert key_from(["NO_KEY", "ONE_KEY", "TWO_KEY"]) == "k-2"
    assert key_from(["NO_KEY"]) == ""
    monkeypatch.setenv("ONE_KEY", "k-1")
    assert key_from(["NO_KEY", "ONE_KEY", "TWO_KEY"]) == "k-1"
