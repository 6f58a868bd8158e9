"""How many parameters the components of a checkpoint have, by the heads of their files; loads no weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from generators.checkpoints import Checkpoint

GIB = 2**30
BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.0, "float8": 1.0, "nf4": 0.5}
GROUP_SHARE = 0.1  # of the largest component is on the device at a time, where layers take turns; a rough figure
_MAX_HEAD_BYTES = 100 << 20


def parameters(checkpoint: Checkpoint) -> dict[str, int]:
    """By component; those whose weights are not in safetensors are left out."""
    counted = {part: _counted(checkpoint.folder / part) for part in checkpoint.parts}
    return {part: count for part, count in counted.items() if count}


def needed_gib(counts: Mapping[str, int], knobs: Any) -> float:
    """Memory of the device for the weights alone, as `generators.knob_options.Knobs` say they are kept."""
    sizes = [count * _bytes(part, knobs) / GIB for part, count in counts.items()]
    most = max(sizes, default=0.0)
    shares = {"none": sum(sizes), "model": most, "group": most * GROUP_SHARE, "sequential": most * GROUP_SHARE}
    return shares[knobs.offload]


def _bytes(part: str, knobs: Any) -> float:
    if part == "vae" and knobs.vae_dtype == "float32":
        return BYTES["float32"]
    if part.startswith("transformer") and knobs.quantization != "none":
        return BYTES[knobs.quantization_type]
    return BYTES[knobs.dtype]


def _counted(folder: Path) -> int:
    return sum(_in_head(path) for path in sorted(folder.glob("*.safetensors")))


def _in_head(path: Path) -> int:
    """A file of safetensors begins with the length of a JSON object that describes its tensors."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEAD_BYTES:
                return 0
            tensors = cast("dict[str, Any]", json.loads(file.read(length)))
        return sum(math.prod(each["shape"]) for name, each in tensors.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0
