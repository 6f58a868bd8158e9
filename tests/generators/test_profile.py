"""Failure profiles: shipped as files, every figure with its source or marked as an estimate."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from generators.profile import PROFILES, load_profile
from orchestrator.errors import BackendMisconfigured

NUMBER = re.compile(r"^\w+ = [\d.]+")


@pytest.mark.parametrize("name", PROFILES)
def test_a_shipped_profile_loads_under_its_name(name: str) -> None:
    assert load_profile(name).name == name


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "perfect"])
def test_every_figure_has_a_source_or_is_marked_estimate(name: str) -> None:
    text = resources.files("generators").joinpath(f"profiles/{name}.toml").read_text(encoding="utf-8")
    head, *tables = re.split(r"^\[", text, flags=re.MULTILINE)
    for line in head.splitlines():
        assert not NUMBER.match(line) or re.search(r"# (estimate|set once|.*CollabVR)", line), line
    assert all("# estimate" in table.splitlines()[0] for table in tables)
    assert "CollabVR" in head


def test_an_unknown_profile_is_misconfigured_and_those_that_exist_are_named() -> None:
    with pytest.raises(BackendMisconfigured, match=r"sora.*vbvr-wan2\.2"):
        load_profile("sora")


def test_the_perfect_profile_cannot_fail() -> None:
    perfect = load_profile("perfect")
    assert (perfect.right_if_easy, perfect.right_if_hard, perfect.overload) == (1, 1, 1)
    assert perfect.colour_drift == perfect.first_frame_drift == 0
