"""How an imperfect verifier errs: from a profile, the same for the same ask and candidate."""

from __future__ import annotations

import hashlib
import tomllib
from importlib import resources

import numpy as np
from pydantic import Field, ValidationError

from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Confidence, Footage, Fraction, Record, Verdict

FALLIBLE = ("gemini-2.5-pro", "qwen3.5")
LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")


class Fallibility(Record):
    """Figures of an imperfect verifier: how often it errs, and how well its confidence tells when."""

    name: str
    reject_recall: Fraction  # share of what should be rejected that is
    false_reject: Fraction  # share of what should be accepted that is rejected
    auroc: float = Field(ge=0.5, le=0.9)


def load_fallibility(name: str) -> Fallibility:
    """A shipped profile. Raises BackendMisconfigured for an unknown name or a file that does not fit."""
    if name not in FALLIBLE:
        raise BackendMisconfigured(f"there is no verifier profile {name!r}; there are {', '.join(FALLIBLE)}")
    text = resources.files("planners").joinpath(f"profiles/{name}.toml").read_text(encoding="utf-8")
    try:
        return Fallibility(**tomllib.loads(text))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise BackendMisconfigured(f"planners/profiles/{name}.toml does not fit: {error}") from error


def err(verdict: Verdict, figures: Fallibility, seed: int, candidate: Footage) -> Verdict:
    """The exact verdict as an imperfect verifier would give it."""
    digest = hashlib.sha256(f"{seed}|{candidate.model_dump_json()}".encode()).digest()
    rng = np.random.default_rng(list(digest))
    if verdict.decision == "reject":
        right = bool(rng.random() < figures.reject_recall)
    else:
        right = bool(rng.random() >= figures.false_reject)
    confidence = _confidence(rng, figures.auroc, right)
    if right:
        return verdict.model_copy(update={"confidence": confidence})
    if verdict.decision == "reject":
        return Verdict(
            decision="accept",
            progress="complete",
            confidence=confidence,
            reason="The action looks done.",
            good_fraction=1.0,
        )
    return Verdict(
        decision="reject",
        progress="partial",
        confidence=confidence,
        failure="other",
        reason="Something in the clip looks wrong.",
        suggestion="Every piece must move cleanly and nothing else may change.",
        good_fraction=round(float(rng.random()), 3),
    )


def _confidence(rng: np.random.Generator, auroc: float, right: bool) -> Confidence:
    """Three levels with shares (1/3 − d, 1/3, 1/3 + d) if right, mirrored if wrong: AUROC = 1/2 + 4 d / 3."""
    lean = (auroc - 0.5) * 3 / 4
    shares = np.array([1 / 3 - lean, 1 / 3, 1 / 3 + lean])
    return LEVELS[int(rng.choice(3, p=shares if right else shares[::-1]))]
