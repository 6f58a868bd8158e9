"""The command line: names, options and help. Bodies live in `cliploop.commands` and are imported when called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

import typer

from cliploop.terminal import EXIT_INTERRUPTED, EXIT_USAGE, Terminal

app = typer.Typer(
    name="cliploop",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
worlds_app = typer.Typer(help="Procedural tasks with exact answers: list, sample, verify.")
trajectory_app = typer.Typer(help="Every plan, attempt and verdict of a job.")
generators_app = typer.Typer(help="Image-to-video backends: list them, check one.")
app.add_typer(worlds_app, name="worlds")
app.add_typer(trajectory_app, name="trajectory")
app.add_typer(generators_app, name="generators")

UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])  # of the click that typer has

Json = Annotated[
    bool, typer.Option("--json", help="Print exactly one JSON object on stdout; progress on stderr.")
]
Config = Annotated[
    Path | None, typer.Option(help="Settings file [dim](default: ./cliploop.toml if present)[/dim]")
]
Difficulty = Annotated[str, typer.Option(metavar="easy|medium|hard", help="How hard a procedural task is.")]

BACKENDS = "Backends and strategy"
LIMITS = "Limits"
TASK = "The task"

RUN_HELP = """
Solve a picture and a prompt: plan, render, verify, repair, stitch.

Everything is saved as it happens. Interrupted, killed or out of disk, the same command goes on where it \
stopped; a finished job is shown again and not a byte changes.

[bold]Examples[/bold]

  cliploop run --world maze --difficulty hard --seed 7

  cliploop run --image maze.png --prompt "The red circle moves to the green square."

  cliploop run --image maze.png --prompt prompt.txt -o out/maze --generator simulated-perfect --max-steps 12

  cliploop run --image maze.png --prompt prompt.txt --budget video_seconds=60,vlm_calls=40 --dry-run

