"""Keys of vendors' services come from the environment, at each call."""

from __future__ import annotations

import pytest

from cliploop.vendor_keys import key_from
from orchestrator.errors import BackendMisconfigured


def test_the_first_key_that_is_set_counts_each_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_KEY", "  ")
    monkeypatch.setenv("TWO_KEY", "k-2\n")
    assert key_from(["NO_KEY", "ONE_KEY", "TWO_KEY"]) == "k-2"
    assert key_from(["NO_KEY"]) == ""
    monkeypatch.setenv("ONE_KEY", "k-1")
    assert key_from(["NO_KEY", "ONE_KEY", "TWO_KEY"]) == "k-1"


@pytest.mark.parametrize("value", ["sk-abc\u2019", "sk-a\nb", "sk-\x1b"])
def test_a_key_that_no_header_can_carry_is_refused_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(BackendMisconfigured, match=r"^SOME_KEY: the key in it") as refused:
        key_from(["SOME_KEY"])
    assert value not in str(refused.value)
