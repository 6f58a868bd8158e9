"""What the commands' options share: how one is declared, those that many have, the groups, the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from cliploop.terminal import Terminal

RUN = "Run here"  # groups of commands
SERVE = "Serve"
TALK = "Talk to a server"
LOOK = "Look"

TASK = "The task"  # groups of options
LOOP = "The loop"
BACKENDS = "Backends"
OUTPUT = "Output"

TERMINAL: ContextVar[Terminal] = ContextVar("terminal")  # one for a command line: it prints one object at most


@contextlib.contextmanager
def opened(json: bool) -> Generator[Terminal]:
    """The command line's terminal, for a command, with a word on it while modules load."""
    terminal = TERMINAL.get()
    terminal.json = json
    terminal.hint("cliploop: starting ...")
    yield terminal


def show_help(context: typer.Context, wanted: bool) -> None:
    """Show it; an option of our own, so that it stands in a group of ours."""
    if wanted:
        print(context.get_help(), end="")  # noqa: T201  (typer has printed already, this is empty then)
        raise typer.Exit


def option(*names: str, metavar: str, help: str, panel: str) -> Any:
    """An option in a group of the help, with words instead of a type."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def flag(*names: str, help: str, panel: str | None = None) -> Any:
    """A switch: nothing follows it."""
    return typer.Option(*names, metavar=" ", help=help, rich_help_panel=panel)


Json = Annotated[bool, flag("--json", help="One JSON object on stdout, progress on stderr.")]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings instead of ./cliploop.toml.")
]
Difficulty = Annotated[str, typer.Option("--difficulty", metavar="LEVEL", help="How hard: easy, medium or hard.")]


Host = Annotated[str, typer.Option("--host", metavar="NAME", help="Where the API listens.")]
Port = Annotated[int, typer.Option("--port", metavar="N", help="Where the API listens; 0: any free port.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where everything is kept. [dim]\\[default: cliploop-data][/dim]"),
]

# Of `run` and `submit`, which take the same task and choices.
Image = Annotated[str | None, option("--image", metavar="PICTURE", help="The first picture.", panel=TASK)]
Prompt = Annotated[
    str | None, option("--prompt", metavar="TEXT|FILE", help="What should happen, in words.", panel=TASK)
]
WorldDifficulty = Annotated[
    str, option("--difficulty", metavar="LEVEL", help="Of --world: easy, medium or hard.", panel=TASK)
]
BudgetText = Annotated[
    str | None,
    option(
        "--budget",
        metavar="KEY=N,...",
        help="Of video_seconds, gpu_seconds, vlm_calls, vlm_tokens, usd, wall_seconds.",
        panel=LOOP,
    ),
]
PlannerName = Annotated[
    str | None, option("--planner", metavar="NAME", help="Says the next action.", panel=BACKENDS)
]
VerifierName = Annotated[
    str | None, option("--verifier", metavar="NAME", help="Judges each clip.", panel=BACKENDS)
]
OneObject = Annotated[bool, flag("--json", help="One JSON object on stdout, progress on stderr.", panel=OUTPUT)]
Help = Annotated[
    bool,
    typer.Option(
        "-h", "--help", metavar=" ", is_eager=True, callback=show_help, help="Show this.", rich_help_panel=OUTPUT
    ),
]
