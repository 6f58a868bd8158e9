"""Models of transformers in a checkpoint of diffusers, loaded so that what their files lack is known.

diffusers would load them too, and then random numbers stand in for tensors that are not there: clips of noise.
"""

from __future__ import annotations

import importlib
from typing import Any

from generators.checkpoints import Checkpoint, lacking
from generators.diffusers_calls import first_line, is_out_of_memory
from generators.knobs import Knobs, loading
from orchestrator.errors import BackendMisconfigured

_LIBRARY = "transformers"


def whole_encoders(checkpoint: Checkpoint, knobs: Knobs) -> dict[str, Any]:
    """By component, on the CPU. Raises BackendMisconfigured that names the component and what it lacks."""
    library: Any = importlib.import_module(_LIBRARY)
    formats = loading(knobs)["dtype"]
    made: dict[str, Any] = {}
    for part, kind in checkpoint.parts.items():
        if checkpoint.index[part][0] != _LIBRARY:
            continue
        found = getattr(library, kind, None)
        if isinstance(found, type) and issubclass(found, library.PreTrainedModel):
            made[part] = _loaded(checkpoint, part, found, formats.get(part, formats["default"]))
    return made


def _loaded(checkpoint: Checkpoint, part: str, kind: Any, dtype: Any) -> Any:
    folder = checkpoint.folder / part
    try:
        model, told = kind.from_pretrained(
            str(folder), dtype=dtype, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # of another shape, of another format: each library its own class
        if is_out_of_memory(error):
            raise
        raise BackendMisconfigured(
            f"{folder}: it cannot be loaded as {kind.__name__} ({first_line(error)}): get the checkpoint anew,"
            " unmixed"
        ) from error
    if told["missing_keys"]:
        raise lacking(folder, sorted(told["missing_keys"]), f"{kind.__name__} has")
    return model.eval()
