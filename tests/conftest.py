"""What every test lives under: no network but loopback, and bounded, repeatable property tests."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

settings.register_profile(
    "cliploop",
    deadline=None,  # rendering and reading pictures takes as long as the machine is busy
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cliploop")


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    if isinstance(address, tuple) and str(address[0]) not in {"127.0.0.1", "::1", "localhost"}:  # pyright: ignore[reportUnknownArgumentType]
        raise RuntimeError(f"a test connects to {address}; only loopback is allowed")


sys.addaudithook(_refuse_network)
