"""Each example configuration is read as it stands, and with every option in its comments; no model is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from generators.catalog import GENERATORS
from orchestrator.records import Policy, Size
from planners.catalog import PLANNERS

FOLDER = Path(__file__).parent.parent.parent / "examples" / "backends"
FILES = sorted(FOLDER.glob("*.toml"))
OPTION = re.compile(r"^# (?=\w+ = )", re.MULTILINE)
SIZE = Size(width=640, height=480)


def policies(path: Path) -> dict[str, Policy]:
    """A policy for the defaults and every generator, planner and verifier that the file defines."""
    composition = Composition.read(path, {}, path.parent)
    settings = composition.settings
    wanted = {"defaults": Wanted()}
    wanted |= {f"generators.{name}": Wanted(generator=name) for name in settings.generators}
    wanted |= {f"planners.{name}": Wanted(planner=name) for name in settings.planners}
    wanted |= {f"verifiers.{name}": Wanted(verifier=name) for name in settings.verifiers}
    return {where: composition.policy(one, SIZE) for where, one in wanted.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_read_as_it_stands(path: Path) -> None:
    found = policies(path)
    assert len(found) >= 2
    type_of_name = {*GENERATORS, *PLANNERS}
    assert path.stem in type_of_name
    assert f'type = "{path.stem}"' in path.read_text(encoding="utf-8")
    default = found["defaults"]
    assert {default.generator, default.planner} - {"simulated", "oracle"}  # the defaults use what it shows


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_options_in_its_comments_are_options(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert OPTION.search(text)
    with_all = tmp_path / path.name
    with_all.write_text(OPTION.sub("", text), encoding="utf-8")
    plain, all_of_them = policies(path), policies(with_all)
    assert plain.keys() == all_of_them.keys()
    assert any(plain[name] != all_of_them[name] for name in plain)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_first_lines_say_what_to_install_or_set_and_how_to_run_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert f"cliploop run --config examples/backends/{path.name} " in text
    assert "pip install" in text or "export " in text


def test_none_of_them_loads_a_model_library() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.examples.test_backends import FILES, policies\n"
        "print(sum(len(policies(path)) for path in FILES))\n"
        "print({'torch', 'diffusers', 'transformers', 'google.genai', 'openai'} & set(sys.modules))"
    )
    root = FOLDER.parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    count, loaded = done.stdout.splitlines()
    assert int(count) >= 2 * len(FILES)
    assert loaded == "set()"
