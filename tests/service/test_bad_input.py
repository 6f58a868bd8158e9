"""Whatever is sent, the answer is a problem document that says what to do; nothing is stored, nothing is lost."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cliploop.site import Site
from service.app import create_app
from service.bodies import BodyLimit
from tests.service.asking import as_data_url, maze, posted, submission, work
from tests.service.serving import client_of, served
from tests.workers.sites import a_site

JSON = {"Content-Type": "application/json"}
PNG, PROMPT = maze()
GOOD = json.dumps(submission(max_steps=1))
END = b"--X--\r\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("bad"), {"CLIPLOOP_SERVICE__MAX_UPLOAD_MIB": "1"}) as site:
        yield site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with served(create_app(site)) as address:
        yield address


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[httpx.Client]:
    with client_of(address) as client:
        yield client


@pytest.fixture(scope="module")
def done(site: Site, client: httpx.Client) -> str:
    """The one job that there is."""
    job_id = posted(client, max_steps=1)
    work(site)
    return job_id


def refused(client: httpx.Client, done: str, response: httpx.Response, *statuses: int) -> dict[str, Any]:
    """The problem document; nothing was stored, and the job that was there is."""
    assert response.status_code in (statuses or (400, 413, 415, 422)), response.text[:500]
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["detail"]
    assert problem["detail"].isprintable()
    assert [job["id"] for job in client.get("/v1/jobs").json()["data"]] == [done]
    return problem


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(GOOD), **fields}).encode()


def with_field(text: str) -> bytes:
    """The good submission and one field more, as it is written."""
    return (GOOD[:-1] + f", {text}}}").encode()


BODIES = {
    "nothing": b"",
    "half": GOOD[: len(GOOD) // 2].encode(),
    "more behind it": GOOD.encode() + b"}",
    "null": b"null",
    "a list": b"[]",
    "a text": b'"prompt"',
    "zero bytes": b"\0" * 100,
    "UTF-16": GOOD.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "no UTF-8": changed(prompt="PROMPT").replace(b"PROMPT", b"\xff\xfe"),
    "half a character": changed(prompt="PROMPT").replace(b"PROMPT", b"\xf0\x9f"),
    "a lone surrogate": changed(prompt="\ud800"),
    "a NUL": changed(prompt=PROMPT + "\0"),
    "10,000 characters": changed(prompt="word " * 2000),
    "too deep": b'{"prompt":' * 50_000,
    "a deep list": changed(budget="DEEP").replace(b'"DEEP"', b"[" * 5000 + b"]" * 5000),
    "a deep object": changed(budget="DEEP").replace(b'"DEEP"', b'{"usd":' * 3000 + b"1" + b"}" * 3000),
    "a field twice": with_field('"seed": 4'),
    "a field twice inside": changed(budget="B").replace(b'"B"', b'{"usd": 1, "usd": 2}'),
    "an unknown field of control characters": with_field('"a\\u001b[2J\\u0000": "red"'),
    "an unknown field": with_field('"colour": "red"'),
    "NaN": changed(budget={"usd": float("nan")}),
    "infinity": changed(budget={"usd": float("inf")}),
    "a number out of range": changed(budget="B").replace(b'"B"', b'{"usd": 1e999}'),
    "5,000 digits": changed(seed="S").replace(b'"S"', b"9" * 5000),
    "a seed beyond 63 bits": changed(seed=2**63),
    "a broken seed": changed(seed=1.5),
    "a whole seed as a fraction": changed(seed=3.0),
    "a negative budget": changed(budget={"vlm_calls": -1}),
    "a budget of texts": changed(budget={"usd": "1"}),
    "a budget of NaN as text": changed(budget="usd=nan"),
    "a budget of infinity as text": changed(budget="usd=inf"),
    "a budget twice as text": changed(budget="usd=1,usd=2"),
    "a budget of nothing": changed(budget="="),
    "a budget of thousands of digits": changed(budget="usd=" + "9" * 5000),
    "a billion steps": changed(max_steps=10**9),
    "options that contradict": changed(strategy="pass@1", gate="single_shot"),
    "a path for a generator": changed(generator="../../etc/passwd"),
    "code for a generator": changed(generator="os:system"),
    "control characters in a name": changed(preset="a\x1b[2J\0b"),
    "a long name": changed(preset="a" * 10_000),
    "no picture": changed(picture=None),
    "an empty picture": changed(picture="data:image/png;base64,"),
    "a file of the server": changed(picture="file:///etc/passwd"),
    "a picture that is a drawing": changed(picture=as_data_url(b"<svg xmlns='http://www.w3.org/2000/svg'/>")),
    "base64 with letters beyond ASCII": changed(picture="data:image/png;base64,é"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_cannot_be_is_refused(client: httpx.Client, done: str, body: bytes) -> None:
    refused(client, done, client.post("/v1/jobs", content=body, headers=JSON))


def part(name: bytes, value: bytes, more: bytes = b"") -> bytes:
    return b'--X\r\nContent-Disposition: form-data; name="' + name + b'"' + more + b"\r\n\r\n" + value + b"\r\n"


TEXT = part(b"prompt", PROMPT.encode())
FILE = part(b"picture", PNG, b'; filename="a.png"')
FORMS = {
    "nothing": b"",
    "no field": END,
    "no boundary": b"x",
    "no end": TEXT,
    "a part without a name": b"--X\r\n\r\nhello\r\n" + END,
    "a header of 70,000 letters": b"--X\r\n" + b"A" * 70_000 + b"\r\n\r\nx\r\n" + END,
    "3,000 headers": b"--X\r\n" + b"A: b\r\n" * 3000 + b"\r\nx\r\n" + END,
    "a header of odd bytes": b"--X\r\n\xff\xff: y\r\n\r\nx\r\n" + END,
    "a name of odd bytes": part(b"\xff\xfe", b"x") + TEXT + FILE + END,
    "60 fields": b"".join(part(f"f{number}".encode(), b"x") for number in range(60)) + END,
    "a field twice": TEXT + TEXT + FILE + END,
    "a picture twice": TEXT + FILE + FILE + END,
    "an unknown field": TEXT + FILE + part(b"colour", b"red") + END,
    "a file for a text": FILE + part(b"prompt", b"x", b'; filename="p.txt"') + END,
    "no UTF-8": part(b"prompt", b"\xff\xfe") + FILE + END,
    "a NUL": part(b"prompt", PROMPT.encode() + b"\0") + FILE + END,
    "an empty file": TEXT + part(b"picture", b"", b'; filename=""') + END,
    "a file that is text": TEXT + part(b"picture", b"nope", b'; filename="\x1b[2J.png"') + END,
    "a file name of 5,000 letters": TEXT + part(b"picture", b"nope", b'; filename="' + b"a" * 5000 + b'"') + END,
    "a file name of odd bytes": TEXT + part(b"picture", b"nope", b"; filename*=UTF-8''%ff%00") + END,
    "a huge seed": TEXT + FILE + part(b"seed", b"9" * 30) + END,
    "NaN": TEXT + FILE + part(b"budget", b"usd=nan") + END,
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
def test_a_form_that_cannot_be_is_refused(client: httpx.Client, done: str, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=X"}
    refused(client, done, client.post("/v1/jobs", content=body, headers=headers))


@pytest.mark.parametrize(
    "kind",
    [
        b"",
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"application/json\xff",
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b"multipart/form-data; boundary=" + b"b" * 5000,
    ],
)
def test_a_kind_of_body_that_cannot_be_is_refused(client: httpx.Client, done: str, kind: bytes) -> None:
    refused(client, done, client.post("/v1/jobs", content=b"x", headers=[(b"Content-Type", kind)]))


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "C:\\a.png", ".", "..", "a\nb.png"])
def test_a_name_like_a_path_leads_nowhere(
    site: Site, client: httpx.Client, done: str, name: str, tmp_path: Path
) -> None:
    before = sorted(site.scratch.parent.rglob("*"))
    form = {"prompt": PROMPT, "generator": "simulated-perfect", "max_steps": "1"}
    files = {"picture": (name, b"nope", "image/png")}
    refused(client, done, client.post("/v1/jobs", data=form, files=files))
    assert sorted(site.scratch.parent.rglob("*")) == before


@pytest.mark.parametrize("keys", [[b"\xff"], [b"a" * 256], [b""], [b"a b"], [b"one", b"two"], [b"one", b"one"]])
def test_an_idempotency_key_that_cannot_be_is_refused(client: httpx.Client, done: str, keys: list[bytes]) -> None:
    headers = [(b"Content-Type", b"application/json"), *((b"Idempotency-Key", key) for key in keys)]
    problem = refused(client, done, client.post("/v1/jobs", content=GOOD, headers=headers), 422)
    assert problem["code"] == "idempotency_key"


@pytest.mark.parametrize("path", ["retry", "fork", "review"])
@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"step": 0}',
        b'{"step": 1e400}',
        b'{"step": NaN}',
        b'{"step": 1, "x": 1}',
        b'{"step": 1, "instruction": "\\ud800"}',
        b'{"step": 1, "instruction": "\\u0000"}',
        b'{"step": 1, "budget": {"usd": -1}}',
        b"\xff",
        b"[" * 100_000,
        b'{"step": ' + b"9" * 5000 + b"}",
        b'{"step": 1',
    ],
)
def test_what_is_asked_of_a_job_wrongly_changes_nothing(
    client: httpx.Client, done: str, path: str, body: bytes
) -> None:
    refused(client, done, client.post(f"/v1/jobs/{done}/{path}", content=body, headers=JSON))


def test_a_finished_job_is_cancelled_no_more_and_the_answer_names_its_state(
    client: httpx.Client, done: str
) -> None:
    for body in (b"", b"{}", b"\xff"):
        problem = refused(client, done, client.post(f"/v1/jobs/{done}/cancel", content=body, headers=JSON), 409)
        assert "succeeded" in problem["detail"]


IDS = ["job-nobody", "%00", "%ff", "..%2f..%2fetc", "a" * 5000, "%F0%9F%98%80", "job-nobody%0a", "' OR 1=1 --"]


@pytest.mark.parametrize("job_id", IDS)
def test_an_unknown_job_is_not_found(client: httpx.Client, done: str, job_id: str) -> None:
    for path in ("", "/events", "/trajectory", "/video", "/contact-sheet", "/steps/1/attempts/1/clip"):
        refused(client, done, client.get(f"/v1/jobs/{job_id}{path}"), 404)
    refused(client, done, client.delete(f"/v1/jobs/{job_id}"), 404)
    refused(client, done, client.post(f"/v1/jobs/{job_id}/cancel"), 404)


def test_an_unknown_job_is_not_found_by_an_api_that_was_started_again(site: Site, done: str) -> None:
    with served(create_app(site)) as address, client_of(address) as again:
        refused(again, done, again.get("/v1/jobs/job-nobody"), 404)
        assert again.get(f"/v1/jobs/{done}").json()["state"] == "succeeded"


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=x",
        "limit=" + "9" * 30,
        "limit=",
        "after=%00",
        "after=" + "a" * 500,
        "state=x",
        "state=%ff",
    ],
)
def test_a_list_that_cannot_be_is_refused(client: httpx.Client, done: str, query: str) -> None:
    refused(client, done, client.get(f"/v1/jobs?{query}"), 422)


@pytest.mark.parametrize("step", ["-1", "9" * 30, "1.5", "0x1", "%00", "%D9%A3x"])
def test_a_step_that_cannot_be_is_refused(client: httpx.Client, done: str, step: str) -> None:
    refused(client, done, client.get(f"/v1/jobs/{done}/steps/{step}/attempts/1/clip"), 422)
    refused(client, done, client.get(f"/v1/jobs/{done}/steps/1/attempts/{step}/clip"), 422)


def test_odd_headers_harm_nothing(client: httpx.Client, done: str) -> None:
    for name in (b"Range", b"If-None-Match", b"If-Range", b"Accept", b"User-Agent", b"X-Request-Id", b"Cookie"):
        for value in (b"\xff\xfe", b"bytes=\xff-", b"9" * 5000, b'"'):
            answer = client.get(f"/v1/jobs/{done}/video", headers=[(name, value)])
            assert answer.status_code in (200, 416), (name, value)
    for value in (b"\xff", b"-1", "²".encode(), b"1e3", b"0x1"):
        events = client.get(f"/v1/jobs/{done}/events", headers=[(b"Last-Event-ID", value)])
        refused(client, done, events, 422)


def test_a_body_over_the_operators_limit_is_refused_before_it_was_read(
    client: httpx.Client, address: str, done: str
) -> None:
    problem = refused(client, done, client.post("/v1/jobs", content=b" " * (2**20 + 1), headers=JSON), 413)
    assert "1 MiB" in problem["detail"]
    assert problem["code"] == "too_large"
    chunked = client.post("/v1/jobs", content=iter([b" " * 2**19] * 3), headers=JSON)
    assert refused(client, done, chunked, 413)["code"] == "too_large"
    with connected(address) as connection:
        connection.sendall(head(b"Content-Length: 99999999999999999999"))
        assert b" 413 " in connection.recv(100)


def test_a_picture_of_the_size_that_is_allowed_gets_through(client: httpx.Client, done: str) -> None:
    padded = as_data_url(PNG + b"\0" * 600_000)
    answer = client.post("/v1/jobs", json={**json.loads(GOOD), "picture": padded})
    assert answer.status_code == 202
    assert client.delete(f"/v1/jobs/{answer.json()['id']}").status_code == 204


def head(*lines: bytes) -> bytes:
    wanted = [b"POST /v1/jobs HTTP/1.1", b"Host: localhost", b"Content-Type: application/json", *lines]
    return b"\r\n".join(wanted) + b"\r\n\r\n"


def connected(address: str) -> socket.socket:
    url = httpx.URL(address)
    return socket.create_connection((url.host, url.port or 80), timeout=30)


@pytest.mark.parametrize(
    "sent",
    [
        head(b"Content-Length: 5000") + GOOD[:50].encode(),
        head(b"Transfer-Encoding: chunked") + b"10\r\n{",
        head(b"Transfer-Encoding: chunked") + b"zz\r\n{",
        head(b"Content-Length: -1"),
        head(b"Content-Length: 1", b"Content-Length: 2") + b"{}",
        b"POST /v1/jobs\r\n\r\n",
        b"\0" * 100,
        b"GET /v1/jobs HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
    ],
)
def test_a_request_that_stops_half_way_or_is_none_stores_nothing(
    client: httpx.Client, address: str, done: str, sent: bytes
) -> None:
    with connected(address) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    assert [job["id"] for job in client.get("/v1/jobs").json()["data"]] == [done]


def test_a_request_that_says_its_length_twice_is_refused_and_what_follows_it_not_read(
    client: httpx.Client, address: str, done: str
) -> None:
    body = GOOD.encode()
    both = head(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked")
    with connected(address) as connection:
        connection.sendall(both + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) + head(b"Content-Length: 0"))
        answers = b""
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answers += more
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1") == 1
    assert b"two_lengths" in answers
    assert [job["id"] for job in client.get("/v1/jobs").json()["data"]] == [done]


def test_a_body_that_comes_too_slowly_ends(
    client: httpx.Client, site: Site, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(site)
    for middleware in app.user_middleware:
        if middleware.cls is BodyLimit:
            middleware.kwargs.update(pause_seconds=0.2, whole_seconds=1.0)
    with served(app) as address:
        with connected(address) as connection:
            connection.sendall(head(b"Content-Length: 5000") + b"{")
            assert b" 408 " in connection.recv(100)
        with connected(address) as connection:  # a byte now and then is no more than none
            connection.sendall(head(b"Content-Length: 5000"))
            connection.settimeout(0.05)
            answer = b""
            while not answer:
                connection.sendall(b" ")
                try:
                    answer = connection.recv(100)
                except TimeoutError:
                    continue
            assert b" 408 " in answer
