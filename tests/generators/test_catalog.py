"""Generators by name."""

from __future__ import annotations

import pytest

from generators.catalog import GENERATORS, build
from orchestrator.errors import BackendMisconfigured


def test_the_names_are_those_of_the_documents() -> None:
    simulated = ["simulated", "simulated-perfect", "simulated-veo", "simulated-cosmos"]
    assert [name for name in GENERATORS if name.startswith("simulated")] == simulated
    assert set(GENERATORS) - set(simulated) <= {"wan", "cosmos", "diffusers_i2v", "veo", "openai_videos"}


def test_a_generator_can_be_asked_for_its_capabilities_without_artifacts() -> None:
    capabilities = build("simulated", {}, None).capabilities
    assert (capabilities.size_multiple, capabilities.frame_step, capabilities.frame_offset) == (1, 4, 1)
    assert capabilities.max_frames >= 161


def test_an_unknown_name_lists_what_there_is_and_the_nearest() -> None:
    with pytest.raises(BackendMisconfigured, match=r"simulatd.*did you mean 'simulated'\?.*simulated-perfect"):
        build("simulatd", {}, None)


@pytest.mark.parametrize("given", [{"profil": "perfect"}, {"profile": "sora"}])
def test_an_unknown_option_or_value_names_the_options(given: dict[str, str]) -> None:
    with pytest.raises(BackendMisconfigured, match=r"(no|its) options?.*: profile"):
        GENERATORS.options("simulated", given)


def test_the_content_of_a_name_changes_with_its_figures() -> None:
    assert GENERATORS.content("simulated", {}) != GENERATORS.content("simulated-veo", {})
    assert GENERATORS.content("simulated", {"profile": "veo-3.1"}) == GENERATORS.content("simulated-veo", {})
