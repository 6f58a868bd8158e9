"""Who may call: keys, what they may see and how often; without keys, this machine's programs only."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from cliploop.serving import Serving
from cliploop.site import Site
from service.access import OPEN
from service.app import create_app
from storage.keys import create, revoke
from tests.service.asking import maze, posted, submission, work
from tests.service.serving import client_of, served
from tests.workers.sites import a_site

UNKNOWN = "job-0000000000"
BODIES: dict[str, dict[str, Any]] = {
    "fork": {"step": 1},
    "remix": {"prompt": "Go on."},
}  # of routes that need one; {} for the others


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def a_client(address: str, secret: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers=bearer(secret), timeout=60, trust_env=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site for tests that only read, with keys."""
    with a_site(tmp_path_factory.mktemp("access")) as site:
        yield site


@pytest.fixture(scope="module")
def app(shared: Site) -> FastAPI:
    return create_app(shared)


@pytest.fixture(scope="module")
def two(shared: Site, app: FastAPI) -> Iterator[tuple[httpx.Client, httpx.Client, str]]:
    """Two keys' clients, and a job of the first that has ended."""
    secrets = [create(shared.database, name)[1] for name in ("first", "second")]
    with (
        served(app) as address,
        a_client(address, secrets[0]) as first,
        a_client(address, secrets[1]) as second,
    ):
        job_id = posted(first, max_steps=1)
        work(shared)
        yield first, second, job_id


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Every method and path that there is."""
    found = [
        (method, route.path or "")
        for route in iter_route_contexts(app.routes)
        for method in sorted(route.methods or ("GET",))
    ]
    assert len(found) > 25
    return found


def asked(client: httpx.Client, method: str, path: str, values: dict[str, str]) -> httpx.Response:
    for name in re.findall(r"{(\w+)[^}]*}", path):
        path = re.sub(rf"{{{name}[^}}]*}}", values.get(name, "1"), path)
    body = BODIES.get(path.rpartition("/")[2], {}) if method in ("POST", "PUT", "PATCH") else None
    return client.request(method, path, json=body)


def test_every_route_asks_for_a_key(app: FastAPI, two: tuple[httpx.Client, httpx.Client, str]) -> None:
    with client_of(str(two[0].base_url)) as nobody:
        for method, path in routes(app):
            response = asked(nobody, method, path, {})
            if path in OPEN:
                assert response.status_code in (200, 503), (method, path)
                continue
            assert response.status_code == 401, (method, path)
            assert response.headers["www-authenticate"].startswith("Bearer"), (method, path)
        for path in ("/v1/nothing", "/nothing", "/healthz/", "/openapi.json/", "/HEALTHZ"):
            assert nobody.get(path).status_code == 401, path


def test_the_jobs_of_another_key_are_like_jobs_that_never_were(
    app: FastAPI, two: tuple[httpx.Client, httpx.Client, str]
) -> None:
    _, other, job_id = two
    of_jobs = [(method, path) for method, path in routes(app) if re.search(r"{(job_id|video_id)", path)]
    assert len(of_jobs) >= 12
    for method, path in of_jobs:
        theirs = asked(other, method, path, {"job_id": job_id, "video_id": job_id, "step": "1", "attempt": "1"})
        never = asked(other, method, path, {"job_id": UNKNOWN, "video_id": UNKNOWN, "step": "1", "attempt": "1"})
        assert (method, path, theirs.status_code) == (method, path, 404)
        assert theirs.text.replace(job_id, "") == never.text.replace(UNKNOWN, "")
        assert theirs.headers.get("content-type") == never.headers.get("content-type")


def test_the_jobs_of_another_key_are_in_no_list(
    app: FastAPI, two: tuple[httpx.Client, httpx.Client, str]
) -> None:
    first, other, job_id = two
    assert [job["id"] for job in first.get("/v1/jobs").json()["data"]] == [job_id]
    assert other.get("/v1/jobs").json()["data"] == []
    assert other.get("/v1/jobs", params={"after": job_id}).status_code == 404
    lists = {
        path for method, path in routes(app) if method == "GET" and path.startswith("/v1/") and "{" not in path
    }
    for path in sorted(lists):
        assert job_id not in other.get(path).text, path
    assert first.get(f"/v1/jobs/{job_id}").json()["state"] == "succeeded"


def test_one_idempotency_key_is_another_job_for_another_key(
    two: tuple[httpx.Client, httpx.Client, str],
) -> None:
    headers = {"Idempotency-Key": "shared"}
    asked_for = submission(seed=5)
    ids = [client.post("/v1/jobs", json=asked_for, headers=headers).json()["id"] for client in two[:2]]
    assert ids[0] != ids[1]
    for client, own in zip(two[:2], ids, strict=True):
        assert client.delete(f"/v1/jobs/{own}").status_code == 204


def test_an_upload_is_its_own_keys_alone(two: tuple[httpx.Client, httpx.Client, str]) -> None:
    first, other, _ = two
    uploaded = first.post("/v1/artifacts", content=maze(seed=8)[0], headers={"Content-Type": "image/png"}).json()
    asked_for = {**submission(seed=8), "picture": uploaded["id"]}
    theirs = other.post("/v1/jobs", json=asked_for)
    never = other.post("/v1/jobs", json={**asked_for, "picture": "0" * 64 + ".png"})
    assert theirs.status_code == never.status_code == 422
    assert theirs.json()["code"] == never.json()["code"]
    own = first.post("/v1/jobs", json=asked_for)
    assert own.status_code == 202
    assert first.delete(f"/v1/jobs/{own.json()['id']}").status_code == 204


def test_openai_clients_are_refused_in_their_own_words(two: tuple[httpx.Client, httpx.Client, str]) -> None:
    with client_of(str(two[0].base_url)) as nobody:
        refused = nobody.get("/v1/videos")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert refused.json()["error"]["type"] == "authentication_error"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer  clp_wrong",
        "Bearer clp_wrong",
        "Basic Y2xwOg==",
        "clp_x",
        "Bearer clp_\xff\xfe",
        "Bearer " + "x" * 10_000,
        "Bearer a b",
    ],
)
def test_what_is_no_key_is_refused_with_a_remedy(
    two: tuple[httpx.Client, httpx.Client, str], header: str
) -> None:
    with client_of(str(two[0].base_url)) as nobody:
        response = nobody.get("/v1/jobs", headers=[(b"Authorization", header.encode("latin-1"))])  # pyright: ignore[reportArgumentType]
    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] in ("no_key", "wrong_key")


def test_two_headers_are_no_key(two: tuple[httpx.Client, httpx.Client, str]) -> None:
    right = two[0].headers["authorization"]
    with client_of(str(two[0].base_url)) as nobody:
        twice = [("Authorization", right), ("Authorization", right)]
        assert nobody.get("/v1/jobs", headers=twice).status_code == 401
        assert nobody.get("/v1/jobs", headers={"Authorization": right.replace("Bearer", "bEARER")}).is_success


def test_a_new_key_works_at_once_and_a_revoked_one_no_more(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    key, secret = create(site.database, "lab")
    until_status(client, "/v1/jobs", 401)
    assert client.get("/v1/jobs", headers=bearer(secret)).json()["data"] == []
    assert client.get(f"/v1/jobs/{job_id}", headers=bearer(secret)).status_code == 404
    _, another = create(site.database, "other", adopt=True)
    time.sleep(0.3)
    assert client.get(f"/v1/jobs/{job_id}", headers=bearer(another)).status_code == 200
    revoke(site.database, key.id)
    until_status(client, "/v1/jobs", 401, secret)
    assert client.get("/v1/jobs", headers=bearer(another)).status_code == 200
    assert client.get("/healthz").status_code == 200


def test_when_the_last_key_is_revoked_nobody_is_let_in(site: Site, client: httpx.Client) -> None:
    key, _ = create(site.database, "lab")
    revoke(site.database, key.id)
    until_status(client, "/v1/jobs", 401)


def until_status(client: httpx.Client, path: str, status: int, secret: str = "") -> None:
    limit = time.monotonic() + 20
    while (found := client.get(path, headers=bearer(secret) if secret else {}).status_code) != status:
        assert time.monotonic() < limit, found
        time.sleep(0.1)


def test_an_api_that_was_started_with_keys_required_is_closed_without_any(site: Site) -> None:
    with served(create_app(site, keys_required=True)) as address, client_of(address) as client:
        assert client.get("/v1/jobs").status_code == 401
        assert list(client.get("/readyz").json()["missing"]) == ["reason", "render"], "anybody may ask"


def test_events_end_soon_after_their_key_was_revoked(
    site: Site, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.hub.HEARTBEAT_SECONDS", 0.1)
    key, secret = create(site.database, "lab")
    with a_client(address, secret) as client:
        job_id = posted(client)
        with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
            lines = response.iter_lines()
            next(lines)
            revoke(site.database, key.id)
            rest = list(lines)
    assert ": still there" in rest
    assert not any("deleted" in line for line in rest)


def test_a_read_asks_the_database_for_no_key(site: Site, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.access.FRESH_SECONDS", 60.0)
    _, secret = create(site.database, "lab")
    with a_client(address, secret) as client:
        assert client.get("/v1/jobs").is_success
        with site.database.write() as connection:
            connection.exec_driver_sql("ALTER TABLE api_keys RENAME TO hidden")
        assert client.get("/v1/jobs").is_success


# Limits


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Site]:
    """A site that allows 5 requests a minute and 2 jobs at a time by default."""
    with a_site(tmp_path) as site:
        serving = Serving(requests_per_minute=5, concurrent_jobs=2)
        settings = replace(site.composition.settings, service=serving)
        yield replace(site, composition=replace(site.composition, settings=settings))


def test_requests_a_minute_are_counted_over_all_processes(limited: Site) -> None:
    _, secret = create(limited.database, "lab")
    _, quicker = create(limited.database, "quicker", requests_per_minute=50)
    with (
        served(create_app(limited)) as one,
        served(create_app(limited)) as another,
        a_client(one, secret) as first,
        a_client(another, secret) as second,
    ):
        answers = [client.get("/v1/worlds") for _ in range(3) for client in (first, second)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429]
        refused = answers[-1]
        assert refused.headers["content-type"] == "application/problem+json"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.headers["ratelimit-policy"] == '"minute";q=5;w=60'
        assert refused.json()["code"] == "too_many_requests"
        assert first.get("/healthz").is_success
        with a_client(one, quicker) as other:
            assert all(other.get("/v1/worlds").is_success for _ in range(10))


def test_requests_are_counted_while_the_broker_is_away(limited: Site) -> None:
    _, secret = create(limited.database, "lab")
    with served(create_app(limited)) as address, a_client(address, secret) as client:
        assert client.get("/v1/worlds").is_success
        limited.messages._redis.shutdown(nosave=True)
        statuses = [client.get("/v1/worlds").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]


def test_an_api_starts_and_counts_without_a_broker(limited: Site) -> None:
    _, secret = create(limited.database, "lab")
    limited.messages._redis.shutdown(nosave=True)
    with served(create_app(limited)) as address, a_client(address, secret) as client:
        assert client.get("/v1/worlds").is_success


def test_a_watcher_is_one_request(limited: Site) -> None:
    _, secret = create(limited.database, "lab")
    with served(create_app(limited)) as address, a_client(address, secret) as client:
        job_id = posted(client)
        worker = threading.Thread(target=work, args=[limited])
        with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
            worker.start()
            assert sum(line.startswith("id:") for line in response.iter_lines()) > 5
        worker.join()
        statuses = [client.get("/v1/worlds").status_code for _ in range(4)]
    assert statuses == [200] * 3 + [429]


def test_jobs_at_a_time_are_limited_for_every_way_to_make_one(limited: Site) -> None:
    _, secret = create(limited.database, "lab", requests_per_minute=1000)
    with served(create_app(limited)) as address, a_client(address, secret) as client:
        first = posted(client, max_steps=1)
        client.post(f"/v1/jobs/{first}/cancel")
        second, third = posted(client, seed=4), posted(client, seed=5)
        for path, body in (
            ("/v1/jobs", submission(seed=6)),
            (f"/v1/jobs/{first}/retry", {"max_steps": 2}),
            (f"/v1/jobs/{first}/fork", {"step": 1}),
        ):
            refused = client.post(path, json=body)
            assert refused.status_code == 429, (path, refused.text)
            assert refused.headers["retry-after"]
            assert refused.json()["code"] == "too_many_jobs"
        png, prompt = maze(seed=7)
        form = {"prompt": prompt, "model": "default"}
        refused = client.post("/v1/videos", data=form, files={"input_reference": ("a.png", png, "image/png")})
        assert refused.status_code == 429, refused.text
        assert refused.json()["error"]["code"] == "too_many_jobs"
        client.post(f"/v1/jobs/{second}/cancel")
        assert client.post(f"/v1/jobs/{first}/fork", json={"step": 1}).status_code == 202
        assert client.get(f"/v1/jobs/{third}").json()["state"] == "queued"


def test_two_api_processes_cannot_both_take_the_last_job(limited: Site) -> None:
    _, secret = create(limited.database, "lab", requests_per_minute=1000, concurrent_jobs=1)
    with served(create_app(limited)) as one, served(create_app(limited)) as another:

        def ask(number: int) -> int:
            with a_client((one, another)[number % 2], secret) as client:
                return client.post("/v1/jobs", json=submission(seed=number)).status_code

        with ThreadPoolExecutor(6) as pool:
            statuses = sorted(pool.map(ask, range(6)))
    assert statuses == [202] + [429] * 5


def test_wrong_keys_are_limited_and_right_ones_from_the_same_address_are_not(
    site: Site, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.access.WRONG_KEYS_PER_MINUTE", 3)
    _, secret = create(site.database, "lab")
    with client_of(address) as client:
        statuses = [client.get("/v1/jobs", headers=bearer(f"clp_{each}")).status_code for each in range(8)]
        assert statuses[:3] == [401] * 3
        assert 429 in statuses  # a new minute may have begun in between
        assert client.get("/v1/jobs", headers=bearer(secret)).status_code == 200


# Without keys


@pytest.fixture(scope="module")
def open_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Of a site without keys."""
    with (
        a_site(tmp_path_factory.mktemp("open")) as site,
        served(create_app(site)) as address,
        client_of(address) as client,
    ):
        yield client


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.2:80", "[::1]", "[::1]:80"])
def test_without_keys_it_answers_to_loopback_names(open_client: httpx.Client, host: str) -> None:
    assert open_client.get("/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "[::2]",
        "[::1]evil.example",
        "[::1]:80evil",
        "[::1",
        "x@",
    ],
)
def test_without_keys_a_name_that_was_pointed_here_is_not_answered(open_client: httpx.Client, host: str) -> None:
    for path in ("/v1/jobs", "/metrics"):
        refused = open_client.get(path, headers={"Host": host})
        assert refused.status_code == 421, refused.text
        assert refused.json()["code"] == "other_host"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[bad"},
        {"Origin": "http://localhost:1"},  # another server of this machine
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1"},
    ],
)
def test_without_keys_no_page_of_another_origin_changes_anything(
    open_client: httpx.Client, headers: dict[str, str]
) -> None:
    refused = open_client.post("/v1/jobs", json=submission(), headers=headers)
    assert refused.status_code == 403
    assert refused.json()["code"] == "other_origin"
    assert open_client.get("/v1/jobs", headers=headers).json()["data"] == []


def test_without_keys_its_own_page_and_programs_may_change_things(open_client: httpx.Client) -> None:
    own = {"Origin": f"http://{open_client.base_url.host}:{open_client.base_url.port}"}
    for headers in ({}, own, {**own, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert open_client.post("/v1/worlds/maze/sample", headers=headers).status_code == 200


def test_a_key_opens_the_door_to_any_page_that_holds_it(two: tuple[httpx.Client, httpx.Client, str]) -> None:
    headers = {"Origin": "https://app.example", "Host": "cliploop.example"}
    assert two[0].post("/v1/worlds/maze/sample", headers=headers).status_code == 200


def test_a_page_of_another_origin_is_given_no_leave_to_read(client: httpx.Client) -> None:
    for method in ("GET", "OPTIONS", "POST"):
        answer = client.request(method, "/v1/jobs", headers={"Origin": "http://evil.example"})
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")], method
