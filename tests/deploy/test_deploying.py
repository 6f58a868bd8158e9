"""docs/deploying.md: its commands, services, variables and settings exist."""

from __future__ import annotations

import re
import shlex

import pytest

from cliploop import settings
from cliploop.serving import Serving
from tests.deploy.composed import COMPOSE_FILE, ROOT, written
from tests.deploy.parsing import parsed

TEXT = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
BLOCKS = [line for block in re.findall(r"^```\n(.*?)^```$", TEXT, re.M | re.S) for line in block.splitlines()]
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"^```\n.*?^```$", "", TEXT, flags=re.M | re.S))
COMPOSE_COMMANDS = {"build", "run", "up", "exec", "down"}
SAID = [words for words in BLOCKS + QUOTED if re.match(r"(cliploop|docker compose) ", words)]
FILE = written()


def ours(words: str) -> list[str]:
    """Our own command line in it; [] where there is none."""
    split = shlex.split(words)
    return split[split.index("cliploop", 0) :] if "cliploop" in split and "pg_dump" not in split else []


@pytest.mark.parametrize("words", SAID)
def test_each_command_is_one_that_exists(words: str) -> None:
    command = ours(words)
    if command:
        parsed(command)
    split = shlex.split(words)
    if split[:2] == ["docker", "compose"]:
        assert split[2] in COMPOSE_COMMANDS
        named = [word for word in split[3:] if re.fullmatch(r"[a-z][a-z-]+", word)]
        if split[2] in ("run", "exec"):
            assert named[0] in FILE["services"]
        for scaled in re.findall(r"--scale (\w+)=", words):
            assert scaled in FILE["services"]


def test_every_variable_is_read_by_somebody() -> None:
    for name in re.findall(r"CLIPLOOP_[A-Z_]*[A-Z]", TEXT):
        known = name in settings.RESERVED or name == "CLIPLOOP_SERVICE"
        section, _, key = name.removeprefix("CLIPLOOP_").partition("__")
        assert known or (section == "SERVICE" and key.lower() in Serving.model_fields), name
    compose = COMPOSE_FILE.read_text(encoding="utf-8")
    for name in ("POSTGRES_PASSWORD", "CONFIG_FILE", "API_PORT"):
        assert f"`{name}`" in TEXT
        assert f"${{{name}:" in compose
    assert set(re.findall(r"\$\{(\w+)", compose)) == {"POSTGRES_PASSWORD", "CONFIG_FILE", "API_PORT"}


def test_defaults_are_told_as_they_are() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", TEXT.partition("## Disk")[2], re.M))
    assert set(told) == {"min_free_gib", "retention_days", "sweep_after_seconds", "upload_keep_hours"}
    for name, value in told.items():
        default = Serving.model_fields[name].default
        assert value == "none" if default is None else float(value) == default


def test_every_metric_that_it_names_is_told() -> None:
    told = (ROOT / "service" / "metrics.py").read_text(encoding="utf-8")
    names = set(re.findall(r"`cliploop_([a-z_]+)", TEXT))
    assert len(names) > 3
    for name in names:
        assert f'"{name}"' in told or f'"cliploop_{name}"' in told, name
