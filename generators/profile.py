"""How a simulated generator fails: figures from a TOML file in `profiles/`, each with its source beside it."""

from __future__ import annotations

import tomllib
from importlib import resources

from pydantic import Field, ValidationError

from orchestrator.errors import BackendMisconfigured
from orchestrator.records import FailureKind, Fraction, Record

PROFILES = ("vbvr-wan2.2", "veo-3.1", "cosmos-2.5", "perfect")


class Profile(Record):
    """Figures of a failure profile.

    A shot is easy or hard (`hard_share`), the same for every retry of it: retries are correlated. An easy one
    comes out right with `right_if_easy`, a hard one with `right_if_hard`; a prompt that carries a correction
    closes `correction_gain` of the gap to 1; an instruction, unlike a task prompt, scales it by
    `instruction_following`. Each further action of a prompt is done with `overload`, given the one before.
    """

    name: str
    hard_share: Fraction
    right_if_easy: Fraction
    right_if_hard: Fraction
    correction_gain: Fraction
    instruction_following: Fraction
    overload: Fraction
    fails_at_once: Fraction  # share of failures with nothing right before them
    failures: dict[FailureKind, float]  # relative weights
    overload_failures: dict[FailureKind, float]  # relative weights, where an action of several is not done
    colour_drift: Fraction  # share of clips that drift in colour
    colour_drift_levels: float = Field(ge=0)  # by the last frame, 0–255
    first_frame_drift: Fraction  # share of clips that re-imagine frame 0
    arrives: Fraction  # share of the clip after which the motion is over


def load_profile(name: str) -> Profile:
    """A shipped profile. Raises BackendMisconfigured for an unknown name or a file that does not fit."""
    if name not in PROFILES:
        raise BackendMisconfigured(f"there is no failure profile {name!r}; there are {', '.join(PROFILES)}")
    text = resources.files("generators").joinpath(f"profiles/{name}.toml").read_text(encoding="utf-8")
    try:
        return Profile(**tomllib.loads(text))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise BackendMisconfigured(f"generators/profiles/{name}.toml does not fit: {error}") from error
