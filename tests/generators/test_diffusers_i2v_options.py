"""Which pipelines `diffusers_i2v` takes, what must be said of them, and what a wrong configuration is told."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generators.catalog import GENERATORS, build
from generators.diffusers_rules import MUST_BE_KNOWN, RULES
from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured
from storage.artifacts import MemoryArtifacts
from tests.generators import tiny_i2v
from tests.generators.tiny_i2v import Table, rendered

LTX: dict[str, Any] = {"pipeline": "LTXImageToVideoPipeline", "model": "Lightricks/LTX-Video"}
OWN: dict[str, Any] = {
    **{"model": "/models/own", "size_multiple": 16, "frame_step": 4, "frame_offset": 1},
    **{"min_frames": 5, "max_frames": 81, "fps": 16, "prompt_chars": 2000},
}


def refused(given: dict[str, Any]) -> str:
    with pytest.raises(BackendMisconfigured) as said:
        build("diffusers_i2v", given, None)
    return str(said.value)


def refused_at_load(given: dict[str, Any]) -> str:
    """What a first render is told."""
    table = Table(96, 64)
    with pytest.raises(BackendMisconfigured) as said:
        rendered(build("diffusers_i2v", given, table.reader), table.shot())
    return str(said.value)


@pytest.mark.parametrize("name", RULES)
def test_every_known_class_is_one_of_diffusers_and_takes_what_its_rule_says(name: str) -> None:
    kind = getattr(importlib.import_module("diffusers"), name)
    rule = RULES[name]
    takes = inspect.signature(kind.__call__).parameters
    named = {"image", "prompt", rule.frames_argument, rule.fps_argument, rule.guidance_argument, *rule.call}
    assert named - {"", "guider"} <= set(takes)
    if rule.guidance_argument == "guider":
        assert "guider" in inspect.signature(kind.__init__).parameters
    default = takes[rule.frames_argument].default or rule.max_frames
    assert rule.min_frames <= default <= rule.max_frames
    assert (default - rule.frame_offset) % rule.frame_step == 0
    if "height" in takes and takes["height"].default:
        assert takes["height"].default % rule.size_multiple == 0
        assert takes["height"].default * takes["width"].default <= rule.max_pixels


def test_capabilities_come_from_the_class_and_options_override_them() -> None:
    known = build("diffusers_i2v", LTX, None).capabilities
    assert (known.size_multiple, known.frame_step, known.min_frames, known.fps) == (32, 8, 9, 24)
    assert known.prompt_chars == 512
    other = build("diffusers_i2v", {**LTX, "fps": 30, "max_frames": 97, "chainable": False}, None).capabilities
    assert (other.fps, other.max_frames, other.size_multiple, other.chainable) == (30, 97, 32, False)


def test_a_class_of_which_nothing_is_known_must_be_declared() -> None:
    given = {"pipeline": "ChronoEditPipeline", "model": "/models/chronoedit"}
    told = refused(given)
    assert all(option in told for option in MUST_BE_KNOWN)
    declared = build("diffusers_i2v", {**OWN, **given}, None).capabilities
    assert (declared.size_multiple, declared.max_frames, declared.prompt_chars) == (16, 81, 2000)


def test_a_misspelt_class_is_told_the_nearest() -> None:
    told = refused({**LTX, "pipeline": "LTXImageToVidoPipeline"})
    assert "did you mean 'LTXImageToVideoPipeline'" in told


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pipeline": "WanImageToVideoPipeline"}, "set type = 'wan'"),
        ({"pipeline": "Cosmos2VideoToWorldPipeline"}, "set type = 'cosmos'"),
        ({"pipeline": None}, "pipeline must be the name of a class in diffusers"),
        ({"model": ""}, "model must have at least 1 char"),
        ({"modle": "x"}, "no option 'modle'; did you mean 'model'"),
        ({"fps": 0}, "fps must be at least 1"),
        ({"min_side": 2000}, "max_side cannot be less than min_side"),
        ({"min_frames": 10, "max_frames": 16}, "no number of frames between"),
        ({"sizes": "720 by 480"}, "sizes are written like 1280x720"),
        ({"call": {"num_frames": 9}}, "call.num_frames is what a shot says"),
        ({"call": {"guidance_scale": 9}}, "call.guidance_scale is what a shot says"),
        ({"call": {"frame_rate": 9}}, "call.frame_rate is what a shot says"),
        ({"cache": "magcache"}, "needs cache_ratios"),
    ],
)
def test_a_wrong_option_is_named(changes: dict[str, Any], says: str) -> None:
    assert says in refused({**LTX, **changes})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("MotifVideoImageToVideoPipeline", "no pipeline.*did you mean 'MotifVideoImage2VideoPipeline'"),
        ("DiffusionPipeline", "does not make a video from a picture and a prompt"),
        ("StableVideoDiffusionPipeline", "takes no prompt;"),
        ("LTXPipeline", "takes no image; known: .*LTXImageToVideoPipeline"),
        ("AutoencoderKLWan", "diffusers has no pipeline"),
    ],
)
def test_only_a_pipeline_of_diffusers_from_picture_to_video_is_taken(name: str, says: str) -> None:
    assert re.search(says, refused_at_load({**OWN, "pipeline": name}))


@pytest.mark.parametrize("name", ["os.system", "pipelines", "__builtins__", "utils"])
def test_no_name_is_a_way_to_import_something_else(name: str) -> None:
    assert "pipeline" in refused({**OWN, "pipeline": name})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"call": {"decode_timestp": 0.05}}, "call.decode_timestp: a call of LTXImageToVideoPipeline takes no"),
        ({"call": {"decode_timestp": 0.05}}, "did you mean 'decode_timestep'"),
        ({"guidance_argument": "true_cfg_scale"}, "guidance_argument: a call of LTX"),
        ({"fps_argument": "fps"}, "fps_argument: a call of LTX"),
        ({"frames_argument": "frames"}, "takes no frames"),
        ({"model": "/nowhere/ltx"}, "model /nowhere/ltx: no such folder"),
        ({"model": "nobody/nothing"}, "model nobody/nothing: it is not in the local cache"),
        ({"model": "nobody/nothing"}, "allow_download = true"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_rendered(changes: dict[str, Any], says: str) -> None:
    assert says in refused_at_load({**LTX, **changes})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_i2v.saved(tiny_i2v.ltx, tmp_path_factory.mktemp("ltx") / "checkpoint")


def test_a_damaged_checkpoint_is_told_by_the_file_that_is_wrong(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ltx"
    given = {**LTX, "model": str(folder), "dtype": "float32"}
    folder.mkdir()
    assert f"model {folder}: there is no model_index.json in it" in refused_at_load(given)
    shutil.copytree(checkpoint, folder, dirs_exist_ok=True)
    weights = folder / "transformer" / "diffusion_pytorch_model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert f"{weights}: it is cut or damaged" in refused_at_load(given)
    weights.unlink()
    assert f"{weights.parent}: there are no weights in it" in refused_at_load(given)


def test_a_checkpoint_of_another_pipeline_is_told(checkpoint: Path) -> None:
    given = {**LTX, "pipeline": "CogVideoXImageToVideoPipeline", "model": str(checkpoint), "dtype": "float32"}
    told = refused_at_load(given)
    assert f"model {checkpoint}: its transformer is a LTXVideoTransformer3DModel" in told
    assert "has a CogVideoXTransformer3DModel: correct pipeline" in told


def test_without_a_guider_its_guidance_cannot_be_set(checkpoint: Path) -> None:
    given = {**LTX, "model": str(checkpoint), "dtype": "float32", "guidance_argument": "guider"}
    assert "has no guider with a guidance_scale" in refused_at_load(given)


def test_a_knob_that_the_pipeline_lacks_is_named(tmp_path: Path) -> None:
    folder = tiny_i2v.saved(tiny_i2v.hunyuan_15, tmp_path / "hunyuan")
    given = {"pipeline": "HunyuanVideo15ImageToVideoPipeline", "model": str(folder), "dtype": "float32"}
    assert "lora" in refused_at_load({**given, "lora": [{"path": "x.safetensors"}]})


def test_without_artifacts_it_only_says_what_it_can_do() -> None:
    generator = build("diffusers_i2v", LTX, None)
    with pytest.raises(BackendMisconfigured, match="built without artifacts"):
        rendered(generator, Table(96, 64).shot())


def test_what_decides_a_clip_is_in_the_digest() -> None:
    contents = [
        json.dumps(GENERATORS.content("diffusers_i2v", {**LTX, **more})["figures"])
        for more in ({}, {"call": {"decode_timestep": 0.1}}, {"dtype": "float32"}, {"max_frames": 97})
    ]
    assert len(set(contents)) == 4
    downloads = GENERATORS.content("diffusers_i2v", {**LTX, "allow_download": True})["figures"]
    assert json.dumps(downloads) == contents[0]


def test_its_capabilities_are_known_without_loading_torch() -> None:
    code = (
        "import sys; from generators.catalog import build\n"
        f"print(build('diffusers_i2v', {LTX!r}, None).capabilities.fps)\n"
        "print({'torch', 'diffusers', 'transformers'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["24.0", "set()"]


def test_a_reader_alone_loads_nothing() -> None:
    generator: Any = build("diffusers_i2v", LTX, FrameReader(MemoryArtifacts()))
    assert generator._pipeline is None
