"""The last word: command over environment over file over built-in; a preset before its own refinements."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliploop.choosing import Wanted, choose
from cliploop.settings import Settings, read
from orchestrator.errors import BackendMisconfigured

TOML = """
[defaults]
preset = "quality"
max_steps = 5

[presets.quality]
generator = "big"
max_steps = 4
seed = 1

[presets.quick]
generator = "small"
"""


def settings(tmp_path: Path, **environ: str) -> Settings:
    (tmp_path / "cliploop.toml").write_text(TOML)
    return read(None, environ, tmp_path)


def test_built_in_choices_need_no_configuration() -> None:
    chosen = choose(Settings(), Wanted())
    assert chosen["generator"].value == "simulated"
    assert chosen["max_steps"].value == 3


def test_a_source_refines_its_own_preset(tmp_path: Path) -> None:
    chosen = choose(settings(tmp_path), Wanted())
    assert chosen["generator"].value == "big"
    assert chosen["max_steps"].value == 5
    assert chosen["max_steps"].where.endswith("[defaults] max_steps")
    assert chosen["seed"].where.endswith("[presets.quality] seed")


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    chosen = choose(settings(tmp_path, CLIPLOOP_PRESET="quick", CLIPLOOP_MAX_STEPS="9"), Wanted())
    assert chosen["generator"].value == "small"
    assert chosen["max_steps"].value == 9
    assert chosen["max_steps"].where == "CLIPLOOP_MAX_STEPS"


def test_the_command_wins_over_everything(tmp_path: Path) -> None:
    chosen = choose(settings(tmp_path, CLIPLOOP_GENERATOR="other"), Wanted(preset="quick", seed=7))
    assert chosen["generator"].value == "small"
    assert chosen["seed"].value == 7
    assert chosen["seed"].where == "--seed"
    assert choose(settings(tmp_path), Wanted(preset="quick", generator="mine"))["generator"].value == "mine"


def test_an_unknown_preset_names_the_closest(tmp_path: Path) -> None:
    with pytest.raises(BackendMisconfigured, match=r"--preset: no preset 'qualty'; did you mean 'quality'"):
        choose(settings(tmp_path), Wanted(preset="qualty"))
