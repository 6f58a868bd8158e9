"""Checkpoints that cannot be used: each is refused before anything is rendered, by the file that is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.catalog import build
from orchestrator.errors import BackendMisconfigured
from tests.generators.tiny_i2v import Table, library, rendered
from tests.generators.tiny_wan import SMALL, checkpoint, copied, edited

INDEX = "model_index.json"
WEIGHTS = "transformer_2/diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return {name: checkpoint(name, folder / name) for name in ("a14b", "ti2v", "wan21", "t2v")}


def refusal(folder: Path | str, **options: Any) -> str:
    """What is said of a render with that checkpoint."""
    table = Table(64, 64)
    with pytest.raises(BackendMisconfigured) as refused:
        rendered(build("wan", {"model": str(folder), **SMALL, **options}, table.reader), table.shot())
    return str(refused.value)


def cut(path: Path, share: float) -> None:
    """Only the first share of the file is there."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def sharded(folder: Path) -> list[Path]:
    """The weights of the second expert in two files of an index."""
    files, whole = library("safetensors.torch"), folder / WEIGHTS
    weights: dict[str, Any] = files.load_file(whole)
    whole.unlink()
    shards = [whole.with_name(f"diffusion_pytorch_model-0000{number}-of-00002.safetensors") for number in (1, 2)]
    names = sorted(weights)
    halves = dict(zip(shards, (names[::2], names[1::2]), strict=True))
    for shard, held in halves.items():
        files.save_file({name: weights[name] for name in held}, shard, metadata={"format": "pt"})
    told = {"metadata": {}, "weight_map": {name: shard.name for shard, held in halves.items() for name in held}}
    whole.with_name(f"{whole.name}.index.json").write_text(json.dumps(told))
    return shards


