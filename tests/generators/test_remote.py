"""What remote renders share: waiting, bounded downloads, words without secrets, and what a status means."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

from cliploop.vendor_faults import Refusal, place, retry_after, told, trust, without_secrets
from generators.remote import POLLS_FAILED_AT_MOST, Bounded, Look, Patience, Watch
from orchestrator.errors import (
    BackendFailed,
    BackendMisconfigured,
    BackendUnavailable,
    JobCancelled,
    SubmissionUnknown,
)


def unheard(_fraction: float) -> None:
    pass


def watch(heard: list[float] | None = None, cancelled: Any = lambda: False) -> Watch:
    return Watch(unheard if heard is None else heard.append, cancelled)


def test_a_fraction_never_falls_and_never_passes_one() -> None:
    heard: list[float] = []
    watching = watch(heard)
    for fraction in (0.5, 0.2, 7.0):
        watching.tell(fraction)
    assert heard == [0.5, 0.5, 1.0]


def test_whoever_waits_is_asked_whether_to_go_on() -> None:
    answers = iter([False, False, True])
    began = time.monotonic()
    with pytest.raises(JobCancelled):
        watch(cancelled=lambda: next(answers)).wait(30)
    assert time.monotonic() - began < 10


def test_what_a_progress_callback_raises_ends_the_waiting() -> None:
    class Ending(BaseException):
        pass

    def end(_fraction: float) -> None:
        raise Ending

    with pytest.raises(Ending):
        Watch(end, lambda: False).wait(30)


def test_looks_that_keep_failing_are_given_up_and_one_that_works_counts_anew() -> None:
    def looks(*said: Any) -> Any:
        rest = iter(said)

        def look() -> Look:
            one = next(rest)
            if isinstance(one, Exception):
                raise one
            return one

        return look

    away = BackendUnavailable("away", retry_after_seconds=0.0)
    seen = Look(again_seconds=0.0)
    few = [away] * POLLS_FAILED_AT_MOST
    assert Patience(watch(), 60).until_done(looks(*few, seen, *few, Look(value="video"))) == "video"
    with pytest.raises(BackendUnavailable):
        Patience(watch(), 60).until_done(looks(*few, away, Look(value="video")))


def test_a_render_that_is_never_done_is_given_up() -> None:
    with pytest.raises(BackendFailed, match="limit_seconds"):
        Patience(watch(), 0.0).until_done(Look)


def test_a_download_is_bounded_and_stops_for_who_cancels() -> None:
    data = Bounded(1 << 20, watch())
    data.take(bytes(1 << 20))
    with pytest.raises(BackendFailed, match="larger than 1 MiB"):
        data.take(b"x")
    with pytest.raises(JobCancelled):
        Bounded(1 << 20, watch(cancelled=lambda: True)).take(b"x")


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
