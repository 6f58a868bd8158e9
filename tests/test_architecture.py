"""The shape of the project: its packages, layers, wheel and documents agree with each other."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOL: dict[str, Any] = PROJECT["tool"]
SHIPPED: list[str] = TOOL["hatch"]["build"]["targets"]["wheel"]["packages"]
HEAVY = ("torch", "diffusers", "transformers", "accelerate", "peft", "decord")
MAX_LINES = 500


def tracked() -> list[Path]:
    """Files under version control, new ones that are not ignored included."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).is_file()]


def modules(*folders: str) -> list[Path]:
    """Tracked Python files below these folders."""
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def strings(path: Path) -> Iterator[str]:
    """String constants of a module, docstrings left out."""
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def imported(path: Path) -> Iterator[str]:
    """Top-level names that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def run(command: list[str], *, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a child with this environment on top of ours; never raises."""
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


# --- packages -----------------------------------------------------------------------------------------------


def test_packages_found_shipped_layered_and_typed_are_the_same() -> None:
    with_code = {path.relative_to(ROOT).parts[0] for path in tracked() if path.suffix == ".py"} - {"tests"}
    found = {name for name in with_code if (ROOT / name / "__init__.py").is_file()}
    layers = " ".join(TOOL["importlinter"]["contracts"][0]["layers"])
    layered = {name.partition(".")[0] for name in re.findall(r"[\w.]+", layers)}
    assert found == with_code, "a folder with code lacks __init__.py"
    assert set(SHIPPED) == found
    assert set(TOOL["importlinter"]["root_packages"]) == found
    assert layered == found
    assert set(TOOL["pyright"]["include"]) == found | {"tests"}
    assert TOOL["pyright"]["typeCheckingMode"] == "strict"


def test_every_package_and_module_says_what_it_knows() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules(*SHIPPED)
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_tests_mirror_the_tree() -> None:
    folders = {
        path.relative_to(ROOT / "tests").parts[0] for path in modules("tests") if path.parent != ROOT / "tests"
    }
    assert folders <= set(SHIPPED) | {"conformance", "deploy", "end_to_end", "examples"}


def test_no_module_is_over_500_lines() -> None:
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules(*SHIPPED, "tests")
    }
    assert {name: lines for name, lines in sizes.items() if lines > MAX_LINES} == {}


def test_the_distribution_is_never_uploaded() -> None:
    assert "Private :: Do Not Upload" in PROJECT["project"]["classifiers"]
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert not any(name in " ".join(PROJECT["project"]["dependencies"]) for name in HEAVY)


# --- layers -------------------------------------------------------------------------------------------------


def test_the_import_contracts_hold() -> None:
    verdict = run([str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], cwd=ROOT)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_the_loop_imports_only_the_standard_library_and_pydantic() -> None:
    allowed = set(sys.stdlib_module_names) | {"pydantic", "orchestrator"}
    foreign = {
        (path.name, name) for path in modules("orchestrator") for name in imported(path) if name not in allowed
    }
    assert foreign == set()


@pytest.fixture
def heavy_folder(tmp_path: Path) -> Path:
    """Empty stand-ins for the heavy libraries, so that an import of one would succeed and be seen."""
    for name in HEAVY:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    return tmp_path


def loaded_by(statement: str, folder: Path) -> set[str]:
    """Which of the heavy libraries a fresh interpreter holds after the statement."""
    code = f"{statement}\nimport sys\nprint(*(set({HEAVY!r}) & set(sys.modules)))"
    child = run([sys.executable, "-c", code], cwd=ROOT, PYTHONPATH=str(folder))
    assert child.returncode == 0, child.stderr
    return set(child.stdout.split())


@pytest.mark.parametrize("package", ["cliploop", "service", "orchestrator", "storage", "planners"])
def test_no_heavy_library_is_loaded_by(package: str, heavy_folder: Path) -> None:
    everything = "\n".join(
        f"import {'.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__')}"
        for path in modules(package)
        if path.name != "__main__.py"
    )
    assert loaded_by(everything, heavy_folder) == set()


