"""LoRA: each adapter reaches its experts at its weight; files that do not fit are refused by name."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.gpu_model import TINY
from generators.knobs import Knobs, apply, sampling
from orchestrator.errors import BackendMisconfigured
from tests.generators.knob_clips import adapter, bare, difference, plain, rig


def test_an_adapter_changes_the_clip_and_of_no_weight_it_changes_nothing(tmp_path: Path) -> None:
    file = str(adapter(tmp_path / "a.safetensors"))
    made = rig(lora=[{"path": file}])
    assert f"lora {file} at 1 on transformer" in made.said
    assert f"lora {file} at 1 on transformer_2" in made.said
    assert difference(made.render()) > 0.001
    assert np.array_equal(rig(lora=[{"path": file, "weight": 0}]).render(), plain())


def test_half_the_weight_changes_less(tmp_path: Path) -> None:
    file = str(adapter(tmp_path / "a.safetensors"))
    whole, little = rig(lora=[{"path": file}]), rig(lora=[{"path": file, "weight": 0.1}])
    assert 0 < difference(little.render()) < difference(whole.render())


def test_each_expert_takes_its_own(tmp_path: Path) -> None:
    high, low = adapter(tmp_path / "h.safetensors", seed=1), adapter(tmp_path / "l.safetensors", seed=2)
    made = rig(lora=[{"path": str(high), "expert": "high"}, {"path": str(low), "expert": "low", "weight": 0.5}])
    first, second = made.pipeline.transformer, made.pipeline.transformer_2
    assert list(first.peft_config) == ["lora_0"]
    assert list(second.peft_config) == ["lora_1"]
    assert first.blocks[0].attn1.to_q.scaling == {"lora_0": 1.0}
    assert second.blocks[0].attn1.to_q.scaling == {"lora_1": 0.5}
    assert difference(made.render()) > 0.001


def test_two_adapters_add_up_on_one_expert(tmp_path: Path) -> None:
    one, two = adapter(tmp_path / "1.safetensors", seed=1), adapter(tmp_path / "2.safetensors", seed=2)
    both = rig(lora=[{"path": str(one)}, {"path": str(two), "weight": -0.5}])
    assert both.pipeline.transformer.active_adapters() == ["lora_0", "lora_1"]
    assert not np.array_equal(both.render(), rig(lora=[{"path": str(one)}]).render())


def test_a_folder_with_several_files_is_told_which(tmp_path: Path) -> None:
    adapter(tmp_path / "high_noise_model.safetensors", seed=1)
    adapter(tmp_path / "low_noise_model.safetensors", seed=2)
    made = rig(
        lora=[
            {"path": str(tmp_path), "file": "high_noise_model.safetensors", "expert": "high"},
            {"path": str(tmp_path), "file": "low_noise_model.safetensors", "expert": "low"},
        ]
    )
    assert difference(made.render()) > 0.001


def test_the_lightning_preset_says_how_to_sample(tmp_path: Path) -> None:
    file = str(adapter(tmp_path / "a.safetensors"))
    pipeline, _ = bare()
    pipeline.scheduler = pipeline.scheduler.from_config(pipeline.scheduler.config, flow_shift=3.0)
    knobs = Knobs.model_validate(
        {"dtype": "float32", "lora": [{"path": file}], "lora_preset": "lightning_4_steps"}
    )
    assert "flow_shift 5" in apply(pipeline, knobs)
    assert pipeline.scheduler.config.flow_shift == 5.0
    chosen = sampling(knobs, 20, 5.0)
    assert (chosen.denoising_steps, chosen.guidance) == (4, 1.0)
    asked = sampling(Knobs(), 20, 5.0)
    assert (asked.denoising_steps, asked.guidance, asked.flow_shift) == (20, 5.0, None)


def test_an_adapter_in_the_names_of_wans_own_code_is_read_too(tmp_path: Path) -> None:
    files: Any = importlib.import_module("safetensors.torch")
    torch: Any = importlib.import_module("torch")
    size, wide = TINY.heads * TINY.head_size, TINY.ffn
    linears = {f"{kind}.{name}": (size, size) for kind in ("self_attn", "cross_attn") for name in "qkvo"}
    linears |= {"ffn.0": (size, wide), "ffn.2": (wide, size)}
    numbers, weights = torch.Generator().manual_seed(0), dict[str, Any]()
    for layer in range(TINY.layers):
        for name, (given, out) in linears.items():
            stem = f"diffusion_model.blocks.{layer}.{name}"
            weights[f"{stem}.lora_down.weight"] = torch.randn((2, given), generator=numbers)
            weights[f"{stem}.lora_up.weight"] = torch.randn((out, 2), generator=numbers)
            weights[f"{stem}.alpha"] = torch.tensor(2.0)
    files.save_file(weights, tmp_path / "low_noise_model.safetensors")
    made = rig(lora=[{"path": str(tmp_path), "file": "low_noise_model.safetensors", "expert": "low"}])
    assert set(made.pipeline.transformer_2.blocks[0].ffn.net[2].lora_A) == {"lora_0"}
    assert difference(made.render()) > 0.001


def _damaged(folder: Path, how: str) -> tuple[dict[str, Any], str]:
    """An adapter that cannot be used, and what the refusal says of it."""
    file = folder / "bad.safetensors"
    if how == "missing":
        return {"path": str(file)}, "bad.safetensors"
    if how == "cut":
        adapter(file).write_bytes(file.read_bytes()[:100])
        return {"path": str(file)}, "bad.safetensors cannot be loaded into transformer"
    if how == "not a file of weights":
        file.write_text("<html>not found</html>")
        return {"path": str(file)}, "bad.safetensors cannot be loaded into transformer"
    if how == "of a wider model":
        return {"path": str(adapter(file, size=32))}, "bad.safetensors cannot be loaded into transformer"
    assert how == "pickled"
    (folder / "bad.bin").write_bytes(b"\x80\x04.")
    return {"path": str(folder), "file": "bad.bin"}, "bad.bin cannot be loaded into transformer"


@pytest.mark.parametrize("how", ["missing", "cut", "not a file of weights", "of a wider model", "pickled"])
def test_a_file_that_does_not_fit_is_refused_by_name(how: str, tmp_path: Path) -> None:
    given, says = _damaged(tmp_path, how)
    with pytest.raises(BackendMisconfigured, match="lora ") as refused:
        rig(lora=[given])
    assert says in str(refused.value)
    assert "trained on this model" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_low_noise_is_refused_where_there_is_one_transformer(tmp_path: Path) -> None:
    file = str(adapter(tmp_path / "a.safetensors"))
    pipeline, _ = bare()
    pipeline.register_modules(transformer_2=None)
    knobs = Knobs.model_validate({"dtype": "float32", "lora": [{"path": file, "expert": "low"}]})
    with pytest.raises(BackendMisconfigured, match="no transformer for low noise"):
        apply(pipeline, knobs)


def test_a_scheduler_without_flow_shift_refuses_the_preset(tmp_path: Path) -> None:
    file = str(adapter(tmp_path / "a.safetensors"))
    pipeline, _ = bare()
    diffusers: Any = importlib.import_module("diffusers")
    pipeline.scheduler = diffusers.DDIMScheduler()
    knobs = Knobs.model_validate(
        {"dtype": "float32", "lora": [{"path": file}], "lora_preset": "lightning_4_steps"}
    )
    with pytest.raises(BackendMisconfigured, match="DDIMScheduler has no flow shift"):
        apply(pipeline, knobs)
