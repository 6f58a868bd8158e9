"""The command line's part for who runs a service: its API keys, and what it keeps."""

from __future__ import annotations

from typing import Annotated

import typer

from cliploop.options import SERVE, Config, Data, Json, flag, opened

operating_app = typer.Typer()
keys_app = typer.Typer(help="Who may use the API: make a key, revoke one, list them.")
operating_app.add_typer(keys_app, name="keys", rich_help_panel=SERVE)
models_app = typer.Typer(help="Checkpoints: fetch one before it is used.")
operating_app.add_typer(models_app, name="models", rich_help_panel=SERVE)

CREATE_HELP = """
Make an API key. Its secret is printed once, alone on stdout, and stored nowhere.

From the first key on the API answers only requests with a key, and each key sees only its own jobs.

\b
[bold]Examples[/bold]
  cliploop keys create lab --requests-per-minute 120 --concurrent-jobs 8
  CLIPLOOP_API_KEY=$(cliploop keys create me --adopt) cliploop list
"""


@keys_app.command("create", help=CREATE_HELP)
def keys_create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who uses it, for the list.")],
    requests_per_minute: Annotated[
        int | None,
        typer.Option(
            "--requests-per-minute",
            metavar="N",
            help="How often it may ask. [dim]\\[default: of \\[service] in cliploop.toml][/dim]",
        ),
    ] = None,
    concurrent_jobs: Annotated[
        int | None,
        typer.Option("--concurrent-jobs", metavar="N", help="Jobs at a time. [dim]\\[default: likewise][/dim]"),
    ] = None,
    adopt: Annotated[
        bool, flag("--adopt", help="Jobs that were submitted without a key become its own.")
    ] = False,
    data: Data = None,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.keys import Wish, create_command

        return create_command(Wish(name, requests_per_minute, concurrent_jobs, adopt), data, terminal)


@keys_app.command("revoke", help="Have a key work no more; its jobs go on.")
def keys_revoke(
    key: Annotated[str, typer.Argument(metavar="ID|NAME", help="As cliploop keys list names it.")],
    data: Data = None,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.keys import revoke_command

        return revoke_command(key, data, terminal)


@keys_app.command("list", help="Name the keys, never their secrets.")
def keys_list(data: Data = None, json: Json = False) -> int:
    with opened(json) as terminal:
        from cliploop.commands.keys import list_command

        return list_command(data, terminal)


GC_HELP = """
Remove what nobody needs any more, now, instead of within the hour: the service does the same by itself.

What goes: files that no job and no upload has held for an hour (sweep_after_seconds), uploads that no job took \
within a day (upload_keep_hours), jobs that ended longer ago than retention_days if that is set, and what killed \
processes left behind. The times are those of \\[service] in cliploop.toml. It is safe while the service runs.

\b
[bold]Examples[/bold]
  cliploop gc --dry-run
  cliploop gc --data /srv/cliploop
  CLIPLOOP_SERVICE__SWEEP_AFTER_SECONDS=0 cliploop gc    what was deleted a moment ago too
"""


@operating_app.command("gc", rich_help_panel=SERVE, help=GC_HELP)
def gc(
    dry_run: Annotated[bool, flag("--dry-run", help="Only say what would be removed.")] = False,
    strays: Annotated[
        bool,
        flag(
            "--strays",
            help="Unknown files too where they are more than the known ones: "
            "only if no other database uses this store.",
        ),
    ] = False,
    data: Data = None,
    config: Config = None,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.gc import Wish, gc_command

        return gc_command(Wish(dry_run, strays, data, config), terminal)


PULL_HELP = """
Fetch a checkpoint from the hub into the local cache, where runs and workers find it: they fetch nothing by \
themselves. What is here already stays; what broke off goes on where it stopped.

HF_TOKEN opens repositories that ask for it, HF_ENDPOINT names another hub, HF_HOME another cache.

\b
[bold]Examples[/bold]
  cliploop models pull wan22 --dry-run                 what \\[generators.wan22] needs, and how large it is
  cliploop models pull Wan-AI/Wan2.2-TI2V-5B-Diffusers
"""


@models_app.command("pull", help=PULL_HELP)
def models_pull(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A generator of cliploop.toml, or OWNER/REPOSITORY.")
    ],
    dry_run: Annotated[bool, flag("--dry-run", help="Only say what would be fetched.")] = False,
    config: Config = None,
    json: Json = False,
) -> int:
    with opened(json) as terminal:
        from cliploop.commands.models import pull_command

        return pull_command(name, dry_run, config, terminal)
