"""The command line's part that looks: worlds, trajectories, generators, this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cliploop.options import LOOK, Config, Difficulty, Json, flag, opened

looking_app = typer.Typer()
worlds_app = typer.Typer(help="Procedural tasks with exact answers: list, sample, verify.")
trajectory_app = typer.Typer(help="Every plan, attempt and verdict of a job.")
generators_app = typer.Typer(help="Image-to-video backends: list them, check one.")
looking_app.add_typer(worlds_app, name="worlds", rich_help_panel=LOOK)
looking_app.add_typer(trajectory_app, name="trajectory", rich_help_panel=LOOK)
looking_app.add_typer(generators_app, name="generators", rich_help_panel=LOOK)


@worlds_app.command("list", help="Name the worlds and what each one asks.")
def worlds_list(json: Json = False) -> int:
    with opened(json) as terminal:
        from cliploop.commands.worlds import list_command

        return list_command(terminal)


@worlds_app.command("sample", help="Write tasks as first_frame.png and prompt.txt, ready for cliploop run.")
def worlds_sample(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A world, e.g. maze.")],
    difficulty: Difficulty = "medium",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first task.")] = 0,
    count: Annotated[int, typer.Option(metavar="N", help="How many, with consecutive seeds.")] = 1,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Where to write.")] = "out/worlds",
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.worlds import sample_command

        return sample_command(name, difficulty, seed, count, Path(output), terminal)


@worlds_app.command("verify", help="Check a world on many seeds: rules, renderer, reader and plan agree.")
def worlds_verify(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A world; all of them if not named.")] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Tasks per difficulty.")] = 5,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.worlds import verify_command

        return verify_command(name, seeds, terminal)


@trajectory_app.command("show", help="Show a job's steps, attempts and verdicts, finished or not.")
def trajectory_show(
    job: Annotated[
        str, typer.Argument(metavar="DIR|ID", help="An output folder, or the id of a job under out/.")
    ],
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.trajectory import show_command

        return show_command(job, terminal)


@generators_app.command("list", help="Name the generators that can be used here.")
def generators_list(json: Json = False, config: Config = None) -> int:
    with opened(json) as terminal:
        from cliploop.commands.generators import list_command

        return list_command(config, terminal)


@generators_app.command("check", help="Run the conformance suite on a generator: may its clips be chained?")
def generators_check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A generator, e.g. simulated.")],
    json: Json = False,
    config: Config = None,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.generators import check_command

        return check_command(name, config, terminal)


@looking_app.command(
    rich_help_panel=LOOK, help="Say whether this machine can run Cliploop, and what to do if not."
)
def doctor(
    deep: Annotated[
        bool, flag("--deep", help="Solve a small task as well, and try each backend that is configured.")
    ] = False,
    paid: Annotated[bool, flag("--paid", help="With --deep: also render clips that cost money.")] = False,
    json: Json = False,
    config: Config = None,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.doctor import doctor_command

        return doctor_command(deep, config, terminal, paid=paid)
