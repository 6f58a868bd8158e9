"""The command line's part that talks to a server: submit a job, follow it, fetch what it made."""

from __future__ import annotations

from typing import Annotated

import typer

from cliploop.options import (
    BACKENDS,
    LOOP,
    OUTPUT,
    TALK,
    TASK,
    BudgetText,
    Help,
    Image,
    Json,
    OneObject,
    PlannerName,
    Prompt,
    VerifierName,
    WorldDifficulty,
    flag,
    opened,
    option,
)

SERVER = "The server"
jobs_app = typer.Typer()

SUBMIT_HELP = """
Hand a picture and a prompt to a server: the same task and options as cliploop run.

\b
[bold]Examples[/bold]
  cliploop submit --world maze --difficulty easy --watch
  cliploop submit --image maze.png --prompt "The circle moves to the exit."
  cliploop submit --image maze.png --prompt prompt.txt --preset quality

The server is --url, CLIPLOOP_URL or http://127.0.0.1:8000; its API key is CLIPLOOP_API_KEY, never an option.
"""
WATCH_HELP = """
Follow a job in the same view as cliploop run. Ctrl-C stops watching, not the job.

A server that is started again is gone on with: no event is missed.

\b
[bold]Examples[/bold]
  cliploop watch job-0f3a
  cliploop watch job-0f3a --json > job.json

\b
[bold]Exit codes[/bold]
  0 completed    3 steps or budget used up    4 waits for a person
  1 failed or cancelled    2 bad usage, no such job    130 interrupted
"""
DOWNLOAD_HELP = """
Fetch what a job made: video.mp4, trajectory.json, contact-sheet.png.

Interrupted, the same command goes on where it stopped. Exit code 4 while the job goes on.

\b
[bold]Examples[/bold]
  cliploop download job-0f3a
  cliploop download job-0f3a -o out/maze --clips
"""
RETRY_HELP = """
A new job that goes on after another one's last accepted step.

\b
[bold]Examples[/bold]
  cliploop retry job-0f3a --watch
  cliploop retry job-0f3a --max-steps 12
"""
FORK_HELP = """
A new job with another one's steps before a step, and that step done anew.

\b
[bold]Examples[/bold]
  cliploop fork job-0f3a --from-step 2 --instruction "The red circle moves down first."
  cliploop fork job-0f3a --from-step 1 --seed 8 --watch
"""
LIST_HELP = """
List a server's jobs, newest first.

\b
[bold]Examples[/bold]
  cliploop list
  cliploop list --state running --state queued --json
"""

Url = Annotated[
    str | None,
    option(
        "--url",
        metavar="URL",
        help="[dim]\\[default: CLIPLOOP_URL, else http://127.0.0.1:8000][/dim]",
        panel=SERVER,
    ),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="A job's id: cliploop list.")]
Watch = Annotated[bool, flag("--watch", help="Follow it to its end.", panel=OUTPUT)]
Priority = Annotated[str | None, option("--priority", metavar="LEVEL", help="high, normal or low.", panel=LOOP)]
MaxSteps = Annotated[int | None, option("--max-steps", metavar="N", help="Steps at most.", panel=LOOP)]
MaxAttempts = Annotated[int | None, option("--max-attempts", metavar="N", help="Renders of a step.", panel=LOOP)]
Seed = Annotated[int | None, option("--seed", metavar="N", help="Same seed, same video.", panel=LOOP)]


