"""Messages between processes: RQ on Redis. Only wake-up calls: the truth is in SQL, and duplicates are harmless.

Functions are named by strings, arguments are JSON, ids are always new. Who takes a message has taken it off the
queue for good: what a killed process had taken is sent again by the reaper. What others put into the broker is
skipped, or taken off and dropped.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError, ResponseError
from redis.retry import Retry
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage import beats
from storage.tables import Priority

REASON = "reason"
PRIORITIES: tuple[Priority, ...] = ("high", "normal", "low")
ADVANCE = "workers.reason.advance"
RENDER = "workers.render.render"
_NUM_ARGUMENTS = {ADVANCE: 1, RENDER: 2}
_OF = "__"  # between a message's job and its own name; RQ allows letters, digits, - and _ in an id
_COUNTS = "cliploop:counts"
_RENDERS = "render:"
ANSWER_SECONDS = 5.0  # longer than any wait for a message
PING_SECONDS = 2.0
WORDS_KEPT_SECONDS = 3600  # of a job's progress, which is transient
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Message:
    """A call that was taken off a queue."""

    function: str
    arguments: tuple[str, ...]
    queue: str


def render_queue(generator: str, priority: Priority) -> str:
    """The queue of a generator's clips."""
    return f"{_RENDERS}{generator}:{priority}"


def render_queues(generator: str) -> list[str]:
    """All of a generator's queues, the most urgent first."""
    return [render_queue(generator, priority) for priority in PRIORITIES]


