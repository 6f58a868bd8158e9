"""`cliploop generators`: name those that can be used here, and run the conformance suite on one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cliploop.commands.boundary import guarded
from cliploop.compose import Composition
from cliploop.terminal import EXIT_COMPLETED, EXIT_FAILED, Terminal, one_line
from generators.conformance import FIRST_FRAME, check
from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Capabilities
from storage.artifacts import MemoryArtifacts


def list_command(config: Path | None, terminal: Terminal) -> int:
    """Every name that --generator takes; one that cannot be built says why."""

    def body() -> int:
        composition = Composition.read(config, os.environ, Path())
        listed = [_described(composition, name) for name in composition.generator_names()]
        for each in listed:
            terminal.say(f"{one_line(each['name']):20} {one_line(each['detail'])}")
        terminal.result({"ok": True, "exit_code": EXIT_COMPLETED, "generators": listed})
        return EXIT_COMPLETED

    return guarded(terminal, body)


def _described(composition: Composition, name: str) -> dict[str, Any]:
    try:
        capabilities = composition.generator(name).capabilities
    except BackendMisconfigured as error:
        detail = str(error).partition("; its options: ")[0]
        return {"name": name, "usable": False, "detail": detail, "capabilities": None}
    detail = _summary(capabilities)
    return {"name": name, "usable": True, "detail": detail, "capabilities": capabilities.model_dump(mode="json")}


def _summary(capabilities: Capabilities) -> str:
    limit = f"{capabilities.min_frames} to {capabilities.max_frames} frames at {capabilities.fps:g} fps"
    chain = "" if capabilities.chainable else ", cannot be chained"
    price = f", ${capabilities.usd_per_video_second:.2f} a second" if capabilities.usd_per_video_second else ""
    return f"{capabilities.name}: {limit}, prompts of {capabilities.prompt_chars} characters{chain}{price}"


def check_command(name: str, config: Path | None, terminal: Terminal) -> int:
    """Exit 1 if the generator fails a check: then the loop should not use it."""

    def body() -> int:
        composition = Composition.read(config, os.environ, Path())
        artifacts = MemoryArtifacts()
        generator = composition.generator(name, FrameReader(artifacts))
        told: list[dict[str, Any]] = []
        for finding in check(generator, artifacts):
            word = "ok  " if finding.passed else "FAIL"
            terminal.say(f"{word} {finding.name:12} {one_line(finding.detail)}")
            told.append({"name": finding.name, "ok": finding.passed, "detail": finding.detail})
        failed = [each["name"] for each in told if not each["ok"]]
        code = EXIT_FAILED if failed else EXIT_COMPLETED
        terminal.say(f"{one_line(name)}: {_verdict(failed)}")
        terminal.result(
            {
                **{"ok": not failed, "exit_code": code, "generator": name},
                **{"chainable": FIRST_FRAME not in failed, "checks": told},
            }
        )
        return code

    return guarded(terminal, body)


def _verdict(failed: list[str]) -> str:
    """By the checks that it failed."""
    if not failed:
        return "conforms"
    if failed == [FIRST_FRAME]:
        return "not chainable, conforms otherwise: strategy pass@1, or allow_unchainable"
    return f"does not conform ({', '.join(failed)}): do not use it"
