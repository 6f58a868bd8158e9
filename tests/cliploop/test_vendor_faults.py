"""What goes wrong with a vendor's server: when to come back, words without secrets, what a status means."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

from cliploop.vendor_faults import Refusal, place, retry_after, told, trust, variable, without_secrets
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, SubmissionUnknown


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after-ms": "inf"}, 86400.0),
        ({"retry-after": "9" * 400}, 86400.0),
        ({"retry-after": formatdate(0)}, None),
        ({"retry-after": "Tue, 99 Foo 2026 99:99:99"}, None),
    ],
)
def test_when_to_come_back_is_read_in_every_form_and_nonsense_says_nothing(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


def test_a_date_to_come_back_at_is_seconds_from_now() -> None:
    found = retry_after({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert found is not None
    assert 90 < found <= 100


def test_a_servers_words_are_one_line_without_markup_and_secrets() -> None:
    assert told("<html><b>Sign\n in</b></html> with sk-1", "sk-1", "") == "Sign in with …"
    assert len(told("x" * 5000)) < 400
    assert told({"a": None}) == "{'a': None}"


def test_an_address_is_told_without_who_asks() -> None:
    assert place("http://user:secret@box:8091/v1/?key=1") == "http://box:8091/v1"
    assert place("http://[::1]:8091/v1") == "http://[::1]:8091/v1"
    assert without_secrets("http://box:8091/v1") == "http://box:8091/v1"
    for url in ("http://u:p@box/v1", "http://box/v1?key=1", "box:8091", "ftp://box/v1", "http://"):
        with pytest.raises(ValueError, match="must"):
            without_secrets(url)


def test_certificates_that_cannot_be_read_are_named(tmp_path: Any) -> None:
    assert trust("") is True
    (tmp_path / "not.pem").write_text("hello")
    for name in ("not.pem", "missing.pem"):
        with pytest.raises(BackendMisconfigured, match=f"ca_file: .*{name}"):
            trust(str(tmp_path / name))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, type(None)),
        (404, type(None)),
        (422, type(None)),
        (401, BackendMisconfigured),
        (301, BackendMisconfigured),
        (425, BackendUnavailable),
        (529, BackendUnavailable),
    ],
)
def test_a_status_means_the_same_everywhere(status: int, kind: type[Any]) -> None:
    assert type(Refusal("http://box/v1", status, "", {}, "KEY").fault()) is kind


def test_a_gateway_that_gave_up_may_have_passed_a_submission_on() -> None:
    assert type(Refusal("http://box/v1", 504, "", {}, "KEY", submitting=True).fault()) is SubmissionUnknown
    assert type(Refusal("http://box/v1", 504, "", {}, "KEY").fault()) is BackendUnavailable
    assert type(Refusal("http://box/v1", 503, "", {}, "KEY", submitting=True).fault()) is BackendUnavailable


def test_what_is_too_large_names_the_option_that_makes_it_smaller() -> None:
    fault = Refusal("http://box/v1", 413, "too big", {}, "KEY", size_option="max_image_side").fault()
    assert str(fault) == "http://box/v1: what was sent is too large for it (413: too big): lower max_image_side"


def test_a_key_with_markup_in_it_is_hidden_too() -> None:
    assert "secret" not in told("refused: sk-<b>secret</b> is none", "sk-<b>secret</b>")


@pytest.mark.parametrize(
    "url", ["http://bob:hunter2/x@h/v1", "http://h:99999/v1", "http://h:x/v1", "http://h\n/v1", "http://[::1/v1"]
)
def test_what_is_no_address_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="must be an address") as refused:
        without_secrets(url)
    assert "hunter2" not in str(refused.value)


def test_a_key_in_place_of_a_variables_name_is_refused_without_being_repeated() -> None:
    with pytest.raises(ValueError, match="must be the name of an environment variable") as refused:
        variable("sk-secret")
    assert "secret" not in str(refused.value)