class Messages:
    """Sends and takes messages, and tells watchers that there is news. `url`: redis://…, rediss://… or unix://….

    Raises BackendMisconfigured for a URL that is none, and BackendUnavailable whenever the broker is away.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._redis: Any = cast("Any", Redis).from_url(
                url,
                socket_connect_timeout=5.0,
                socket_timeout=ANSWER_SECONDS,
                health_check_interval=30,
                # A broker that was restarted has closed the connections that we keep; one that does not
                # answer is not asked again.
                retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
            )
            self._redis.connection_pool.make_connection()  # contacts nobody, but reads the URL's options
        except (ValueError, TypeError):  # what they say may hold a password
            raise BackendMisconfigured("the broker's URL cannot be read: write redis://host:6379/0") from None

    def advance(self, job_id: str) -> None:
        """Have some reason worker go on with the job."""
        self._send(REASON, ADVANCE, job_id)

    def render(self, generator: str, priority: Priority, job_id: str, key: str, *, first: bool = False) -> None:
        """Have a worker of that generator render the clip `key` of the job, before all that wait if `first`."""
        self._send(render_queue(generator, priority), RENDER, job_id, key, first=first)

    def take(self, queues: Sequence[str], seconds: float) -> Message | None:
        """The next message, from the first queue that has one.

        None if none came in that time (whole seconds), or if what came is none of ours.
        """
        with _reached():
            keys = {str(self._queue(name).key): name for name in queues}
            taken = self._redis.blpop(list(keys), max(1, round(seconds)))
            return None if taken is None else self._opened(keys[taken[0].decode()], taken[1])

    def _opened(self, queue: str, id: bytes) -> Message | None:
        """The message of that id, which is off the queue; nothing of it stays in the broker."""
        kept_at = Job.redis_job_namespace_prefix.encode() + id
        try:
            if not self._redis.exists(kept_at):
                return None
            call = cast("Any", Job).fetch(id.decode(), connection=self._redis, serializer=JSONSerializer)
            message = Message(str(call.func_name), tuple(map(str, call.args)), queue)
            if len(message.arguments) != _NUM_ARGUMENTS.get(message.function, -1):
                raise ValueError(f"{message.function[:100]} with {len(message.arguments)} arguments")
        except Exception as error:
            if isinstance(error, RedisError | OSError) and not isinstance(error, ResponseError):
                raise
            _log.warning("dropped from the queue %s what is no message of ours: %r", queue, error)
            message = None
        self._redis.delete(kept_at)
        return message

    def waiting(self) -> set[str]:
        """The jobs that some message in some queue is about."""
        with _reached():
            ids = [id for key in self._ours() for id in self._redis.lrange(key, 0, -1)]
            return {id.decode(errors="replace").partition(_OF)[0] for id in ids}

    def depths(self) -> dict[str, int]:
        """How many messages wait in each queue of ours that has any."""
        with _reached():
            counts = {name: int(self._redis.llen(key)) for key, name in self._ours().items()}
            return {name: count for name, count in counts.items() if count}

    def _ours(self) -> dict[str, str]:
        """The names of our queues, by key. What is none but stands in the place of one is removed."""
        begin = Queue.redis_queue_namespace_prefix
        known = [key.decode(errors="replace") for key in self._redis.smembers(Queue.redis_queues_keys)]
        names = {key: key.removeprefix(begin) for key in known if key.startswith(begin)}
        ours = {key: name for key, name in names.items() if name == REASON or name.startswith(_RENDERS)}
        for key in list(ours):
            if self._redis.type(key) not in (b"list", b"none"):
                _log.warning("removed from the broker: %s, which is no queue", key)
                self._redis.delete(key)
        return ours

    def ages(self) -> dict[str, float]:
        """How long the oldest message of each queue that has any has waited, in seconds."""
        ages: dict[str, float] = {}
        with _reached():
            for name in self.depths():
                for id in self._redis.lrange(self._queue(name).key, 0, 0):
                    with contextlib.suppress(ResponseError, ValueError, TypeError):  # what others put there
                        sent = self._redis.hget(Job.redis_job_namespace_prefix.encode() + id, "created_at")
                        if sent is not None:
                            at = datetime.fromisoformat(sent.decode().replace("Z", "+00:00"))
                            ages[name] = max(0.0, (datetime.now(UTC) - at).total_seconds())
        return ages

    def tell(self, job_id: str, words: dict[str, Any], kind: Literal["news", "progress"] = "news") -> None:
        """Wake who watches the job. Progress is also kept for a while, for those who ask later."""
        with _reached():
            if kind == "progress":
                self._redis.set(_progress_key(job_id), json.dumps(words), ex=WORDS_KEPT_SECONDS)
            self._redis.publish(_channel(job_id), json.dumps({"kind": kind, **words}))

    def progress(self, job_id: str) -> dict[str, Any] | None:
        """What was last told of the job's progress, if it is still known."""
        with _reached():
            words = self._redis.get(_progress_key(job_id))
            return None if words is None else _read(words)

    def heard(self, job_ids: Sequence[str], seconds: float) -> Iterator[dict[str, Any] | None]:
        """What is told of these jobs, as it comes; None whenever nothing of ours came in that time."""
        with _reached(), contextlib.closing(self._redis.pubsub(ignore_subscribe_messages=True)) as ear:
            ear.subscribe(*map(_channel, job_ids))
            while True:
                said = ear.get_message(timeout=seconds)
                yield None if said is None else _read(said["data"])

    def overheard(self, seconds: float) -> Iterator[tuple[str, dict[str, Any]] | None]:
        """What is told of any job, with the job's id; None whenever nothing of ours came in that time."""
        with _reached(), contextlib.closing(self._redis.pubsub(ignore_subscribe_messages=True)) as ear:
            ear.psubscribe(_channel("*"))
            while True:
                said = ear.get_message(timeout=seconds)
                words = None if said is None else _read(said["data"])
                if said is None or words is None:
                    yield None
                else:
                    yield said["channel"].decode(errors="replace").removeprefix(_channel("")), words

    def beat(self, worker: str, generators: Sequence[str] = ()) -> None:
        """Note that this worker lives and renders these; forgotten soon, unless it says so again."""
        with _reached():
            beats.note(self._redis, worker, generators)

    def forget_beat(self, worker: str) -> None:
        """It has ended."""
        with _reached():
            beats.forget(self._redis, worker)

    def beating(self) -> list[str]:
        """The workers that live, by name."""
        with _reached():
            return beats.living(self._redis)

    def crew(self) -> dict[str, tuple[str, ...]]:
        """The workers that live, with the generators of those that render."""
        with _reached():
            return beats.crew(self._redis)

    def pool(self, seconds: float) -> ConnectionPool:
        """Other connections to the same broker, on which nobody waits longer than that for an answer."""
        return cast("Any", ConnectionPool).from_url(
            self._url, socket_connect_timeout=seconds, socket_timeout=seconds, retry=Retry(NoBackoff(), 1)
        )

    def count(self, what: str, times: int = 1) -> None:
        """Count something for the metrics of the whole service; a new broker begins at nought.

        A count that somebody else overwrote is lost; it is in nobody's way.
        """
        with _reached(), contextlib.suppress(ResponseError):
            self._redis.hincrby(_COUNTS, what, times)

    def counted(self) -> dict[str, int]:
        """How often what was counted has happened, all processes together."""
        with _reached():
            counts = self._redis.hgetall(_COUNTS).items()
            return {name.decode(errors="replace"): int(count) for name, count in counts if count.isdigit()}

    def ping(self) -> None:
        """Raise BackendUnavailable if the broker is away."""
        with _reached(), cast("Any", Redis)(connection_pool=self.pool(PING_SECONDS)) as asker:
            asker.ping()

    def close(self) -> None:
        """Give back every connection."""
        self._redis.close()

    def _queue(self, name: str) -> Any:
        return Queue(name, connection=self._redis, serializer=JSONSerializer, default_timeout=-1)

    def _send(self, queue: str, function: str, *arguments: str, first: bool = False) -> None:
        with _reached():
            # No time limit by RQ: its alarm would be caught as an ordinary error. Ours is in the worker.
            self._queue(queue).enqueue_call(
                function,
                args=arguments,
                timeout=-1,
                result_ttl=0,
                failure_ttl=0,
                at_front=first,
                job_id=f"{arguments[0]}{_OF}{secrets.token_hex(8)}",
            )


def _read(words: bytes) -> dict[str, Any] | None:
    """What was told; None where it is nothing that we tell."""
    try:
        read: Any = json.loads(words)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", read) if isinstance(read, dict) else None


def _channel(job_id: str) -> str:
    return f"cliploop:job:{job_id}"


def _progress_key(job_id: str) -> str:
    return f"cliploop:progress:{job_id}"


@contextlib.contextmanager
def _reached() -> Generator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise BackendUnavailable(
            f"the broker cannot be reached ({error}): is it running?",
            outside="the broker cannot be reached now: try again later",
        ) from error
