"""Client and AsyncClient: the same flows, one driven blocking, the other asynchronously."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from cliploop.client import downloading, following, routes
from cliploop.client.answers import Event, Job
from cliploop.client.sending import URL, AsyncConnection, Connection, Server
from cliploop.client.wire import Action, Emit, Flow, Lost, Patience

P = ParamSpec("P")
T = TypeVar("T")
TIMEOUT_SECONDS = 30.0
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Done:
    """A flow's own value, after all that it emitted."""

    value: Any


def _next(flow: Flow[Any], said: Any, lost: Lost | None) -> Action | Done:
    try:
        return flow.throw(lost) if lost is not None else flow.send(said)
    except StopIteration as end:
        return Done(end.value)


C = TypeVar("C", bound=Callable[..., Any])


def _as_method(call: C, flow: Callable[..., Any], returns: Any) -> C:
    """With the signature that its callers see: `self` in the place of what a flow is given first."""
    told = inspect.signature(flow)
    _, *rest = told.parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    shown: Any = call
    shown.__signature__ = told.replace(parameters=[own, *rest], return_annotation=returns)
    said = {name: kind for name, kind in flow.__annotations__.items() if name != "patience"}
    shown.__annotations__ = {**said, "return": returns}
    return call


def _value_of(flow: Callable[..., Any]) -> Any:
    """What a flow returns at its end: Flow[Job] is a generator whose last argument is Job."""
    value = typing.get_args(typing.get_type_hints(flow)["return"])[-1]
    return None if value is type(None) else value


def blocking(flow: Callable[Concatenate[Patience, P], Flow[T]]) -> Callable[Concatenate[Client, P], T]:
    """The flow as a method of Client."""

    @functools.wraps(flow)
    def call(self: Client, *args: P.args, **kwargs: P.kwargs) -> T:
        for value in self._driven(flow(self.patience, *args, **kwargs)):
            if isinstance(value, Done):
                return value.value
        raise AssertionError("a flow ends with its value")

    return _as_method(call, flow, _value_of(flow))


def iterating(
    flow: Callable[Concatenate[Patience, P], Flow[None]], _of: type[T]
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    """What the flow emits, as an iterator."""

    @functools.wraps(flow)
    def call(self: Client, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        for value in self._driven(flow(self.patience, *args, **kwargs)):
            if not isinstance(value, Done):
                yield value

    return _as_method(call, flow, Iterator[_of])


def awaited(
    flow: Callable[Concatenate[Patience, P], Flow[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The flow as a method of AsyncClient."""

    @functools.wraps(flow)
    async def call(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> T:
        async for value in self._driven(flow(self.patience, *args, **kwargs)):
            if isinstance(value, Done):
                return value.value
        raise AssertionError("a flow ends with its value")

    return _as_method(call, flow, _value_of(flow))


def aiterating(
    flow: Callable[Concatenate[Patience, P], Flow[None]], _of: type[T]
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    """What the flow emits, as an asynchronous iterator."""

    @functools.wraps(flow)
    async def call(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        driven = self._driven(flow(self.patience, *args, **kwargs))
        try:
            async for value in driven:
                if not isinstance(value, Done):
                    yield value
        finally:
            await driven.aclose()

    return _as_method(call, flow, AsyncIterator[_of])


class Client(Server):
    """A client that blocks; safe to share between threads.

    `timeout`: seconds until an answer begins. `patience_seconds`: how long a server that is away or busy is
    asked again, from its last sign of life. `transport`: what httpx sends with. Raises ValueError for what is no
    address or no key. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        url: str = URL,
        api_key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, api_key, timeout=timeout, patience_seconds=patience_seconds)
        self._http = httpx.Client(**self._options, transport=transport)

    submit = blocking(routes.submit)
    upload = blocking(routes.upload)
    get = blocking(routes.get)
    page = blocking(routes.page)
    list = iterating(routes.every, Job)
    events = iterating(following.events, Event)
    wait = blocking(following.wait)
    trajectory = blocking(routes.trajectory)
    download = blocking(downloading.download)
    cancel = blocking(routes.cancel)
    delete = blocking(routes.delete)
    retry = blocking(routes.retry)
    fork = blocking(routes.fork)
    review = blocking(routes.review)
    health = blocking(routes.health)
    ready = blocking(routes.ready)
    presets = blocking(routes.presets)
    generators = blocking(routes.generators)
    planners = blocking(routes.planners)
    verifiers = blocking(routes.verifiers)
    worlds = blocking(routes.worlds)
    sample = blocking(routes.sample)

    def close(self) -> None:
        """Give back its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _driven(self, flow: Flow[Any]) -> Generator[Any]:
        """What it emits, and at the end Done."""
        connection, said, lost = Connection(self, self._http), None, None
        try:
            while not isinstance(action := _next(flow, said, lost), Done):
                said = lost = None
                if isinstance(action, Emit):
                    yield action.value
                    continue
                try:
                    said = connection.act(action)
                except httpx.HTTPError as error:
                    lost = self._lost(error)
            yield action
        finally:
            flow.close()
            connection.close()


class AsyncClient(Server):
    """The same calls for asyncio: one client for a loop. See Client.

    Files are read and written in place: meanwhile the loop waits for the disk.
    """

    def __init__(
        self,
        url: str = URL,
        api_key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, api_key, timeout=timeout, patience_seconds=patience_seconds)
        self._http = httpx.AsyncClient(**self._options, transport=transport)

    submit = awaited(routes.submit)
    upload = awaited(routes.upload)
    get = awaited(routes.get)
    page = awaited(routes.page)
    list = aiterating(routes.every, Job)
    events = aiterating(following.events, Event)
    wait = awaited(following.wait)
    trajectory = awaited(routes.trajectory)
    download = awaited(downloading.download)
    cancel = awaited(routes.cancel)
    delete = awaited(routes.delete)
    retry = awaited(routes.retry)
    fork = awaited(routes.fork)
    review = awaited(routes.review)
    health = awaited(routes.health)
    ready = awaited(routes.ready)
    presets = awaited(routes.presets)
    generators = awaited(routes.generators)
    planners = awaited(routes.planners)
    verifiers = awaited(routes.verifiers)
    worlds = awaited(routes.worlds)
    sample = awaited(routes.sample)

    async def close(self) -> None:
        """Give back its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def _driven(self, flow: Flow[Any]) -> AsyncGenerator[Any]:
        """What it emits, and at the end Done."""
        connection, said, lost = AsyncConnection(self, self._http), None, None
        try:
            while not isinstance(action := _next(flow, said, lost), Done):
                said = lost = None
                if isinstance(action, Emit):
                    yield action.value
                    continue
                try:
                    said = await connection.act(action)
                except httpx.HTTPError as error:
                    lost = self._lost(error)
            yield action
        finally:
            flow.close()
            await connection.close()
