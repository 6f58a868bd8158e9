"""Pictures are worked on a few at a time; who comes while too many wait is told when to come back."""

from __future__ import annotations

import threading

import anyio
import pytest

from orchestrator.errors import BackendUnavailable
from service.picturing import Desk, normalised
from tests.media.uploaded import pixels, png, saved, two_halves


def test_so_many_are_worked_on_at_once_and_so_many_wait() -> None:
    begun, end = threading.Semaphore(0), threading.Event()
    running: list[int] = []
    most: list[int] = []

    def work(number: int) -> int:
        running.append(number)
        most.append(len(running))
        begun.release()
        assert end.wait(60)
        running.remove(number)
        return number

    async def go() -> list[int]:
        desk, done = Desk(at_once=2, waiting=3), list[int]()

        async def ask(number: int) -> None:
            done.append(await desk.work(work, number))

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(ask, number)
            for _ in range(2):
                await anyio.to_thread.run_sync(begun.acquire)
            with pytest.raises(BackendUnavailable) as refused:
                await desk.work(work, 5)
            assert refused.value.retry_after_seconds
            end.set()
        return sorted(done)

    assert anyio.run(go) == [0, 1, 2, 3, 4]
    assert max(most) <= 2


@pytest.mark.parametrize("data", [saved(two_halves(), "PNG"), png(2100, 2000, 1, 0, bytes(2000 * 264))])
def test_small_and_large_pictures_come_out_as_uploads_do(data: bytes) -> None:
    upload = normalised(data)
    assert pixels(upload).shape == (upload.size.height, upload.size.width, 3)
