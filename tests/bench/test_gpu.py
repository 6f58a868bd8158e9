"""bench.gpu runs whole at a tiny size on a CPU, in parts, and says what it cannot measure here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from bench import gpu
from bench.gpu_model import A14B, TINY, build
from bench.gpu_variants import GROUPS, VARIANTS, chosen, missing

ON_CPU = ["plain", "float16", "native_flash", "cache", "offload", "vae", "lora"]


def test_without_a_gpu_it_skips_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    torch: Any = importlib.import_module("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert gpu.main([]) == 0
    assert "skipped: torch " in (said := capsys.readouterr().out)
    assert "sees no GPU here; --tiny" in said


@pytest.mark.slow
def test_the_whole_path_runs_at_a_tiny_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    assert gpu.main(["--tiny", "--knobs", *ON_CPU, "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "64x48, 5 frames, 4 steps; the CPU" in lines[0]
    assert lines[1].startswith("estimate: ")
    rows: dict[str, Any] = {row["knob"]: row for row in json.loads(out.read_text())["rows"]}
    measured = {name: row["figures"] for name, row in rows.items() if row["figures"]}
    assert rows["offload_sequential"]["not_measured"] == "needs a GPU"
    assert set(measured) == {variant.name for variant in chosen(ON_CPU) if not missing(variant, "cpu")}
    assert not [row["not_measured"] for row in rows.values() if "failed" in (row["not_measured"] or "")]
    plain = measured["plain"]
    assert plain["denoising_seconds"] == pytest.approx(4 * plain["seconds_per_step"])
    assert min(plain["text_seconds"], plain["vae_encode_seconds"], plain["vae_decode_seconds"]) > 0
    assert measured["tiling"]["seconds_per_step"] is None
    assert "VAE tiling by 32 pixels" in measured["tiling"]["applied"]
    assert "cache magcache on transformer and transformer_2" in measured["magcache"]["applied"]
    assert 0 < measured["taylorseer"]["computed"] <= 1
    assert measured["lightning"]["denoising_steps"] == 4
    outputs: dict[str, Any] = {name: row["output"] for name, row in rows.items() if row["figures"]}
    assert outputs["plain"] is None
    assert outputs["offload_group"] == {"latents_error": 0.0, "frames_psnr": 100.0}
    assert 0 < outputs["float16"]["latents_error"] < 0.1
    assert outputs["lightning"]["latents_error"] > 0
    assert outputs["tiling"]["frames_psnr"] < 100


def test_the_table_has_a_row_per_knob_and_the_baselines_ratios_are_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gpu.main(["--tiny", "--steps", "2", "--frames", "9", "--knobs", "slicing"])
    lines = capsys.readouterr().out.splitlines()
    assert "9 frames, 2 steps" in lines[0]
    head = next(number for number, line in enumerate(lines) if line.startswith("knob"))
    names = [line.split()[0] for line in lines[head + 1 :]]
    assert names == ["plain", "slicing"]
    assert lines[head + 1].split()[2] == "1.00"


def test_a_knob_that_would_end_after_the_limit_is_not_begun(capsys: pytest.CaptureFixture[str]) -> None:
    gpu.main(["--tiny", "--steps", "2", "--knobs", "first_block", "--limit", "0"])
    said = capsys.readouterr().out
    assert "plain: " not in said
    assert "would end after --limit 0" in said


def test_a_name_that_is_not_there_is_refused_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--tiny", "--knobs", "cash"]) == 2
    assert "there is no knob 'cash'; there are all, attention, cache" in capsys.readouterr().err


def test_a_size_that_the_model_cannot_do_ends_it_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--tiny", "--width", "40"]) == 0
    assert "plain failed: ValueError: `height` and `width` have to be divisible by 16" in capsys.readouterr().out


def test_a_knob_that_fails_is_a_row_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    gpu.main(["--tiny", "--layers", "1", "--steps", "2", "--knobs", "first_block", "offload_group"])
    said = capsys.readouterr().out
    assert (
        "first_block          failed: BackendMisconfigured: cache first_block does not go with transformer"
        in said
    )
    assert said.splitlines()[-1].startswith("offload_group ")
    assert "failed" not in said.splitlines()[-1]


def test_every_knob_of_the_product_has_a_row() -> None:
    assert set(GROUPS) == {
        "plain",
        "dtype",
        "attention",
        "compile",
        "cache",
        "offload",
        "vae",
        "quantization",
        "lora",
    }
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS)


def test_a_pipeline_built_twice_has_the_same_weights() -> None:
    torch: Any = importlib.import_module("torch")
    first, second = (build(TINY, dtype="bfloat16", device="cpu").pipeline for _ in range(2))
    for one, two in zip(first.transformer_2.parameters(), second.transformer_2.parameters(), strict=True):
        assert torch.equal(one, two)
    assert first.transformer.dtype == torch.bfloat16
    assert first.transformer.scale_shift_table.dtype == torch.float32
    assert first.text_encoder.dtype == torch.bfloat16
    assert first.vae.dtype == torch.float32


def test_the_large_geometry_is_the_models() -> None:
    diffusers: Any = importlib.import_module("diffusers")
    torch: Any = importlib.import_module("torch")
    with torch.device("meta"):
        expert = diffusers.WanTransformer3DModel(
            num_attention_heads=A14B.heads,
            attention_head_dim=A14B.head_size,
            num_layers=A14B.layers,
            ffn_dim=A14B.ffn,
            text_dim=A14B.text_size,
            in_channels=36,
            out_channels=16,
        )
    assert sum(weight.numel() for weight in expert.parameters()) == pytest.approx(14.3e9, rel=0.01)
