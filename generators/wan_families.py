"""The families of Wan checkpoints that turn a picture into a video: how one is told, and what its files must say.

Sizes, rates and lengths are those of the model cards of Wan-AI on the hub and of diffusers 0.42's pipeline.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args

from generators.checkpoints import INDEX, Checkpoint, folder_of, read
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Record

Family = Literal["wan2.2-a14b", "wan2.2-ti2v-5b", "wan2.1-480p", "wan2.1-720p"]
FAMILY_NAMES: tuple[Family, ...] = get_args(Family)


class Traits(Record):
    """What a family renders. Its VAE's factor and its patches of 2 make the multiple of the sides."""

    title: str
    size_multiple: int
    fps: float
    max_pixels: int
    max_side: int
    max_frames: int
    experts: int
    image_encoder: bool


_480P, _720P = 832 * 480, 1280 * 720
TRAITS: dict[Family, Traits] = {
    "wan2.2-a14b": Traits(
        title="Wan2.2 I2V A14B",
        size_multiple=16,
        fps=16,
        max_pixels=_480P,  # it renders 1280x720 too, at four times the time: max_pixels = 921600
        max_side=1280,
        max_frames=81,
        experts=2,
        image_encoder=False,
    ),
    "wan2.2-ti2v-5b": Traits(
        title="Wan2.2 TI2V 5B",
        size_multiple=32,
        fps=24,
        max_pixels=1280 * 704,
        max_side=1280,
        max_frames=121,
        experts=1,
        image_encoder=False,
    ),
    "wan2.1-480p": Traits(
        title="Wan2.1 I2V 480P",
        size_multiple=16,
        fps=16,
        max_pixels=_480P,
        max_side=1280,
        max_frames=81,
        experts=1,
        image_encoder=True,
    ),
    "wan2.1-720p": Traits(
        title="Wan2.1 I2V 720P",
        size_multiple=16,
        fps=16,
        max_pixels=_720P,
        max_side=1280,
        max_frames=81,
        experts=1,
        image_encoder=True,
    ),
}

# By the names that such repositories have, for a process that does not have the files. First match counts.
_NAMED: tuple[tuple[str, Family], ...] = (
    (r"ti2v-?5b", "wan2.2-ti2v-5b"),
    (r"vbvr-?wan2\.?2|wan2\.?2.*(i2v|a14b)", "wan2.2-a14b"),
    (r"wan2\.?1.*i2v.*720", "wan2.1-720p"),
    (r"wan2\.?1.*i2v", "wan2.1-480p"),
)

_OTHERS = r"\bt2v\b|flf2v|vace|animate|s2v\b"  # Wan models of other kinds, by the names of their repositories


def family_of(model: str, revision: str | None = None) -> Family:
    """The family of a checkpoint, by its files where they are here, else by its name.

    Raises BackendMisconfigured.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return told(read(folder), model)
    other = re.search(_OTHERS, model.rpartition("/")[2], re.IGNORECASE)
    if other is None and (named := _by_name(model)) is not None:
        return named
    families = ", ".join(FAMILY_NAMES)
    if folder.is_absolute() or model.startswith((".", "~")):
        raise BackendMisconfigured(
            f"model {model}: there is no such folder here; correct it, or where it is on another machine set"
            f" family to one of {families}"
        )
    if (cached := _cached(model, revision)) is not None:
        return told(read(cached), model)
    if other is not None:
        raise BackendMisconfigured(
            f"model {model}: by its name ({other[0]}) it does not make a video of a picture and a prompt; name an"
            f" I2V checkpoint, or where it does set family to one of {families}"
        )
    raise BackendMisconfigured(
        f"model {model}: its name does not say which Wan model it is, and it is not on this machine: cliploop"
        f" models pull {model}, or set family to one of {families}"
    )


def _cached(model: str, revision: str | None) -> Path | None:
    """Its folder in the hub's local cache; None too where the hub's library is not installed."""
    try:
        return folder_of(model, revision=revision)
    except BackendMisconfigured:
        return None


def _by_name(model: str) -> Family | None:
    return next((family for pattern, family in _NAMED if re.search(pattern, model, re.IGNORECASE)), None)


def told(checkpoint: Checkpoint, model: str) -> Family:
    """The family that the files say, each against the others. Raises BackendMisconfigured that names the file."""
    _require_kind(checkpoint)
    family = _family(checkpoint, model)
    _require_experts(checkpoint, family)
    _require_channels(checkpoint)
    return family


def _require_kind(checkpoint: Checkpoint) -> None:
    """A pipeline of Wan's that takes a picture. TI2V 5B is saved as either of two classes."""
    where = checkpoint.folder / INDEX
    name, expands = checkpoint.pipeline, bool(checkpoint.index.get("expand_timesteps"))
    if name != "WanImageToVideoPipeline" and not (name == "WanPipeline" and expands):
        what = "makes videos of text alone" if name == "WanPipeline" else "is no image-to-video model of Wan"
        raise BackendMisconfigured(
            f"{where}: {name or 'a pipeline without a class'} {what}; name an image-to-video checkpoint, or for"
            " another model type = 'diffusers_i2v'"
        )
    for part in ("transformer", "vae", "text_encoder", "tokenizer", "scheduler"):
        if part not in checkpoint.parts:
            raise BackendMisconfigured(f"{where}: it names no {part}; get the checkpoint anew, whole")


