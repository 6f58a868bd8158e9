"""A job as the API shows it: answers are kept, and never older than the last commit of anybody."""

from __future__ import annotations

import httpx
import pytest

from cliploop.site import Site
from orchestrator.errors import JobNotFound
from service.crew import Crew
from service.tally import Tallies
from service.views import Shown, view
from storage.database import Database
from storage.jobs import JobState, change_state
from storage.submissions import cancel, find, remove
from tests.service.asking import posted
from tests.workers.sites import submitted


def shown(site: Site) -> Shown:
    return Shown(site, Tallies(lambda _job: None))


def test_an_answer_is_kept_while_nothing_is_committed(site: Site) -> None:
    job_id, views = submitted(site), shown(site)
    assert views.known(job_id, "") is None
    said = views.read(job_id, "")
    assert views.known(job_id, "") == said
    assert (
        said.decode() == view(site, Tallies(lambda _job: None), find(site.database, job_id, "")).model_dump_json()
    )


def test_an_answer_is_forgotten_with_the_next_commit_whoever_makes_it(site: Site) -> None:
    job_id, other, views = submitted(site), submitted(site), shown(site)
    views.read(other, "")
    cancel(site.database, job_id, None)
    assert views.known(other, "") is None, "it was second in the queue, it is first now"
    views.read(other, "")
    assert isinstance(site.database, Database)
    with Database(site.database.path, service=True) as elsewhere:
        cancel(elsewhere, other, None)
    assert views.known(other, "") is None


def test_what_is_committed_while_a_job_is_read_makes_the_answer_old(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, views = submitted(site), shown(site)

    def then_cancelled(*given: object) -> object:
        found = find(*given)  # pyright: ignore[reportArgumentType]
        cancel(site.database, job_id, None)
        return found

    monkeypatch.setattr("service.views.find", then_cancelled)
    assert b'"queued"' in views.read(job_id, "")
    assert views.known(job_id, "") is None


def test_a_job_that_stands_as_it_stood_is_not_put_together_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, views = submitted(site), shown(site)
    said = views.read(job_id, "")
    later = submitted(site)
    assert views.known(job_id, "") is None
    monkeypatch.setattr("service.views.view", None)
    assert views.read(job_id, "") == said
    assert views.known(job_id, "") == said
    monkeypatch.undo()
    assert b'"queue_position":1' in views.read(later, "")
    cancel(site.database, job_id, None)
    assert b'"cancelled"' in views.read(job_id, "")
    assert b'"queue_position":0' in views.read(later, "")


def test_an_answer_of_a_queued_job_is_kept_while_the_same_workers_live_also_where_none_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = Crew(site)
    job_id, views = submitted(site), Shown(site, Tallies(lambda _job: None, crew))
    alone = views.read(job_id, "")
    assert b'"waits_for":"a reason worker"' in alone
    assert views.known(job_id, "") == alone
    monkeypatch.setattr("service.crew.KEPT_SECONDS", 0.0)
    assert views.known(job_id, "") is None, "who lives is not known without asking"
    assert views.read(job_id, "") == alone
    site.messages.beat("reason@here:1")
    assert b'"waits_for":null' in views.read(job_id, "")
    site.messages.forget_beat("reason@here:1")
    assert views.read(job_id, "") == alone
    cancel(site.database, job_id, None)
    views.read(job_id, "")
    assert b'"cancelled"' in (views.known(job_id, "") or b""), "what has ended waits for nobody"


def test_a_running_job_is_seen_anew_each_time(site: Site) -> None:
    job_id, views = submitted(site), shown(site)
    with site.database.write() as connection:
        change_state(connection, job_id, JobState("running"), 1.0)
    views.read(job_id, "")
    assert views.known(job_id, "") is None


def test_an_answer_is_kept_for_its_owner_alone_and_not_for_a_job_that_is_gone(site: Site) -> None:
    job_id, views = submitted(site), shown(site)
    views.read(job_id, "")
    assert views.known(job_id, "somebody-else") is None
    with pytest.raises(JobNotFound):
        views.read(job_id, "somebody-else")
    cancel(site.database, job_id, None)
    views.read(job_id, "")
    remove(site.database, job_id, None)
    assert views.known(job_id, "") is None
    with pytest.raises(JobNotFound):
        views.read(job_id, "")


def test_a_read_after_a_write_shows_what_was_written(client: httpx.Client) -> None:
    job_ids = [posted(client, seed) for seed in (3, 4)]
    for job_id in job_ids:
        for _ in range(2):
            assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"
    assert client.get(f"/v1/jobs/{job_ids[1]}").json()["queue_position"] == 1
    client.post(f"/v1/jobs/{job_ids[0]}/cancel")
    assert client.get(f"/v1/jobs/{job_ids[0]}").json()["state"] == "cancelled"
    assert client.get(f"/v1/jobs/{job_ids[1]}").json()["queue_position"] == 0
    client.delete(f"/v1/jobs/{job_ids[0]}")
    assert client.get(f"/v1/jobs/{job_ids[0]}").status_code == 404
