"""After delete and sweep nothing of a job is left in the whole data folder, and what a fork shares survives."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from sqlalchemy import func, select, update

from cliploop.site import Site
from storage import references
from storage.journal import read_entries
from storage.sweeping import sweep_and_tell
from storage.tables import (
    ArtifactRow,
    DeliveryRow,
    EntryRow,
    IdempotencyRow,
    JobRow,
    LeaseRow,
    ReferenceRow,
    SubmissionRow,
    UploadRow,
    WebhookRow,
)
from tests.service.asking import posted, work

TABLES = (ArtifactRow, DeliveryRow, EntryRow, IdempotencyRow, JobRow, ReferenceRow, SubmissionRow, UploadRow)


def swept(site: Site) -> None:
    """As it is an hour and more later."""
    with site.database.write() as connection:
        since = ArtifactRow.unreferenced_since
        connection.execute(update(ArtifactRow).values(unreferenced_since=since - 10_000))
    site.sweep().whole()


def test_the_metrics_count_what_was_swept(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    work(site)
    with site.database.read() as connection:
        held = connection.execute(select(func.count()).select_from(ReferenceRow)).scalar_one()
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    with site.database.write() as connection:
        since = ArtifactRow.unreferenced_since
        connection.execute(update(ArtifactRow).values(unreferenced_since=since - 10_000))
    assert "cliploop_swept_total 0.0" in client.get("/metrics").text
    sweep_and_tell(site.sweep(), "sweeper", messages=site.messages)
    assert f"cliploop_swept_total {held}.0" in client.get("/metrics").text


def files(site: Site, folder: Path) -> set[str]:
    """Every file of the data folder but the database."""
    data = folder / "data"
    found = {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("cliploop.sqlite")}


def seen(client: httpx.Client, job_id: str) -> None:
    """Have everything made that is made when somebody asks for it."""
    for path in ("video", "contact-sheet", "steps/1/attempts/1/clip"):
        assert client.get(f"/v1/jobs/{job_id}/{path}").status_code == 200, path


def test_nothing_of_a_deleted_job_is_left_but_what_its_fork_shares(
    site: Site, client: httpx.Client, tmp_path: Path
) -> None:
    assert files(site, tmp_path) == set()
    parent = posted(client)
    work(site)
    seen(client, parent)
    history = [json.dumps(entry.value) for entry in read_entries(site.database, parent)]
    forked = client.post(f"/v1/jobs/{parent}/fork", json={"step": 2})
    assert forked.status_code == 202, forked.text
    child = forked.json()["id"]
    work(site)
    assert [json.dumps(entry.value) for entry in read_entries(site.database, parent)] == history
    seen(client, child)
    video = client.get(f"/v1/jobs/{child}/video").content
    assert client.delete(f"/v1/jobs/{parent}").status_code == 204
    swept(site)
    with site.database.read() as connection:
        held = set(connection.execute(select(ReferenceRow.artifact)).scalars())
        entries = [entry.value for entry in read_entries(site.database, child)]
    named = {key for value in entries for key in references.keys_in(value)}
    assert files(site, tmp_path) == {f"artifacts/{key}" for key in held}
    assert named <= held
    seen(client, child)
    assert client.get(f"/v1/jobs/{child}/video").content == video
    assert client.delete(f"/v1/jobs/{child}").status_code == 204
    swept(site)
    assert files(site, tmp_path) == set()
    with site.database.read() as connection:
        left = {
            table.__tablename__: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (*TABLES, WebhookRow)
        }
        leases = set(connection.execute(select(LeaseRow.name)).scalars())
    assert set(left.values()) == {0}, left
    assert not [name for name in leases if name.startswith(("job/", "clip/"))]