def test_a_heavy_import_would_be_seen(heavy_folder: Path) -> None:
    assert loaded_by("import torch", heavy_folder) == {"torch"}


def test_every_catalog_line_resolves() -> None:
    catalogs = [path for path in modules(*SHIPPED) if path.name == "catalog.py"]
    assert {path.parent.name for path in catalogs} >= {"worlds", "generators", "planners"}
    for path in catalogs:
        lines = [text for text in strings(path) if re.fullmatch(r"[a-z_]\w*(\.\w+)+:\w+", text)]
        assert lines, f"{path} lists nothing"
        for line in lines:
            module, _, name = line.partition(":")
            assert hasattr(importlib.import_module(module), name), line


def test_only_the_users_edge_reads_the_environment() -> None:
    readers = {
        str(path.relative_to(ROOT))
        for path in modules(*SHIPPED)
        if re.search(r"\bos\.(environ|getenv)\b|from os import .*\b(environ|getenv)\b", path.read_text())
    }
    assert {reader for reader in readers if not reader.startswith("cliploop/")} == set()


def test_the_product_never_reads_the_answers_of_the_cases() -> None:
    readers = {
        str(path.relative_to(ROOT))
        for path in modules(*SHIPPED)
        for text in strings(path)
        if "state.json" in text or "metadata.json" in text
    }
    assert readers == set()


# --- the wheel ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel unpacked outside the checkout, as pip lays it."""
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(target)]
    laid = run([*command, str(wheel)], cwd=target)
    assert laid.returncode == 0, laid.stdout + laid.stderr
    return target


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_every_package_and_no_other(wheel: Path) -> None:
    ours = {str(path.relative_to(ROOT)) for path in tracked() if path.relative_to(ROOT).parts[0] in SHIPPED}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == ours


@pytest.mark.slow
def test_the_wheel_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = (
        "import " + ", ".join(SHIPPED) + "\nprint(*(m.__file__ for m in (" + ", ".join(SHIPPED) + ")), sep='\\n')"
    )
    child = run([sys.executable, "-c", code], cwd=tmp_path, PYTHONPATH=str(installed))
    assert child.returncode == 0, child.stderr
    assert all(Path(line).is_relative_to(installed) for line in child.stdout.split())
    help_text = run([str(installed / "bin" / "cliploop"), "--help"], cwd=tmp_path, PYTHONPATH=str(installed))
    assert help_text.returncode == 0, help_text.stderr
    assert "run" in help_text.stdout


@pytest.mark.slow
def test_the_wheel_solves_the_example_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    example = ROOT / "examples" / "maze"
    command = [str(installed / "bin" / "cliploop"), "run", "--image", str(example / "first_frame.png")]
    command += ["--prompt", str(example / "prompt.txt"), "--generator", "simulated-perfect", "-o", "here"]
    child = run(command, cwd=tmp_path, PYTHONPATH=str(installed))
    assert child.returncode == 0, child.stdout + child.stderr
    assert (tmp_path / "here" / "video.mp4").stat().st_size > 0


# --- documents ----------------------------------------------------------------------------------------------


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_the_readme_tells_commands_that_exist() -> None:
    told = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= told <= make_targets()


def test_ci_runs_the_readmes_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if "make" in line] == ["exec make test"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_readmes_tree_names_every_folder() -> None:
    readme = (ROOT / "README.md").read_text()
    folders = {path.relative_to(ROOT).parts[0] for path in tracked() if path.parent != ROOT}
    for folder in folders - {".ci"}:
        assert re.search(rf"^{re.escape(folder)}/ +\S", readme, flags=re.MULTILINE), folder


def test_links_between_documents_lead_somewhere() -> None:
    for document in (path for path in tracked() if path.suffix == ".md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_no_file_names_a_package_registry() -> None:
    hosts = ["py" + "pi.org", "python" + "hosted", "npm" + "js", "deb." + "debian", "golang" + ".org"]
    naming = {
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.suffix not in {".png", ".jpg", ".gif", ".mp4", ".npz"}
        for host in hosts
        if host in path.read_text(errors="ignore")
    }
    assert naming == set()
