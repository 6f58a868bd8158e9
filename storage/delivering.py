"""Tells webhooks what they are to be told: signed, in order, again until it is taken; never in anybody's way.

Run by API processes, in threads of its own. What it knows is in the truth: a process that dies between a try and
its record leaves the delivery to the next one, which sends it again under the same id.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from standardwebhooks.webhooks import Webhook as Signer

from orchestrator.errors import CliploopError
from storage.addresses import Rules
from storage.exchange import Answer, Trust, exchange, public_trust
from storage.rounds import rounds
from storage.sql import SqlDatabase
from storage.webhooks import Due, any_due, claim, delivered, failed, host_of, unwanted

LOOK_SECONDS = 1.0
TRY_SECONDS = 15.0
UNDER_WAY = 8
FULL_SECONDS = 0.05  # between looks for room while there is more to do
STOP_SECONDS = 1.0  # tries that are still under way then are sent again by the next process
_GONE_STATUS = 410
_log = logging.getLogger(__name__)


def webhook_rules(*, private: bool = False) -> Rules:
    """Where webhooks may go; `private`: the operator's own networks too."""
    return Rules(("https", "http"), private=private)


def message(due: Due) -> bytes:
    """What is told, as JSON: the same at every try."""
    said = due.state
    data: dict[str, Any] = {"id": due.job_id, "object": "job", **{name: said.get(name) for name in _STATE}}
    data |= {"at": said.get("key") or None, "preset": due.preset}
    data |= {"parent_id": due.parent_id, "submitted_at": due.submitted_at}
    changed = datetime.fromtimestamp(due.changed_at, UTC).isoformat(timespec="milliseconds")
    told = {"type": f"job.{said['state']}", "timestamp": changed.replace("+00:00", "Z"), "data": data}
    return json.dumps(told, ensure_ascii=False).encode()


_STATE = ("state", "reason", "outcome", "message")


def signed(due: Due, body: bytes, now: datetime) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "cliploop",
        "webhook-id": due.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Signer(due.webhook.secret).sign(due.id, now, body.decode()),
    }


@dataclass
class Deliverer:
    """Tries what is due, several at once. `jitter()` gives 0 … 1."""

    database: SqlDatabase
    rules: Rules
    seconds: float = TRY_SECONDS
    trust: Trust = public_trust
    jitter: Callable[[], float] = random.random
    _busy: Counter[str] = field(default_factory=Counter[str], init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread], init=False)

    @property
    def room(self) -> int:
        """How many more may be tried now."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        return UNDER_WAY - len(self._threads)

    def look(self) -> int:
        """Begin to try what is due, as far as there is room; how many were begun. Raises CliploopError."""
        room = self.room
        if not room or not any_due(self.database):
            return 0
        with self._lock:
            busy = Counter(self._busy)
        begun = claim(self.database, room, busy)
        for due in begun:
            with self._lock:
                self._busy.update(due.places.keys())
            thread = threading.Thread(target=self._try, args=(due,), name=f"webhook {due.id}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return len(begun)

    def wait(self, seconds: float) -> None:
        """Until nothing is under way, or for that long."""
        limit = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, limit - time.monotonic()))

    def _try(self, due: Due) -> None:
        try:
            self._told(due)
        except CliploopError as error:  # the claim runs out, and it is tried again
            _log.warning("what came of webhook %s could not be recorded: %s", due.id, error)
        except Exception:
            _log.exception("webhook %s", due.id)
        finally:
            with self._lock:
                self._busy.subtract(due.places.keys())

    def _told(self, due: Due) -> None:
        try:
            answer = self.send(due)
        except CliploopError as error:
            why, retry_after = str(error), 0.0
        else:
            if 200 <= answer.status < 300:
                delivered(self.database, due)
                return
            if answer.status == _GONE_STATUS:
                unwanted(self.database, due)
                return
            why, retry_after = f"the receiver answered {answer.status}", pause_wanted(answer, datetime.now(UTC))
        _log.info("webhook %s at %s, try %d: %s", due.id, host_of(due.webhook.url), due.tries, why)
        failed(self.database, due, why, retry_after=retry_after, jitter=0.8 + 0.4 * self.jitter())

    def send(self, due: Due) -> Answer:
        """One try. Raises AddressRefused, NameUnknown, NoAnswer."""
        body = message(due)
        headers = signed(due, body, datetime.now(UTC))
        url, limit = due.webhook.url, self.seconds
        return exchange("POST", url, self.rules, headers=headers, content=body, seconds=limit, trust=self.trust)


def pause_wanted(answer: Answer, now: datetime) -> float:
    """What Retry-After asks for, in seconds; 0 where it asks for nothing that can be read."""
    said = answer.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        return max(0.0, (parsedate_to_datetime(said) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return 0.0


@contextlib.contextmanager
def delivering(deliverer: Deliverer) -> Generator[None]:
    """Threads that deliver while the block runs."""

    def deliver() -> float:
        return FULL_SECONDS if deliverer.look() or deliverer.room == 0 else LOOK_SECONDS

    try:
        with rounds("deliverer of webhooks", deliver, LOOK_SECONDS):
            yield
    finally:
        deliverer.wait(STOP_SECONDS)
