"""What every test lives under: loopback alone, bounded, repeatable property tests, signals that are heard."""

from __future__ import annotations

import os
import signal
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


def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: two per core, since about half of a worker's time is spent waiting for other processes."""
    return 2 * (os.cpu_count() or 1)


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    if isinstance(address, tuple) and str(address[0]) not in {"127.0.0.1", "::1", "localhost"}:  # pyright: ignore[reportUnknownArgumentType]
        raise RuntimeError(f"a test connects to {address}; only loopback is allowed")


sys.addaudithook(_refuse_network)

# Whoever starts the suite in the background may have these ignored, here and in all that tests start.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)
