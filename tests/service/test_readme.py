"""The README's Python snippet runs against a real server, as it is written but for the server's address."""

from __future__ import annotations

import contextlib
import io
import re
import threading
from pathlib import Path

import pytest

from cliploop.site import Site
from tests.service.asking import work

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_python_snippet_says_what_happens_and_fetches_the_video(
    site: Site, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    code = code.replace("Client()", f"Client({address!r})")
    ended = threading.Event()

    def worker() -> None:
        while not ended.is_set():
            work(site)

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    try:
        with contextlib.redirect_stdout(io.StringIO()) as told:
            exec(code, {})
    finally:
        ended.set()
        thread.join()
    lines = told.getvalue().splitlines()
    assert lines[0] == "1 state queued"
    assert lines[-1].endswith("state succeeded")
    assert all(len(line.split()) == 3 for line in lines if not line.startswith("None"))
    assert (tmp_path / "answer.mp4").stat().st_size > 10_000
