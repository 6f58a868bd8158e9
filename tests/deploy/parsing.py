"""Whether a command line is one that the product understands, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import typer.main

from cliploop.app import app


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The options of its last command, as they would be given to it. Raises the usage error."""
    command = cast("Any", typer.main.get_command(app))
    name, rest = words[0], list(words[1:])
    assert name == "cliploop"
    context: Any = None
    while True:
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            return context.params
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
