"""Keys of vendors' services: read from the environment when a call is made, and kept nowhere.

So no key is ever among settings, options, digests or records. Those of this service's own callers are elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable


def key_from(names: Iterable[str]) -> str:
    """The first of these environment variables that is set and not empty, or ""."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")
