"""Settings: shapes, unknown keys, wrong types, environment; every refusal names the place and the remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cliploop.settings import MAX_BYTES, Settings, SettingsUnusable, read

TOML = """
[defaults]
preset = "quality"
max_steps = 5

[presets.quality]
generator = "wan22"
planner = "gemini"
budget = {video_seconds = 60, vlm_calls = 40}

[generators.wan22]
type = "wan"
model = "Wan-AI/Wan2.2-I2V-A14B-Diffusers"
compile = false

[generators.my-sim]
type = "simulated"
profile = "perfect"

[vlms.gemini]
type = "gemini"
model = "gemini-2.5-pro"

[planners.gemini]
vlm = "gemini"

[verifiers.strict]
type = "single"
vlm = "gemini"
"""


def settings(tmp_path: Path, text: str = TOML, **environ: str) -> Settings:
    (tmp_path / "cliploop.toml").write_text(text)
    return read(None, environ, tmp_path)


def refusal(tmp_path: Path, text: str = TOML, **environ: str) -> str:
    with pytest.raises(SettingsUnusable) as caught:
        settings(tmp_path, text, **environ)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_is_read_section_by_section(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found.defaults.preset == "quality"
    assert found.defaults.max_steps == 5
    assert found.presets["quality"].budget == {"video_seconds": 60, "vlm_calls": 40}
    assert found.generators["wan22"].type == "wan"
    assert found.generators["wan22"].options == {"model": "Wan-AI/Wan2.2-I2V-A14B-Diffusers", "compile": False}
    assert found.planners["gemini"].vlm == "gemini"


def test_options_of_a_backend_may_be_lists_and_tables(tmp_path: Path) -> None:
    text = "type = 'x'\nratios = [1, 0.9]\nlora = [{path = 'p', weight = 0.5}]\n[generators.a.call]\neta = 0.1\n"
    (tmp_path / "cliploop.toml").write_text(f"[generators.a]\n{text}")
    options = read(None, {}, tmp_path).generators["a"].options
    assert options == {"ratios": [1, 0.9], "lora": [{"path": "p", "weight": 0.5}], "call": {"eta": 0.1}}


def test_nothing_configured_is_fine(tmp_path: Path) -> None:
    assert read(None, {}, tmp_path) == Settings()


def test_a_named_file_wins_over_the_one_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text("[defaults]\nmax_steps = 5\n")
    other = tmp_path / "other.toml"
    other.write_text("[defaults]\nmax_steps = 7\n")
    assert read(other, {}, tmp_path).defaults.max_steps == 7
    assert read(None, {"CLIPLOOP_CONFIG": str(other)}, tmp_path).defaults.max_steps == 7


@pytest.mark.parametrize(
    ("variables", "named_by"), [({}, "--config"), ({"CLIPLOOP_CONFIG": "x"}, "CLIPLOOP_CONFIG")]
)
def test_a_named_file_that_is_missing_is_an_error(
    tmp_path: Path, variables: dict[str, str], named_by: str
) -> None:
    missing = tmp_path / "missing.toml"
    environ = {name: str(missing) for name in variables}
    with pytest.raises(SettingsUnusable, match=named_by):
        read(None if environ else missing, environ, tmp_path)


def test_a_variable_overrides_the_file(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        CLIPLOOP_MAX_STEPS="9",
        CLIPLOOP_DEFAULTS__SEED="4",
        CLIPLOOP_GENERATORS__MY_SIM__PROFILE="veo-3.1",
        CLIPLOOP_PRESETS__QUALITY__MAX_ATTEMPTS="2",
        HOME="/nowhere",
    )
    assert found.environment.max_steps == 9
    assert found.environment.seed == 4
    assert found.generators["my-sim"].options == {"profile": "veo-3.1"}
    assert found.presets["quality"].max_attempts == 2
    assert found.where("generators", "my-sim", "profile") == "CLIPLOOP_GENERATORS__MY_SIM__PROFILE"


def test_a_variable_can_define_a_backend(tmp_path: Path) -> None:
    found = read(None, {"CLIPLOOP_GENERATORS__FAST__TYPE": "simulated"}, tmp_path)
    assert found.generators["fast"].type == "simulated"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[default]\nseed = 1\n", ("[default]", "did you mean 'defaults'")),
        ("[defaults]\nmax_stepz = 1\n", ("[defaults]", "max_stepz", "did you mean 'max_steps'")),
        ("[defaults]\nmax_steps = 'three'\n", ("[defaults]", "max_steps", "'three'", "integer")),
        ("[defaults]\nmax_steps = 1.5\n", ("[defaults]", "max_steps", "1.5", "integer")),
        ("[defaults]\nmax_steps = true\n", ("[defaults]", "max_steps", "integer")),
        ("[defaults]\nguidance = nan\n", ("[defaults]", "guidance", "finite")),
        ("[defaults]\nbudget = {usd = nan}\n", ("[defaults] budget: usd must be a finite number", "nan")),
        ("[defaults]\nallow_unchainable = 1\n", ("allow_unchainable must be true or false (got 1)",)),
        ("[defaults]\ngenerator = 1\n", ("generator must be a text in quotes",)),
        ("[presets.q]\ngenrator = 'x'\n", ("[presets.q]", "did you mean 'generator'")),
        ("[presets]\nq = 'x'\n", ("[presets.q]", "table")),
        ("defaults = 3\n", ("defaults", "table")),
        ("[generators.a]\nmodel = 'x'\n", ("[generators.a]", "no type")),
        ("[planners.a]\nmodel = 'x'\n", ("[planners.a]", "no type", "vlm")),
        ("[defaults\n", ("not valid TOML", "line 1")),
        ("a = " + "[" * 100_000, ("nested too deeply",)),
        ("[defaults]\nseed = " + "9" * 5000, ("cannot be used", "digits")),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place_and_the_remedy(
    tmp_path: Path, text: str, parts: tuple[str, ...]
) -> None:
    message = refusal(tmp_path, text)
    for part in ("cliploop.toml", *parts):
        assert part in message


@pytest.mark.parametrize(
    ("variable", "value", "parts"),
    [
        ("CLIPLOOP_MAX_STEPZ", "1", ("did you mean 'max_steps'",)),
        ("CLIPLOOP_MAX_STEPS", "three", ("max_steps", "'three'", "integer")),
        (
            "CLIPLOOP_MAX_STEPS",
            "abc",
            ("CLIPLOOP_MAX_STEPS: max_steps must be an integer, such as 3 (got 'abc')",),
        ),
        ("CLIPLOOP_SEED", "9" * 5000, ("fewer digits", "…")),
        ("CLIPLOOP_GENERATOR__WAN22__MODEL", "x", ("did you mean 'generators'",)),
        ("CLIPLOOP_GENERATORS__WAN22", "x", ("CLIPLOOP_GENERATORS__NAME__KEY",)),
        ("CLIPLOOP_DEFAULTS__", "x", ("CLIPLOOP_DEFAULTS__KEY",)),
        ("CLIPLOOP_GUIDANCE", "nan", ("guidance", "finite")),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, value: str, parts: tuple[str, ...]) -> None:
    message = refusal(tmp_path, **{variable: value})
    for part in (variable, *parts):
        assert part in message


def test_a_file_that_is_not_text_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsUnusable, match="cannot be read"):
        read(tmp_path, {}, tmp_path)
    (tmp_path / "cliploop.toml").write_bytes(b"\xff\xfe\x00[")
    with pytest.raises(SettingsUnusable, match="UTF-8"):
        read(None, {}, tmp_path)


@pytest.mark.parametrize("named_by", ["--config", "CLIPLOOP_CONFIG", "./cliploop.toml"])
@pytest.mark.parametrize(("kind", "says"), [("pipe", "not a regular file"), ("hole", "at most 1 MB are read")])
def test_only_a_regular_file_within_the_limit_is_read(
    tmp_path: Path, named_by: str, kind: str, says: str
) -> None:
    file = tmp_path / "cliploop.toml"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as hole:
            hole.truncate(MAX_BYTES + 1)
    config = file if named_by == "--config" else None
    environ = {"CLIPLOOP_CONFIG": str(file)} if named_by == "CLIPLOOP_CONFIG" else {}
    with pytest.raises(SettingsUnusable, match=says):
        read(config, environ, tmp_path)


def test_line_ends_of_another_system_are_read(tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_bytes(b"[defaults]\r\nmax_steps = 5\r\n")
    assert read(None, {}, tmp_path).defaults.max_steps == 5


def test_reserved_variables_are_no_keys(tmp_path: Path) -> None:
    assert read(None, {"CLIPLOOP_REDIS_URL": "redis://localhost"}, tmp_path) == Settings()
