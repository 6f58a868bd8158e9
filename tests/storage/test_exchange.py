"""An exchange with an address that a user named: to the address that was judged, bounded in time and size."""

from __future__ import annotations

import datetime
import itertools
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from storage.addresses import AddressRefused, NameUnknown, Rules
from storage.exchange import Answer, NoAnswer, exchange
from tests.storage.receivers import receiving, saying

OPEN = Rules(("http",), private=True)


def got(url: str, rules: Rules = OPEN, *, seconds: float = 10.0, max_bytes: int = 0) -> Answer:
    return exchange("GET", url, rules, headers={}, seconds=seconds, max_bytes=max_bytes)


def test_what_is_sent_arrives_whole_and_the_answer_comes_back() -> None:
    with receiving((201, {"X-Said": "yes"}, b"welcome")) as receiver:
        answer = exchange(
            "POST",
            f"{receiver.url}/hook?a=1",
            OPEN,
            headers={"X-Ours": "1"},
            content=b"x" * 100_000,
            seconds=10.0,
            max_bytes=100,
        )
        ((path, headers, body),) = receiver.got
    assert (path, body) == ("/hook?a=1", b"x" * 100_000)
    assert headers["x-ours"] == "1"
    assert headers["host"] == receiver.url.removeprefix("http://")
    assert (answer.status, answer.headers["x-said"], answer.body) == (201, "yes", b"welcome")


def test_what_is_not_public_is_not_even_connected_to() -> None:
    with receiving() as receiver, pytest.raises(AddressRefused):
        got(receiver.url, Rules(("http",)))
    assert receiver.got == []


def test_a_name_is_resolved_once_and_contacted_where_it_was_judged() -> None:
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with receiving() as receiver:
        port = receiver.url.rpartition(":")[2]
        got(f"http://rebinding.example:{port}/", Rules(("http",), private=True, resolve=rebinding))
        assert receiver.got[0][1]["host"] == f"rebinding.example:{port}"
    assert asked == ["rebinding.example"]


def test_a_name_whose_first_address_is_closed_is_reached_at_its_second() -> None:
    rules = Rules(("http",), private=True, resolve=lambda _host, _port: ["::1", "127.0.0.1"])
    with receiving() as receiver:
        assert got(f"http://two.example:{receiver.url.rpartition(':')[2]}/", rules).status == 204


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with receiving() as inside, receiving((302, {"Location": inside.url}, b"")) as receiver:
        answer = got(receiver.url)
        assert answer.status == 302
        assert answer.headers["location"] == inside.url
        assert inside.got == []


def test_an_endless_body_is_read_to_its_limit_only() -> None:
    def endless(_talking: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        yield from itertools.repeat(b"x" * 4096)

    with saying(endless) as place:
        assert len(got(f"http://{place}/", max_bytes=100_000).body) == 100_001
        assert got(f"http://{place}/").body == b""


def test_endless_headers_are_no_answer() -> None:
    def endless(_talking: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        yield from itertools.repeat(b"X-More: " + b"x" * 4096 + b"\r\n")

    with saying(endless) as place, pytest.raises(NoAnswer):
        got(f"http://{place}/")


def test_who_speaks_too_slowly_is_left_however_busy_it_looks() -> None:
    def dripping(_talking: socket.socket) -> Iterator[bytes]:
        for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000:
            yield bytes([byte])
            time.sleep(0.05)

    with saying(dripping) as place, pytest.raises(NoAnswer, match=r"no answer in 0\.5 s"):
        got(f"http://{place}/", seconds=0.5)


def test_who_says_nothing_or_no_http_has_not_answered() -> None:
    def silent(talking: socket.socket) -> Iterator[bytes]:
        while talking.recv(65536):
            pass
        yield b""

    def other(_talking: socket.socket) -> Iterator[bytes]:
        yield b"220 mail.example ESMTP\r\n"

    with saying(silent) as place, pytest.raises(NoAnswer, match="no answer"):
        got(f"http://{place}/", seconds=0.3)
    with saying(other) as place, pytest.raises(NoAnswer):
        got(f"http://{place}/")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NoAnswer, match="cannot be reached"):
        got(f"http://127.0.0.1:{port}/")


def test_a_resolver_that_hangs_costs_no_more_than_the_limit() -> None:
    def hanging(_host: str, _port: int) -> Sequence[str]:
        time.sleep(2.0)
        return ["127.0.0.1"]

    with pytest.raises(NameUnknown, match="cannot be resolved"):
        got("http://slow.example/", Rules(("http",), private=True, resolve=hanging), seconds=0.2)


def test_the_certificate_is_that_of_the_name_not_of_the_address(tmp_path: Path) -> None:
    server, client = certified(tmp_path, "pictures.example")

    def ok(_talking: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    def asked(host: str) -> Answer:
        rules = Rules(private=True, resolve=lambda _host, _port: ["127.0.0.1"])
        url = f"https://{host}:{place.rpartition(':')[2]}/"
        return exchange("GET", url, rules, headers={}, seconds=10.0, max_bytes=10, trust=lambda: client)

    with saying(ok, lambda own: server.wrap_socket(own, server_side=True)) as place:
        assert asked("pictures.example").body == b"hi"
        for other in ("other.example", "127.0.0.1"):
            with pytest.raises(NoAnswer, match="certificate"):
                asked(other)


def certified(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server with a certificate of that name, and a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(secret + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "both.pem")
    return server, ssl.create_default_context(cadata=pem.decode())
