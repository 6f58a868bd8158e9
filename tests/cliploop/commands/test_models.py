"""`cliploop models pull` against a loopback hub, in processes: the hub's client reads its settings once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cliploop.commandline import Said, child_environment
from tests.generators.hub_server import MODEL, UNTOLD, Hub, serving
from tests.generators.tiny_wan import checkpoint
from tests.storage.jobs_for_tests import ROOT

SECRET = "hf_secretsecretsecret"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = checkpoint("a14b", tmp_path_factory.mktemp("hub") / "model")
    (folder / "README.md").write_text("# A model card")
    (folder / "assets").mkdir()
    (folder / "assets" / "demo.mp4").write_bytes(b"\0" * 4096)
    (folder / "vae" / "diffusion_pytorch_model.bin").write_bytes(b"\0" * 4096)
    return folder


@pytest.fixture
def hub(repository: Path) -> Iterator[Hub]:
    with serving(repository) as hub:
        yield hub


def said(hub: Hub | None, folder: Path, *words: str, endpoint: str = "") -> Said:
    """A command in that folder, with a cache of its own there."""
    return ran(hub, folder, sys.executable, "-m", "cliploop.cli", *words, endpoint=endpoint)


def ran(hub: Hub | None, folder: Path, *command: str, endpoint: str = "") -> Said:
    """Any program likewise."""
    told = {
        "HF_ENDPOINT": hub.url if hub else endpoint,
        "HF_HOME": str(folder / "cache"),
        "HF_TOKEN": SECRET,
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    ended = subprocess.run(
        command,
        cwd=folder,
        env=child_environment(**told, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert SECRET not in ended.stdout + ended.stderr
    return Said(ended.returncode, ended.stdout, ended.stderr)


def test_a_dry_run_says_what_would_be_fetched_and_fetches_nothing(hub: Hub, tmp_path: Path) -> None:
    told = said(hub, tmp_path, "models", "pull", MODEL, "--dry-run")
    assert told.code == 0, told.err
    assert "files, " in told.out
    assert "transformer/diffusion_pytorch_model.safetensors" in told.out
    assert "free on the disk" in told.out
    assert not any("resolve" in path for path in hub.asked)
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.slow
def test_what_was_pulled_is_what_a_generator_of_that_name_renders_with(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text(
        f'[generators.mine]\ntype = "wan"\nmodel = "{MODEL}"\ndtype = "float32"\n'
        "min_side = 32\nmax_side = 64\nmax_pixels = 4096\nmax_frames = 9\n"
    )
    before = said(hub, tmp_path, "generators", "check", "mine")
    assert f"it is not in the local cache: cliploop models pull {MODEL}" in before.err
    assert before.code == 2
    assert not hub.asked, "a generator fetches nothing by itself"
    pulled = said(hub, tmp_path, "models", "pull", "mine", "--json")
    assert pulled.code == 0, pulled.err
    folder = Path(pulled.json["folder"])
    assert pulled.json["model"] == MODEL
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert "transformer_2/diffusion_pytorch_model.safetensors" in names
    assert not {"assets/demo.mp4", "vae/diffusion_pytorch_model.bin", "README.md"} & names
    assert hub.tokens == {f"Bearer {SECRET}"}
    hub.asked.clear()
    after = said(None, tmp_path, "generators", "check", "mine", endpoint="http://127.0.0.1:1")
    lines = [line.split()[0] for line in after.out.splitlines()]
    assert lines[:8] == ["ok", "FAIL", "ok", "ok", "ok", "ok", "ok", "ok"], after.out
    assert "mine: not chainable, conforms otherwise" in after.out
    assert after.code == 1


def where(hub: Hub | None, folder: Path) -> Said:
    """What a generator that may download its model looks for it in, in a process of its own."""
    program = f"from generators.checkpoints import folder_of; print(folder_of({UNTOLD!r}, allow_download=True))"
    return ran(hub, folder, sys.executable, "-c", program, endpoint="http://127.0.0.1:1")


def test_a_generator_that_may_download_does_and_needs_no_hub_for_what_is_here(hub: Hub, tmp_path: Path) -> None:
    without = where(None, tmp_path)
    assert "BackendUnavailable" in without.err
    fetched = where(hub, tmp_path)
    assert (Path(fetched.out.strip()) / "vae" / "diffusion_pytorch_model.safetensors").is_file(), fetched.err
    assert where(None, tmp_path).out == fetched.out
    told = said(hub, tmp_path, "models", "pull", UNTOLD, "--dry-run", "--json").json
    assert told["bytes_here"] == told["bytes"] > 0


def test_a_name_that_does_not_say_which_model_it_is_needs_its_files(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text(f'[generators.mine]\ntype = "wan"\nmodel = "{UNTOLD}"\n')
    before = said(None, tmp_path, "generators", "list", endpoint="http://127.0.0.1:1")
    assert f"it is not on this machine: cliploop models pull {UNTOLD}, or set family" in before.out
    assert said(hub, tmp_path, "models", "pull", "mine").code == 0
    after = said(None, tmp_path, "generators", "list", endpoint="http://127.0.0.1:1")
    assert f"Wan2.2 I2V A14B ({UNTOLD})" in after.out


def test_a_model_that_the_disk_has_no_room_for_is_not_begun(hub: Hub, tmp_path: Path) -> None:
    hub.claims = 10**15
    for more in ((), ("--dry-run",)):
        told = said(hub, tmp_path, "models", "pull", MODEL, *more)
        assert "1000.0 TB  vae/diffusion_pytorch_model.safetensors" in told.out
        assert "TB are to be fetched" in told.err
        assert "make room there, or set HF_HOME" in told.err
        assert told.code == 2
    assert not any("resolve" in path for path in hub.asked)


def test_a_download_that_breaks_off_is_made_whole(hub: Hub, tmp_path: Path) -> None:
    hub.breaks = 1
    told = said(hub, tmp_path, "models", "pull", MODEL)
    if told.code:  # the client gave up: called again, it goes on
        assert "call again, it goes on where it stopped" in told.err
        told = said(hub, tmp_path, "models", "pull", MODEL)
    assert told.code == 0, told.err
    fetched = [path for path in tmp_path.rglob("snapshots/*/*/*.safetensors")]
    whole = {path.stat().st_size for path in hub.folder.rglob("*.safetensors")}
    assert {path.stat().st_size for path in fetched} == whole


@pytest.mark.parametrize(
    ("name", "says", "code"),
    [
        ("lab/absent", "the hub has no such repository", 2),
        ("lab/of/mine", "that is no id of a repository", 2),
        ("simulated", "'simulated' has no checkpoint: there is nothing to fetch", 2),
        ("simulatid", "did you mean", 2),
    ],
)
def test_what_cannot_be_fetched_is_said(hub: Hub, tmp_path: Path, name: str, says: str, code: int) -> None:
    told = said(hub, tmp_path, "models", "pull", name)
    assert says in told.err
    assert told.code == code
    assert len(told.err.splitlines()) == 1


def test_a_model_behind_a_licence_says_how_it_is_opened(hub: Hub, tmp_path: Path) -> None:
    hub.gated = True
    told = said(hub, tmp_path, "models", "pull", MODEL)
    assert "its licence must be agreed to on the hub" in told.err
    assert told.code == 2


def test_a_hub_that_cannot_be_reached_may_be_there_later(tmp_path: Path) -> None:
    told = said(None, tmp_path, "models", "pull", MODEL, "--json", endpoint="http://127.0.0.1:1")
    assert "it cannot be fetched" in told.json["error"]["message"]
    assert told.code == 1


def test_a_checkpoint_in_a_folder_needs_no_fetching(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "cliploop.toml").write_text(f'[generators.mine]\ntype = "wan"\nmodel = "{repository}"\n')
    told = said(None, tmp_path, "models", "pull", "mine", endpoint="http://127.0.0.1:1")
    assert "nothing to fetch" in told.err
    assert told.code == 2
    assert json.dumps(os.fspath(repository))[1:-1] in told.err
