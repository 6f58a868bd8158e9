"""Which methods an address takes: what a refusal of another one has to say (RFC 9110, Allow)."""

from __future__ import annotations

from fastapi import Request
from starlette.routing import Match

_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


def allowed(request: Request) -> str:
    """All that any route at this address takes, as the header has it."""
    routes = request.app.router.routes
    return ", ".join(
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    )
