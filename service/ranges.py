"""Files in parts: Range, If-Range, If-None-Match as RFC 9110 has them."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from service.problems import problem

MAX_RANGES = 16  # more are answered with the whole file, as the standard allows
_CHUNK_BYTES = 256 * 1024
_RANGE = re.compile(r"(\d{0,18})-(\d{0,18})")
Span: TypeAlias = tuple[int, int]  # first byte, and the one after the last


def file_response(request: Request, path: Path, media_type: str, tag: str, *, name: str) -> Response:
    """The file, or the part that was asked for. `tag`: the SHA-256 of its content, in hex."""
    etag, size = f'"{tag}"', path.stat().st_size
    headers = {
        "ETag": etag,
        "Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(tag)).decode('ascii')}:",  # RFC 9530
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'inline; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }
    if _names(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    spans = _asked(request, etag, size)
    if spans is None:
        return _sent(request, path, [(0, size)], 200, {**headers, "Content-Length": str(size)}, media_type)
    if not spans:
        said = {"Content-Range": f"bytes */{size}"}
        return problem(416, "range", f"the file has {size} bytes: ask for some of them", headers=said)
    if len(spans) == 1:
        first, stop = spans[0]
        part = {"Content-Range": f"bytes {first}-{stop - 1}/{size}", "Content-Length": str(stop - first)}
        return _sent(request, path, spans, 206, {**headers, **part}, media_type)
    return _parts(request, path, spans, size, headers, media_type)


def spans_of(header: str, size: int) -> list[Span] | None:
    """The parts of a Range header, in order and joined where they touch; [] if none can be had.

    None where the header is to be ignored: another unit, a form that is none, or too many parts.
    """
    unit, equals, listed = header.partition("=")
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if unit.strip().lower() != "bytes" or not equals or not 0 < len(parts) <= MAX_RANGES:
        return None
    spans: list[Span] = []
    for part in parts:
        found = _RANGE.fullmatch(part)
        if found is None or part == "-" or (found[1] and found[2] and int(found[2]) < int(found[1])):
            return None
        if found[1]:
            span = int(found[1]), min(int(found[2] or size) + 1, size) if found[2] else size
        else:
            span = max(0, size - int(found[2])), size
        if span[0] < span[1]:
            spans.append(span)
    return _joined(sorted(spans))


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for first, stop in spans:
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((first, stop))
    return joined


def _asked(request: Request, etag: str, size: int) -> list[Span] | None:
    header, only_if = request.headers.get("range"), request.headers.get("if-range")
    if header is None or (only_if is not None and only_if.strip() != etag):
        return None
    return spans_of(header, size)


def _names(header: str, etag: str) -> bool:
    listed = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in listed or listed == ["*"]


def _sent(
    request: Request, path: Path, spans: list[Span], status: int, headers: dict[str, str], media_type: str
) -> Response:
    content = iter(()) if request.method == "HEAD" else _bytes(path, *spans[0])
    return StreamingResponse(content, status, headers=headers, media_type=media_type)


def _parts(
    request: Request, path: Path, spans: list[Span], size: int, headers: dict[str, str], media_type: str
) -> Response:
    boundary = secrets.token_hex(13)

    def head(first: int, stop: int) -> bytes:
        return (
            f"--{boundary}\r\nContent-Type: {media_type}\r\n"
            f"Content-Range: bytes {first}-{stop - 1}/{size}\r\n\r\n"
        ).encode()

    end = f"--{boundary}--\r\n".encode()
    length = sum(len(head(*span)) + span[1] - span[0] + 2 for span in spans) + len(end)

    def content() -> Iterator[bytes]:
        for span in spans:
            yield head(*span)
            yield from _bytes(path, *span)
            yield b"\r\n"
        yield end

    return StreamingResponse(
        iter(()) if request.method == "HEAD" else content(),
        206,
        headers={**headers, "Content-Length": str(length)},
        media_type=f"multipart/byteranges; boundary={boundary}",
    )


def _bytes(path: Path, first: int, stop: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(first)
        while first < stop and (chunk := file.read(min(_CHUNK_BYTES, stop - first))):
            first += len(chunk)
            yield chunk
