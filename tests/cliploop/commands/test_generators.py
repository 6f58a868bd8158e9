"""`cliploop generators`: what can be used here, and what conforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.catalog import GENERATORS
from tests.cliploop.commandline import command
from tests.generators.tiny_wan import TINY, checkpoint


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)


def test_the_built_in_and_the_configured_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cliploop.toml").write_text(
        "[generators.mine]\ntype = 'simulated'\nprofile = 'perfect'\n"
        "[generators.big]\ntype = 'wan'\nmodel = 'lab/our-tune'\n"
    )
    said = command(capsys, "generators", "list", "--json")
    assert said.code == 0
    listed = {each["name"]: each for each in said.json["generators"]}
    assert {*GENERATORS, "mine", "big"} == set(listed)
    assert listed["openai_videos"]["usable"] is False
    assert "base_url is missing" in listed["openai_videos"]["detail"]
    assert listed["mine"]["usable"] is True
    assert listed["big"]["usable"] is False
    assert "model lab/our-tune: its name does not say which Wan model it is" in listed["big"]["detail"]
    assert "mine" in command(capsys, "generators", "list").out


def test_a_perfect_generator_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "generators", "check", "simulated-perfect", "--json")
    assert said.code == said.json["exit_code"] == 0
    names = {each["name"] for each in said.json["checks"]}
    assert {"first frame", "sizes", "frame counts", "seeds", "cancel", "progress", "checkpoint"} <= names
    assert all(each["ok"] for each in said.json["checks"])


def test_a_wrong_option_names_file_and_entry(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cliploop.toml").write_text("[generators.mine]\ntype = 'simulated'\nprofil = 'perfect'\n")
    said = command(capsys, "generators", "check", "mine")
    assert said.code == 2
    assert "cliploop.toml: [generators.mine]" in said.err
    assert "profil" in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a14b", "ti2v"])
def test_random_weights_are_not_chainable_and_conform_otherwise(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "".join(f"{key} = {value!r}\n" for key, value in TINY.items())
    model = checkpoint(name, tmp_path / name)
    Path("cliploop.toml").write_text(f"[generators.noise]\ntype = 'wan'\nmodel = '{model}'\n{options}")
    capsys.readouterr()
    said = command(capsys, "generators", "check", "noise", "--json")
    assert said.code == said.json["exit_code"] == 1
    assert said.json["chainable"] is False
    assert [each["name"] for each in said.json["checks"] if not each["ok"]] == ["first frame"]
    assert len(said.json["checks"]) == 8
