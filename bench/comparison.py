"""From trials to a table: paired success, compute, and the loop's own statistics beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.paired import Difference, bootstrap, cluster_t
from bench.trials import Trial

LOOP, BASELINE = "collabvr", "pass@1"

# CollabVR, arXiv 2605.08735; None where the paper gives no figure.
PAPER: tuple[tuple[str, float | None, float | None], ...] = (
    ("accepted at first, % of steps", 49.5, None),
    ("accepted after a re-render, %", 14.7, None),
    ("never accepted, %", 35.9, None),
    ("steps, mean", 2.56, 1.48),
    ("re-renders, mean", 1.46, 0.90),
    ("clips, mean", 4.01, 2.38),
    ("VLM calls, mean", 6.79, 3.85),
)


@dataclass(frozen=True)
class Pair:
    """The loop and the baseline on one task with one seed."""

    loop: Trial
    baseline: Trial

    @property
    def difference(self) -> float:
        return float(self.loop.solved) - float(self.baseline.solved)


def pairs(trials: Sequence[Trial], max_steps: int) -> list[Pair]:
    """Each loop trial with this limit beside the baseline on the same task and seed."""
    baseline = {(t.subject, t.seed): t for t in trials if t.strategy == BASELINE}
    return [
        Pair(trial, baseline[trial.subject, trial.seed])
        for trial in trials
        if trial.strategy == LOOP and trial.max_steps == max_steps and (trial.subject, trial.seed) in baseline
    ]


def is_evidence(pair: Pair) -> bool:
    """A task of one action leaves nothing to plan."""
    return pair.loop.num_actions > 1


def by_task(compared: Sequence[Pair]) -> Difference:
    """Difference of success, tasks resampled."""
    return bootstrap([p.difference for p in compared], [p.loop.subject for p in compared])


def by_game(compared: Sequence[Pair]) -> Difference:
    """The same when all tasks of a game count as one: few clusters, so Student's t."""
    return cluster_t([p.difference for p in compared], [p.loop.game for p in compared])


def by_last_frame(compared: Sequence[Pair]) -> Difference:
    """As by_task, when an illegal way to the goal counts too."""
    reached = [float(p.loop.goal_in_last_frame) - float(p.baseline.goal_in_last_frame) for p in compared]
    return bootstrap(reached, [p.loop.subject for p in compared])


def report(trials: Sequence[Trial], limits: Sequence[int]) -> str:
    """The whole text."""
    parts = [part for limit in limits for part in (success_table(pairs(trials, limit), limit), "")]
    return "\n".join([*parts, loop_table(trials, limits)])


def success_table(compared: Sequence[Pair], max_steps: int) -> str:
    """A line per case and world, then the totals over tasks of more than one action."""
    rows = list(dict.fromkeys(p.loop.row for p in compared))
    width = max([len(row) for row in rows] + [40])
    title = f"max_steps {max_steps}"
    lines = [
        f"{title:<{width}} {'trials':>6} {'actions':>8} {'pass@1':>7} {'loop':>6} {'diff':>7}"
        f" {'video s: pass@1':>16} {'loop':>6} {'VLM calls':>10}"
    ]
    lines += [_row(row, [p for p in compared if p.loop.row == row], width) for row in rows]
    evidence = [p for p in compared if is_evidence(p)]
    if evidence:
        lines.append(_row("all with more than one action", evidence, width))
        lines.append(_bound("tasks resampled", by_task(evidence), "tasks"))
        lines.append(_bound("games as clusters", by_game(evidence), "games"))
        lines.append(_bound("last frame alone judged, tasks resampled", by_last_frame(evidence), "tasks"))
    return "\n".join(lines)


def _row(name: str, group: Sequence[Pair], width: int) -> str:
    actions = sorted({p.loop.num_actions for p in group})
    shown = f"{actions[0]}" if len(actions) == 1 else f"{actions[0]}–{actions[-1]}"
    single = sum(not is_evidence(p) for p in group)
    note = f"   {single} of one action: no evidence for planning" if single else ""
    loop, base = _rate(p.loop for p in group), _rate(p.baseline for p in group)
    seconds = [fmean(t.video_seconds for t in side) for side in _sides(group)]
    calls = fmean(p.loop.vlm_calls for p in group)
    return (
        f"{name:<{width}} {len(group):>6} {shown:>8} {base:>7.2f} {loop:>6.2f} {loop - base:>+7.2f}"
        f" {seconds[1]:>16.1f} {seconds[0]:>6.1f} {calls:>10.1f}{note}"
    )


def _sides(group: Sequence[Pair]) -> tuple[list[Trial], list[Trial]]:
    return [p.loop for p in group], [p.baseline for p in group]


def _rate(trials: Iterable[Trial]) -> float:
    return fmean(float(t.solved) for t in trials)


def _bound(how: str, difference: Difference, unit: str) -> str:
    above = "above 0" if difference.lower > 0 else "NOT above 0"
    return (
        f"  {how}: difference {difference.mean:+.3f}, 95 % interval {difference.lower:+.3f} … "
        f"{difference.upper:+.3f}: {above} ({difference.clusters} {unit}, {difference.trials} trials)"
    )


def loop_figures(trials: Sequence[Trial]) -> list[float]:
    """The loop's own statistics, in the order of PAPER."""
    steps = sum(t.steps for t in trials) or 1
    return [
        100.0 * sum(t.steps_at_first for t in trials) / steps,
        100.0 * sum(t.steps_after for t in trials) / steps,
        100.0 * sum(t.steps_never for t in trials) / steps,
        fmean(t.steps for t in trials),
        fmean(t.clips - t.steps for t in trials),
        fmean(t.clips for t in trials),
        fmean(t.vlm_calls for t in trials),
    ]


def loop_table(trials: Sequence[Trial], limits: Sequence[int]) -> str:
    """The loop's statistics at each limit beside the paper's Gen-ViRe and VBVR-Bench columns (its N is 3)."""
    columns = [
        loop_figures([t for t in trials if t.strategy == LOOP and t.max_steps == limit]) for limit in limits
    ]
    head = f"{'the loop itself':<32}" + "".join(f"{f'max_steps {limit}':>14}" for limit in limits)
    lines = [f"{head}{'paper: Gen-ViRe':>18}{'VBVR':>8}"]
    for index, (name, genvire, vbvr) in enumerate(PAPER):
        ours = "".join(f"{column[index]:>14.2f}" for column in columns)
        lines.append(f"{name:<32}{ours}{_figure(genvire):>18}{_figure(vbvr):>8}")
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
