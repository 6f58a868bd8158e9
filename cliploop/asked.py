"""What a local run is about: the job and its id, a folder name for it, the real time. Opens no journal."""

from __future__ import annotations

import re
import time
import unicodedata
from dataclasses import dataclass

from orchestrator.records import Policy, Task
from storage.digest import digest


@dataclass(frozen=True)
class LocalJob:
    """What is to be done. `png` is the normalised picture that `task.picture` names."""

    task: Task
    policy: Policy
    png: bytes
    slug: str

    @property
    def id(self) -> str:
        """A hash of picture, prompt and resolved policy, 12 hex digits."""
        return digest({"task": self.task, "policy": self.policy})[:12]


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """Seconds, monotonic."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def slug(text: str) -> str:
    """A folder name of the first words: ASCII letters, digits and hyphens, at most 40 characters."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", ascii_text)[:6]
    return "-".join(words)[:40].strip("-") or "job"
