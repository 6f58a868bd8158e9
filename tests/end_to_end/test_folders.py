"""A job's folder: resumed, shown again without a byte changed, refused to another job, started over."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cliploop.commandline import TASK, Said, command

PERFECT = ("--generator", "simulated-perfect", "--max-steps", "4")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    for name in ("CLIPLOOP_FIRST_STEP_SECONDS", "CLIPLOOP_STEP_SECONDS"):
        monkeypatch.setenv(name, "1")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Said:
    return command(capsys, "run", *TASK, *PERFECT, *words)


def digests(folder: Path) -> dict[str, tuple[str, int]]:
    """Content and time of every file, the job's memory included."""
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_run_leaves_what_it_promises_and_a_rerun_changes_no_byte(capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys)
    assert first.code == 0, first
    (folder,) = Path("out").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert names == {".cliploop", "video.mp4", "trajectory.json", "contact-sheet.png", "steps"}
    assert (folder / "steps" / "1" / "attempt-1.mp4").is_file()
    assert str(folder / "video.mp4") in first.out
    before = digests(folder)
    again = run(capsys)
    assert again.code == 0
    assert digests(folder) == before
    assert again.out.splitlines()[-6:] == first.out.splitlines()[-6:]
    assert "Step 1 (at most 4)" in again.out


def test_a_missing_or_changed_result_is_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "-o", "job")
    video, sheet = Path("job/video.mp4"), Path("job/contact-sheet.png")
    bytes_before = video.read_bytes(), sheet.read_bytes()
    video.unlink()
    sheet.write_bytes(b"damaged")
    assert run(capsys, "-o", "job").code == 0
    assert (video.read_bytes(), sheet.read_bytes()) == bytes_before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--seed", "7"), "policy seed (0 there, 7 now) differs"),
        (("--max-steps", "9"), "policy max_steps (4 there, 9 now) differs"),
        (("--generator", "simulated"), "policy"),
        (
            ("--prompt", "The red circle slides to the green square along white squares, never into blue."),
            "prompt",
        ),
    ],
)
def test_a_folder_that_holds_another_job_is_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert run(capsys, "-o", "job").code == 0
    before = digests(Path("job"))
    dry = run(capsys, "-o", "job", "--dry-run", *words)
    assert digests(Path("job")) == before
    said = run(capsys, "-o", "job", *words)
    assert (dry.code, dry.out, dry.err) == (said.code, said.out, said.err)
    assert run(capsys, "-o", "job", "--dry-run", "--fresh", *words).code == 0
    assert said.code == 2
    assert said.out == ""
    assert says in said.err
    assert "--fresh" in said.err
    assert "another -o" in said.err
    assert {name: content for name, (content, _) in digests(Path("job")).items() if "lock" not in name} == {
        name: content for name, (content, _) in before.items() if "lock" not in name
    }


def test_another_picture_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "-o", "job").code == 0
    from tests.cliploop.commandline import DATA

    other = str(DATA / "vrbench" / "maze" / "00001" / "first_frame.png")
    said = run(capsys, "-o", "job", "--image", other)
    assert said.code == 2
    assert "picture differs" in said.err


def test_fresh_starts_over_and_keeps_what_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "-o", "job").code == 0
    mine = [Path("job/notes.txt"), Path("job/steps/mine.txt"), Path("job/steps/1/attempt-1.txt")]
    for path in mine:
        path.write_text("mine")
    video = Path("job/video.mp4").read_bytes()
    said = run(capsys, "-o", "job", "--fresh", "--seed", "7", "--json")
    assert said.code == 0
    assert json.loads(Path("job/trajectory.json").read_text())["policy"]["seed"] == 7
    assert all(path.read_text() == "mine" for path in mine)
    assert run(capsys, "-o", "job", "--fresh").code == 0
    assert Path("job/video.mp4").read_bytes() == video


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
def test_a_folder_with_somebody_elses_files_of_our_names_is_left_alone(
    capsys: pytest.CaptureFixture[str], fresh: tuple[str, ...]
) -> None:
    Path("films").mkdir()
    Path("films/video.mp4").write_bytes(b"a holiday")
    assert run(capsys, "-o", "films", "--dry-run", *fresh) == run(capsys, "-o", "films", *fresh)
    said = run(capsys, "-o", "films", *fresh)
    assert said.code == 2
    assert "did not make" in said.err
    assert [path.name for path in Path("films").iterdir()] == ["video.mp4"]
    assert Path("films/video.mp4").read_bytes() == b"a holiday"


