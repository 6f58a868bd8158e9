"""What can be asked for, and whether the service can take it."""

from __future__ import annotations

import httpx

from cliploop.site import Site
from tests.service.asking import posted, work


def test_every_named_backend_can_be_listed_and_used(client: httpx.Client) -> None:
    named = {kind: client.get(f"/v1/{kind}").json()["data"] for kind in ("generators", "planners", "verifiers")}
    assert {each["name"] for each in named["generators"]} >= {"simulated", "simulated-perfect"}
    simulated = [each for each in named["generators"] if each["name"].startswith("simulated")]
    assert all(each["usable"] and each["capabilities"]["fps"] > 0 for each in simulated)
    remote = next(each for each in named["generators"] if each["name"] == "openai_videos")
    assert not remote["usable"]
    assert "base_url is missing" in remote["detail"]
    for kind in ("planners", "verifiers"):
        usable = {each["name"]: each["usable"] for each in named[kind]}
        assert usable["oracle"]
        assert not usable["openai_compatible"]
        lacking = next(each for each in named[kind] if each["name"] == "openai_compatible")
        assert "model is missing" in lacking["detail"]
    assert client.get("/v1/presets").json()["data"] == []


def test_a_sample_of_a_world_can_be_submitted_as_it_is(site: Site, client: httpx.Client) -> None:
    worlds = client.get("/v1/worlds").json()["data"]
    assert {"maze", "hanoi"} <= {world["name"] for world in worlds}
    asked = {"difficulty": "easy", "seed": 5, "side_px": 128}
    task = client.post("/v1/worlds/maze/sample", json=asked).json()
    assert client.post("/v1/worlds/maze/sample", json=asked).json() == task
    response = client.post("/v1/jobs", json={**task, "generator": "simulated-perfect", "max_steps": 8})
    assert response.status_code == 202
    work(site)
    assert client.get(response.headers["location"]).json()["state"] == "succeeded"


def test_wrong_samples_are_refused(client: httpx.Client) -> None:
    path = "/v1/worlds/maze/sample"
    assert "picture" in client.post(path).json()
    for wrong in ({"difficulty": "harder"}, {"seed": -1}, {"seed": "1"}, {"side_px": 10**6}, {"size": 3}, [1]):
        assert client.post(path, json=wrong).status_code == 422, wrong
    headers = {"Content-Type": "application/json"}
    assert client.post(path, content=b"{", headers=headers).status_code == 400
    missing = client.post("/v1/worlds/mase/sample")
    assert missing.status_code == 404
    assert "maze" in missing.json()["detail"]


def test_the_service_says_what_it_misses(site: Site, client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    site.messages.beat("reason@here:1")
    site.messages.beat("render@here:2", ["simulated"])
    assert client.get("/readyz").json() == {"ready": True, "missing": {}}
    site.messages._redis.shutdown(nosave=True)
    away = client.get("/readyz")
    assert away.status_code == 503
    assert list(away.json()["missing"]) == ["broker"]
    assert client.get("/healthz").status_code == 200
    assert "cliploop_broker_up 0.0" in client.get("/metrics").text


def test_metrics_count_what_the_journals_say(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, generator="simulated")
    site.messages.beat("render@here:7")
    told = client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    assert 'cliploop_jobs{state="queued"} 1.0' in told.text
    assert 'cliploop_queue_depth{queue="reason"} 1.0' in told.text
    assert 'cliploop_workers{role="render"} 1.0' in told.text
    assert 'cliploop_workers{role="reason"} 0.0' in told.text
    work(site)
    first, again = (client.get("/metrics").text for _ in range(2))
    assert 'cliploop_jobs{state="succeeded"} 1.0' in first
    assert 'cliploop_attempts_total{attempt="1"}' in first
    assert counters(first) == counters(again)
    calls = client.get(f"/v1/jobs/{job_id}").json()["spend"]["vlm_calls"]
    told_calls = [float(line.split()[1]) for line in first.splitlines() if line.startswith("cliploop_vlm_calls")]
    assert sum(told_calls) == calls


def counters(text: str) -> list[str]:
    return [line for line in text.splitlines() if "_total" in line]


def test_an_unknown_address_and_a_wrong_method_are_problem_documents(client: httpx.Client) -> None:
    for response, status in ((client.get("/v1/nothing"), 404), (client.put("/v1/jobs"), 405)):
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["status"] == status
