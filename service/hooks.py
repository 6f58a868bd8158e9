"""A submission's webhook: what a client says of it and is shown of it. The secret is shown once at most."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cliploop.site import Site
from orchestrator.errors import TaskRejected
from service.tally import Tally
from storage import addresses, webhooks
from storage.addresses import AddressRefused, NotPublic
from storage.delivering import webhook_rules
from storage.webhooks import Webhook, is_secret, new_secret

MAX_URL_CHARS = addresses.MAX_URL_CHARS
MAX_SECRET_CHARS = 200


def in_form(secret: str | None) -> str | None:
    """The secret, if it is one. Raises ValueError, which does not repeat it."""
    if secret is not None and not is_secret(secret):
        raise ValueError("write whsec_ and 24 to 64 bytes in base64, or leave it out: one is made then")
    return secret


class Hook(BaseModel):
    """Where a job's news goes: job.waiting, job.succeeded, job.failed, job.cancelled, as Standard Webhooks.

    Each is sent until a 2xx answers it: at once, then after 5 s, 30 s, 2, 10 and 30 min, 1, 2, 4 and 8 h,
    or when Retry-After says; always with the same webhook-id, in the order of the job's changes. 410 ends it.
    """

    model_config = ConfigDict(extra="forbid")

    url: str = Field(
        max_length=MAX_URL_CHARS,
        description="A public https or http address.",
        examples=["https://example.org/cliploop"],
    )
    secret: str | None = Field(
        default=None,
        max_length=MAX_SECRET_CHARS,
        repr=False,
        description="whsec_ and 24 to 64 bytes in base64; if none is given, one is made and told in the answer.",
    )

    @field_validator("secret")
    @classmethod
    def _in_form(cls, secret: str | None) -> str | None:
        return in_form(secret)


class HookView(BaseModel):
    """How a job's webhook stands: changes told, still to be told, and given up after their last try."""

    url: str
    delivered: int
    pending: int
    given_up: int
    last_error: str | None = Field(default=None, description="Of the latest change that was not taken at once.")
    next_at: float | None = Field(default=None, description="When the next try is, in seconds since the epoch.")


class HookData(BaseModel):
    """The job as it stood after the change; times are seconds since the epoch."""

    id: str
    object: Literal["job"] = "job"
    state: Literal["waiting", "succeeded", "failed", "cancelled"]
    reason: str | None = Field(description="Why it waits.")
    outcome: str | None = Field(description="completed or exhausted, of a job that succeeded.")
    message: str
    at: str | None = Field(description="Where in the job it waits.")
    preset: str
    parent_id: str | None
    submitted_at: float


class HookNews(BaseModel):
    """What a webhook is sent: the same at every try."""

    type: Literal["job.waiting", "job.succeeded", "job.failed", "job.cancelled"]
    timestamp: str = Field(description="When the job changed, as RFC 3339 writes it.")
    data: HookData


def checked(site: Site, hook: Hook | None) -> Webhook | None:
    """The webhook to store, with a secret. Raises TaskRejected for an address that may not be told."""
    if hook is None:
        return None
    rules = webhook_rules(private=site.composition.settings.service.private_webhooks)
    try:
        addresses.read(hook.url, rules)
    except AddressRefused as refused:
        why = "" if rules.private else "; whoever runs this server decides of that ([service] private_webhooks)"
        remedy = why if isinstance(refused, NotPublic) else ""
        raise TaskRejected(f"webhook: {refused}{remedy}", reason="webhook") from refused
    return Webhook(hook.url, hook.secret or new_secret())


def made_secret(site: Site, hook: Hook | None, job_id: str) -> str | None:
    """The secret that was made for the job, for its submission's answer; None where the client gave one."""
    if hook is None or hook.secret is not None:
        return None
    stored = webhooks.webhook_of(site.database, job_id)
    return None if stored is None else stored.secret


def hook_view(site: Site, tally: Tally, job_id: str) -> HookView | None:
    """How it stands. Whether a job has one never changes: who has none is asked once."""
    if tally.has_webhook is False:
        return None
    told = webhooks.told(site.database, job_id)
    tally.has_webhook = told is not None
    if told is None:
        return None
    return HookView(
        url=told.url,
        delivered=told.delivered,
        pending=told.pending,
        given_up=told.given_up,
        last_error=told.last_error,
        next_at=told.next_at,
    )
