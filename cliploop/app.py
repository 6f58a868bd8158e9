"""The command line: names, options and help. Bodies live in `cliploop.commands` and are imported when called."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from cliploop.app_jobs import jobs_app
from cliploop.app_looking import looking_app
from cliploop.app_operating import operating_app
from cliploop.options import (
    BACKENDS,
    LOOP,
    OUTPUT,
    RUN,
    SERVE,
    TASK,
    TERMINAL,
    BudgetText,
    Config,
    Data,
    Help,
    Host,
    Image,
    OneObject,
    PlannerName,
    Port,
    Prompt,
    VerifierName,
    WorldDifficulty,
    flag,
    opened,
    option,
)
from cliploop.terminal import EXIT_INTERRUPTED, EXIT_USAGE, PROGRAM, Terminal, version

app = typer.Typer(
    name=PROGRAM,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
worker_app = typer.Typer(help="A process that works on jobs: reason plans and verifies, render makes clips.")
app.add_typer(worker_app, name="worker", rich_help_panel=SERVE)
app.add_typer(operating_app)
app.add_typer(jobs_app)
app.add_typer(looking_app)

UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])  # of the click that typer has

LEAST_HELP_COLUMNS = 50

RUN_HELP = """
Solve a picture and a prompt: plan, render, verify, repair, stitch.

Everything is saved as it happens. Interrupted, killed or out of disk, the same command goes on where it \
stopped; a finished job is shown again and not a byte changes.

\b
[bold]Examples[/bold]
  cliploop run --world maze --difficulty hard --seed 7
  cliploop run --image maze.png --prompt "The red circle moves to the exit."
  cliploop run --image maze.png --prompt prompt.txt -o out/maze --max-steps 12
  cliploop run --image maze.png --prompt prompt.txt --dry-run

\b
[bold]Exit codes[/bold]
  0 completed    3 steps or budget used up    4 waiting (run it again)
  1 failed       2 bad usage or input         130 interrupted (run it again)
