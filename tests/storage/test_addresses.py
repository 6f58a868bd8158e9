"""Which addresses may be contacted: a table of hostile ones, however they are spelled or resolved."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.addresses import AddressRefused, NameUnknown, Resolve, Rules, is_public, judged, read

WEB = ("http", "https")


def to(*addresses: str) -> Resolve:
    """A resolver that knows one answer."""

    def resolve(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return resolve


def contacted(url: str, resolve: Resolve, *, private: bool = False) -> list[str]:
    """Where a connection to this URL would go."""
    rules = Rules(WEB, private, resolve)
    address = read(url, rules)
    return judged(address.host, address.port, rules, 5.0)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.0.0.1.:80/",
        "http://127.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0x0.0x0.0x1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://10.0.0.1/",
        "http://172.16.3.4/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://192.0.0.192/",
        "http://192.88.99.1/",
        "http://198.18.0.1/",
        "http://192.0.2.1/",
        "http://224.0.0.1/",
        "http://239.255.255.250/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a00:1]/",
        "http://[::127.0.0.1]/",
        "http://[::ffff:0:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[64:ff9b:1::808:808]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:808:808::1]/",
        "http://[2001:0:808:808::1]/",
        "http://[2001:db8::1]/",
        "http://[3fff::1]/",
        "http://[5f00::1]/",
        "http://[fe80::1]/",
        "http://[fe80::1%25lo]/",
        "http://[fec0::1]/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://[ff02::1]/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "unix:///run/docker.sock",
        "//example.org/",
        "example.org",
        "",
        "http://",
        "http:///path",
        "http://user@example.org/",
        "http://user:secret@example.org/",
        "http://example.org@127.0.0.1/",
        "http://example.org\\@127.0.0.1/",
        "http://example.org:0/",
        "http://example.org:65536/",
        "http://example.org:http/",
        "http://exa mple.org/",
        "http://example..org/",
        "http://-example.org/",
        "http://example.org\r\nHost: inside/",
        "http://example.org/\x00",
        "http://" + "a" * 64 + ".org/",
        "http://" + "a." * 130 + "org/",
        "http://example.org/" + "a" * 3000,
    ],
)
def test_no_url_leads_to_what_is_not_public(url: str) -> None:
    with pytest.raises(AddressRefused):
        contacted(url, to("8.8.8.8"))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "64:ff9b::a00:1",
        "0.0.0.0",
    ],
)
def test_a_name_is_refused_if_any_of_its_addresses_is_not_public(address: str) -> None:
    with pytest.raises(AddressRefused, match=r"example\.org is not a public address"):
        contacted("https://example.org/", to("8.8.8.8", address))


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("https://example.org/hook?x=1", ["8.8.8.8", "2606:4700::1111"]),
        ("http://example.org:8080/", ["1.1.1.1"]),
        ("https://EXAMPLE.org./", ["1.1.1.1"]),
        ("https://bücher.example.org/", ["1.1.1.1"]),
        ("https://example.org/", ["64:ff9b::808:808"]),
        ("https://example.org/", ["::ffff:8.8.8.8"]),
    ],
)
def test_a_public_name_is_contacted_at_its_own_addresses(url: str, addresses: list[str]) -> None:
    assert contacted(url, to(*addresses)) == addresses


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://[", "http://a@"]))
def test_whatever_is_no_url_is_refused_in_words(text: str, beginning: str) -> None:
    try:
        address = read(beginning + text, Rules(WEB))
    except AddressRefused:
        return
    assert address.host
    assert address.host_header.isascii()


def test_a_public_address_needs_no_resolver() -> None:
    assert contacted("https://8.8.8.8/", to()) == ["8.8.8.8"]
    assert contacted("https://[2606:4700::1111]/", to()) == ["2606:4700::1111"]


def test_names_are_resolved_in_ascii() -> None:
    assert read("https://Bücher.example.org:8443/a?b", Rules(WEB)).host == "xn--bcher-kva.example.org"
    assert read("https://example.org:8443/a?b", Rules(WEB)).host_header == "example.org:8443"
    assert read("https://example.org:443/a?b", Rules(WEB)).target == b"/a?b"


def test_only_the_schemes_that_are_asked_for_are_contacted() -> None:
    with pytest.raises(AddressRefused, match="https://"):
        read("http://example.org/", Rules())


def test_an_operator_may_allow_private_addresses_but_no_metadata() -> None:
    assert contacted("http://127.0.0.1/", to(), private=True) == ["127.0.0.1"]
    assert contacted("http://localhost/", to("127.0.0.1", "::1"), private=True) == ["127.0.0.1", "::1"]
    assert contacted("http://inside/", to("10.0.0.1"), private=True) == ["10.0.0.1"]
    for never in ("169.254.169.254", "169.254.1.1", "168.63.129.16", "fd00:ec2::254", "224.0.0.1", "0.0.0.0"):
        with pytest.raises(AddressRefused):
            contacted("http://inside/", to(never), private=True)


def test_a_name_that_nobody_knows_is_said_so() -> None:
    def unknown(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror("no such name")

    with pytest.raises(NameUnknown, match=r"example\.org"):
        contacted("https://example.org/", unknown)


def test_what_a_resolver_says_must_be_an_address() -> None:
    with pytest.raises(AddressRefused):
        contacted("https://example.org/", to("localhost"))


def test_is_public_follows_what_an_address_stands_for() -> None:
    from ipaddress import ip_address

    assert is_public(ip_address("64:ff9b::808:808"))
    assert not is_public(ip_address("64:ff9b::c0a8:1"))
