"""A submission's webhook: checked when it comes, told of the job's end, shown without its secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from standardwebhooks.webhooks import Webhook as Signer

from cliploop.site import Site
from service.app import create_app
from storage.delivering import Deliverer, webhook_rules
from storage.webhooks import new_secret
from tests.service.asking import maze, submission, work
from tests.service.serving import client_of, served
from tests.storage.receivers import Receiver, receiving
from tests.workers.sites import a_site

PRIVATE = {"CLIPLOOP_SERVICE__PRIVATE_WEBHOOKS": "true"}
SECRET = new_secret()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("site"), PRIVATE) as site:
        yield site


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    with served(create_app(site)) as address, client_of(address) as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def deliver(site: Site) -> None:
    deliverer = Deliverer(site.database, webhook_rules(private=True))
    while deliverer.look():
        deliverer.wait(30)


def submitted(client: httpx.Client, webhook: dict[str, Any], **headers: str) -> dict[str, Any]:
    response = client.post("/v1/jobs", json={**submission(max_steps=1), "webhook": webhook}, headers=headers)
    assert response.status_code == 202, response.text
    return response.json()


def test_a_job_tells_its_webhook_how_it_ended_with_the_secret_that_was_made_for_it(
    site: Site, client: httpx.Client, receiver: Receiver
) -> None:
    job = submitted(client, {"url": f"{receiver.url}/news"})
    assert job["webhook"] == {
        "url": f"{receiver.url}/news",
        "delivered": 0,
        "pending": 0,
        "given_up": 0,
        "last_error": None,
        "next_at": None,
    }
    work(site)
    assert client.get(f"/v1/jobs/{job['id']}").json()["webhook"]["pending"] == 1
    deliver(site)
    ((path, headers, body),) = receiver.got
    told = Signer(job["webhook_secret"]).verify(body, headers)
    shown = client.get(f"/v1/jobs/{job['id']}").json()
    assert path == "/news"
    assert (told["type"], told["data"]["id"]) == (f"job.{shown['state']}", job["id"])
    assert {name: shown[name] for name in told["data"]} == told["data"]
    assert shown["webhook"]["delivered"] == 1, shown["webhook"]
    assert "webhook_secret" not in shown


def test_a_secret_is_shown_nowhere_after_its_submission(
    site: Site, client: httpx.Client, receiver: Receiver
) -> None:
    made = submitted(client, {"url": receiver.url})
    brought = submitted(client, {"url": receiver.url, "secret": SECRET})
    assert "webhook_secret" not in brought
    client.post(f"/v1/jobs/{made['id']}/cancel")
    work(site)
    for job, secret in ((made, made["webhook_secret"]), (brought, SECRET)):
        where = f"/v1/jobs/{job['id']}"
        for path in (where, f"{where}/trajectory", f"{where}/events", "/v1/jobs"):
            assert secret not in client.get(path).text
    deliver(site)
    assert {
        Signer(SECRET).verify(body, headers)["data"]["state"] for _, headers, body in by(receiver, brought)
    } == {client.get(f"/v1/jobs/{brought['id']}").json()["state"]}


def by(receiver: Receiver, job: dict[str, Any]) -> list[tuple[str, dict[str, str], bytes]]:
    return [got for got in receiver.got if job["id"] in got[1]["webhook-id"]]


def test_a_repeated_submission_tells_its_made_secret_again(client: httpx.Client, receiver: Receiver) -> None:
    headers = {"Idempotency-Key": "hooked"}
    first = submitted(client, {"url": receiver.url}, **headers)
    again = submitted(client, {"url": receiver.url}, **headers)
    assert (again["id"], again["webhook_secret"]) == (first["id"], first["webhook_secret"])
    other = {**submission(max_steps=1), "webhook": {"url": f"{receiver.url}/other"}}
    assert client.post("/v1/jobs", json=other, headers=headers).status_code == 409


def test_a_form_names_a_webhook_too(client: httpx.Client, receiver: Receiver) -> None:
    png, prompt = maze()
    headers = {"Idempotency-Key": "form"}
    fields = {"prompt": prompt, "generator": "simulated-perfect", "max_steps": "1", "seed": "3"}
    hook = {"webhook_url": receiver.url, "webhook_secret": SECRET}
    form = client.post("/v1/jobs", data={**fields, **hook}, files={"picture": png}, headers=headers)
    assert form.status_code == 202, form.text
    assert form.json()["webhook"]["url"] == receiver.url
    same = submitted(client, {"url": receiver.url, "secret": SECRET}, **headers)
    assert same["id"] == form.json()["id"]
    alone = client.post("/v1/jobs", data={**fields, "webhook_secret": SECRET}, files={"picture": png})
    assert alone.status_code == 422
    assert "webhook_url" in alone.json()["detail"]


def test_a_fork_tells_its_parents_webhook_unless_it_names_another(
    site: Site, client: httpx.Client, receiver: Receiver
) -> None:
    parent = submitted(client, {"url": f"{receiver.url}/first", "secret": SECRET})
    work(site)
    child = client.post(f"/v1/jobs/{parent['id']}/fork", json={"step": 1}).json()
    assert child["webhook"]["url"] == f"{receiver.url}/first"
    assert "webhook_secret" not in child
    other = {"step": 1, "webhook": {"url": f"{receiver.url}/second"}}
    sibling = client.post(f"/v1/jobs/{parent['id']}/fork", json=other).json()
    assert sibling["webhook"]["url"] == f"{receiver.url}/second"
    assert sibling["webhook_secret"].startswith("whsec_")
    work(site)
    deliver(site)
    assert [path for path, _, _ in by(receiver, child)] == ["/first"]
    assert [path for path, _, _ in by(receiver, sibling)] == ["/second"]


@pytest.mark.parametrize(
    "webhook",
    [
        {},
        {"url": ""},
        {"url": "ftp://example.org/"},
        {"url": "http://169.254.169.254/"},
        {"url": "http://user:hidden@example.org/"},
        {"url": "http://example.org/" + "a" * 3000},
        {"url": "https://example.org/", "secret": "hidden"},
        {"url": "https://example.org/", "secret": "whsec_aGlkZGVu"},
        {"url": "https://example.org/", "colour": "red"},
        "https://example.org/",
    ],
)
def test_webhooks_that_cannot_be_told_are_refused_and_not_repeated(client: httpx.Client, webhook: Any) -> None:
    before = len(client.get("/v1/jobs?limit=100").json()["data"])
    response = client.post("/v1/jobs", json={**submission(), "webhook": webhook})
    assert response.status_code == 422, response.text
    assert "webhook" in response.json()["detail"]
    assert "hidden" not in response.text
    assert len(client.get("/v1/jobs?limit=100").json()["data"]) == before


def test_a_secret_in_a_form_is_not_repeated_either(client: httpx.Client) -> None:
    png, prompt = maze()
    fields = {"prompt": prompt, "webhook_url": "https://example.org/", "webhook_secret": "whsec_hidden"}
    response = client.post("/v1/jobs", data=fields, files={"picture": png})
    assert response.status_code == 422
    assert "hidden" not in response.text


def test_private_addresses_are_refused_where_the_operator_does_not_allow_them(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with (
        a_site(tmp_path_factory.mktemp("public")) as site,
        served(create_app(site)) as address,
        client_of(address) as client,
    ):
        for url in ("http://127.0.0.1:9/", "https://localhost/", "http://10.0.0.1/", "http://[::1]/"):
            refused = client.post("/v1/jobs", json={**submission(), "webhook": {"url": url}})
            assert refused.status_code == 422
            assert refused.json()["code"] == "webhook"
