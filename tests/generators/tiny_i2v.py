"""Tiny random checkpoints of image-to-video pipelines, saved as folders; and shots of them.

Weights depend on a fixed seed. Tokenizers are made on the spot: one token per letter, or per byte.
"""

from __future__ import annotations

import importlib
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from media.frames import FrameReader
from media.pictures import Frame, encode_png
from orchestrator.records import Shot, Size
from storage.artifacts import MemoryArtifacts
from tests.generators.cosmos_checkers import Lenient

PROMPT = "The red ball rolls to the right."
LETTERS = string.ascii_letters + string.digits + " .,;:'-()"
CHAT = (
    "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}"
)


def library(name: str) -> Any:
    """torch, diffusers or transformers; untyped."""
    return importlib.import_module(name)


def letters() -> Any:
    """A tokenizer of T5's kind."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), *((one, -4.0) for one in LETTERS)]
    return library("transformers").T5Tokenizer(vocab=pieces, extra_ids=0)


def chat() -> Any:
    """A tokenizer of Qwen2's kind, with a chat template."""
    alphabet = sorted(library("tokenizers").pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {one: number for number, one in enumerate([*alphabet, "<|endoftext|>"])}
    made = library("transformers").Qwen2Tokenizer(vocab=vocabulary, merges=[])
    made.chat_template = CHAT
    return made


def t5(vocabulary: int = 128) -> Any:
    transformers = library("transformers")
    return transformers.T5EncoderModel(
        transformers.T5Config(vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    )


def qwen_text(layers: int) -> dict[str, Any]:
    """Sizes of the text part of Qwen2.5-VL."""
    rope = {"mrope_section": [1, 1, 2], "rope_type": "default", "type": "default", "rope_theta": 1e6}
    return {
        **{"vocab_size": 300, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": layers},
        **{"num_attention_heads": 2, "num_key_value_heads": 2, "rope_parameters": rope},
    }


def cogvideox(**transformer: Any) -> Any:
    """CogVideoX; the arguments are the transformer's, such as learned positions of the first version."""
    diffusers = library("diffusers")
    given = {"use_rotary_positional_embeddings": True, **transformer}
    return diffusers.CogVideoXImageToVideoPipeline(
        tokenizer=letters(),
        text_encoder=t5(),
        vae=diffusers.AutoencoderKLCogVideoX(
            block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2
        ),
        transformer=diffusers.CogVideoXTransformer3DModel(
            **{"num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 8, "out_channels": 4},
            **{"time_embed_dim": 4, "text_embed_dim": 16, "num_layers": 1, "sample_frames": 9},
            **{"sample_width": 12, "sample_height": 8, **given},
        ),
        scheduler=diffusers.CogVideoXDDIMScheduler(),
    )


def ltx() -> Any:
    diffusers = library("diffusers")
    widths, layers = (8, 8, 8, 8), (1, 1, 1, 1, 1)
    return diffusers.LTXImageToVideoPipeline(
        tokenizer=letters(),
        text_encoder=t5(),
        vae=diffusers.AutoencoderKLLTXVideo(
            latent_channels=8,
            block_out_channels=widths,
            decoder_block_out_channels=widths,
            layers_per_block=layers,
            decoder_layers_per_block=layers,
        ),
        transformer=diffusers.LTXVideoTransformer3DModel(
            **{"in_channels": 8, "out_channels": 8, "num_attention_heads": 2, "attention_head_dim": 8},
            **{"cross_attention_dim": 16, "num_layers": 1, "caption_channels": 16},
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    )


def hunyuan_15() -> Any:
    """HunyuanVideo 1.5: takes no size, no guidance and no callback in its call."""
    diffusers, transformers = library("diffusers"), library("transformers")
    vision = transformers.SiglipVisionConfig(
        hidden_size=12,
        intermediate_size=12,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=54,
        patch_size=2,
    )
    return diffusers.HunyuanVideo15ImageToVideoPipeline(
        text_encoder=transformers.Qwen2_5_VLTextModel(transformers.Qwen2_5_VLTextConfig(**qwen_text(3))),
        tokenizer=chat(),
        text_encoder_2=t5(384),
        tokenizer_2=transformers.ByT5Tokenizer(),
        transformer=diffusers.HunyuanVideo15Transformer3DModel(
            **{"in_channels": 9, "out_channels": 4, "num_attention_heads": 2, "attention_head_dim": 8},
            **{"num_layers": 1, "num_refiner_layers": 1, "mlp_ratio": 2.0, "text_embed_dim": 16},
            **{"text_embed_2_dim": 16, "image_embed_dim": 12, "rope_axes_dim": (2, 2, 4), "target_size": 64},
        ),
        vae=diffusers.AutoencoderKLHunyuanVideo15(
            latent_channels=4,
            block_out_channels=(8, 8, 8, 8, 8),
            layers_per_block=1,
            downsample_match_channel=False,
            upsample_match_channel=False,
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=7.0),
        guider=diffusers.ClassifierFreeGuidance(guidance_scale=6.0),
        image_encoder=transformers.SiglipVisionModel(vision),
        feature_extractor=transformers.SiglipImageProcessorPil(size={"height": 54, "width": 54}),
    )


def cosmos(*, pads: bool = False) -> Any:
    """Cosmos-Predict2.5, saved without its checker. `pads`: as the released ones, which needs torchvision."""
    diffusers, transformers = library("diffusers"), library("transformers")
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16}
    layers = 2
    text_encoder = transformers.Qwen2_5_VLForConditionalGeneration(
        transformers.Qwen2_5_VLConfig(text_config=qwen_text(layers), vision_config=vision)
    )
    made = diffusers.Cosmos2_5_PredictBasePipeline(
        text_encoder=text_encoder,
        tokenizer=chat(),
        transformer=diffusers.CosmosTransformer3DModel(
            **{"in_channels": 17, "out_channels": 16, "num_attention_heads": 2, "attention_head_dim": 16},
            **{"num_layers": 1, "mlp_ratio": 2.0, "text_embed_dim": 16, "adaln_lora_dim": 4},
            **{"max_size": (8, 32, 32), "patch_size": (1, 2, 2), "rope_scale": (2.0, 1.0, 1.0)},
            **{"use_crossattn_projection": True, "crossattn_proj_in_channels": 16 * layers},
            **{"encoder_hidden_states_channels": 16, "concat_padding_mask": pads},
        ),
        vae=diffusers.AutoencoderKLWan(
            base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
        ),
        scheduler=diffusers.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=5.0
        ),
        safety_checker=Lenient(),
    )
    made.register_to_config(safety_checker=(None, None))
    return made


def saved(make: Callable[[], Any], folder: Path) -> Path:
    """The pipeline as a checkpoint in that folder."""
    library("torch").manual_seed(0)
    make().save_pretrained(folder)
    return folder


class Table:
    """Artifacts with a start picture of noise in soft blocks, and shots of it."""

    def __init__(self, width: int, height: int, *, seed: int = 5) -> None:
        self.artifacts = MemoryArtifacts()
        self.reader = FrameReader(self.artifacts)
        blocks = np.random.default_rng(seed).integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
        self.picture: Frame = blocks.repeat(8, axis=0).repeat(8, axis=1)
        self._start = self.artifacts.put(encode_png(self.picture), ".png")
        self._size = Size(width=width, height=height)

    def shot(self, **changes: Any) -> Shot:
        given: dict[str, Any] = {
            **{"prompt": PROMPT, "start_frame": self._start, "canvas": self._size, "seconds": 0.5},
            **{"num_frames": 9, "fps": 16, "seed": 3, "denoising_steps": 2, "guidance": 3.0},
        }
        return Shot(**{**given, **changes})


def rendered(generator: Any, shot: Shot, **given: Any) -> Any:
    """One render, with nothing listening unless said otherwise."""

    def ignore(_: object) -> None:
        pass

    listening: dict[str, Any] = {
        **{"resume": None, "checkpoint": ignore, "progress": ignore},
        "cancelled": lambda: False,
    }
    return generator.render(shot, **{**listening, **given})
