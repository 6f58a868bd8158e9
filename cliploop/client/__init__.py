"""A client of the HTTP API, blocking and asynchronous: submit a job, follow it, fetch what it made.

    with Client("http://127.0.0.1:8000") as client:
        job = client.submit("maze.png", "The red circle moves to the exit.", max_steps=6)
        for event in client.events(job.id):
            print(event.number, event.kind, event.key)
        client.download(job.id, "video.mp4")

`AsyncClient` has the same calls, to be awaited. Nothing is read from the environment. Errors: `ClientError`.
"""

from cliploop.client.answers import (
    Artifact,
    Backend,
    Downloaded,
    Event,
    Job,
    JobPage,
    Preset,
    Progress,
    Readiness,
    Sample,
    Webhook,
    World,
)
from cliploop.client.clients import AsyncClient, Client
from cliploop.client.errors import (
    ClientError,
    KeyRefused,
    NotThere,
    NotUnderstood,
    RequestRejected,
    ServerFailed,
    ServerUnreachable,
    StillGoing,
    TryLater,
    WrongMoment,
)

__all__ = [
    "Artifact",
    "AsyncClient",
    "Backend",
    "Client",
    "ClientError",
    "Downloaded",
    "Event",
    "Job",
    "JobPage",
    "KeyRefused",
    "NotThere",
    "NotUnderstood",
    "Preset",
    "Progress",
    "Readiness",
    "RequestRejected",
    "Sample",
    "ServerFailed",
    "ServerUnreachable",
    "StillGoing",
    "TryLater",
    "Webhook",
    "World",
    "WrongMoment",
]
