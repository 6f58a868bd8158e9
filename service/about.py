"""What the OpenAPI document says before its routes: how to call this API, in a paragraph for each subject."""

from __future__ import annotations

from pathlib import Path

ABOUT = Path(__file__).with_name("about.md").read_text(encoding="utf-8")
TAGS = {
    "Jobs": "Submit, follow, list, stop and delete; go on from a job in another one.",
    "Results": "What a job has made. Files honour Range, ETag and HEAD.",
    "Pictures": "Upload a picture for a job, or take a task of a built-in world.",
    "Choices": "What a submission can name.",
    "OpenAI-compatible": "The same jobs as OpenAI's video API has them, for its own clients.",
    "Service": "Whether it lives, whether it can serve, figures.",
}
_RESULTS = ("/trajectory", "/video", "/contact-sheet", "/clip")


def tag_of(path: str) -> str:
    """The group of a route."""
    if path.startswith("/v1/videos"):
        return "OpenAI-compatible"
    if path.startswith("/v1/jobs"):
        return "Results" if path.endswith(_RESULTS) else "Jobs"
    if path == "/v1/artifacts" or path.endswith("/sample"):
        return "Pictures"
    return "Choices" if path.startswith("/v1/") else "Service"
