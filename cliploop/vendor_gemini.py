"""The Gemini API through the google-genai client: a connection to it, and what its faults mean.

Knows no model and no use of one. The client never retries by itself: a submission that is sent twice is paid
twice, and what is asked again is the loop's business.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cliploop.vendor_faults import (
    MAX_TALK_BYTES,
    Refusal,
    bounded,
    connection_fault,
    is_of_http,
    is_talk,
    place,
    told,
    trust,
)
from cliploop.vendor_keys import key_from
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, SubmissionUnknown

GOOGLES = "https://generativelanguage.googleapis.com"
KEY_NAMES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_DELAY = re.compile(r"retryDelay\W+(\d+(?:\.\d+)?)s")


@dataclass(frozen=True)
class Access:
    """Where the API is and which variables may hold its key. `who` is what messages call the backend."""

    who: str
    base_url: str = ""
    key_names: tuple[str, ...] = KEY_NAMES
    ca_file: str = ""

    @property
    def url(self) -> str:
        return self.base_url or GOOGLES

    def key(self) -> str:
        """The key. Raises BackendMisconfigured where there is none."""
        key = key_from(self.key_names)
        if not key:
            raise BackendMisconfigured(
                f"{self.who}: no key for {place(self.url)}: set the environment variable"
                f" {' or '.join(self.key_names)}"
            )
        return key


@dataclass
class Files:
    """How files may be loaded: whether one is, for how long, and how large it may be."""

    loading: bool = False
    seconds: float = 600.0
    max_bytes: int = 1 << 30


class GeminiApi:
    """One connection. `until`, by the monotonic clock, is when an answer that trickles is given up.

    Raises BackendMisconfigured without a key, or without the client.
    """

    def __init__(self, access: Access, request_seconds: float, *, until: float | None = None) -> None:
        self._access = access
        self._key = access.key()
        genai, self._errors, self.types = library(access.who)
        verify = trust(access.ca_file)
        arguments: dict[str, Any] = {} if verify is True else {"verify": verify}
        self._until, self._seconds, self.files = until, request_seconds, Files()
        arguments["event_hooks"] = {"request": [self._leaves], "response": [self._bounded]}
        arguments["follow_redirects"] = until is None
        http = self.types.HttpOptions(
            base_url=access.base_url or None,
            timeout=round(request_seconds * 1000),
            retry_options=self.types.HttpRetryOptions(attempts=1),
            client_args=arguments,
        )
        self.client: Any = genai.Client(vertexai=False, api_key=self._key, http_options=http)

    def _leaves(self, request: Any) -> None:
        """The key, in a header, would go along wherever a redirect leads: only a file may be elsewhere."""
        home, there = urlsplit(self._access.url), urlsplit(str(request.url))
        if (home.scheme, home.netloc) == (there.scheme, there.netloc):
            return
        request.headers.pop("x-goog-api-key", None)
        if request.method != "GET" or not self.files.loading:
            raise BackendMisconfigured(
                f"{self.place}: it redirects elsewhere, which is not followed: correct base_url"
            )

    def _bounded(self, response: Any) -> None:
        """A file has as long as the render; everything else must be there soon."""
        talk = is_talk(response) or not self.files.loading
        until = self._until or time.monotonic() + (self._seconds if talk else self.files.seconds)
        bounded(response, until, MAX_TALK_BYTES if talk else self.files.max_bytes)

    def close(self) -> None:
        self.client.close()

    @property
    def place(self) -> str:
        return place(self._access.url)

    def told(self, words: Any) -> str:
        """The server's words, without the key."""
        return told(words, self._key)

    def guarded(
        self,
        call: Callable[[], Any],
        *,
        submitting: bool = False,
        asking: bool = False,
        refused: Callable[[int, str], CliploopError | None] = lambda _status, _words: None,
        model: str = "",
        size_option: str = "max_side",
    ) -> Any:
        """What the call gives; its faults as ours.

        `refused(status, words)` may say what a refusal means that depends on what was asked. `submitting`: a
        render may have begun unless the connection was never made. `asking`: a web page for an answer means a
        wrong address, not a server that is busy.
        """
        try:
            return call()
        except CliploopError:
            raise
        except self._errors.APIError as error:
            raise self._refused(error, submitting, refused, model, size_option) from None
        except json.JSONDecodeError as error:
            raise self._unreadable(error, submitting, asking or submitting) from None
        except Exception as error:
            if is_of_http(error):
                raise connection_fault(error, self._access.url, submitting=submitting) from None
            raise self.nonsense(error, submitting=submitting) from error

    def nonsense(self, error: Exception, *, submitting: bool = False) -> CliploopError:
        """What the client cannot make sense of is the server's fault."""
        what = f"{self.place}: its answer is none of a Gemini API ({type(error).__name__}: {self.told(error)})"
        return SubmissionUnknown(f"{what}; a render may have begun") if submitting else BackendUnavailable(what)

    def _unreadable(self, error: json.JSONDecodeError, submitting: bool, misplaced: bool) -> CliploopError:
        if error.doc.lstrip().startswith("<"):
            what = f"{self.place}: an HTML page came back ({self.told(error.doc)})"
            return (
                BackendMisconfigured(f"{what}: is base_url a Gemini API?")
                if misplaced
                else BackendUnavailable(what)
            )
        what = f"{self.place}: its answer is JSON that breaks off"
        return SubmissionUnknown(f"{what}; a render may have begun") if submitting else BackendUnavailable(what)

    def _refused(
        self,
        error: Any,
        submitting: bool,
        refused: Callable[[int, str], CliploopError | None],
        model: str,
        size_option: str,
    ) -> CliploopError:
        words = self.told(error.message or error.details)
        names = " or ".join(self._access.key_names)
        status = int(error.code or 0)
        if status == 400 and ("API_KEY_INVALID" in str(error.details) or "API key not valid" in words):
            return BackendMisconfigured(f"{self.place}: the key was refused ({words}): set {names}")
        url, headers = self._access.url, _headers(error)
        known = Refusal(url, status, words, headers, names, submitting, size_option).fault()
        known = known or refused(status, words)
        if known is not None:
            return known
        if status == 404:
            return BackendMisconfigured(f"{self.place}: it does not know the model {model!r} ({words})")
        return BackendMisconfigured(f"{self.place}: it refused what was asked ({status}): {words}")


def _headers(error: Any) -> Mapping[str, str]:
    """Of the answer; Google also says in its body when to come back: `retryDelay: "37s"`."""
    found: dict[str, str] = {}
    for key, value in dict(getattr(error.response, "headers", None) or {}).items():
        found[str(key).lower()] = str(value)
    delay = _DELAY.search(str(error.details))
    if delay and "retry-after" not in found:
        found["retry-after"] = delay[1]
    return found


def library(who: str) -> tuple[Any, Any, Any]:
    """The client's parts: genai, errors, types. Raises BackendMisconfigured where it is not installed."""
    try:
        from google import genai
        from google.genai import errors, types
    except ImportError as error:
        raise BackendMisconfigured(
            f"{who} needs the google-genai client: pip install 'cliploop[gemini]'"
        ) from error
    return genai, errors, types