"""


def _version(wanted: bool) -> None:
    """Say it and end."""
    if wanted:
        TERMINAL.get().out.write(f"{PROGRAM} {version()}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Say which version this is.")
    ] = False,
) -> None:
    """Closed-loop video reasoning: plan one visual action, render it, verify it, repair it, stitch it.

    [bold]Start here[/bold]  cliploop run --world maze --difficulty easy

    With no configuration nothing is needed: no GPU, no key, no network.
    """


@app.command(rich_help_panel=RUN, help=RUN_HELP, add_help_option=False)
def run(
    image: Image = None,
    prompt: Prompt = None,
    world: Annotated[
        str | None,
        option("--world", metavar="NAME", help="A procedural task instead: cliploop worlds list.", panel=TASK),
    ] = None,
    difficulty: WorldDifficulty = "medium",
    strategy: Annotated[
        str | None,
        option(
            "--strategy",
            metavar="NAME",
            help="collabvr: the loop; pass@1 to pass@16: so many clips of the raw task, one is chosen, none"
            " judged. [dim]\\[default: collabvr][/dim]",
            panel=LOOP,
        ),
    ] = None,
    gate: Annotated[
        str | None,
        option(
            "--gate",
            metavar="NAME",
            help="single_shot: try the raw task in one clip before the loop. [dim]\\[default: none][/dim]",
            panel=LOOP,
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        option("--max-steps", metavar="N", help="Steps at most. [dim]\\[default: 3][/dim]", panel=LOOP),
    ] = None,
    max_attempts: Annotated[
        int | None,
        option(
            "--max-attempts",
            metavar="N",
            help="Renders of a step; as many again if the router says so. [dim]\\[default: 3][/dim]",
            panel=LOOP,
        ),
    ] = None,
    budget: BudgetText = None,
    seed: Annotated[
        int | None,
        option(
            "--seed",
            metavar="N",
            help="Same seed, same video; of --world too. [dim]\\[default: 0][/dim]",
            panel=LOOP,
        ),
    ] = None,
    generator: Annotated[
        str | None,
        option("--generator", metavar="NAME", help="Renders clips: cliploop generators list.", panel=BACKENDS),
    ] = None,
    planner: PlannerName = None,
    verifier: VerifierName = None,
    preset: Annotated[
        str | None,
        option("--preset", metavar="NAME", help="All of these by a name of cliploop.toml.", panel=BACKENDS),
    ] = None,
    config: Annotated[
        Path | None,
        option("--config", metavar="FILE", help="Settings instead of ./cliploop.toml.", panel=BACKENDS),
    ] = None,
    output: Annotated[
        str | None,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Where to write. [dim]\\[default: out/<slug>-<id>][/dim]",
            panel=OUTPUT,
        ),
    ] = None,
    fresh: Annotated[
        bool, flag("--fresh", help="Forget what is in the folder and start over.", panel=OUTPUT)
    ] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", help="Only say what would run and what it would cost.", panel=OUTPUT)
    ] = False,
    json: OneObject = False,
    help_: Help = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.run import RunRequest, run_command

        request = RunRequest(
            image=image, prompt=prompt, world=world, difficulty=difficulty, output=output, preset=preset,
            generator=generator, planner=planner, verifier=verifier, strategy=strategy, gate=gate, seed=seed,
            max_steps=max_steps, max_attempts=max_attempts, budget=budget, fresh=fresh, dry_run=dry_run,
            config=config,
        )  # fmt: skip
        return run_command(request, terminal)


@app.command(
    rich_help_panel=SERVE,
    help="Run the service on this machine: broker, workers and API, stopped together by Ctrl-C.",
)
def up(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    data: Data = None,
    config: Config = None,
) -> int:
    with opened(False) as terminal:
        from cliploop.commands.up import Place, up_command

        return up_command(Place(host, port, data, config), terminal)


@app.command(rich_help_panel=SERVE, help="Run the API alone, for a broker and workers that run elsewhere.")
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    data: Data = None,
    config: Config = None,
    descriptor: Annotated[int | None, typer.Option("--descriptor", hidden=True)] = None,
) -> int:
    with opened(False) as terminal:
        from cliploop.commands.up import Place, serve_command

        return serve_command(Place(host, port, data, config), descriptor, terminal)


@worker_app.command("reason", help="Plan, verify and go on with jobs; CLIPLOOP_REDIS_URL names the broker.")
def worker_reason(config: Config = None) -> int:
    with opened(False) as terminal:
        from cliploop.commands.worker import reason_command

        return reason_command(config, terminal)


@worker_app.command("render", help="Render the clips of a generator, its model kept warm.")
def worker_render(
    generator: Annotated[
        list[str], typer.Option("--generator", metavar="NAME", help="Whose clips; may be given several times.")
    ],
    clip_seconds: Annotated[
        float | None,
        typer.Option(
            "--clip-seconds", metavar="N", help="A render is stopped then. [dim]\\[default: 1800][/dim]"
        ),
    ] = None,
    config: Config = None,
) -> int:
    with opened(False) as terminal:
        from cliploop.commands.worker import render_command

        return render_command(generator, clip_seconds, config, terminal)


@worker_app.command("alive", help="Exit 0 if a worker of this machine lives, else 1: for health checks.")
def worker_alive(
    role: Annotated[
        Literal["reason", "render"] | None, typer.Option("--role", help="Only a worker of this role counts.")
    ] = None,
    data: Data = None,
) -> int:
    with opened(False) as terminal:
        from cliploop.commands.alive import alive_command

        return alive_command(role, data, terminal)


def _keep_names_whole() -> None:
    """On a narrower terminal help would cut the names of options: there its lines are folded instead."""
    if shutil.get_terminal_size().columns < LEAST_HELP_COLUMNS:
        from typer import rich_utils

        rich_utils.MAX_WIDTH = LEAST_HELP_COLUMNS


def _called(words: list[str]) -> object:
    """As typer does it, but that an interrupt is not swallowed here."""
    command = typer.main.get_command(app)
    try:
        with command.make_context(PROGRAM, words) as context:
            return command.invoke(context)
    except typer.Exit as end:
        return end.exit_code


def command_line(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is one line, no traceback."""
    words = list(arguments) or ["--help"]
    terminal = Terminal.opened(json="--json" in words)
    TERMINAL.set(terminal)
    try:
        if not {"-h", "--help"}.isdisjoint(words):
            _keep_names_whole()
        code = _called(words)
    except UsageError as error:
        where = error.ctx.command_path if error.ctx else PROGRAM
        message = f"{error.format_message().rstrip('.')}; see {where} --help"
        return terminal.error(message, reason="usage", code=EXIT_USAGE)
    except KeyboardInterrupt:
        if terminal.printed:
            return EXIT_INTERRUPTED
        message = "interrupted before anything began"
        return terminal.error(message, reason="interrupted", code=EXIT_INTERRUPTED)
    except BrokenPipeError:  # help, piped into something that stopped reading
        terminal.out.abandon()
        return 0
    return code if isinstance(code, int) else 0
