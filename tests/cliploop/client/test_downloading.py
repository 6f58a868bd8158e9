"""Downloads: whole or not there, gone on with where they stopped, and never of two contents."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from cliploop.client import Client, NotThere, NotUnderstood, ServerUnreachable, WrongMoment
from tests.cliploop.client.conftest import submitted
from tests.cliploop.client.connections import Calls, after, after_bytes, losing


@pytest.fixture(scope="module")
def video(address: str, finished: str) -> httpx.Response:
    return httpx.get(f"{address}/v1/jobs/{finished}/video", trust_env=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def tag_of(response: httpx.Response) -> str:
    return response.headers["etag"].strip('"')


def test_the_files_of_a_job_are_fetched_whole(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path
) -> None:
    pieces: list[tuple[int, int | None]] = []

    def note(so_far: int, whole: int | None) -> None:
        pieces.append((so_far, whole))

    got = calls("download", finished, tmp_path / "video.mp4", on_bytes=note)
    assert (tmp_path / "video.mp4").read_bytes() == video.content
    assert (got.num_bytes, got.resumed_at) == (len(video.content), 0)
    assert pieces[-1] == (got.num_bytes, got.num_bytes)
    calls("download", finished, str(tmp_path / "sheet.png"), what="contact-sheet")
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")
    calls("download", finished, tmp_path / "clip.mp4", what="clip", step=1, attempt=1)
    assert b"ftyp" in (tmp_path / "clip.mp4").read_bytes()[:16]
    assert names(tmp_path) == ["clip.mp4", "sheet.png", "video.mp4"]


def test_a_lost_connection_is_gone_on_with(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path
) -> None:
    head = b"\r\n\r\n"

    def thousand(seen: bytes) -> int | None:
        at = seen.find(head)
        return at + len(head) + 1000 if at >= 0 and len(seen) >= at + len(head) + 1000 else None

    with losing(calls.address, thousand, thousand) as lossy:
        got = calls.through(lossy)("download", finished, tmp_path / "video.mp4")
    assert (tmp_path / "video.mp4").read_bytes() == video.content
    assert got.num_bytes == len(video.content)
    assert names(tmp_path) == ["video.mp4"]


def test_what_an_interrupted_download_left_is_gone_on_with(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path
) -> None:
    def interrupt(so_far: int, _whole: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Calls("blocking", calls.address)("download", finished, tmp_path / "video.mp4", on_bytes=interrupt)
    (part,) = names(tmp_path)
    assert tag_of(video) in part
    part_file = tmp_path / part
    part_file.write_bytes(video.content[:777])
    got = calls("download", finished, tmp_path / "video.mp4")
    assert got.resumed_at == 777
    assert (tmp_path / "video.mp4").read_bytes() == video.content
    assert names(tmp_path) == ["video.mp4"]


@pytest.mark.parametrize("left", [b"", b"all of it", b"more than all of it"])
def test_a_part_that_is_empty_whole_or_too_long_comes_out_right(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path, left: bytes
) -> None:
    content = {b"": b"", b"all of it": video.content}.get(left, video.content + b"more")
    (tmp_path / f".video.mp4.{tag_of(video)}.part").write_bytes(content)
    calls("download", finished, tmp_path / "video.mp4")
    assert (tmp_path / "video.mp4").read_bytes() == video.content
    assert names(tmp_path) == ["video.mp4"]


def test_the_part_of_another_content_is_not_gone_on_with(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path
) -> None:
    (tmp_path / f".video.mp4.{'0' * 64}.part").write_bytes(b"of another video")
    got = calls("download", finished, tmp_path / "video.mp4")
    assert got.resumed_at == 0
    assert (tmp_path / "video.mp4").read_bytes() == video.content
    assert names(tmp_path) == ["video.mp4"]


def test_what_cannot_be_had_leaves_nothing(calls: Calls, client: Client, finished: str, tmp_path: Path) -> None:
    queued = submitted(client)
    with pytest.raises(WrongMoment) as early:
        calls("download", queued, tmp_path / "video.mp4")
    assert early.value.code == "not_ready"
    assert early.value.retry_after_seconds
    client.delete(queued)
    with pytest.raises(NotThere):
        calls("download", queued, tmp_path / "video.mp4")
    with pytest.raises(NotThere):
        calls("download", finished, tmp_path / "clip.mp4", what="clip", step=99, attempt=1)
    with pytest.raises(IsADirectoryError):
        calls("download", finished, tmp_path)
    with pytest.raises(FileNotFoundError):
        calls("download", finished, tmp_path / "nowhere" / "video.mp4")
    with pytest.raises(ValueError, match="attempt"):
        calls("download", finished, tmp_path / "clip.mp4", what="clip", step=1)
    assert names(tmp_path) == []


def test_a_file_that_is_there_is_replaced_only_by_a_whole_one(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path
) -> None:
    target = tmp_path / "video.mp4"
    target.write_bytes(b"before")
    with losing(calls.address, *[after(b"\r\n\r\n")] * 50) as lossy:
        impatient = Calls(calls.kind, lossy, patience_seconds=0.4)
        with pytest.raises(ServerUnreachable):
            impatient("download", finished, target)
    assert target.read_bytes() == b"before"
    calls("download", finished, target)
    assert target.read_bytes() == video.content


def test_two_downloads_to_one_name_at_once_come_out_whole(
    calls: Calls, finished: str, video: httpx.Response, tmp_path: Path
) -> None:
    results: list[Any] = []

    def fetch() -> None:
        results.append(calls("download", finished, tmp_path / "video.mp4").num_bytes)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [len(video.content)] * 4
    assert (tmp_path / "video.mp4").read_bytes() == video.content
    assert names(tmp_path) == ["video.mp4"]


def test_bytes_after_the_head_alone_are_no_answer(calls: Calls, finished: str, tmp_path: Path) -> None:
    with losing(calls.address, after_bytes(20)) as lossy:
        calls.through(lossy)("download", finished, tmp_path / "video.mp4")
    assert names(tmp_path) == ["video.mp4"]


# --- a server that lies --------------------------------------------------------------------------------------

CONTENT = bytes(range(256)) * 40


@dataclass(frozen=True)
class Said:
    """One answer: what it says of itself, and what comes of it. `cut`: the connection is lost after it."""

    status: int
    data: bytes
    headers: dict[str, str]
    cut: bool = False


def whole(data: bytes = CONTENT, tag: str = "aaa", headers: dict[str, str] | None = None) -> Said:
    return Said(200, data, {"ETag": f'"{tag}"', "Content-Length": str(len(data)), **(headers or {})})


def first(number: int, data: bytes = CONTENT, tag: str = "aaa") -> Said:
    return replace(whole(data, tag), data=data[:number], cut=True)


def rest(span: str, data: bytes, tag: str = "aaa", **headers: str) -> Said:
    length = {"Content-Length": str(len(data))}
    return Said(206, data, {"ETag": f'"{tag}"', "Content-Range": f"bytes {span}", **length, **headers})


class Pieces(httpx.SyncByteStream):
    def __init__(self, said: Said) -> None:
        self._said = said

    def __iter__(self) -> Iterator[bytes]:
        yield self._said.data
        if self._said.cut:
            raise httpx.ReadError("cut off")


def answering(asked: list[httpx.Request], *answers: Said) -> httpx.MockTransport:
    """The answers in their order, the last one again and again."""

    def answer(request: httpx.Request) -> httpx.Response:
        said = answers[min(len(asked), len(answers) - 1)]
        asked.append(request)
        return httpx.Response(said.status, headers=said.headers, stream=Pieces(said))

    return httpx.MockTransport(answer)


@pytest.mark.parametrize(
    "lie",
    [
        rest("3000-3009/10240", CONTENT[3000:3010]),
        rest("3000-10239/10240", CONTENT[3000:], tag="bbb"),
        rest("3000-10239/*", CONTENT[3000:]),
        rest("2999-10239/10240", CONTENT[2999:]),
        rest("3000-10238/10239", CONTENT[3000:-1]),
        rest("3000-10239/10240", CONTENT[3000:4000]),
        replace(
            rest("3000-10239/10240", CONTENT[3000:4000]),
            headers={"ETag": '"aaa"', "Content-Range": "bytes 3000-10239/10240"},
        ),
        rest("3000-10239/10240", CONTENT[:7240], **{"Repr-Digest": "sha-256=:" + "A" * 43 + "=:"}),
        Said(416, b"", {"Content-Range": "bytes */3000", "ETag": '"bbb"'}),
    ],
)
def test_what_does_not_fit_to_what_is_there_is_dropped_and_all_is_fetched_anew(tmp_path: Path, lie: Said) -> None:
    asked: list[httpx.Request] = []
    with Client(transport=answering(asked, first(3000), lie, whole())) as client:
        got = client.download("job-1", tmp_path / "video.mp4")
    assert [request.headers.get("range") for request in asked] == [None, "bytes=3000-", None]
    assert (got.num_bytes, got.resumed_at) == (len(CONTENT), 0)
    assert (tmp_path / "video.mp4").read_bytes() == CONTENT
    assert names(tmp_path) == ["video.mp4"]


@pytest.mark.parametrize(
    "lie",
    [
        [Said(200, CONTENT, {"ETag": '"aaa"'})],
        [whole(headers={"Content-Encoding": "gzip"})],
        [rest("0-10239/10240", CONTENT)],
        [whole(headers={"Repr-Digest": "sha-256=:" + "A" * 43 + "=:"})],
        [first(3000), rest("3000-3009/10240", CONTENT[3000:3010])] * 10,
    ],
)
def test_what_cannot_be_checked_or_never_fits_is_not_named(tmp_path: Path, lie: list[Said]) -> None:
    with Client(transport=answering([], *lie)) as client, pytest.raises(NotUnderstood):
        client.download("job-1", tmp_path / "video.mp4")
    assert "video.mp4" not in names(tmp_path)


def test_a_link_in_the_place_of_a_part_is_not_written_through(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".video.mp4.aaa.part").symlink_to(own)
    (folder / ".video.mp4.bbb.part").hardlink_to(own)
    for tag in ("aaa", "bbb"):
        with Client(transport=answering([], whole(tag=tag))) as client:
            client.download("job-1", folder / "video.mp4")
        assert (folder / "video.mp4").read_bytes() == CONTENT
        assert own.read_text() == "mine"
