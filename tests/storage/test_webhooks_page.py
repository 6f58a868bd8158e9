"""docs/webhooks.md says what is sent, and its snippet tells ours from others'."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.delivering import message, signed
from storage.webhooks import PAUSES_SECONDS, Due, Webhook, new_secret

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
SECRET = new_secret()
STATE = {"state": "succeeded", "reason": None, "outcome": "completed", "message": "", "key": ""}
DUE = Due("job-1", 41, 1, "", Webhook("https://example.org", SECRET), STATE, 1.5, 1.0, "default", None)


def test_the_snippet_takes_what_we_send_and_nothing_else() -> None:
    space: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[0], space)
    body = message(DUE)
    headers = {name.lower(): value for name, value in signed(DUE, body, datetime.now(UTC)).items()}
    assert space["received"](body, headers, SECRET)["data"]["state"] == "succeeded"
    assert space["received"](body + b" ", headers, SECRET) is None
    assert space["received"](body, headers, new_secret()) is None
    assert space["received"](body, {**headers, "webhook-timestamp": "1"}, SECRET) is None
    assert space["received"](body, {}, SECRET) is None


def test_the_shown_message_has_the_fields_and_headers_of_a_real_one() -> None:
    shown = json.loads(re.findall(r"^\{\"type\".+?\}\}$", PAGE, re.DOTALL | re.MULTILINE)[0])
    sent = json.loads(message(DUE))
    assert shown.keys() == sent.keys()
    assert shown["data"].keys() == sent["data"].keys()
    for name in signed(DUE, b"", datetime.now(UTC)):
        assert name.lower() in PAGE or name == "User-Agent"


def test_the_page_names_every_pause() -> None:
    seconds = [5, 30, 120, 600, 1800, 3600, 7200, 14400, 28800]
    assert list(PAUSES_SECONDS) == seconds
    assert "5 s, 30 s, 2, 10 and 30 min, 1, 2, 4 and 8 h" in PAGE
