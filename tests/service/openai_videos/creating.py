"""Videos asked for as the official client does."""

# pyright: reportDeprecated=false

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.service.asking import PERFECT, maze

PNG, PROMPT = maze()


def created(client: openai.OpenAI, **more: Any) -> Any:
    said: dict[str, Any] = {
        "prompt": PROMPT,
        "input_reference": ("../maze.png", PNG, "image/png"),
        "model": PERFECT,
        **more,
    }
    return client.videos.create(**said)


def refused(client: openai.OpenAI, **more: Any) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as caught:
        created(client, **more)
    return caught.value
