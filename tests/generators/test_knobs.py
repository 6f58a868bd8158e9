"""Each knob is applied to a real pipeline and shows in its clip; what a pipeline lacks is refused by name."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from bench.gpu_model import TINY
from generators.knob_cache import transformers
from generators.knobs import Knobs, apply, loading
from orchestrator.errors import BackendMisconfigured
from tests.generators.knob_clips import STEPS, bare, difference, plain, rig

TORCHS_OWN = "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"  # as its compiler is imported


def test_the_defaults_change_nothing_and_say_so() -> None:
    made = rig()
    assert made.said == ["dtype float32", "VAE float32", "attention native", "on cpu"]
    assert np.array_equal(made.render(), plain())


def test_bfloat16_differs_a_little_and_the_vae_stays_in_float32() -> None:
    made = rig(dtype="bfloat16")
    assert made.said[:2] == ["dtype bfloat16", "VAE float32"]
    assert 0 < difference(made.render()) < 0.05


def test_loading_gives_each_component_its_number_format(tmp_path: Path) -> None:
    diffusers: Any = importlib.import_module("diffusers")
    pipeline, _ = bare()
    pipeline.save_pretrained(tmp_path)
    kept = diffusers.WanImageToVideoPipeline.from_pretrained(
        tmp_path, local_files_only=True, tokenizer=None, **loading(Knobs())
    )
    formats = [str(each.dtype) for each in (kept.transformer, kept.transformer_2, kept.text_encoder, kept.vae)]
    assert formats == ["torch.bfloat16", "torch.bfloat16", "torch.bfloat16", "torch.float32"]
    assert str(kept.transformer.blocks[0].scale_shift_table.dtype) == "torch.float32"
    apply(kept, Knobs())
    with pytest.raises(BackendMisconfigured, match=r"dtype float32: transformer was loaded as torch\.bfloat16"):
        apply(kept, Knobs(dtype="float32"))


def test_a_vae_in_the_same_format_is_asked_for() -> None:
    torch: Any = importlib.import_module("torch")
    assert loading(Knobs(vae_dtype="same"))["dtype"] == {"default": torch.bfloat16}


def test_attention_reaches_every_layer_and_hardly_shows() -> None:
    made = rig(attention="native_math")
    used = {
        str(module.processor._attention_backend.value)
        for transformer in transformers(made.pipeline).values()
        for module in transformer.modules()
        if hasattr(module, "processor")
    }
    assert "attention native_math" in made.said
    assert used == {"_native_math"}
    assert difference(made.render()) < 1e-5


@pytest.mark.parametrize(
    ("wanted", "package"), [("flash", "flash-attn"), ("sage", "sageattention"), ("xformers", "xformers")]
)
def test_attention_of_a_missing_package_falls_back_and_the_log_names_it(
    wanted: str, package: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="generators.knobs"):
        made = rig(attention=wanted)
    assert "attention native" in made.said
    assert f"attention {wanted}" in caplog.text
    assert f"package {package}" in caplog.text
    assert np.array_equal(made.render(), plain())


def test_strict_attention_is_refused_instead() -> None:
    with pytest.raises(BackendMisconfigured, match=r"attention sage .* package sageattention"):
        rig(attention="sage", attention_strict=True)


def test_one_pipelines_attention_is_not_the_next_ones() -> None:
    rig(attention="native_math")
    after = rig()
    assert after.pipeline.transformer.blocks[0].attn1.processor._attention_backend.value == "native"


@pytest.mark.filterwarnings(TORCHS_OWN)
def test_compile_marks_the_blocks_of_both_experts() -> None:
    made = rig(compile=True)
    assert made.said[-1] == "compiled the blocks of transformer and transformer_2"
    blocks = [block for each in transformers(made.pipeline).values() for block in each.blocks]
    assert len(blocks) == 2 * TINY.layers
    assert all(block._compiled_call_impl is not None for block in blocks)


@pytest.mark.slow
@pytest.mark.filterwarnings(TORCHS_OWN)
def test_a_compiled_clip_is_the_same_but_for_rounding() -> None:
    made = rig(compile=True)
    assert difference(made.render(steps=STEPS)) < 1e-4


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quantization": "torchao"}, "pip install 'torchao>=0.15'"),
        ({"quantization": "bitsandbytes", "quantization_type": "nf4"}, "pip install 'bitsandbytes>=0.48'"),
    ],
)
def test_quantization_names_the_package_that_is_missing(
    options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, options["quantization"], None)  # as if it were not installed
    with pytest.raises(BackendMisconfigured, match=f"needs a package that is not installed: {says}"):
        loading(Knobs(**options))


def test_quantization_that_was_not_done_while_loading_is_noticed() -> None:
    with pytest.raises(BackendMisconfigured, match="transformer was loaded unquantized"):
        rig(quantization="torchao")


def test_context_parallelism_is_refused_on_one_device() -> None:
    with pytest.raises(
        BackendMisconfigured, match="context_parallel 2 needs as many GPUs, and 0 can be used here"
    ):
        rig(context_parallel=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"offload": "disk"}, "offload"),
        ({"attention": "flex"}, "attention flex holds the whole score matrix unless compiled"),
        ({"cache": "magcache"}, "needs cache_ratios, measured on this checkpoint"),
        ({"quantization": "torchao", "quantization_type": "nf4"}, "quantization torchao has no type nf4"),
        ({"lora_preset": "lightning_4_steps"}, "lora names none"),
        ({"lora": [{"path": "a.safetensors", "expert": "middle"}]}, "expert"),
        ({"cash": "none"}, "cash"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Knobs(**options)


def test_every_option_says_what_it_is() -> None:
    source = Path(str(importlib.import_module("generators.knob_options").__file__)).read_text()
    body = source.split("class Knobs(Record):")[1]
    for name in Knobs.model_fields:
        line = body.split(f"\n    {name}: ")[1]
        assert line.split('"""')[1].endswith("."), name


def test_the_guide_tells_of_every_option() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text()
    told = [name for name in Knobs.model_fields if f"`{name}" not in guide and f"{name} = " not in guide]
    assert told == []


def test_knobs_are_named_without_loading_torch() -> None:
    asks = (
        "import sys, generators.knobs; print(sorted({'torch', 'diffusers', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", asks], text=True).strip() == "[]"


def test_a_pipeline_without_a_choice_of_attention_is_refused_by_name() -> None:
    pipeline, _ = bare()
    pipeline.register_modules(transformer=None, transformer_2=None)
    with pytest.raises(BackendMisconfigured, match="WanImageToVideoPipeline has no choice of attention"):
        apply(pipeline, Knobs(dtype="float32", attention="native_math"))


def test_blocks_that_are_not_repeated_are_not_compiled() -> None:
    pipeline, _ = bare()
    pipeline.transformer._repeated_blocks = []
    with pytest.raises(
        BackendMisconfigured, match="transformer, a WanTransformer3DModel, has no repeated blocks"
    ):
        apply(pipeline, Knobs(dtype="float32", compile=True))
