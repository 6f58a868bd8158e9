"""What the functions of a worker are given: the site, their name, warm backends, and whether the process ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from cliploop.site import Site
from workers.backends import Backends, here
from workers.limits import Limits
from workers.turns import Turns


class HandBack(BaseException):
    """The process was asked to end: whatever is under way is given back. Nothing catches it but the worker."""


@dataclass
class Desk:
    """One worker's. `name` is the holder of its leases."""

    site: Site
    name: str
    limits: Limits = field(default_factory=Limits)
    ending: bool = False
    several: bool = False  # clips under way at a time

    def __post_init__(self) -> None:
        self.turns = Turns(self.stop_if_ending) if self.several else None
        self.backends = Backends(self.site, self.limits, self.turns.render if self.turns else here)

    def stop_if_ending(self) -> None:
        """For places that are passed often: Python may have swallowed the first HandBack, in a finaliser."""
        if self.ending:
            raise HandBack
