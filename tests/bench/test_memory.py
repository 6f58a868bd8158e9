"""Peak memory sees what this process allocates and what a child holds."""

from __future__ import annotations

import subprocess
import time

import numpy as np

from bench.memory import PeakMemory


def test_an_allocation_is_seen_after_it_is_gone() -> None:
    with PeakMemory() as idle:
        time.sleep(0.05)
    with PeakMemory() as busy:
        held = np.ones(64 * 1024 * 1024, dtype=np.uint8)
        time.sleep(0.1)
        del held
    assert busy.mib > idle.mib + 50


def test_a_child_with_its_own_program_is_counted() -> None:
    with PeakMemory() as alone:
        time.sleep(0.05)
    with PeakMemory() as both:
        subprocess.run(["/bin/sh", "-c", "sleep 0.3"], check=True)
    assert both.mib > alone.mib
