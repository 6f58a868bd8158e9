"""Backends by name: those of a catalog, and somebody's own by `module:attribute`."""

from __future__ import annotations

import pytest

from generators.catalog import GENERATORS
from orchestrator.errors import BackendMisconfigured

OWN = "bench.slow_backends:GENERATOR"


def test_a_backend_from_outside_is_named_by_module_and_attribute() -> None:
    built = GENERATORS.build(OWN, {"seconds": 0.5}, None)
    assert built.capabilities.fps == 16
    assert GENERATORS.content(OWN, {"seconds": 0.5})["options"]["seconds"] == 0.5


def test_only_who_writes_a_type_may_name_one() -> None:
    assert OWN not in GENERATORS


def test_its_options_are_checked_like_any_others() -> None:
    with pytest.raises(BackendMisconfigured, match="seconds"):
        GENERATORS.options(OWN, {"seconds": "slowly"})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no.such.module:LINE", "No module named"),
        ("bench.slow_backends:NOTHING", "NOTHING"),
        (":LINE", "cannot be imported"),
        ("bench.slow_backends:", "cannot be imported"),
        ("bench.slow_backends:SlowGenerator", "not an orchestrator.catalogs.Line"),
    ],
)
def test_what_is_no_backend_is_refused_with_its_name(name: str, why: str) -> None:
    with pytest.raises(BackendMisconfigured, match=why) as refused:
        GENERATORS.find(name)
    assert repr(name) in str(refused.value)