@jobs_app.command(rich_help_panel=TALK, help=SUBMIT_HELP, add_help_option=False)
def submit(
    image: Image = None,
    prompt: Prompt = None,
    world: Annotated[
        str | None,
        option("--world", metavar="NAME", help="A procedural task of the server's instead.", panel=TASK),
    ] = None,
    difficulty: WorldDifficulty = "medium",
    strategy: Annotated[
        str | None, option("--strategy", metavar="NAME", help="As of cliploop run.", panel=LOOP)
    ] = None,
    gate: Annotated[str | None, option("--gate", metavar="NAME", help="As of cliploop run.", panel=LOOP)] = None,
    max_steps: MaxSteps = None,
    max_attempts: MaxAttempts = None,
    budget: BudgetText = None,
    seed: Seed = None,
    priority: Priority = None,
    generator: Annotated[
        str | None, option("--generator", metavar="NAME", help="Renders clips.", panel=BACKENDS)
    ] = None,
    planner: PlannerName = None,
    verifier: VerifierName = None,
    preset: Annotated[
        str | None,
        option("--preset", metavar="NAME", help="All of these by a name of the server's.", panel=BACKENDS),
    ] = None,
    webhook: Annotated[
        str | None, option("--webhook", metavar="URL", help="Where the server tells of the job.", panel=SERVER)
    ] = None,
    url: Url = None,
    watch: Watch = False,
    json: OneObject = False,
    help_: Help = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.submit import SubmitRequest, submit_command
        from cliploop.commands.talking import Contact

        request = SubmitRequest(
            image=image, prompt=prompt, world=world, difficulty=difficulty, preset=preset, generator=generator,
            planner=planner, verifier=verifier, strategy=strategy, gate=gate, seed=seed, max_steps=max_steps,
            max_attempts=max_attempts, budget=budget, priority=priority, webhook=webhook, watch=watch,
        )  # fmt: skip
        return submit_command(request, Contact(terminal, url))


@jobs_app.command(rich_help_panel=TALK, help=WATCH_HELP)
def watch(job: Id, url: Url = None, json: Json = False) -> int:
    with opened(json) as terminal:
        from cliploop.commands.talking import Contact
        from cliploop.commands.watching import watch_command

        return watch_command(job, Contact(terminal, url))


@jobs_app.command(rich_help_panel=TALK, help=DOWNLOAD_HELP)
def download(
    job: Id,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="DIR", help="Where to. [dim]\\[default: out/<id>][/dim]"),
    ] = None,
    clips: Annotated[bool, flag("--clips", help="The clip of every attempt too, under steps/.")] = False,
    url: Url = None,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.download import download_command
        from cliploop.commands.talking import Contact

        return download_command(job, output, clips, Contact(terminal, url))


@jobs_app.command("list", rich_help_panel=TALK, help=LIST_HELP)
def list_jobs(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only jobs in it; may be given several times."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="So many at most.")] = 20,
    url: Url = None,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.jobs import list_command
        from cliploop.commands.talking import Contact

        return list_command(state or (), limit, Contact(terminal, url))


@jobs_app.command(rich_help_panel=TALK, help="Ask a job to stop; what it has made so far stays.")
def cancel(job: Id, url: Url = None, json: Json = False) -> int:
    with opened(json) as terminal:
        from cliploop.commands.jobs import cancel_command
        from cliploop.commands.talking import Contact

        return cancel_command(job, Contact(terminal, url))


@jobs_app.command(rich_help_panel=TALK, help=RETRY_HELP)
def retry(
    job: Id,
    max_steps: MaxSteps = None,
    max_attempts: MaxAttempts = None,
    seed: Seed = None,
    budget: BudgetText = None,
    priority: Priority = None,
    url: Url = None,
    watch: Watch = False,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.jobs import Changes, retry_command
        from cliploop.commands.talking import Contact

        changes = Changes(max_steps, max_attempts, seed, budget, priority, watch)
        return retry_command(job, changes, Contact(terminal, url))


@jobs_app.command(rich_help_panel=TALK, help=FORK_HELP)
def fork(
    job: Id,
    from_step: Annotated[
        int, option("--from-step", metavar="T", help="The first step that is done anew.", panel=TASK)
    ],
    instruction: Annotated[
        str | None,
        typer.Option(
            "--instruction",
            "--prompt",
            metavar="TEXT|FILE",
            show_default=False,
            help="What that step does, instead of its plan.",
            rich_help_panel=TASK,
        ),
    ] = None,
    max_steps: MaxSteps = None,
    max_attempts: MaxAttempts = None,
    seed: Seed = None,
    budget: BudgetText = None,
    priority: Priority = None,
    url: Url = None,
    watch: Watch = False,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.jobs import Changes, fork_command
        from cliploop.commands.talking import Contact

        changes = Changes(max_steps, max_attempts, seed, budget, priority, watch)
        return fork_command(job, from_step, instruction, changes, Contact(terminal, url))


@jobs_app.command(rich_help_panel=TALK, help="Stop a job and remove it with its files; it says what is gone.")
def delete(job: Id, url: Url = None, json: Json = False) -> int:
    with opened(json) as terminal:
        from cliploop.commands.jobs import delete_command
        from cliploop.commands.talking import Contact

        return delete_command(job, Contact(terminal, url))
