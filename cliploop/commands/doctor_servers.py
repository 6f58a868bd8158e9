"""Whether the servers of configured backends can be reached, take our key and know the model; costs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx

from cliploop.commands.findings import Finding, failed
from cliploop.vendor_faults import connection_fault, place, told, trust
from cliploop.vendor_gemini import GOOGLES
from cliploop.vendor_keys import key_from
from orchestrator.errors import CliploopError

LOOK_SECONDS = 5.0
OPENAIS = "https://api.openai.com"
MODELS_TOLD = 5


@dataclass(frozen=True)
class Server:
    """Where a backend's server is asked what it has. `needs_key`: it serves nobody without one."""

    url: str
    base_url: str
    model: str
    key_names: tuple[str, ...]
    needs_key: bool
    ca_file: str
    google: bool

    @property
    def names(self) -> str:
        return " or ".join(self.key_names)


def server_of(options: Any) -> Server | None:
    """Of a backend's options; None for one that works here."""
    base_url: str | None = getattr(options, "base_url", None)
    if base_url is None:
        return None
    model, ca_file = str(getattr(options, "model", "")), str(getattr(options, "ca_file", ""))
    key_names: tuple[str, ...] | None = getattr(options, "key_names", None)
    if key_names is not None:
        base_url = base_url or GOOGLES
        url = f"{base_url.rstrip('/')}/v1beta/models/{model.removeprefix('models/')}"
        return Server(url, base_url, model, key_names, True, ca_file, google=True)
    url = f"{base_url.rstrip('/')}/models"
    names = (str(getattr(options, "api_key_env", "")),)
    return Server(url, base_url, model, names, place(base_url).startswith(OPENAIS), ca_file, google=False)


def key_finding(name: str, server: Server) -> Finding:
    """Whether there is a key; the key itself is never shown."""
    if key_from(server.key_names):
        found = next(each for each in server.key_names if key_from([each]))
        return Finding(name, "ok", f"set in {found}")
    if server.needs_key:
        return Finding(name, "fail", f"none for {place(server.base_url)}", f"set {server.names}")
    return Finding(name, "note", f"none in {server.names}", "set it if the server asks for one")


def server_finding(name: str, server: Server) -> Finding:
    """One request for what it has, with a time limit."""
    key = key_from(server.key_names)
    headers = {"x-goog-api-key": key} if server.google else {"authorization": f"Bearer {key}"}
    try:
        with httpx.Client(verify=trust(server.ca_file), timeout=LOOK_SECONDS, follow_redirects=False) as client:
            answer = client.get(server.url, headers=headers if key else {})
    except CliploopError as error:
        return failed(name, error)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return failed(name, connection_fault(error, server.base_url))
    return _judged(name, server, answer, key)


def _judged(name: str, server: Server, answer: httpx.Response, key: str) -> Finding:
    where, status = place(server.base_url), answer.status_code
    words = told(answer.text, key)
    if status in (401, 403) or (status == 400 and "API_KEY_INVALID" in answer.text):
        if not key:
            state = "ok" if server.needs_key else "fail"
            return Finding(name, state, f"{where} answers, and asks for a key ({status})", f"set {server.names}")
        return Finding(name, "fail", f"{where} refused the key ({status})", f"set a valid one in {server.names}")
    if 300 <= status < 400:
        return Finding(name, "fail", f"{where} answers {status}, it has moved", "correct base_url")
    if status == 429 or status >= 500:
        return Finding(name, "note", f"{where} answers {status} ({words})", "look again later")
    if "html" in answer.headers.get("content-type", ""):
        return Finding(name, "fail", f"{where} answers with a web page", "set base_url to the address of the API")
    if server.google:
        return _google(name, server, status, words)
    return _listed(name, server, answer)


def _google(name: str, server: Server, status: int, words: str) -> Finding:
    where = place(server.base_url)
    if status == 404:
        return Finding(name, "fail", f"{where} does not know {server.model} ({words})", "correct model")
    if status != 200:
        return Finding(name, "note", f"{where} answers {status} ({words})", "is base_url a Gemini API?")
    return Finding(name, "ok", f"{where} has {server.model}")


def _listed(name: str, server: Server, answer: httpx.Response) -> Finding:
    where = place(server.base_url)
    if answer.status_code != 200:
        remedy = "" if server.base_url.rstrip("/").endswith("/v1") else "does base_url end in /v1?"
        return Finding(name, "note", f"{where} answers, and lists no models ({answer.status_code})", remedy)
    ids = _ids(answer.text)
    if not ids or not server.model:
        return Finding(name, "ok", f"{where} answers")
    if server.model not in ids:
        has = ", ".join(ids[:MODELS_TOLD])
        return Finding(
            name, "fail", f"{where} does not have {server.model}", f"set model to one that it has: {has}"
        )
    return Finding(name, "ok", f"{where} has {server.model}")


def _ids(text: str) -> list[str]:
    """The ids in a list of models; none where it is no such list."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return []
    data: Any = cast("Mapping[str, Any]", found).get("data") if isinstance(found, dict) else None
    listed = cast("list[Any]", data) if isinstance(data, list) else []
    return [str(cast("Any", each)["id"]) for each in listed if isinstance(each, dict) and "id" in each]
