"""How often one clip of the raw task prompt solves a medium world, by the overload of a profile.

`overload` of vbvr-wan2.2 was set with this table, once, so that pass@1 comes near 0.391 (VBVR-Wan2.2 on Gen-ViRe,
CollabVR, arXiv 2605.08735) on seeds 1000–1099 of all six worlds. Those seeds are used for nothing else.

    python -m bench.calibrate_overload [--seeds 1000 1100] [--profile vbvr-wan2.2] [--overload 0.8 0.85 …]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from generators.profile import PROFILES, Profile, load_profile
from generators.script import write_script
from generators.seeing import Seen, see
from orchestrator.frame_counts import frames_for
from orchestrator.records import Capabilities, Policy
from orchestrator.seeds import attempt_seed
from worlds.catalog import WORLDS, load
from worlds.sampling import sample

TARGET = 0.391
FRAMES = frames_for(
    Policy.model_fields["first_step_seconds"].default, 16.0, Capabilities(name="", frame_step=4, frame_offset=1)
)


def shots(world: str, seeds: Sequence[int]) -> list[tuple[int, Seen | None]]:
    """Every task of a world as the generator understands it, from picture and raw prompt."""
    tasks = [(seed, sample(load(world), "medium", seed)) for seed in seeds]
    return [(seed, see(task.frame, task.prompt)) for seed, task in tasks]


def solves(profile: Profile, seed: int, seen: Seen | None) -> bool:
    """Whether the one clip that pass@1 renders does the whole plan and nothing else."""
    if seen is None:
        return False
    script = write_script(
        seen.scene.world,
        seen.reading,
        seen.actions,
        profile,
        seed=attempt_seed(seed, 1, 1),
        num_frames=FRAMES,
        instructed=seen.instructed,
    )
    return script.failure is None and not script.reimagined


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", nargs=2, type=int, default=(1000, 1100))
    options.add_argument("--profile", choices=PROFILES, default="vbvr-wan2.2")
    options.add_argument("--overload", nargs="*", type=float)
    options.add_argument("--worlds", nargs="*", choices=tuple(WORLDS), default=tuple(WORLDS))
    given = options.parse_args()
    profile = load_profile(given.profile)
    rates: list[float] = given.overload or sorted(
        {profile.overload, *(round(0.8 + 0.02 * i, 2) for i in range(10))}
    )
    seen = {world: shots(world, range(*given.seeds)) for world in given.worlds}
    print(f"pass@1 by overload, {profile.name}, seeds {given.seeds[0]}–{given.seeds[1] - 1}, target {TARGET}")
    print(f"{'world':16}{'actions':>8}{'unread':>8}" + "".join(f"{rate:>8.3f}" for rate in rates))
    totals = [0] * len(rates)
    for world, tasks in seen.items():
        solved = [
            sum(solves(profile.model_copy(update={"overload": rate}), *task) for task in tasks) for rate in rates
        ]
        totals = [total + more for total, more in zip(totals, solved, strict=True)]
        lengths = [len(task.actions) for _, task in tasks if task is not None]
        mean = sum(lengths) / max(1, len(lengths))
        unread = sum(task is None for _, task in tasks)
        print(f"{world:16}{mean:>8.2f}{unread:>8}" + "".join(f"{count / len(tasks):>8.3f}" for count in solved))
    count = sum(len(tasks) for tasks in seen.values())
    print(f"{'all':16}{'':>8}{'':>8}" + "".join(f"{total / count:>8.3f}" for total in totals))
    print(f"the profile's overload is {profile.overload}")


if __name__ == "__main__":
    main()