def test_a_folder_with_other_files_may_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job").mkdir()
    Path("job/notes.txt").write_text("mine")
    assert run(capsys, "-o", "job").code == 0
    assert Path("job/notes.txt").read_text() == "mine"


def test_json_is_one_object_with_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "--json")
    assert said.code == said.json["exit_code"] == 0
    assert said.json["ok"] is True
    assert said.json["state"] == "succeeded"
    assert said.json["outcome"]["kind"] == "completed"
    assert Path(said.json["files"]["video.mp4"]).is_file()
    assert said.json["error"] is None
    assert "Step 1 (at most 4)" in said.err


def test_a_dry_run_writes_nothing_and_says_what_it_would_cost(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "--dry-run", "--json")
    assert said.code == 0
    assert said.json["dry_run"] is True
    assert said.json["estimate"]["clips"]["min"] == 1
    assert said.json["policy"]["max_steps"] == 4
    assert list(Path().iterdir()) == []
    shown = run(capsys, "--dry-run")
    assert "VLM calls" in shown.out
    ran = run(capsys, "--json")
    assert ran.json["id"] == said.json["id"]
    assert ran.json["folder"] == said.json["folder"]
    assert ran.json["spend"]["video_seconds"] <= said.json["estimate"]["video_seconds"]["max"]


@pytest.mark.parametrize("name", ["file", "file/below", "link", "link/below", "bad\0name"])
def test_a_dry_run_refuses_the_folders_that_the_run_refuses(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    Path("file").touch()
    Path("link").symlink_to("nowhere")
    dry, real = run(capsys, "-o", name, "--dry-run"), run(capsys, "-o", name)
    assert dry.code == 2
    assert dry == real
    assert dry.err.endswith("; choose another -o\n")
    assert ("a link to nothing" in dry.err) == name.startswith("link")


def test_a_dry_run_says_that_the_router_may_allow_a_second_round(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "--dry-run")
    assert "at most 4 steps, at most 3 attempts each, as many again if the router says so" in said.out


def test_a_trajectory_is_shown_by_folder_and_by_id(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, "--json")
    by_folder = command(capsys, "trajectory", "show", ran.json["folder"])
    by_id = command(capsys, "trajectory", "show", ran.json["id"])
    assert by_folder.code == by_id.code == 0
    assert by_folder.out == by_id.out
    assert "Step 1 (at most 4)" in by_folder.out
    assert "succeeded (completed)" in by_folder.out
    as_json = command(capsys, "trajectory", "show", ran.json["id"], "--json")
    assert as_json.json["trajectory"] == json.loads((Path(ran.json["folder"]) / "trajectory.json").read_text())


@pytest.mark.parametrize("how", ["garbage", "gone"])
def test_a_job_whose_journal_is_damaged_is_shown_from_its_trajectory(
    capsys: pytest.CaptureFixture[str], how: str
) -> None:
    run(capsys, "-o", "job")
    whole = command(capsys, "trajectory", "show", "job")
    journal = Path("job/.cliploop/journal.sqlite")
    journal.write_bytes(b"garbage" * 2000) if how == "garbage" else journal.unlink()
    said = command(capsys, "trajectory", "show", "job")
    assert (said.code, said.out) == (0, whole.out)
    assert len(said.err.splitlines()) == 1
    assert "shown from job/trajectory.json instead" in said.err
    assert journal.exists() == (how == "garbage")
    assert command(capsys, "trajectory", "show", "job", "--json").json["state"] == "succeeded"
    Path("job/trajectory.json").unlink()
    assert command(capsys, "trajectory", "show", "job").code == 2


def test_a_budget_of_nothing_is_exhausted_with_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "--budget", "video_seconds=0", "--json")
    assert said.code == 3
    assert said.json["outcome"]["kind"] == "exhausted"
    assert "budget" in said.json["outcome"]["reason"]


def test_pass_at_1_is_one_clip(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "--strategy", "pass@1", "-o", "job", "--json")
    assert said.code in (0, 3)
    steps = json.loads(Path("job/trajectory.json").read_text())["steps"]
    assert [len(step["attempts"]) for step in steps] == [1]
