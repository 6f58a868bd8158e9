"""The Dockerfile and .dockerignore: what the image is made of, as whom it runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.deploy.composed import ROOT, written
from tests.test_architecture import PROJECT, SHIPPED

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
LINES = [line for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
ADMITTED = {
    line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
}


def said(instruction: str) -> list[str]:
    return [line.partition(" ")[2] for line in LINES if line.startswith(f"{instruction} ")]


def test_it_is_built_on_a_named_version_of_a_python_that_we_support() -> None:
    for image in said("FROM"):
        assert re.match(r"python:3\.(\d+)-slim-\w+( AS build)?$", image), image
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_it_installs_what_ci_saw_and_what_many_machines_need() -> None:
    installs = [line for line in said("RUN") if "pip install" in line]
    assert len(installs) == 2
    assert all("pip install -c constraints.txt" in line for line in installs)
    (extras,) = said("ARG")
    assert extras == "EXTRAS=postgres,s3"
    assert {"postgres", "s3"} <= set(PROJECT["project"]["optional-dependencies"])


def test_it_runs_as_the_user_of_the_compose_file_who_owns_the_volumes() -> None:
    (user,) = said("USER")
    assert LINES.index(f"USER {user}") > LINES.index(f"FROM {said('FROM')[-1]}")
    ours = [body for body in written()["services"].values() if "build" in body]
    assert {body["user"] for body in ours} == {user}
    made = next(line for line in said("RUN") if "useradd" in line)
    assert f"--uid {user.partition(':')[0]} " in made
    for volume in {volume for body in ours for volume in body["volumes"]}:
        assert volume.partition(":")[2] in made.partition("install -d")[2].split()


def test_no_secret_and_no_setting_of_a_site_is_baked_in() -> None:
    assert not re.search(r"PASSWORD|SECRET|TOKEN|_KEY|_URL", "\n".join(LINES))


def test_the_wheel_that_it_installs_has_every_file_of_ours(tmp_path: Path) -> None:
    assert set(SHIPPED) <= ADMITTED
    sent = tmp_path / "sent"
    sent.mkdir()
    for name in ADMITTED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sent / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(ROOT / name, sent)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "wheel")]
    ran = subprocess.run(build, cwd=sent, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    (wheel,) = (tmp_path / "wheel").iterdir()
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(path.relative_to(sent)) for name in SHIPPED for path in (sent / name).rglob("*") if path.is_file()
    }
    assert len(wanted) > 100
    assert wanted <= packed
