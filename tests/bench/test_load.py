"""The load bench: its arithmetic, its clients, and each part once, small, on real processes."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator

import pytest

from bench.load import main, parsed
from bench.load_clients import body_of, read, stored_events, watch
from bench.load_figures import (
    Figure,
    Mark,
    Seen,
    busy_share,
    checksum,
    fault_of,
    percentile,
    read_marks,
    slope,
    steady,
    table,
)
from bench.load_overhead import run_of
from storage.journal import Entry

JOURNAL = [Seen(1, "state", 11), Seen(2, "record", 22), Seen(3, "record", 33), Seen(4, "state", 44)]
processes = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


def test_a_serial_loop_keeps_its_generator_busy_for_its_part_of_the_time() -> None:
    marks = [Mark(1.048 * number, 1.048 * number + 0.98) for number in range(1000)]
    assert busy_share(marks) == pytest.approx(0.98 / 1.048, abs=1e-4)


def test_renders_without_a_gap_are_all_of_the_time_and_overlaps_count_once() -> None:
    assert busy_share([Mark(0, 1), Mark(1, 2)]) == 1
    assert busy_share([Mark(0, 2), Mark(1, 2), Mark(3, 4)]) == 0.75
    with pytest.raises(ValueError, match="too few"):
        busy_share([Mark(0, 1)])


def test_only_whole_renders_of_the_steady_time_count() -> None:
    marks = read_marks("0.0 1.0\n2.0 3.0\n1.0 2.0\n3.0 4.5\n")
    assert steady(marks, 0.5, 4.0) == [Mark(1, 2), Mark(2, 3)]


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.99), percentile(values, 0.5), percentile(values, 1.0)) == (99, 50, 100)
    assert percentile([7.0], 0.99) == 7
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_slope_is_growth_per_unit() -> None:
    assert slope([(0, 100), (1, 102), (2, 104)]) == pytest.approx(2)
    assert slope([(0, 5), (1, 5)]) == 0
    assert slope([(1, 5)]) == slope([(1, 5), (1, 9)]) == 0


def test_who_saw_the_whole_journal_missed_nothing() -> None:
    assert fault_of(JOURNAL, JOURNAL) == ""


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (JOURNAL[:2] + JOURNAL[3:], r"place 3: event 4 \(state\) where the journal has 3"),
        ([*JOURNAL[:2], *JOURNAL[1:]], r"place 3: event 2 \(record\) where the journal has 3"),
        ([JOURNAL[1], JOURNAL[0], *JOURNAL[2:]], r"place 1: event 2"),
        (JOURNAL[:3], "only 3 of 4 events"),
        ([], "only 0 of 4 events"),
        ([*JOURNAL, Seen(5, "record", 55)], "1 events after the last one"),
        ([*JOURNAL[:3], Seen(4, "state", 45)], "place 4: another content"),
    ],
)
def test_what_a_watcher_missed_saw_twice_or_otherwise_is_a_fault(seen: list[Seen], says: str) -> None:
    assert re.search(says, fault_of(seen, JOURNAL))


def test_a_checksum_goes_by_content_not_by_order() -> None:
    assert checksum({"a": 1, "b": [2]}) == checksum({"b": [2], "a": 1}) != checksum({"a": 1, "b": [3]})


def test_stages_add_up_to_the_time_until_the_first_render() -> None:
    said = [("", "state", {"state": "queued"}, 100.01), ("", "state", {"state": "running"}, 100.03)]
    said += [("step/1/plan", "record", {}, 100.08)]
    entries = [
        Entry(number + 1, key, kind, None, value, at)  # pyright: ignore[reportArgumentType]
        for number, (key, kind, value, at) in enumerate(said)
    ]
    run = run_of(50.0, 0.02, Mark(50.1, 51.0), entries, epoch=50.0)
    assert run.stages == pytest.approx((0.01, 0.02, 0.05, 0.02))
    assert sum(run.stages) == pytest.approx(run.begun)


def test_the_table_says_which_aims_were_met() -> None:
    said = table({"part": [Figure("one", "1", "≥ 1", True), Figure("two", "0", "≥ 1", False), Figure("x", "3")]})
    lines = said.splitlines()
    assert lines[0] == "part"
    assert lines[1].endswith("met")
    assert lines[2].endswith("MISSED")
    assert lines[3].endswith("3")


EVENTS = b"retry: 1000\n\n: still there\n\n" + b"".join(
    b'id: %d\nevent: record\ndata: {"n":%d}\n\nevent: progress\ndata: {}\n\n' % (number, number)
    for number in (1, 2)
)


def chunks(body: bytes) -> Iterator[bytes]:
    for first in range(0, len(body), 17):
        part = body[first : first + 17]
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("chunked", [True, False])
def test_a_client_takes_the_stored_events_from_an_answer(chunked: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" if chunked else b"HTTP/1.1 200 OK\r\n\r\n"
    body = body_of(head + (b"".join(chunks(EVENTS)) if chunked else EVENTS))
    assert list(stored_events(body)) == [(n, "record", checksum({"n": n})) for n in (1, 2)]


async def serving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Events for who asks for them, then the end; else short answers, every third one a refusal."""
    asked = 0
    while head := await reader.readuntil(b"\r\n\r\n"):
        asked += 1
        if b"/events" in head:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + EVENTS)
            writer.close()
            return
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % (404 if asked % 3 == 0 else 200))


def test_clients_watch_and_read_over_connections_that_stay() -> None:
    async def asked() -> tuple[list[dict[str, object]], dict[str, object]]:
        async with await asyncio.start_server(serving, "127.0.0.1", 0) as server:
            host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            return await watch(host, ["job-1", "job-2"]), await read(host, ["/a"], 0.2, 2, 0.0)

    watched, found = asyncio.run(asked())
    assert [each["job"] for each in watched] == ["job-1", "job-2"]
    assert all(each["events"] == list(stored_events(EVENTS)) for each in watched)
    assert len(found["taken"]) > 4  # pyright: ignore[reportArgumentType]
    assert found["refused"]


def test_options_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["speed"], ["--in-flight", "0"], ["--jobs", "0"]):
        with pytest.raises(SystemExit) as refused:
            parsed(wrong)
        assert refused.value.code == 2
    assert "busy, overhead, watchers" in capsys.readouterr().err


@pytest.mark.slow
@processes
@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("busy", "the generator runs"),
        ("overhead", "submit to first render"),
        ("watchers", "watchers that saw all"),
    ],
)
def test_each_part_runs_small(part: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", part]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if says in line)
    if part == "watchers":
        assert line.endswith("met")
