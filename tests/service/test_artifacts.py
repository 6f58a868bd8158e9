"""POST /v1/artifacts: a picture that waits for its job, and jobs that name it."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import httpx
import pytest
from PIL import Image

from cliploop.site import Site
from orchestrator.errors import TaskRejected
from service.app import create_app
from service.pictures import named_picture
from storage.jobs import load_job
from storage.references import is_upload
from tests.service.asking import maze, posted, submission, work
from tests.service.serving import client_of, served
from tests.workers.sites import a_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("site"), {"CLIPLOOP_SERVICE__MAX_UPLOAD_MIB": "2"}) as site:
        yield site


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    with served(create_app(site)) as address, client_of(address) as client:
        yield client


def sent(client: httpx.Client, content: bytes, kind: str = "application/octet-stream") -> httpx.Response:
    return client.post("/v1/artifacts", content=content, headers={"Content-Type": kind})


def test_a_job_of_an_uploaded_picture_is_the_same_task_as_one_with_the_picture_inside(
    site: Site, client: httpx.Client
) -> None:
    png, _ = maze()
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).save(buffer, "BMP")
    response = sent(client, buffer.getvalue(), "image/bmp")
    assert response.status_code == 201, response.text
    artifact = response.json()
    assert artifact["size"] == {"width": 128, "height": 128}
    assert artifact["bytes"] == len(site.artifacts.read(artifact["id"]))
    assert artifact["expires_at"] - time.time() == pytest.approx(24 * 3600, abs=60)
    inside = posted(client)
    named = client.post("/v1/jobs", json={**submission(), "picture": artifact["id"]})
    assert named.status_code == 202, named.text
    assert load_job(site.database, named.json()["id"]).task == load_job(site.database, inside).task
    form = client.post("/v1/jobs", files={"prompt": (None, maze()[1]), "picture": (None, artifact["id"])})
    assert form.status_code == 202, form.text
    assert load_job(site.database, form.json()["id"]).task["picture"] == artifact["id"]
    work(site)
    assert client.get(f"/v1/jobs/{named.json()['id']}").json()["state"] == "succeeded"


def test_a_form_is_the_same_upload_as_a_plain_body_and_renews_it(site: Site, client: httpx.Client) -> None:
    png, _ = maze(5)
    first = sent(client, png, "image/png").json()
    again = client.post("/v1/artifacts", files={"file": ("../../etc/passwd", png, "text/html")})
    assert again.status_code == 201, again.text
    assert again.json()["id"] == first["id"]
    assert again.json()["expires_at"] >= first["expires_at"]


def test_an_upload_is_its_owners_alone(site: Site, client: httpx.Client) -> None:
    artifact = sent(client, maze(6)[0]).json()["id"]
    with site.database.read() as connection:
        assert is_upload(connection, "", artifact)
        assert not is_upload(connection, "somebody", artifact)
    assert named_picture(site, "", artifact)
    with pytest.raises(TaskRejected, match="no such artifact"):
        named_picture(site, "somebody", artifact)


def test_knowing_the_name_of_a_jobs_file_opens_nothing(site: Site, client: httpx.Client) -> None:
    picture = load_job(site.database, posted(client, seed=7)).task["picture"]
    for name in (picture, "0" * 64 + ".png"):
        refused = client.post("/v1/jobs", json={**submission(), "picture": name})
        assert refused.status_code == 422
        assert refused.json()["code"] == "picture_unknown"
    work(site)


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"", "application/octet-stream", 422, "empty"),
        (b"no picture", "image/png", 422, "not_a_picture"),
        (maze()[0][:200], "image/png", 422, "truncated"),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (20_000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0" + b"\0" * 64,
            "image/png",
            413,
            "too_many_pixels",
        ),
        (b"\0" * 3_000_000, "image/png", 413, "too_large"),
        (b"{}", "application/json", 415, "media_type"),
        (b"x", "multipart/form-data", 400, None),
    ],
)
def test_what_is_no_picture_is_refused(
    client: httpx.Client, content: bytes, kind: str, status: int, code: str | None
) -> None:
    response = sent(client, content, kind)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert code in (None, response.json()["code"])


def test_a_form_without_one_file_is_refused(client: httpx.Client) -> None:
    png, _ = maze()
    for files in ({"picture": png}, {"file": (None, "text")}, {"file": png, "other": png}):
        response = client.post("/v1/artifacts", files=files)
        assert response.status_code in (400, 422), response.text
