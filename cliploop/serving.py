"""What an operator sets for the service: `[service]` of cliploop.toml, or CLIPLOOP_SERVICE__KEY. Shapes only."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Serving(BaseModel):
    """How the service keeps, limits and fetches. None = no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    retention_days: float | None = Field(default=None, gt=0)  # jobs that ended longer ago are deleted
    sweep_after_seconds: float = Field(default=3600.0, ge=0)  # an artifact that nobody holds is kept so long
    upload_keep_hours: float = Field(default=24.0, gt=0)  # an uploaded picture waits so long for its job
    min_free_gib: float = Field(default=1.0, ge=0)  # with less free disk, jobs wait with reason `disk`
    max_upload_mib: float = Field(default=32.0, gt=0)  # a request's whole body
    requests_per_minute: int | None = Field(default=None, ge=1)  # of a key that has no figure of its own
    concurrent_jobs: int | None = Field(default=None, ge=1)  # likewise
    fetch_urls: bool = False  # whether a picture may be named by a public https address
    private_webhooks: bool = False  # whether webhooks may go to addresses that are not public
