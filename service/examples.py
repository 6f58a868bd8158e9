"""Examples for the OpenAPI document: requests that work as they stand, and what is answered to them."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

# A maze of 6 by 6 squares, 96 pixels wide.
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAGAAAABgAgMAAACf9p+rAAAADFBMVEX///8AyADcAAAAAAA0M4KbAAAAZklEQVR42"
    "mP8z4AdMDGMSgyABAsDAwMDI5Tznwp2cC3AIaHAgd1yhgYcRjFhkaJ2kPzDaUfDPxxGPfiBIcH4n2qByAIzgnE0iQ6a/AGPZwYGhlAGBoZVo2E1"
    "UBKMo/XHqMSoBE4JAJsADmtJn1tNAAAAAElFTkSuQmCC"
)
PROMPT = "The red circle moves along the white squares to the green square."
JOB_ID = "job-42e8b24c0b498c7d75d5"
SUBMISSION = {"picture": PICTURE, "prompt": PROMPT, "max_steps": 3, "seed": 46}
_SPENT = {
    "video_seconds": 31.5, "gpu_seconds": 0.69, "vlm_calls": 11, "vlm_tokens": 0, "usd": 0.0,
    "wall_seconds": 2.97,
}  # fmt: skip
JOB: dict[str, Any] = {
    "id": JOB_ID,
    "object": "job",
    "state": "succeeded",
    "reason": None,
    "outcome": "completed",
    "message": "",
    "at": None,
    "waits_for": None,
    "prompt": PROMPT,
    "preset": "default",
    "priority": "normal",
    "generator": "simulated",
    "planner": "oracle",
    "verifier": "oracle",
    "strategy": "collabvr",
    "seed": 46,
    "parent_id": None,
    "submitted_at": 1796098615.477,
    "queue_position": None,
    "progress": {"step": 3, "max_steps": 3, "attempt": 2, "key": "final/video", "fraction": None},
    "spend": _SPENT,
    "estimate": {
        "clips": {"least": 1.0, "most": 18.0},
        "video_seconds": {"least": 6.0, "most": 72.0},
        "vlm_calls": {"least": 4.0, "most": 25.0},
        "usd": {"least": 0.0, "most": 0.0},
        "remaining_seconds": None,
    },
    "webhook": None,
    "links": {
        "self": f"/v1/jobs/{JOB_ID}",
        **{name: f"/v1/jobs/{JOB_ID}/{name}" for name in ("events", "trajectory", "video", "contact-sheet")},
    },
}
_BEGUN = {"state": "queued", "outcome": None, "queue_position": 0, "spend": dict.fromkeys(_SPENT, 0)}
_NO_PROGRESS = {"step": None, "max_steps": 3, "attempt": None, "key": "", "fraction": None}
NEW_JOB = {**JOB, **_BEGUN, "progress": _NO_PROGRESS, "webhook_secret": None}
_CANCELLING = {**JOB, "state": "cancelling", "outcome": None}
_RUNNING = {**JOB, "state": "running", "outcome": None}
VIDEO = {
    "id": JOB_ID,
    "object": "video",
    "model": "default",
    "status": "completed",
    "progress": 100,
    "created_at": 1796098615,
    "completed_at": 1796098619,
    "expires_at": None,
    "prompt": PROMPT,
    "seconds": "12.1875",
    "size": "96x96",
    "remixed_from_video_id": None,
    "error": None,
    "cliploop": {"state": "succeeded", "outcome": "completed", "reason": None, "message": ""},
}
_NEW_VIDEO = {
    **VIDEO,
    "status": "queued",
    "progress": 0,
    "completed_at": None,
    "seconds": "14",
    "cliploop": {"state": "queued", "outcome": None, "reason": None, "message": ""},
}
_VIDEO_ASKED = {"prompt": PROMPT, "seconds": "14", "seed": 46}
_ORACLE = {"object": "list", "data": [{"name": "oracle", "type": "oracle", "usable": True, "detail": ""}]}
_SIMULATED = {"name": "simulated", "type": "simulated", "usable": True, "detail": "", "capabilities": None}
_WORLD = {
    "name": "maze",
    "description": "A piece goes through a grid of walls to its goal, one straight run at a time.",
    "difficulties": ["easy", "medium", "hard"],
}
# By the route's name: {media type: {name of the example: value}}.
REQUESTS: dict[str, dict[str, dict[str, Any]]] = {
    "submit_job": {
        "application/json": {
            "a maze": SUBMISSION,
            "with limits, and told of by a webhook": {
                **SUBMISSION,
                "budget": {"video_seconds": 60, "vlm_calls": 40},
                "webhook": {"url": "https://example.org/cliploop"},
            },
        },
        "multipart/form-data": {"the picture as text": {**SUBMISSION, "max_steps": "3", "seed": "46"}},
    },
    "retry_job": {"application/json": {"with more steps": {"max_steps": 12}}},
    "fork_job": {
        "application/json": {
            "the first step by another instruction": {
                "step": 1,
                "instruction": "The red circle moves down first.",
            },
            "another seed": {"step": 1, "seed": 7},
        }
    },
    "review_job": {
        "application/json": {
            "let it try again": {"action": "resume"},
            "a verdict": {
                "verdict": {"decision": "reject", "failure": "wrong_direction", "suggestion": "Go left."},
                "at": "step/1/attempt/1",
            },
        }
    },
    "sample_world": {"application/json": {"an easy one": {"difficulty": "easy", "seed": 7, "side_px": 512}}},
    "create_video": {
        "application/json": {"a maze": {**_VIDEO_ASKED, "input_reference": {"image_url": PICTURE}}},
        "multipart/form-data": {
            "the picture as text": {**_VIDEO_ASKED, "seed": "46", "input_reference": PICTURE}
        },
    },
    "remix_video": {"application/json": {"another prompt": {"prompt": PROMPT}}},
}
# By the route's name: what is answered where all is well.
ANSWERS: dict[str, Any] = {
    "submit_job": NEW_JOB,
    "retry_job": {**NEW_JOB, "parent_id": "job-8a1f6c0d2b7e4f5a9c3d"},
    "fork_job": {**NEW_JOB, "parent_id": "job-8a1f6c0d2b7e4f5a9c3d"},
    "review_job": _RUNNING,
    "list_jobs": {"object": "list", "data": [JOB], "after": None},
    "read_job": JOB,
    "cancel_job": _CANCELLING,
    "upload_picture": {
        "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.png",
        "object": "artifact",
        "size": {"width": 832, "height": 480},
        "bytes": 51234,
        "notes": [],
        "expires_at": 1796185015.0,
    },
    "list_presets": {
        "object": "list",
        "data": [{"name": "careful", "choices": {"generator": "simulated", "verifier": "oracle-gemini"}}],
    },
    "list_generators": {"object": "list", "data": [_SIMULATED]},
    "list_planners": _ORACLE,
    "list_verifiers": _ORACLE,
    "list_worlds": {"object": "list", "data": [_WORLD]},
    "sample_world": {"picture": PICTURE, "prompt": PROMPT},
    "create_video": _NEW_VIDEO,
    "retrieve_video": VIDEO,
    "list_videos": {
        "object": "list", "data": [VIDEO], "first_id": JOB_ID, "last_id": JOB_ID, "has_more": False,
    },
    "delete_video": {"id": JOB_ID, "object": "video.deleted", "deleted": True},
    "remix_video": {**_NEW_VIDEO, "remixed_from_video_id": "job-8a1f6c0d2b7e4f5a9c3d"},
    "read_pointer": {
        "name": "cliploop",
        "version": "0.2.0",
        "links": {"openapi": "/openapi.json", "docs": "/docs", "jobs": "/v1/jobs", "ready": "/readyz"},
    },
    "healthz": {"status": "ok"},
    "readyz": {"ready": True, "missing": {}},
}  # fmt: skip
_VERDICT = (
    '{"sequence":12,"key":"step/1/attempt/1/verdict","kind":"record","value":{"value":{"decision":"reject",'
    '"reason":"The circle went through a wall.","good_fraction":0.25}},"recorded_at":1796098616.2}'
)
_STATE = (
    '{"sequence":41,"key":"","kind":"state","value":{"state":"succeeded","reason":null,"message":"","key":"",'
    '"outcome":"completed"},"recorded_at":1796098619.1}'
)
EVENTS: dict[str, Any] = {
    "a verdict": {"id": "12", "event": "record", "data": _VERDICT},
    "a clip that is being rendered": {
        "event": "progress",
        "data": '{"key":"step/2/attempt/1/clip","fraction":0.4}',
    },
    "the end": {"id": "41", "event": "state", "data": _STATE},
}
NEWS = {
    "type": "job.succeeded",
    "timestamp": "2026-12-01T04:16:59.114Z",
    "data": {
        "id": JOB_ID, "object": "job", "state": "succeeded", "reason": None, "outcome": "completed",
        "message": "", "at": None, "preset": "default", "parent_id": None, "submitted_at": 1796098615.477,
    },
}  # fmt: skip
NOT_READY = {"ready": False, "missing": {"broker": "the broker cannot be reached now: try again later"}}
_REFUSALS: dict[int, tuple[str, str]] = {
    400: ("not_json", "the body is not JSON (expected `,` or `}` at line 1 column 9): correct it"),
    401: ("no_key", "this API asks for a key: send the header Authorization: Bearer clp_…"),
    403: ("other_origin", "without API keys this server takes no changes from pages of other origins"),
    404: ("not_found", f"there is no job {JOB_ID}"),
    408: ("too_slow", "the request's body did not come in time: send it again"),
    409: ("illegal_state", f"job {JOB_ID} is running: retry it when it has stopped, or cancel it first"),
    413: ("too_large", "the request's body has more than 32 MiB, the limit here: send a smaller picture"),
    415: ("media_type", "the body is not read as JSON: send Content-Type: application/json"),
    416: ("range", "the file has 51234 bytes: ask for some of them"),
    421: ("other_host", "without API keys this server answers to localhost and loopback addresses only"),
    422: ("invalid", "max_steps: must be at least 1"),
    429: ("too_many_requests", "this API key may send 60 requests a minute: go on in 12 s"),
    503: ("unavailable", "the database cannot be reached now: try again later"),
    507: ("disk", "this server's disk is nearly full: it takes no more until there is room"),
}


def trajectory_example() -> Any:
    """A job's trajectory, with one of its steps."""
    return json.loads((Path(__file__).parent / "trajectory.json").read_text(encoding="utf-8"))


def problem_example(status: int) -> dict[str, Any] | None:
    """A problem document of that status."""
    if status not in _REFUSALS:
        return None
    code, detail = _REFUSALS[status]
    said = {"type": f"urn:cliploop:{code}", "title": HTTPStatus(status).phrase, "status": status}
    faults = {"errors": [{"where": "max_steps", "message": "must be at least 1"}]} if status == 422 else {}
    return {**said, "detail": detail, "code": code, **faults}


def error_example(status: int) -> dict[str, Any] | None:
    """The same as OpenAI's API says it."""
    if status not in _REFUSALS:
        return None
    code, detail = _REFUSALS[status]
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(status)
    kind = kind or ("server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": detail, "type": kind, "param": None, "code": code}}
