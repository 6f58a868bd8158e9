"""From names to a frozen policy and ports: what decides the id, and what a wrong name is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from cliploop.local import SystemClock
from cliploop.settings import Settings
from orchestrator.errors import BackendMisconfigured, TaskRejected
from orchestrator.records import Budget, Policy, Size
from storage.artifacts import MemoryArtifacts

SIZE = Size(width=64, height=48)


def composed(tmp_path: Path, text: str = "", **environ: str) -> Composition:
    (tmp_path / "cliploop.toml").write_text(text)
    return Composition.read(None, environ, tmp_path)


def policy(**wanted: str) -> Policy:
    return Composition(Settings()).policy(Wanted(**wanted), SIZE)  # pyright: ignore[reportArgumentType]


def test_nothing_configured_gives_the_embedded_backends_and_the_papers_defaults() -> None:
    found = policy()
    assert (found.generator, found.planner, found.verifier, found.router, found.assessor) == (
        "simulated",
        *["oracle"] * 4,
    )
    assert (found.max_steps, found.max_attempts, found.fps, found.denoising_steps) == (3, 3, 16, 20)
    assert found.generator_options == {"profile": "vbvr-wan2.2"}
    assert found.canvas.size == SIZE
    assert "ffmpeg" in found.encoder


def test_whatever_decides_the_result_is_in_the_policy(tmp_path: Path) -> None:
    assert policy() == policy()
    assert policy(verifier="oracle-qwen").backends_digest != policy().backends_digest
    assert policy(generator="simulated-veo").backends_digest != policy().backends_digest
    mine = composed(tmp_path, "[generators.mine]\ntype = 'simulated'\nprofile = 'perfect'\n")
    other = composed(tmp_path, "[generators.mine]\ntype = 'simulated'\nprofile = 'veo-3.1'\n")
    wanted = Wanted(generator="mine")
    assert mine.policy(wanted, SIZE).generator_options == {"profile": "perfect"}
    assert mine.policy(wanted, SIZE).backends_digest != other.policy(wanted, SIZE).backends_digest


def test_settings_reach_the_policy(tmp_path: Path) -> None:
    text = "[defaults]\npreset = 'p'\n[presets.p]\nrouter = 'oracle-gemini'\nbudget = {usd = 2}\nguidance = 4\n"
    found = composed(tmp_path, text, CLIPLOOP_STEP_SECONDS="2").policy(Wanted(max_steps=7), SIZE)
    assert (found.router, found.assessor, found.guidance) == ("oracle-gemini", "oracle", 4)
    assert (found.budget, found.step_seconds, found.max_steps) == (Budget(usd=2), 2, 7)


def test_ports_are_what_the_policy_names(tmp_path: Path) -> None:
    composition = composed(tmp_path)
    chosen = composition.policy(Wanted(verifier="oracle-qwen"), SIZE)
    ports = composition.ports(chosen, MemoryArtifacts(), clock=SystemClock())
    assert ports.planner is ports.router
    assert ports.planner is not ports.verifier
    assert ports.generator.capabilities == chosen.capabilities


@pytest.mark.parametrize(
    ("text", "wanted", "says"),
    [
        ("", Wanted(generator="simulatd"), r"--generator: no generator 'simulatd'; did you mean 'simulated'"),
        ("[generators.a]\ntype = 'simulatd'\n", Wanted(generator="a"), r"\[generators.a\] type: .*'simulated'"),
        (
            "[generators.a]\ntype = 'wam'\n",
            Wanted(generator="a"),
            r"\[generators.a\] type: unknown type 'wam'; did you mean 'wan'",
        ),
        (
            "[generators.a]\ntype = 'simulated'\nprofile = 'x'\n",
            Wanted(generator="a"),
            r"\[generators.a\].*profile",
        ),
        (
            "[planners.a]\nvlm = 'gemni'\n[vlms.gemini]\ntype = 'gemini'\n",
            Wanted(planner="a"),
            r"did you mean 'gemini'",
        ),
        (
            "[planners.a]\nvlm = 'g'\n[vlms.g]\ntype = 'gemni'\n",
            Wanted(planner="a"),
            r"\[vlms.g\] type: unknown type 'gemni'; did you mean 'gemini'",
        ),
        (
            "[generators.a]\ntype = 'no.such:LINE'\n",
            Wanted(generator="a"),
            r"\[generators.a\]: generator 'no.such:LINE' cannot be imported",
        ),
        ("", Wanted(generator="bench.slow_backends:GENERATOR"), r"no generator 'bench.slow_backends:GENERATOR'"),
        ("[defaults]\nmax_steps = 0\n", Wanted(), r"\[defaults\] max_steps must be at least 1 \(got 0\)"),
        ("[defaults]\nfps = 0\n", Wanted(), r"\[defaults\] fps must be at least 1 "),
        ("[defaults]\nfps = 1e9\n", Wanted(), r"\[defaults\] fps must be at most 240"),
        ("[defaults]\nstep_seconds = 1e300\n", Wanted(), r"\[defaults\] step_seconds must be at most 600"),
        ("[defaults]\nstep_seconds = 0\n", Wanted(), r"\[defaults\] step_seconds must be more than 0"),
        ("[defaults]\ndeliver_long_side_max = -5\n", Wanted(), r"deliver_long_side_max must be at least 16"),
        ("", Wanted(max_attempts=1001), r"--max-attempts must be at most 1000 \(got 1001\)"),
        ("", Wanted(strategy="pass@1", gate="single_shot"), r"--gate: .*belongs to the strategy 'collabvr'"),
        ("", Wanted(strategy="pass@4", gate="single_shot"), r"belongs to the strategy 'collabvr'.*'pass@4'"),
        ("", Wanted(strategy="pass@4", max_steps=0), r"--max-steps must be at least 1"),
        ("[defaults]\nselector = 'nobody'\n", Wanted(), r"\[defaults\] selector: no selector 'nobody'"),
        ("[defaults]\ngate = 'open'\n", Wanted(), r"\[defaults\] gate must be 'none' or 'single_shot'"),
        ("[defaults]\nstrategy = 'videotpo'\n", Wanted(), r"\[defaults\] strategy: .*not built yet"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, wanted: Wanted, says: str) -> None:
    with pytest.raises(BackendMisconfigured, match=says):
        composed(tmp_path, text).policy(wanted, SIZE)


VLM = "[vlms.q]\ntype = 'openai_compatible'\nbase_url = 'http://127.0.0.1:9/v1'\nmodel = 'm'\n"


def test_a_vlm_serves_in_every_role_and_a_single_verifier_asks_it_once(tmp_path: Path) -> None:
    text = f"{VLM}[planners.q]\nvlm = 'q'\n[verifiers.strict]\ntype = 'single'\nvlm = 'q'\nmin_frames = 12\n"
    composition = composed(tmp_path, text)
    chosen = composition.policy(Wanted(planner="q", verifier="strict", strategy="pass@2"), SIZE)
    assert (chosen.planner, chosen.router, chosen.assessor, chosen.selector) == ("q", "q", "q", "q")
    ports = composition.ports(chosen, MemoryArtifacts(), clock=SystemClock())
    assert ports.planner is ports.router is ports.assessor is ports.selector
    assert ports.verifier is not ports.planner
    assert type(ports.verifier) is type(ports.planner)


def test_a_planner_and_a_verifier_of_one_name_are_each_their_own(tmp_path: Path) -> None:
    text = "[planners.m]\ntype = 'oracle'\n[verifiers.m]\ntype = 'oracle-qwen'\n"
    composition = composed(tmp_path, text)
    chosen = composition.policy(Wanted(planner="m", verifier="m"), SIZE)
    ports = composition.ports(chosen, MemoryArtifacts(), clock=SystemClock())
    assert ports.planner is ports.router
    assert ports.planner is not ports.verifier


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[verifiers.s]\ntype = 'single'\n", r"\[verifiers.s\] type: 'single' needs vlm ="),
        (f"{VLM}[planners.s]\ntype = 'single'\nvlm = 'q'\n", r"\[planners.s\] type: .* type of verifiers"),
        (f"{VLM}[verifiers.s]\ntype = 'oracle'\nvlm = 'q'\n", r"'oracle' stands beside vlm = 'q'"),
        (f"{VLM}[verifiers.s]\ntype = 'htv'\nvlm = 'q'\n", r"\[verifiers.s\].*'htv' is not in this version"),
        (f"{VLM}guided = 1\n[planners.s]\nvlm = 'q'\n", r"\[vlms.q\].*'guided'.*'guided_json'"),
        (f"{VLM}[planners.s]\nvlm = 'q'\nfpz = 1\n", r"\[planners.s\].*no option 'fpz'"),
        ("[vlms.q]\ntype = 'qwen'\n[planners.s]\nvlm = 'q'\n", r"\[vlms.q\] type: unknown type"),
        ("[verifiers.s]\nvlm = 'x'\n", r"\[verifiers.s\] vlm: no VLM 'x'"),
    ],
)
def test_a_vlm_that_is_set_up_wrongly_is_named_where_it_is_written(tmp_path: Path, text: str, says: str) -> None:
    wanted = Wanted(verifier="s") if "[verifiers.s]" in text else Wanted(planner="s")
    with pytest.raises(BackendMisconfigured, match=says):
        composed(tmp_path, text).policy(wanted, SIZE)


def test_a_vlm_without_an_entry_lacks_its_options() -> None:
    with pytest.raises(BackendMisconfigured, match=r"planner 'openai_compatible': model is missing"):
        policy(planner="openai_compatible")


def test_a_wrong_budget_in_a_file_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(TaskRejected, match=r"cliploop.toml: \[defaults\] budget: usd=-1.* is negative"):
        composed(tmp_path, "[defaults]\nbudget = {usd = -1}\n").policy(Wanted(), SIZE)


def test_a_type_may_be_a_backend_from_outside_but_no_request_imports_one(tmp_path: Path) -> None:
    text = "[generators.own]\ntype = 'bench.slow_backends:GENERATOR'\nseconds = 0.5\n"
    found = composed(tmp_path, text).policy(Wanted(generator="own"), SIZE)
    assert found.generator_options["seconds"] == 0.5
    code = (
        "import sys; from cliploop.choosing import Wanted; from cliploop.compose import Composition\n"
        "from cliploop.settings import Settings; from orchestrator.records import Size\n"
        "try: Composition(Settings()).policy(Wanted(generator='antigravity:x'), Size(width=64, height=48))\n"
        "except Exception as error: print(error)\n"
        "print('antigravity' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "no generator 'antigravity:x'" in said
    assert said.splitlines()[-1] == "False"