[bold]Exit codes[/bold]  0 completed, 3 steps or budget used up, 4 waiting (run again), 1 failed, \
2 bad usage or input, 130 interrupted (run again)
"""


@app.callback()
def root() -> None:
    """Closed-loop video reasoning: plan one visual action, render it, verify it, repair it, stitch it.

    [bold]Start here[/bold]  cliploop run --world maze --difficulty easy

    With no configuration nothing is needed: no GPU, no key, no network.
    """


@app.command(help=RUN_HELP)
def run(
    image: Annotated[
        str | None, typer.Option(metavar="PICTURE", help="The first picture.", rich_help_panel=TASK)
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT|FILE", help="The task in words.", rich_help_panel=TASK)
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A procedural task instead: see cliploop worlds list.", rich_help_panel=TASK
        ),
    ] = None,
    difficulty: Difficulty = "medium",
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Where to write [dim](default: out/<slug>-<id>)[/dim]"
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A named choice from cliploop.toml.", rich_help_panel=BACKENDS)
    ] = None,
    generator: Annotated[
        str | None, typer.Option(help="Renders: see cliploop generators list.", rich_help_panel=BACKENDS)
    ] = None,
    planner: Annotated[str | None, typer.Option(help="Says the next action.", rich_help_panel=BACKENDS)] = None,
    verifier: Annotated[str | None, typer.Option(help="Judges each clip.", rich_help_panel=BACKENDS)] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="collabvr|pass@1", help="The loop, or the raw task in one clip.", rich_help_panel=BACKENDS
        ),
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="none|single_shot", help="single_shot: the raw task first.", rich_help_panel=BACKENDS
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same video [dim](default: 0)[/dim]", rich_help_panel=BACKENDS)
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Planned actions at most [dim](default: 3)[/dim]", rich_help_panel=LIMITS)
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(help="Renders per action at most [dim](default: 3)[/dim]", rich_help_panel=LIMITS),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=N,...",
            help="video_seconds, gpu_seconds, vlm_calls, vlm_tokens, usd, wall_seconds.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is in the folder and start over.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run and what it would cost; write nothing.")
    ] = False,
    json: Json = False,
    config: Config = None,
) -> int:
    from cliploop.commands.run import RunRequest, run_command

    request = RunRequest(
        image=image, prompt=prompt, world=world, difficulty=difficulty, output=output, preset=preset,
        generator=generator, planner=planner, verifier=verifier, strategy=strategy, gate=gate, seed=seed,
        max_steps=max_steps, max_attempts=max_attempts, budget=budget, fresh=fresh, dry_run=dry_run,
        config=config,
    )  # fmt: skip
    return run_command(request, Terminal.opened(json=json))


@worlds_app.command("list", help="Name the worlds and what each one asks.")
def worlds_list(json: Json = False) -> int:
    from cliploop.commands.worlds import list_command

    return list_command(Terminal.opened(json=json))


@worlds_app.command("sample", help="Write tasks as first_frame.png and prompt.txt, ready for cliploop run.")
def worlds_sample(
    name: Annotated[str, typer.Argument(help="A world, e.g. maze.")],
    difficulty: Difficulty = "medium",
    seed: Annotated[int, typer.Option(help="Seed of the first task.")] = 0,
    count: Annotated[int, typer.Option(help="How many, with consecutive seeds.")] = 1,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Where to write.")] = "out/worlds",
    json: Json = False,
) -> int:
    from cliploop.commands.worlds import sample_command

    return sample_command(name, difficulty, seed, count, Path(output), Terminal.opened(json=json))


@worlds_app.command("verify", help="Check a world on many seeds: rules, renderer, reader and plan agree.")
def worlds_verify(
    name: Annotated[str | None, typer.Argument(help="A world; all of them if not named.")] = None,
    seeds: Annotated[int, typer.Option(help="Tasks per difficulty.")] = 5,
    json: Json = False,
) -> int:
    from cliploop.commands.worlds import verify_command

    return verify_command(name, seeds, Terminal.opened(json=json))


@trajectory_app.command("show", help="Show a job's steps, attempts and verdicts, finished or not.")
def trajectory_show(
    job: Annotated[
        str, typer.Argument(metavar="DIR|ID", help="An output folder, or the id of a job under out/.")
    ],
    json: Json = False,
) -> int:
    from cliploop.commands.trajectory import show_command

    return show_command(job, Terminal.opened(json=json))


@generators_app.command("list", help="Name the generators that can be used here.")
def generators_list(json: Json = False, config: Config = None) -> int:
    from cliploop.commands.generators import list_command

    return list_command(config, Terminal.opened(json=json))


@generators_app.command("check", help="Run the conformance suite on a generator: may its clips be chained?")
def generators_check(
    name: Annotated[str, typer.Argument(help="A generator, e.g. simulated.")],
    json: Json = False,
    config: Config = None,
) -> int:
    from cliploop.commands.generators import check_command

    return check_command(name, config, Terminal.opened(json=json))


@app.command(help="Say whether this machine can run Cliploop, and what to do if not.")
def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Solve a small task end to end as well.")] = False,
    json: Json = False,
    config: Config = None,
) -> int:
    from cliploop.commands.doctor import doctor_command

    return doctor_command(deep, config, Terminal.opened(json=json))


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is one line, no traceback."""
    words = list(arguments) or ["--help"]
    terminal = Terminal.opened(json="--json" in words)
    try:
        code = typer.main.get_command(app).main(words, prog_name="cliploop", standalone_mode=False)
    except UsageError as error:
        where = error.ctx.command_path if error.ctx else "cliploop"
        message = f"{error.format_message().rstrip('.')}; see {where} --help"
        return terminal.error(message, reason="usage", code=EXIT_USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return terminal.error("interrupted", reason="interrupted", code=EXIT_INTERRUPTED)
    except BrokenPipeError:  # help, piped into something that stopped reading
        terminal.out.abandon()
        return 0
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point of the console script."""
    sys.exit(invoke(sys.argv[1:]))


if __name__ == "__main__":
    main()