def _family(checkpoint: Checkpoint, model: str) -> Family:
    if checkpoint.index.get("expand_timesteps"):
        return "wan2.2-ti2v-5b"
    if checkpoint.config("transformer").get("image_dim") is None:
        return "wan2.2-a14b"
    if checkpoint.config("transformer").get("pos_embed_seq_len") is not None:
        where = checkpoint.folder / "transformer" / "config.json"
        raise BackendMisconfigured(
            f"{where}: pos_embed_seq_len is set: the model goes from a first picture to a last one (FLF2V), and"
            " there is no last one; name an I2V checkpoint"
        )
    named = _by_name(f"wan2.1-i2v {model}")  # the two differ in what they were trained on, not in their files
    return named if named in ("wan2.1-480p", "wan2.1-720p") else "wan2.1-480p"


def _require_experts(checkpoint: Checkpoint, family: Family) -> None:
    """Two transformers and the boundary between them belong together; a picture encoder belongs to Wan2.1."""
    where, traits = checkpoint.folder / INDEX, TRAITS[family]
    two, boundary = "transformer_2" in checkpoint.parts, checkpoint.index.get("boundary_ratio")
    if traits.experts == 2 and not two:
        raise BackendMisconfigured(
            f"{where}: it names no transformer_2, the expert for low noise; get the checkpoint anew, with both"
        )
    if traits.experts == 2 and not (isinstance(boundary, float) and 0 < boundary < 1):
        raise BackendMisconfigured(
            f"{where}: boundary_ratio is {boundary!r}; where one expert takes over from the other must be said,"
            " as 0.9 in Wan-AI's checkpoint"
        )
    if traits.experts == 1 and (two or boundary is not None):
        extra = "a transformer_2" if two else f"boundary_ratio {boundary!r}"
        raise BackendMisconfigured(
            f"{where}: it has {extra}, which {traits.title} has not; get the checkpoint anew, unmixed"
        )
    if traits.image_encoder and not {"image_encoder", "image_processor"} <= set(checkpoint.parts):
        raise BackendMisconfigured(
            f"{where}: {traits.title} needs image_encoder and image_processor, and it does not name both"
        )


def _require_channels(checkpoint: Checkpoint) -> None:
    """The transformers take what the VAE and the text encoder make: 2z + 4 channels, or z of TI2V 5B."""
    latent = _number(
        checkpoint.folder / "vae" / "config.json", checkpoint.config("vae").get("z_dim", 16), "z_dim"
    )
    expands = bool(checkpoint.index.get("expand_timesteps"))
    into = latent if expands else 2 * latent + 4
    text = checkpoint.config("text_encoder").get("d_model")
    encoder = checkpoint.folder / "text_encoder" / "config.json"
    for part in sorted(name for name in checkpoint.parts if name.startswith("transformer")):
        config, where = checkpoint.config(part), checkpoint.folder / part / "config.json"
        _require_same(where, config, "in_channels", into, f"{checkpoint.folder / 'vae'} makes {latent}")
        _require_same(where, config, "out_channels", latent, f"{checkpoint.folder / 'vae'} takes {latent}")
        if text is not None:
            _require_same(
                where,
                config,
                "text_dim",
                _number(encoder, text, "d_model"),
                f"{checkpoint.folder / 'text_encoder'} makes {text}",
            )


def _number(where: Path, given: Any, key: str) -> int:
    """Raise BackendMisconfigured for a value that is none."""
    if not isinstance(given, int):
        raise BackendMisconfigured(
            f"{where}: {key} is {str(given)[:40]!r}, no number; get the checkpoint anew, whole"
        )
    return given


def _require_same(where: Path, config: Any, key: str, wanted: int, why: str) -> None:
    given = config.get(key)
    if given is not None and _number(where, given, key) != wanted:
        remedy = "a text-to-video transformer" if key == "in_channels" else "a component of another model"
        raise BackendMisconfigured(
            f"{where}: {key} is {given} and must be {wanted} ({why}): this is {remedy}; get the checkpoint anew,"
            " unmixed"
        )
