"""bench.gpu_ratios prints lines that the options take, and says what is wrong with a checkpoint."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bench import gpu_ratios
from bench.gpu_model import TINY, build
from generators.knobs import Knobs

LETTERS = " abcdefghijklmnopqrstuvwxyz."


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A tiny pipeline with a tokenizer of letters, saved."""
    transformers: Any = importlib.import_module("transformers")
    tokens: Any = importlib.import_module("tokenizers")
    letters = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((letter, -1.0) for letter in LETTERS)]
    spelled = tokens.Tokenizer(tokens.models.Unigram(letters, unk_id=2))
    pipeline = build(TINY, dtype="bfloat16", device="cpu").pipeline
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=spelled, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    pipeline.register_modules(tokenizer=tokenizer)
    pipeline.save_pretrained(tmp_path / "model")
    importlib.import_module("PIL.Image").new("RGB", (80, 60), (90, 20, 40)).save(tmp_path / "first.png")
    return tmp_path / "model"


def test_the_printed_lines_are_options_of_this_checkpoint(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--width", "64", "--height", "48", "--frames", "5", "--steps", "4"]
    picture = str(checkpoint.parent / "first.png")
    assert gpu_ratios.main([str(checkpoint), "--picture", picture, "--prompt", "it moves.", *size]) == 0
    knobs = Knobs.model_validate(tomllib.loads(capsys.readouterr().out))
    assert knobs.cache == "magcache"
    assert len(knobs.cache_ratios) + len(knobs.cache_ratios_low) == 4
    assert knobs.cache_ratios[0] == 1.0


def test_a_folder_that_is_no_checkpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_ratios.main([str(tmp_path), "--picture", "first.png", "--prompt", "it moves."]) == 1
    assert str(tmp_path) in capsys.readouterr().err
