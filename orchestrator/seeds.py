"""Derived seeds: one base seed per job, and no two attempts of a job share one."""

from __future__ import annotations

import hashlib

SEED_MODULUS = 2**31  # the smallest range that the known backends accept
ATTEMPTS_PER_STEP = 4096  # more than 2 × the largest Policy.max_attempts


def attempt_seed(base: int, step: int, attempt: int) -> int:
    """Seed of attempt `attempt` (from 1) of step `step` (from 1; 0 is the gate), in 0 … 2³¹ − 1.

    Distinct for all attempts of a job up to 500,000 steps; other bases start elsewhere.
    """
    return (derived_seed(base, "attempts") + step * ATTEMPTS_PER_STEP + attempt) % SEED_MODULUS


def derived_seed(base: int, *parts: str | int) -> int:
    """A seed for anything else that is drawn, from the base and a name, in 0 … 2³¹ − 1."""
    text = "/".join(str(part) for part in (base, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % SEED_MODULUS
