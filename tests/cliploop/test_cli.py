"""The command line: bad input is one line with its remedy, exit 2, and nothing is left behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cliploop.commandline import DATA, PICTURE, PROMPT, TASK, child, command
from worlds.catalog import DESCRIPTIONS


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Its one line; with --json the same words in one object. Nothing is left behind."""
    said = command(capsys, *words)
    assert said.code == 2
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("cliploop: ")
    assert "Traceback" not in said.err
    told = command(capsys, *words, "--json")
    assert told.code == told.json["exit_code"] == 2
    assert told.json["ok"] is False
    assert told.json["error"]["message"]
    assert list(Path().iterdir()) == []
    return lines[0]


HOSTILE_PICTURES = {
    "one_pixel.png": "pixel",
    "banner_3000x60.png": "",
    "truncated.png": "damaged",
    "text_named.png": "not a picture",
    "zero_bytes.png": "empty",
    "bomb_20000x20000.png": "pixels",
    "vector.svg": "not a picture",
}


@pytest.mark.parametrize("name", HOSTILE_PICTURES)
def test_a_hostile_picture_is_refused(capsys: pytest.CaptureFixture[str], name: str) -> None:
    line = refused(capsys, "run", "--image", str(DATA / "images" / name), "--prompt", PROMPT)
    assert HOSTILE_PICTURES[name] in line
    assert name in line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--image", "missing.png", "--prompt", "Go."), ("--image missing.png", "no such file")),
        (("--image", ".", "--prompt", "Go."), ("a folder", "name a picture")),
        (("--image", PICTURE, "--prompt", ""), ("--prompt is empty",)),
        (("--image", PICTURE, "--prompt", "  "), ("--prompt is empty",)),
        (("--image", PICTURE, "--prompt", "prompts/none.txt"), ("prompts/none.txt", "no such file")),
        (("--image", PICTURE), ("--prompt is missing",)),
        ((), ("--image and --prompt are missing", "--world")),
        (("--image", "", "--prompt", "Go."), ("--image is empty", "name a picture")),
        (("--image", PICTURE, "--prompt", "Go\0on."), ("--prompt", "NUL")),
        ((*TASK, "--config", "/dev/zero"), ("/dev/zero", "not a regular file", "name a TOML file")),
        ((*TASK, "--world", "maze"), ("--world makes its own",)),
        (("--world", "mase"), ("no world 'mase'", "did you mean 'maze'")),
        (("--world", "maze", "--difficulty", "hrad"), ("did you mean 'hard'",)),
        (("--world", "maze", "--seed", "-1"), ("negative",)),
        ((*TASK, "--generator", "simulatd"), ("did you mean 'simulated'",)),
        ((*TASK, "--planner", "oracel"), ("did you mean 'oracle'",)),
        ((*TASK, "--verifier", "nobody"), ("no verifier 'nobody'",)),
        ((*TASK, "--preset", "quality"), ("no preset 'quality'", "cliploop.toml")),
        ((*TASK, "--strategy", "colabvr"), ("did you mean 'collabvr'",)),
        ((*TASK, "--strategy", "preplan"), ("preplan", "not built yet", "collabvr, pass@1 to pass@16")),
        ((*TASK, "--strategy", "pass@17"), ("no strategy 'pass@17'", "did you mean", "pass@1 to pass@16")),
        ((*TASK, "--strategy", "best"), ("no strategy 'best'; known: collabvr, pass@1 to pass@16",)),
        ((*TASK, "--gate", "double"), ("--gate", "single_shot")),
        ((*TASK, "--budget", "usd=-1"), ("--budget", "negative")),
        ((*TASK, "--budget", "usd=nan"), ("--budget", "no limit")),
        ((*TASK, "--budget", "cents=1"), ("--budget", "unknown budget 'cents'")),
        ((*TASK, "--budget", "60"), ("--budget", "video_seconds=60")),
        ((*TASK, "--max-steps", "0"), ("--max-steps", "at least 1", "0")),
        ((*TASK, "--max-steps", "-3"), ("--max-steps", "at least 1")),
        ((*TASK, "--max-attempts", "0"), ("--max-attempts", "at least 1")),
        ((*TASK, "--max-steps", "three"), ("--max-steps", "integer")),
        ((*TASK, "--seed", "-1"), ("--seed", "at least 0")),
        ((*TASK, "--config", "none.toml"), ("none.toml", "no such file", "--config")),
        ((*TASK, "--bogus"), ("No such option", "run --help")),
        ((*TASK, "-o", ""), ("-o is empty",)),
    ],
)
def test_bad_usage_is_one_line_with_its_remedy(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: tuple[str, ...]
) -> None:
    line = refused(capsys, "run", *words)
    for part in says:
        assert part in line


