"""A picture that a request names instead of sending it: an uploaded artifact, or a public address."""

from __future__ import annotations

import re
import threading
import time
from urllib.parse import urljoin

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable, TaskRejected
from storage.addresses import AddressRefused, Rules
from storage.artifacts import is_key
from storage.exchange import Answer, NoAnswer, Trust, exchange, public_trust
from storage.references import is_upload

FETCH_SECONDS = 30.0
MAX_REDIRECTS = 3
FETCHES = 4  # at a time: slow servers must not take all of this one's threads
PUBLIC = Rules(("https",))
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_URL = re.compile(r"https?:", re.IGNORECASE)
_UNDER_WAY = threading.BoundedSemaphore(FETCHES)


def names_picture(text: str) -> bool:
    """Whether it names a picture that is elsewhere; a data URL holds its own."""
    return is_key(text) or is_url(text)


def is_url(text: str) -> bool:
    """Whether it is an address."""
    return _URL.match(text) is not None


def named_picture(site: Site, caller: str, name: str, *, rules: Rules = PUBLIC) -> bytes:
    """The picture that a caller names. Raises TaskRejected, BackendUnavailable.

    An artifact must have been uploaded by the same caller; addresses are fetched only where the operator says so.
    """
    if not is_url(name):
        return _uploaded(site, caller, name)
    settings = site.composition.settings.service
    if not settings.fetch_urls:
        raise TaskRejected(
            "picture: addresses are not fetched: send the picture itself, as data:image/png;base64,…",
            reason="picture_address",
        )
    return fetched(name, rules, max_bytes=int(settings.max_upload_mib * 2**20))


def _uploaded(site: Site, caller: str, artifact: str) -> bytes:
    with site.database.read() as connection:
        known = is_upload(connection, caller, artifact)
    if not known:
        raise TaskRejected(
            "picture: there is no such artifact of yours, or it has expired: upload it with POST /v1/artifacts",
            reason="picture_unknown",
        )
    return site.artifacts.read(artifact)


def fetched(
    url: str,
    rules: Rules,
    *,
    max_bytes: int,
    seconds: float = FETCH_SECONDS,
    trust: Trust = public_trust,
) -> bytes:
    """What is at the address; what it is, is for others to find out.

    Raises TaskRejected for an address that may not be contacted or gives nothing, also where it redirects to one,
    and BackendUnavailable while too many others are fetched.
    """
    if not _UNDER_WAY.acquire(blocking=False):
        raise BackendUnavailable("too many pictures are being fetched: send it again", retry_after_seconds=5)
    try:
        return _followed(url, rules, max_bytes, time.monotonic() + seconds, trust)
    except (AddressRefused, NoAnswer) as error:
        raise _unusable(str(error)) from error
    finally:
        _UNDER_WAY.release()


def _followed(url: str, rules: Rules, max_bytes: int, limit: float, trust: Trust) -> bytes:
    headers = {"User-Agent": "cliploop", "Accept": "image/*"}
    for _ in range(MAX_REDIRECTS + 1):
        left = max(0.0, round(limit - time.monotonic(), 1))
        answer = exchange("GET", url, rules, headers=headers, seconds=left, max_bytes=max_bytes, trust=trust)
        if answer.status not in _REDIRECTS:
            return _body(answer, max_bytes)
        try:
            url = urljoin(url, answer.headers.get("location", ""))
        except ValueError:
            raise _unusable("it redirects to what is no address") from None
    raise _unusable(f"it redirects more than {MAX_REDIRECTS} times")


def _body(answer: Answer, max_bytes: int) -> bytes:
    if answer.status != 200:
        raise _unusable(f"its server answered {answer.status}")
    if len(answer.body) > max_bytes:
        raise TaskRejected(
            f"picture: what is at the address has more than {max_bytes / 2**20:g} MiB: send a smaller picture",
            reason="too_large",
        )
    return answer.body


def _unusable(why: str) -> TaskRejected:
    return TaskRejected(f"picture: the address cannot be used: {why}", reason="picture_address")
