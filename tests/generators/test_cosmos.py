"""Cosmos-Predict2.5 on a tiny random checkpoint: image to world, and its safety checker's word is kept."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.catalog import GENERATORS, build
from generators.conformance import check
from media.frames import FrameReader
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from storage.artifacts import MemoryArtifacts
from tests.generators import tiny_i2v
from tests.generators.cosmos_checkers import Lenient
from tests.generators.tiny_i2v import PROMPT, Table, rendered


def torchvision_loads() -> bool:
    try:
        importlib.import_module("torchvision")
    except Exception:  # absent, or of another torch
        return False
    return True


LOADS = torchvision_loads()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose transformer resizes no mask, so that torchvision is not needed; the rest is as released."""
    return tiny_i2v.saved(tiny_i2v.cosmos, tmp_path_factory.mktemp("cosmos") / "checkpoint")


def options(checkpoint: Path, checker: str = "Lenient", **more: Any) -> dict[str, Any]:
    return {
        **{"model": str(checkpoint), "safety_checker": f"tests.generators.cosmos_checkers:{checker}"},
        **{"dtype": "float32", "min_side": 32, "max_side": 128, "max_pixels": 96 * 64, "max_frames": 17},
        **more,
    }


def refused(given: dict[str, Any]) -> str:
    with pytest.raises(BackendMisconfigured) as said:
        build("cosmos", given, None)
    return str(said.value)


def refused_at_load(given: dict[str, Any]) -> str:
    table = Table(96, 64)
    with pytest.raises(BackendMisconfigured) as said:
        rendered(build("cosmos", given, table.reader), table.shot())
    return str(said.value)


def test_the_start_picture_and_the_prompt_become_a_clip_that_a_seed_repeats(checkpoint: Path) -> None:
    table = Table(96, 64)
    generator = build("cosmos", options(checkpoint), table.reader)
    clip = rendered(generator, table.shot())
    assert (clip.shape, clip.dtype) == ((9, 64, 96, 3), np.uint8)
    assert np.array_equal(clip, rendered(build("cosmos", options(checkpoint), table.reader), table.shot()))
    for changed in ({"seed": 4}, {"guidance": 7.0}, {"prompt": "Nothing moves"}):
        assert not np.array_equal(clip, rendered(generator, table.shot(**changed)))
    other = Table(96, 64, seed=6)
    assert not np.array_equal(clip, rendered(build("cosmos", options(checkpoint), other.reader), other.shot()))


