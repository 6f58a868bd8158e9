"""What Prometheus is told: of the whole service, read from the truth and the queues when it asks.

What was counted of a job that is deleted later stays counted, as long as this process lives.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable
from service.crew import ROLES as ROLES_OF_WORKERS
from storage import webhooks
from storage.beats import role_of
from storage.jobs import State
from storage.journal import Entry, read_entries
from storage.leases import num_held
from storage.submissions import all_last_sequences, counts, oldest_queued

ROLES = {
    "plan": "planner",
    "verdict": "verifier",
    "route": "router",
    "select": "selector",
    "assessment": "assessor",
}
# What happens once and leaves no trace in the truth: counted in the broker by whoever does it.
COUNTED = {
    "reaped": "Jobs that nobody worked on and that were taken up again.",
    "swept": "Files that nobody held and that were removed.",
}
_TRY = re.compile(r"(\w+)/try/\d+$")
_CLIP = re.compile(r"attempt/(\d+)/clip$")


def registry(site: Site) -> CollectorRegistry:
    """A registry of this site's metrics alone."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Told(site))
    return registry


class _Told(Collector):
    """Reads on in every journal at each scrape."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._seen: dict[str, int] = {}
        self._begun: set[str] = set()  # what stands in a journal before its job begins is inherited
        self._lock = threading.Lock()
        self.attempts: Counter[str] = Counter()  # by their number in the step
        self.failed: Counter[str] = Counter()  # by kind
        self.rejects: Counter[str] = Counter()  # by reason
        self.calls: Counter[str] = Counter()  # by role
        self.errors: Counter[tuple[str, str]] = Counter()  # by role and kind
        self.tokens: Counter[str] = Counter()  # by role
        self.seconds: Counter[str] = Counter()  # by role
        self.usd = 0.0

    def describe(self) -> list[Metric]:
        """Nothing is asked for before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            self._read_on()
            yield from self._counters()
        yield from self._gauges()

    def _read_on(self) -> None:
        latest = all_last_sequences(self._site.database)
        for job_id, sequence in latest.items():
            if sequence > self._seen.get(job_id, 0):
                for entry in read_entries(self._site.database, job_id, self._seen.get(job_id, 0)):
                    self._note(job_id, entry)
                    self._seen[job_id] = entry.sequence
        for gone in self._seen.keys() - latest.keys():
            del self._seen[gone]
            self._begun.discard(gone)

    def _note(self, job_id: str, entry: Entry) -> None:
        if entry.kind != "state":
            if job_id in self._begun:
                self._count(entry)
        elif entry.value["state"] != "queued":
            self._begun.add(job_id)

    def _count(self, entry: Entry) -> None:
        value = entry.value
        spend: dict[str, Any] = value.get("spend") or {}
        tried, clip = _TRY.search(entry.key), _CLIP.search(entry.key)
        if clip is not None:
            self.attempts[clip[1]] += 1
            if entry.kind == "failure":
                out = "out of memory" in str(value["message"]).lower()
                self.failed["out_of_memory" if out else "other"] += 1
            self._spend("generator", spend)
        elif tried is not None:
            role = ROLES.get(tried[1], tried[1])
            self.calls[role] += int(spend.get("vlm_calls", 0))
            self.tokens[role] += int(spend.get("vlm_tokens", 0))
            for kind in ("unreadable", "blocked"):
                self.errors[role, kind] += bool(value.get(kind))
            self._spend(role, spend)
        elif entry.key.endswith("/verdict") and value["value"]["decision"] == "reject":
            self.rejects[value["value"]["failure"] or "other"] += 1
        elif entry.key.endswith("/check") and value["failure"]:
            self.rejects[value["failure"]] += 1

    def _spend(self, role: str, spend: dict[str, Any]) -> None:
        self.seconds[role] += spend.get("wall_seconds", 0.0)
        self.usd += spend.get("usd", 0.0)

    def _counters(self) -> Iterator[Metric]:
        yield _counter(
            "attempts", "Clips that were asked for, by their number in the step.", "attempt", self.attempts
        )
        yield _counter("failed_renders", "Renders that were lost.", "kind", self.failed)
        yield _counter("rejects", "Clips that were rejected.", "reason", self.rejects)
        yield _counter("vlm_calls", "Asks of a model.", "role", self.calls)
        yield _counter("vlm_tokens", "Tokens of these asks.", "role", self.tokens)
        yield _counter("seconds", "Time spent in each role.", "role", self.seconds)
        errors = CounterMetricFamily(
            "cliploop_vlm_errors", "Replies that were unreadable or withheld.", labels=["role", "kind"]
        )
        for labels, count in self.errors.items():
            errors.add_metric(labels, count)
        yield errors
        yield CounterMetricFamily("cliploop_usd", "Dollars spent.", value=self.usd)

    def _gauges(self) -> Iterator[Metric]:
        database = self._site.database
        jobs = counts(database)
        yield _gauge("jobs", "Jobs by state.", "state", {state: jobs.get(state, 0) for state in get_args(State)})
        oldest = oldest_queued(database)
        age = 0.0 if oldest is None else max(0.0, time.time() - oldest)
        yield GaugeMetricFamily("cliploop_queued_seconds", "Age of the oldest queued job.", value=age)
        active = {role: num_held(database, prefix) for role, prefix in (("reason", "job/"), ("render", "clip/"))}
        yield _gauge("active", "Jobs and clips that somebody works on.", "role", active)
        deliveries = webhooks.counts(database)
        yield _gauge(
            "webhook_deliveries", "News of the jobs that there are, by how it fares.", "state", deliveries
        )
        try:
            counted = self._site.messages.counted()
            depths = self._site.messages.depths()
            ages = self._site.messages.ages()
            living = Counter(map(role_of, self._site.messages.crew()))
        except BackendUnavailable:
            depths, living, counted, ages = None, Counter[str](), dict[str, int](), dict[str, float]()
        up = float(depths is not None)
        yield GaugeMetricFamily("cliploop_broker_up", "Whether the broker can be reached.", value=up)
        yield _gauge("queue_depth", "Messages that wait.", "queue", depths or {})
        yield _gauge("queue_seconds", "Age of the oldest message that waits.", "queue", ages)
        alive = {role: living[role] for role in ROLES_OF_WORKERS}
        yield _gauge(
            "workers", "Worker processes that live, as far as the broker says: 0 without it.", "role", alive
        )
        if depths is not None:  # else it is not known
            for name, about in COUNTED.items():
                yield CounterMetricFamily(f"cliploop_{name}", about, value=counted.get(name, 0))


def _counter(name: str, about: str, label: str, counted: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"cliploop_{name}", about, labels=[label])
    for value, count in counted.items():
        family.add_metric([value], count)
    return family


def _gauge(name: str, about: str, label: str, values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"cliploop_{name}", about, labels=[label])
    for value, count in values.items():
        family.add_metric([str(value)], count)
    return family