def test_a_prompt_over_the_limit_names_both_lengths(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("word " * 20_000)
    line = refused(capsys, "run", "--image", PICTURE, "--prompt", str(file))
    assert "99999 characters" in line
    assert re.search(r"at most \d+", line)


def test_a_picture_that_no_world_can_read_names_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    photo = str(DATA / "images" / "odd_641x481.png")
    line = refused(capsys, "run", "--image", photo, "--prompt", "The red circle moves to the green square.")
    assert "no built-in world reads this picture with this prompt" in line
    today, later = line.index("say in the prompt what moves"), line.index("[vlms.<name>]")
    assert today < line.index("cliploop worlds sample NAME") < later < line.index("cliploop.toml")


def test_names_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in refused(capsys, "run", "--image", "\x1b[2J.png", "--prompt", "x")
    assert "\x1b" not in refused(capsys, "run", *TASK, "--generator", "\x1b[31m[red]x[/red]")


@pytest.mark.parametrize(
    "words",
    [
        ("worlds", "sample", "mase"),
        ("worlds", "sample", "maze", "--count", "0"),
        ("worlds", "verify", "maze", "--seeds", "0"),
        ("trajectory", "show", "nowhere"),
        ("trajectory", "show", ""),
        ("generators", "check", "simulatd"),
        ("generators", "list", "--config", "/dev/zero"),
        ("doctor", "--bogus"),
        ("worlds",),
        ("nonsense",),
    ],
)
def test_other_commands_refuse_in_the_same_way(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    refused(capsys, *words)


def test_an_unknown_generator_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "generators", "check", "nope")
    assert line.startswith("cliploop: no generator 'nope'; known: ")


def test_a_negative_temperature_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "cold.toml"
    file.write_text("[defaults]\nvlm_temperature = -1\n")
    line = refused(capsys, "run", *TASK, "--config", str(file))
    assert "[defaults] vlm_temperature must be at least 0 (got -1.0)" in line


def test_a_broken_settings_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cliploop.toml").write_text("[generators.fast]\ntype = 'wam'\n")
    said = command(capsys, "run", *TASK, "--generator", "fast")
    assert said.code == 2
    assert "cliploop.toml: [generators.fast] type" in said.err
    assert "'wan'" in said.err
    Path("cliploop.toml").write_text("[defaults]\ngenerater = 'x'\n")
    said = command(capsys, "run", *TASK)
    assert said.code == 2
    assert "did you mean 'generator'" in said.err
    assert len(said.err.splitlines()) == 1


def test_help_is_quick_and_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "run", "--help")
    assert said.code == 0
    assert "Examples" in said.out
    assert "Exit codes" in said.out
    groups = ["The task", "The loop", "Backends", "Output"]
    assert sorted(groups, key=said.out.index) == groups
    for noise in ("<bool>", "<str>", "<int>", "<path>", "INTEGER", "BOOLEAN"):
        assert noise not in said.out
    assert command(capsys, "run", "-h").out == said.out
    assert command(capsys).code == 0


def test_help_on_a_narrow_terminal_cuts_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer import rich_utils

    monkeypatch.setattr(rich_utils, "MAX_WIDTH", None)
    monkeypatch.setenv("COLUMNS", "40")
    said = command(capsys, "run", "--help")
    for name in ("--difficulty", "--strategy", "--max-attempts", "--generator", "--dry-run", "TEXT|FILE"):
        assert name in said.out


def test_help_starts_without_heavy_imports(tmp_path: Path) -> None:
    said = child("--help", cwd=tmp_path)
    assert said.code == 0
    assert "run" in said.out
    heavy = ("numpy", "pydantic", "sqlalchemy", "av")
    program = f"import sys, cliploop.app; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"


def test_what_is_refused_or_only_estimated_needs_no_sql(tmp_path: Path) -> None:
    program = f"""
import sys
from cliploop.cli import invoke
code = invoke(["run", "--image", {PICTURE!r}, "--prompt", {PROMPT!r}, "--dry-run"])
print(code, [name for name in ("sqlalchemy", "media.sheet") if name in sys.modules])
"""
    words = [sys.executable, "-c", program]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == "0 []"


def test_worlds_are_described_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "worlds", "list")
    told = dict(line.split(maxsplit=1) for line in said.out.splitlines())
    assert told == DESCRIPTIONS
    listed = command(capsys, "worlds", "list", "--json").json["worlds"]
    assert {each["name"]: each["description"] for each in listed} == DESCRIPTIONS
    assert all(each["example"] for each in listed)


@pytest.mark.parametrize("section", ["vlms", "planners", "verifiers", "generators"])
def test_an_entry_without_a_type_is_told_the_types_that_there_are(
    capsys: pytest.CaptureFixture[str], section: str
) -> None:
    Path("cliploop.toml").write_text(f"[{section}.mine]\nmodel = 'x'\n")
    said = command(capsys, "run", *TASK)
    assert said.code == 2
    known = "simulated-veo" if section == "generators" else "oracle-gemini"
    assert f"[{section}.mine] has no type; add type = one of " in said.err
    assert f'"{known}"' in said.err
    assert "this version knows no others" in said.err


def test_a_long_task_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = Path(PROMPT).read_text().strip()
    assert len(prompt) > 300
    assert " ".join(prompt.split()) in command(capsys, "run", *TASK, "--dry-run").out


def test_an_interrupt_while_modules_load_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting:
        """Stands in the way of an import as Ctrl-C does."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == "cliploop.commands.run":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "cliploop.commands.run", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    said = command(capsys, "run", *TASK)
    assert (said.code, said.out) == (130, "")
    assert said.err == "cliploop: interrupted before anything began\n"
    assert command(capsys, "run", *TASK, "--json").json["exit_code"] == 130
