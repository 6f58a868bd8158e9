"""The loop against one shot of the raw task prompt, paired: same tasks, seeds and generator profile.

    python -m bench.compare                     # 20 seeds per case and world, max_steps 3 and 12
    python -m bench.compare --quick             # three seeds, a first impression

Seeds start at 2000: the profiles' overload was set on seeds 1000–1099, nothing else is fitted, and nothing is
changed after a look at these.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from bench.comparison import BASELINE, LOOP, by_game, by_task, is_evidence, pairs, report
from bench.subjects import Subject, foreign_cases, world_tasks
from bench.trials import Trial, broken, play
from cliploop.compose import Composition, Wanted
from worlds.world import Difficulty

FIRST_SEED = 2000
PROGRESS_SECONDS = 10.0


@dataclass(frozen=True)
class Trials:
    """One task with one seed: the baseline, and the loop at each limit."""

    subject: Subject
    seed: int
    wanted: Wanted
    limits: tuple[int, ...]


def play_all(asked: Trials) -> list[Trial]:
    """In a worker process. A trial that raises is a fault of ours: it counts as not solved, and is named."""
    composition = Composition.read(None, {}, Path())
    choices = [_choose(asked.wanted, BASELINE, 1)] + [_choose(asked.wanted, LOOP, n) for n in asked.limits]
    trials: list[Trial] = []
    for choice in choices:
        try:
            trials.append(play(asked.subject, asked.seed, choice, composition))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            trials.append(broken(asked.subject, asked.seed, str(choice.strategy), choice.max_steps or 1, why))
    return trials


def _choose(wanted: Wanted, strategy: str, max_steps: int) -> Wanted:
    return Wanted(
        generator=wanted.generator,
        planner=wanted.planner,
        verifier=wanted.verifier,
        strategy=strategy,
        max_steps=max_steps,
    )


def asked_trials(given: argparse.Namespace) -> Iterator[Trials]:
    """Every case with every seed, and one task of every world for every seed."""
    wanted = Wanted(generator=given.generator, planner=given.planner, verifier=given.verifier)
    limits = tuple(given.max_steps)
    cases = foreign_cases(given.cases)
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for subject in [*cases, *world_tasks(cast(Difficulty, given.difficulty), seed)]:
            yield Trials(subject, seed, wanted, limits)


def run_all(asked: Sequence[Trials], workers: int) -> list[Trial]:
    """In worker processes, with progress on stderr; the order of the result is the order asked.

    A worker that is ended from outside does not cost the rest. Raises BrokenProcessPool when it happens again
    and again.
    """
    results: dict[int, list[Trial]] = {}
    for last in (False, False, True):
        try:
            _run_left(asked, workers, results)
            break
        except BrokenProcessPool:
            if last:
                raise
            print("a worker process was ended; going on with new ones", file=sys.stderr, flush=True)
    return [trial for index in sorted(results) for trial in results[index]]


def _run_left(asked: Sequence[Trials], workers: int, results: dict[int, list[Trial]]) -> None:
    """Fill in what is missing."""
    told = started = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        left = [(index, trials) for index, trials in enumerate(asked) if index not in results]
        futures = {pool.submit(play_all, trials): index for index, trials in left}
        for future in as_completed(futures):
            results[futures[future]] = future.result()
            now = time.monotonic()
            if now - told > PROGRESS_SECONDS or len(results) == len(asked):
                told = now
                print(f"{len(results)} of {len(asked)} in {now - started:.0f} s", file=sys.stderr, flush=True)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", default="simulated")
    parser.add_argument("--planner", default="oracle")
    parser.add_argument("--verifier", default="oracle")
    parser.add_argument("--difficulty", default="medium", choices=["easy", "medium", "hard"])
    parser.add_argument("--seeds", type=int, default=20, help="per case and world")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--max-steps", type=int, nargs="+", default=[3, 12])
    parser.add_argument("--cases", type=Path, default=Path("tests/data"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("out/compare.json"))
    parser.add_argument("--quick", action="store_true", help="three seeds")
    given = parser.parse_args(arguments)
    if given.quick:
        given.seeds = 3
    return given


def saved(given: argparse.Namespace, trials: Sequence[Trial]) -> dict[str, object]:
    """What the JSON file holds: the options, the differences, every trial."""
    differences: dict[str, object] = {}
    for limit in given.max_steps:
        evidence = [pair for pair in pairs(trials, limit) if is_evidence(pair)]
        if evidence:
            both = {"tasks": asdict(by_task(evidence)), "games": asdict(by_game(evidence))}
            differences[f"max_steps {limit}"] = both
    options = {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()}
    return {"options": options, "differences": differences, "trials": [asdict(trial) for trial in trials]}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, print, save."""
    given = parsed(arguments)
    trials = run_all(list(asked_trials(given)), given.workers)
    last = given.first_seed + given.seeds - 1
    print(f"generator {given.generator}, planner {given.planner}, verifier {given.verifier};", end=" ")
    print(f"seeds {given.first_seed}–{last}, worlds {given.difficulty}")
    print("solved = goal at rest in the last frame, every frame legal; pass@1 = one shot of the raw prompt\n")
    print(report(trials, given.max_steps))
    for trial in trials:
        if trial.error:
            print(f"not played: {trial.subject}, seed {trial.seed}, {trial.strategy}: {trial.error}")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(saved(given, trials), indent=1) + "\n", encoding="utf-8")
    print(f"\nevery trial: {given.output}")


if __name__ == "__main__":
    main()