def test_the_picture_conditions_one_frame_alone(checkpoint: Path) -> None:
    table = Table(96, 64)
    generator: Any = build("cosmos", options(checkpoint), table.reader)
    rendered(generator, table.shot())
    masks: list[Any] = []

    def noting(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        masks.append(named["condition_mask"][0, 0, :, 0, 0].tolist())

    hook = generator._pipeline.transformer.register_forward_pre_hook(noting, with_kwargs=True)
    rendered(generator, table.shot())
    hook.remove()
    assert masks[0] == [1.0, 0.0, 0.0]  # of 9 frames, 3 latent ones


def test_the_default_formats_are_rendered(checkpoint: Path) -> None:
    table = Table(96, 64)
    given = {name: value for name, value in options(checkpoint).items() if name != "dtype"}
    assert rendered(build("cosmos", given, table.reader), table.shot()).shape == (9, 64, 96, 3)


def test_a_render_stops_in_the_middle_and_tells_its_steps(checkpoint: Path) -> None:
    table = Table(96, 64)
    generator = build("cosmos", options(checkpoint), table.reader)
    told: list[float] = []
    before = rendered(generator, table.shot(denoising_steps=4), progress=told.append)
    assert sorted(told) == told
    assert (len(set(told)), told[-1]) == (6, 1)
    told.clear()
    with pytest.raises(JobCancelled):
        rendered(generator, table.shot(denoising_steps=4), progress=told.append, cancelled=lambda: len(told) >= 3)
    assert told[-1] < 1
    assert np.array_equal(rendered(generator, table.shot(denoising_steps=4)), before)


@pytest.mark.slow
def test_the_suite_passes_but_for_the_first_frame_of_random_weights(checkpoint: Path) -> None:
    artifacts = MemoryArtifacts()
    generator = build("cosmos", options(checkpoint, max_frames=9), FrameReader(artifacts))
    failed = [finding for finding in check(generator, artifacts) if not finding.passed]
    assert [finding.name for finding in failed] == ["first frame"]


def test_the_checker_is_shown_every_prompt_and_every_video(checkpoint: Path) -> None:
    table = Table(96, 64)
    rendered(build("cosmos", options(checkpoint), table.reader), table.shot())
    assert Lenient.latest.seen == [PROMPT, ((9, 64, 96, 3), "uint8")]
    assert str(Lenient.latest.device) in ("cpu", "cuda", "cuda:0")


@pytest.mark.parametrize(
    ("checker", "says"),
    [
        ("NoPrompts", "safety checker blocked the prompt"),
        ("NoVideos", "safety checker blocked the video"),
        ("Cuts", r"safety checker returned uint8 of shape \(8, 64, 96, 3\)"),
    ],
)
def test_what_the_checker_blocks_is_a_lost_attempt(checkpoint: Path, checker: str, says: str) -> None:
    table = Table(96, 64)
    generator = build("cosmos", options(checkpoint, checker), table.reader)
    with pytest.raises(BackendFailed, match=says):
        rendered(generator, table.shot())


def test_what_the_checker_blurs_is_delivered_blurred(checkpoint: Path) -> None:
    table = Table(96, 64)
    plain = rendered(build("cosmos", options(checkpoint), table.reader), table.shot())
    blurred = rendered(build("cosmos", options(checkpoint, "Blurs"), table.reader), table.shot())
    assert plain[:, :8, :8].any()
    assert not blurred[:, :8, :8].any()
    assert np.array_equal(blurred[:, 8:], plain[:, 8:])


def test_without_a_checker_it_renders_only_where_a_licence_allows_it(checkpoint: Path) -> None:
    given = {**options(checkpoint), "safety_checker": "none"}
    assert "licence_allows_no_checker" in refused(given)
    table = Table(96, 64)
    allowed = build("cosmos", {**given, "licence_allows_no_checker": True}, table.reader)
    with_one = rendered(build("cosmos", options(checkpoint), table.reader), table.shot())
    assert np.array_equal(rendered(allowed, table.shot()), with_one)


@pytest.mark.parametrize(
    ("checker", "says"),
    [
        ("tests.generators.cosmos_checkers:Absent", "cannot be loaded (its models are not in the local cache)"),
        ("tests.generators.cosmos_checkers:Nobody", "has no attribute 'Nobody'"),
        ("tests.generators.cosmos_checkers:Half", "it has no method check_text_safety"),
    ],
)
def test_a_checker_that_cannot_be_had_stops_it_before_it_renders(
    checkpoint: Path, checker: str, says: str
) -> None:
    assert says in refused_at_load({**options(checkpoint), "safety_checker": checker})


@pytest.mark.skipif(
    importlib.util.find_spec("cosmos_guardrail") is not None, reason="NVIDIA's checker is installed here"
)
def test_nvidias_checker_is_the_default_and_named_where_it_is_missing(checkpoint: Path) -> None:
    given = options(checkpoint)
    del given["safety_checker"]
    told = refused_at_load(given)
    assert "safety_checker cosmos_guardrail: it cannot be loaded" in told
    assert "pip install cosmos_guardrail" in told
    assert "License" in told


@pytest.mark.skipif(LOADS, reason="torchvision loads here")
def test_the_released_checkpoints_need_torchvision_and_say_so(tmp_path: Path) -> None:
    folder = tmp_path / "cosmos"
    (folder / "transformer").mkdir(parents=True)
    (folder / "transformer" / "config.json").write_text(json.dumps({"concat_padding_mask": True}))
    (folder / "model_index.json").write_text("{}")
    told = refused_at_load(options(folder))
    assert "Cosmos needs torchvision, which cannot be loaded (No module named 'torchvision')" in told


@pytest.mark.skipif(not LOADS, reason="torchvision does not load here: a released checkpoint's mask was not run")
def test_a_checkpoint_as_released_is_rendered(tmp_path: Path) -> None:
    folder = tiny_i2v.saved(lambda: tiny_i2v.cosmos(pads=True), tmp_path / "cosmos")
    table = Table(96, 64)
    assert rendered(build("cosmos", options(folder), table.reader), table.shot()).shape == (9, 64, 96, 3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cache": "first_block"}, "cache of Cosmos there is none"),
        ({"safety_checker": "off"}, "safety_checker must be cosmos_guardrail, none, or module:attribute"),
        ({"safty_checker": "none"}, "did you mean 'safety_checker'"),
        ({"max_frames": 3}, "max_frames must be at least 5"),
        ({"model": ""}, "model must have at least 1"),
    ],
)
def test_a_wrong_option_is_named(changes: dict[str, Any], says: str) -> None:
    assert says in refused(changes)


def test_a_missing_or_damaged_checkpoint_is_named(checkpoint: Path, tmp_path: Path) -> None:
    assert "model /nowhere/cosmos: " in refused_at_load(options(Path("/nowhere/cosmos")))
    (tmp_path / "transformer").mkdir()
    (tmp_path / "transformer" / "config.json").write_text('{"concat_padding_mask": false}')
    assert f"model {tmp_path}: there is no model_index.json" in refused_at_load(options(tmp_path))


def test_what_it_can_do_is_known_without_torch() -> None:
    code = (
        "import sys; from generators.catalog import build\n"
        "c = build('cosmos', {}, None).capabilities\n"
        "print(c.size_multiple, c.frame_step, c.max_frames, c.fps, c.max_pixels)\n"
        "print({'torch', 'diffusers', 'transformers', 'torchvision'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["16", "4", "93", "16.0", str(1280 * 704), "set()"]


def test_what_decides_a_clip_is_in_the_digest() -> None:
    contents = [
        json.dumps(GENERATORS.content("cosmos", given)["figures"])
        for given in ({}, {"safety_checker": "mine:Checker"}, {"negative_prompt": "fog"}, {"dtype": "float32"})
    ]
    assert len(set(contents)) == 4
