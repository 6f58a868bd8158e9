"""The command line's part that talks to a server: submit a job, follow it, fetch what it made."""

from __future__ import annotations

import typer

jobs_app = typer.Typer()
