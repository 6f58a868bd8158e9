"""Paired comparison of two strategies on the same tasks and seeds, clustered by task.

Trials of one task are alike, so tasks are resampled, not trials: E. Miller, "Adding Error Bars to Evals"
(arXiv 2411.00640) on paired differences and clusters; A. C. Cameron, J. Gelbach, D. Miller, "Bootstrap-Based
Improvements for Inference with Clustered Errors" (2008) on resampling whole clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

RESAMPLES = 10_000


@dataclass(frozen=True)
class Difference:
    """Mean paired difference with a two-sided 95 % interval; `trials` in `clusters` clusters."""

    mean: float
    lower: float
    upper: float
    trials: int
    clusters: int


def _sums(differences: Sequence[float], clusters: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sum and number of trials per cluster, clusters in order of first appearance."""
    names = list(dict.fromkeys(clusters))
    index = np.array([names.index(name) for name in clusters])
    values = np.asarray(differences, dtype=float)
    return np.bincount(index, weights=values), np.bincount(index).astype(float)


def bootstrap(differences: Sequence[float], clusters: Sequence[str], *, seed: int = 0) -> Difference:
    """Percentile interval of the mean over resampled clusters; ValueError without trials."""
    if not differences:
        raise ValueError("no trials to compare")
    sums, sizes = _sums(differences, clusters)
    picks = np.random.default_rng(seed).integers(0, len(sums), size=(RESAMPLES, len(sums)))
    means = sums[picks].sum(axis=1) / sizes[picks].sum(axis=1)
    lower, upper = np.quantile(means, [0.025, 0.975])
    return Difference(float(sums.sum() / sizes.sum()), float(lower), float(upper), len(differences), len(sums))


def cluster_t(differences: Sequence[float], clusters: Sequence[str]) -> Difference:
    """Student's t interval over the clusters' means, G − 1 degrees of freedom: for few, large clusters.

    With a single cluster nothing is known about the spread: the interval is −1 … 1.
    """
    if not differences:
        raise ValueError("no trials to compare")
    sums, sizes = _sums(differences, clusters)
    means = sums / sizes
    mean, count = float(means.mean()), len(means)
    if count < 2:
        return Difference(mean, -1.0, 1.0, len(differences), count)
    error = float(means.std(ddof=1)) / count**0.5
    t_quantile: Any = special.stdtrit  # untyped in scipy
    reach = float(t_quantile(count - 1, 0.975)) * error
    return Difference(mean, mean - reach, mean + reach, len(differences), count)
