"""Keys of vendors' services: read from the environment when a call is made, and kept nowhere.

So no key is ever among settings, options, digests or records. Those of this service's own callers are elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from orchestrator.errors import BackendMisconfigured


def key_from(names: Iterable[str]) -> str:
    """The first of these environment variables that is set and not empty, or "".

    Raises BackendMisconfigured for one that no header can carry, without its value.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if value and not (value.isascii() and value.isprintable()):
            raise BackendMisconfigured(
                f"{name}: the key in it holds a line break, or a letter that no key has: copy it again, whole"
            )
        if value:
            return value
    return ""
