"""`wan` where memory does not suffice, and clips of several seeds in one call where it does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from media.pictures import Frames
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from orchestrator.records import Shot
from tests.generators.tiny_i2v import Table, rendered
from tests.generators.tiny_wan import checkpoint
from tests.generators.wan_desk import pipeline_of, wan


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wan")
    return {name: checkpoint(name, folder / name) for name in ("a14b", "ti2v", "wan21")}


@pytest.fixture
def table() -> Table:
    return Table(96, 64)


def fails_with_no_memory(pipeline: Any, times: int) -> list[int]:
    """Its transformer runs out of memory at the third call of so many renders; the calls that it counts."""
    torch: Any = importlib.import_module("torch")
    calls = [0]

    def hook(*_: Any) -> None:
        calls[0] += 1
        if calls[0] % 3 == 0 and calls[0] <= 3 * times:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    pipeline.transformer.register_forward_pre_hook(hook)
    return calls


def test_out_of_memory_in_mid_render_is_survived_with_the_next_lower_profile(
    checkpoints: dict[str, Path], table: Table
) -> None:
    generator, shot = wan(checkpoints["ti2v"], table), table.shot(denoising_steps=4)
    plain = rendered(generator, shot)
    assert pipeline_of(generator).vae.use_tiling is False
    fails_with_no_memory(pipeline_of(generator), 1)
    frames = rendered(generator, shot)
    assert frames.shape == plain.shape
    assert pipeline_of(generator).vae.use_tiling is True


def test_out_of_memory_again_is_a_lost_attempt_that_says_what_to_set_and_the_generator_lives(
    checkpoints: dict[str, Path], table: Table
) -> None:
    generator, shot = wan(checkpoints["ti2v"], table), table.shot(denoising_steps=4)
    rendered(generator, shot)
    fails_with_no_memory(pipeline_of(generator), 2)
    with pytest.raises(
        BackendFailed, match=r"out of memory \(CUDA out of memory.*set vae_tiling, offload or quant"
    ):
        rendered(generator, shot)
    assert rendered(generator, shot).shape == (9, 64, 96, 3)


def test_a_model_that_does_not_fit_as_it_is_loaded_says_what_to_set(
    checkpoints: dict[str, Path], table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = importlib.import_module("torch")
    pipeline: Any = importlib.import_module("diffusers").WanImageToVideoPipeline

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(pipeline, "to", full)
    generator = wan(checkpoints["a14b"], table)
    with pytest.raises(BackendMisconfigured, match=r"does not fit into memory \(CUDA.*: set offload"):
        rendered(generator, table.shot())
    monkeypatch.undo()
    assert rendered(generator, table.shot()).shape == (9, 64, 96, 3)


def together(generator: Any, shots: list[Shot], **listening: Any) -> list[Frames]:
    given: dict[str, Any] = {"progress": list[float]().append, "cancelled": lambda: False, **listening}
    return generator.render_many(shots, **given)


@pytest.mark.parametrize("name", ["a14b", "ti2v", "wan21"])
def test_clips_of_several_seeds_in_one_call_are_those_of_single_calls(
    checkpoints: dict[str, Path], table: Table, name: str
) -> None:
    generator = wan(checkpoints[name], table, negative_prompt="blurred")
    shots = [table.shot(seed=seed) for seed in (3, 4, 5)]
    many = together(generator, shots)
    for shot, one in zip(shots, many, strict=True):
        assert (
            np.abs(one - rendered(generator, shot).astype(int)).max() <= 1
        )  # batched sums are rounded otherwise
    assert not np.array_equal(many[0], many[1])


def batches_of(pipeline: Any, most: int | None = None) -> list[int]:
    """How many clips each call of the transformer renders; memory runs out above so many."""
    torch: Any = importlib.import_module("torch")
    sizes: list[int] = []

    def hook(_: Any, _given: Any, named: dict[str, Any]) -> None:
        sizes.append(len(named["hidden_states"]))
        if most is not None and sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    pipeline.transformer.register_forward_pre_hook(hook, with_kwargs=True)
    return sizes


def test_clips_that_do_not_fit_into_one_call_are_rendered_in_halves(
    checkpoints: dict[str, Path], table: Table
) -> None:
    generator = wan(checkpoints["ti2v"], table)
    shots = [table.shot(seed=seed) for seed in (3, 4, 5)]
    alone = [rendered(generator, shot).astype(int) for shot in shots]
    sizes, told = batches_of(pipeline_of(generator), 2), list[float]()
    many = together(generator, shots, progress=told.append)
    assert sizes[0] == 3
    assert set(sizes[1:]) == {1, 2}
    assert all(np.abs(one - other).max() <= 1 for one, other in zip(alone, many, strict=True))
    assert (sorted(told), told[-1]) == (told, 1)
    assert pipeline_of(generator).vae.use_tiling is False  # no lower profile was needed


def test_clips_of_one_call_are_cancelled_together(checkpoints: dict[str, Path], table: Table) -> None:
    generator, told = wan(checkpoints["ti2v"], table), list[float]()
    shots = [table.shot(seed=seed, denoising_steps=6) for seed in (3, 4)]
    with pytest.raises(JobCancelled):
        together(generator, shots, progress=told.append, cancelled=lambda: len(told) >= 3)
    assert len(told) == 3


def test_shots_that_differ_in_more_than_their_seeds_are_not_rendered_in_one_call(
    checkpoints: dict[str, Path], table: Table
) -> None:
    generator = wan(checkpoints["a14b"], table)
    with pytest.raises(ValueError, match="their seeds alone"):
        together(generator, [table.shot(), table.shot(prompt="Another.")])