def without_a_tensor(path: Path) -> None:
    """A file of weights that is sound in itself, and lacks one of them."""
    files = library("safetensors.torch")
    weights: dict[str, Any] = files.load_file(path)
    del weights[sorted(weights)[1]]
    files.save_file(weights, path, metadata={"format": "pt"})


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no index": (lambda at: (at / INDEX).unlink(), "there is no model_index.json in it"),
    "index is no JSON": (lambda at: cut(at / INDEX, 0.5), "model_index.json: it cannot be read"),
    "an expert is absent": (
        lambda at: shutil.rmtree(at / "transformer_2"),
        r"transformer_2/config\.json: there is no such file",
    ),
    "an expert is not named": (
        lambda at: edited(at / INDEX, transformer_2=[None, None]),
        r"model_index\.json: it names no transformer_2, the expert for low noise",
    ),
    "no boundary": (
        lambda at: edited(at / INDEX, boundary_ratio=None),
        r"model_index\.json: boundary_ratio is None",
    ),
    "a shard is cut": (lambda at: cut(at / WEIGHTS, 0.6), rf"{re.escape(WEIGHTS)}: it is cut or damaged"),
    "a shard is empty": (lambda at: cut(at / WEIGHTS, 0), rf"{re.escape(WEIGHTS)}: it is cut or damaged"),
    "a shard is absent": (
        lambda at: sharded(at)[1].unlink(),
        r"00002-of-00002\.safetensors: there is no such file, which .*json names",
    ),
    "a shard lies where another belongs": (
        lambda at: shutil.copy(*sharded(at)),
        r"00002-of-00002\.safetensors: it lacks tensors that .*index\.json says are in it: .* and \d+ more",
    ),
    "an expert lacks a tensor": (
        lambda at: without_a_tensor(at / WEIGHTS),
        r"transformer_2: it lacks tensors that its config\.json asks for: blocks\.0\.attn1\.norm_q\.weight;",
    ),
    "the text encoder lacks a tensor": (
        lambda at: without_a_tensor(at / "text_encoder" / "model.safetensors"),
        r"text_encoder: it lacks tensors that UMT5EncoderModel has: encoder\.block\.0",
    ),
    "the text encoder is of another shape": (
        lambda at: edited(at / "text_encoder" / "config.json", d_ff=24),
        r"text_encoder: it cannot be loaded as UMT5EncoderModel",
    ),
    "weights are absent": (lambda at: (at / WEIGHTS).unlink(), "transformer_2: there are no weights in it"),
    "weights are a web page": (
        lambda at: (at / WEIGHTS).write_text("<!doctype html><title>Sign in</title>"),
        "it is cut or damaged",
    ),
    "no tokenizer files": (
        lambda at: [path.unlink() for path in (at / "tokenizer").iterdir()],
        r"tokenizer: there is none of tokenizer\.json",
    ),
    "a tokenizer is cut": (
        lambda at: cut(at / "tokenizer" / "tokenizer.json", 0.5),
        r"tokenizer/tokenizer\.json: it cannot be read",
    ),
    "the VAE of another model": (
        lambda at: edited(at / "vae" / "config.json", z_dim=48),
        r"transformer/config\.json: in_channels is 36 and must be 100",
    ),
    "an expert of a text-to-video model": (
        lambda at: edited(at / "transformer_2" / "config.json", in_channels=16),
        r"transformer_2/config\.json: in_channels is 16 and must be 36 .*: this is a text-to-video transformer",
    ),
    "the text encoder of another model": (
        lambda at: edited(at / "text_encoder" / "config.json", d_model=24),
        r"transformer/config\.json: text_dim is 16 and must be 24",
    ),
    "a size that is no number": (
        lambda at: edited(at / "vae" / "config.json", z_dim=[16]),
        r"vae/config\.json: z_dim is '\[16\]', no number",
    ),
    "a channel count that is no number": (
        lambda at: edited(at / "transformer" / "config.json", in_channels="x"),
        r"transformer/config\.json: in_channels is 'x', no number",
    ),
    "a nest": (
        lambda at: (at / "vae" / "config.json").write_text('{"a": ' + "[" * 100_000),
        r"vae/config\.json: it cannot be read",
    ),
    "a pipe": (
        lambda at: ((at / "vae" / "config.json").unlink(), os.mkfifo(at / "vae" / "config.json")),
        r"vae/config\.json: there is no such file",
    ),
    "another pipeline": (
        lambda at: edited(at / INDEX, _class_name="StableDiffusionPipeline"),
        "StableDiffusionPipeline is no image-to-video model of Wan",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_refused_by_the_file_that_is_wrong(
    whole: dict[str, Path], tmp_path: Path, damage: str
) -> None:
    folder = copied(whole["a14b"], tmp_path / "model")
    harm, says = DAMAGE[damage]
    harm(folder)
    said = refusal(folder)
    assert re.search(says, said), said
    assert str(folder) in said


def test_a_text_to_video_checkpoint_is_refused(whole: dict[str, Path]) -> None:
    assert "WanPipeline makes videos of text alone" in refusal(whole["t2v"])


def test_experts_that_a_family_has_not_are_refused(whole: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(whole["ti2v"], tmp_path / "model")
    edited(folder / INDEX, boundary_ratio=0.9)
    assert "it has boundary_ratio 0.9, which Wan2.2 TI2V 5B has not" in refusal(folder)
    edited(folder / INDEX, transformer_2=["diffusers", "WanTransformer3DModel"], boundary_ratio=None)
    assert "it has a transformer_2, which Wan2.2 TI2V 5B has not" in refusal(folder)


def test_wan21_without_its_picture_encoder_is_refused(whole: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(whole["wan21"], tmp_path / "model")
    edited(folder / INDEX, image_encoder=[None, None])
    assert "Wan2.1 I2V 480P needs image_encoder and image_processor" in refusal(folder)


def test_a_model_of_a_first_and_a_last_picture_is_refused(whole: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(whole["wan21"], tmp_path / "model")
    edited(folder / "transformer" / "config.json", pos_embed_seq_len=514)
    said = refusal(folder)
    assert "transformer/config.json: pos_embed_seq_len is set" in said
    assert "name an I2V checkpoint" in said


def test_a_checkpoint_in_shards_renders_as_one_in_single_files(whole: dict[str, Path], tmp_path: Path) -> None:
    folder, table = copied(whole["a14b"], tmp_path / "model"), Table(64, 64)
    sharded(folder)
    made = [
        rendered(build("wan", {"model": str(each), **SMALL}, table.reader), table.shot())
        for each in (whole["a14b"], folder)
    ]
    assert np.array_equal(*made)


def test_files_of_another_family_than_was_said_are_refused(whole: dict[str, Path]) -> None:
    said = refusal(whole["a14b"], family="wan2.2-ti2v-5b")
    assert "those of Wan2.2 I2V A14B, not of Wan2.2 TI2V 5B: set family = 'wan2.2-a14b'" in said


def test_the_original_layout_is_told_from_that_of_diffusers(tmp_path: Path) -> None:
    (tmp_path / "high_noise_model").mkdir()
    (tmp_path / "models_t5_umt5-xxl-enc-bf16.pth").write_bytes(b"")
    assert "the original layout of Wan's weights" in refusal(tmp_path)
    assert "-Diffusers" in refusal(tmp_path)


def test_single_files_of_weights_are_told_from_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "wan2.2_i2v_high_noise_14B_fp8_scaled.safetensors").write_bytes(b"")
    assert "it holds single files of weights" in refusal(tmp_path)


def test_a_component_is_told_from_the_checkpoint_around_it(whole: dict[str, Path]) -> None:
    assert f"it is one component of {whole['a14b']}; name that" in refusal(whole["a14b"] / "transformer")


def test_a_folder_that_is_not_there_and_a_file_are_refused(tmp_path: Path) -> None:
    options = {"family": "wan2.2-a14b"}
    assert "no such folder" in refusal(tmp_path / "absent", **options)
    (tmp_path / "file").write_text("")
    assert "it is a file, not a folder" in refusal(tmp_path / "file", **options)


def test_a_repository_that_is_not_in_the_local_cache_is_not_fetched() -> None:
    said = refusal("Wan-AI/Wan2.2-I2V-A14B-Diffusers")
    assert "it is not in the local cache: cliploop models pull Wan-AI/Wan2.2-I2V-A14B-Diffusers" in said


def test_a_name_that_is_neither_folder_nor_repository_is_refused() -> None:
    assert "no id of a repository" in refusal("Wan2.2 I2V A14B/of/mine")


def test_without_the_extra_the_command_that_installs_it_is_named(whole: dict[str, Path]) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from generators.catalog import build\n"
        "from tests.generators.tiny_i2v import Table, rendered\n"
        f"table = Table(64, 64)\n"
        f"generator = build('wan', {{'model': {str(whole['a14b'])!r}}}, table.reader)\n"
        "print(generator.capabilities.name)\n"
        "rendered(generator, table.shot())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("Wan2.2 I2V A14B"), ran.stderr
    assert "pip install 'cliploop[wan]'" in ran.stderr.splitlines()[-1]
