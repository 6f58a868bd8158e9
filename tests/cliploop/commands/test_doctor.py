"""`cliploop doctor` on configured backends: what each needs, whether it is here, and what to do if not."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cliploop.commands.doctor_backends import _within, libraries
from cliploop.commands.findings import Finding, failed, show
from cliploop.terminal import Stream, Terminal
from generators.checkpoints import read
from generators.knob_options import Knobs
from generators.weights import needed_gib, parameters
from orchestrator.errors import BackendMisconfigured
from storage.broker import embedded
from tests.cliploop.commandline import command
from tests.end_to_end.places import free_port
from tests.generators.certificates import self_signed
from tests.generators.loopback import Reply, Request, as_html, as_json, served
from tests.generators.tiny_wan import checkpoint, copied
from tests.generators.veo_server import VeoServer, refusal
from tests.generators.videos_server import VideosServer
from tests.planners.gemini_server import GeminiServer, candidate
from tests.planners.vlm_server import completion

KEY = "k-a-key-that-is-never-told"
SEES = json.dumps({"reason": "There is one.", "task_complete": True})


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


class Chat:
    """An OpenAI-style server: it lists models, and answers one question."""

    def __init__(self, *models: str, reply: Reply | None = None) -> None:
        self.models, self.reply = models, reply
        self.asked: list[Request] = []

    def answer(self, request: Request) -> Reply:
        self.asked.append(request)
        if self.reply is not None:
            return self.reply
        if request.path == "/v1/models":
            return as_json({"object": "list", "data": [{"id": name} for name in self.models]})
        return completion(SEES)


class Google:
    """Gemini's and Veo's protocols at one address."""

    def __init__(self) -> None:
        self.gemini = GeminiServer(models=("gemini-2.5-pro", "veo-3.1-generate-preview"))
        self.veo = VeoServer(shrink=8)

    def answer(self, request: Request) -> Reply:
        is_veo = (
            "predictLongRunning" in request.path or "operations" in request.path or "download" in request.path
        )
        return (self.veo if is_veo else self.gemini).answer(request)


def checks(capsys: pytest.CaptureFixture[str], settings: str, *words: str) -> dict[str, Any]:
    """The findings by name; no key is in any word that was said."""
    Path("cliploop.toml").write_text(settings)
    said = command(capsys, "doctor", "--json", *words)
    assert KEY not in said.out + said.err
    found = {each["name"]: each for each in said.json["checks"]}
    assert said.json["ok"] == all(each["ok"] for each in found.values())
    return found


def standing(found: dict[str, Any], name: str) -> tuple[str, str, str]:
    each = found[name]
    return each["state"], each["detail"], each["remedy"]


@pytest.fixture
def chat() -> Chat:
    return Chat("qwen", "other")


@pytest.fixture
def url(chat: Chat) -> Iterator[str]:
    with served(chat) as url:
        yield url


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint of Wan2.2 A14B."""
    return checkpoint("a14b", tmp_path_factory.mktemp("doctor") / "wan")


def vlm(url: str, **options: str) -> str:
    given = {"type": "openai_compatible", "base_url": f"{url}/v1", "model": "qwen", **options}
    return "[vlms.own]\n" + "\n".join(f'{name} = "{value}"' for name, value in given.items())


# --- servers and keys ---------------------------------------------------------------------------------------


def test_a_server_that_has_the_model_is_fine_and_is_asked_with_the_key(
    chat: Chat, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checks(capsys, vlm(url))
    assert standing(found, "vlms.own server") == ("ok", f"{url}/v1 has qwen", "")
    assert standing(found, "vlms.own key") == ("ok", "set in OPENAI_API_KEY", "")
    assert chat.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert [request.path for request in chat.asked] == ["/v1/models"]  # nothing that costs


def test_a_model_that_the_server_lacks_is_named_with_those_that_it_has(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state, detail, remedy = standing(checks(capsys, vlm(url, model="qwem")), "vlms.own server")
    assert (state, detail) == ("fail", f"{url}/v1 does not have qwem")
    assert remedy == "set model to one that it has: qwen, other"


@pytest.mark.parametrize(
    ("reply", "state", "says", "remedy"),
    [
        (refusal(401, f"bad {KEY}"), "fail", "refused the key (401)", "set a valid one in OPENAI_API_KEY"),
        (refusal(503, "loading"), "note", "answers 503", "look again later"),
        (refusal(404, "no such path"), "note", "lists no models (404)", ""),
        (as_html(), "fail", "answers with a web page", "set base_url to the address of the API"),
        (Reply(302, b"", {"location": "/"}), "fail", "answers 302, it has moved", "correct base_url"),
        (Reply(hangs_up=True), "fail", "the connection broke off", ""),
    ],
)
def test_what_a_server_answers_has_its_remedy(
    chat: Chat,
    url: str,
    capsys: pytest.CaptureFixture[str],
    reply: Reply,
    state: str,
    says: str,
    remedy: str,
) -> None:
    chat.reply = reply
    found = standing(checks(capsys, vlm(url)), "vlms.own server")
    assert found[0] == state
    assert says in found[1]
    assert found[2] == remedy


def test_without_a_key_a_server_that_asks_for_one_names_the_variable(
    chat: Chat, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    chat.reply = refusal(401, "who are you?")
    found = checks(capsys, vlm(url))
    assert standing(found, "vlms.own key")[0] == "note"
    assert standing(found, "vlms.own server")[2] == "set OPENAI_API_KEY"
    assert "authorization" not in chat.asked[0].headers


def test_a_server_that_is_down_and_one_whose_certificate_is_unknown(
    chat: Chat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down = standing(checks(capsys, vlm(f"http://127.0.0.1:{free_port()}")), "vlms.own server")
    assert down[0] == "fail"
    assert down[1:] == (down[1], "is the server running, and the port right?")
    assert down[1].endswith("connection refused")
    tls, authority = self_signed(tmp_path)
    with served(chat, tls) as url:
        state, detail, remedy = standing(checks(capsys, vlm(url)), "vlms.own server")
        assert state == "fail"
        assert "certificate is not trusted" in detail
        assert remedy.startswith("set ca_file")
        assert standing(checks(capsys, vlm(url, ca_file=str(authority))), "vlms.own server")[0] == "ok"


def test_googles_key_and_model_are_looked_at_without_a_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    google = Google()
    prices = "usd_per_million_input_tokens = 1\nusd_per_million_output_tokens = 1"
    with served(google) as url:
        settings = f'[vlms.g]\ntype = "gemini"\nbase_url = "{url}"\n'
        assert standing(checks(capsys, settings), "vlms.g server") == ("ok", f"{url} has gemini-2.5-pro", "")
        unknown = checks(capsys, f'{settings}model = "gemini-9"\n{prices}\n')
        assert standing(unknown, "vlms.g server")[::2] == ("fail", "correct model")
        invalid = refusal(400, "API key not valid", "INVALID_ARGUMENT", [{"reason": "API_KEY_INVALID"}])
        google.gemini.faults["model"] = [invalid]
        assert "refused the key (400)" in standing(checks(capsys, settings), "vlms.g server")[1]
        monkeypatch.delenv("GEMINI_API_KEY")
        google.gemini.faults["model"] = [refusal(403, "no key")]
        without = checks(capsys, settings)
        assert standing(without, "vlms.g key") == (
            "fail",
            f"none for {url}",
            "set GEMINI_API_KEY or GOOGLE_API_KEY",
        )
        assert standing(without, "vlms.g server")[0] == "ok"
    assert google.gemini.asked == []


# --- settings, libraries, checkpoints, memory ---------------------------------------------------------------


def test_a_backend_that_is_set_up_wrongly_is_named_and_the_others_are_looked_at(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = '[generators.w]\ntype = "wan"\nmodell = "x"\n[planners.p]\nvlm = "own"\nprompts = "nowhere"\n'
    found = checks(capsys, wrong + vlm(url))
    assert "no option 'modell'" in found["generators.w"]["detail"] + found["generators.w"]["remedy"]
    assert "nowhere" in found["planners.p"]["detail"] + found["planners.p"]["remedy"]
    assert found["vlms.own server"]["state"] == "ok"
    assert command(capsys, "doctor").code == 2  # as a run with such settings


def test_a_missing_library_and_one_of_another_version_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries("x", "gemini").state == "ok"
    installed = importlib.metadata.version

    def other(name: str) -> str:
        return "3.1.0" if name == "google-genai" else installed(name)

    monkeypatch.setattr(importlib.metadata, "version", other)
    found = libraries("x", "gemini")
    assert (found.state, found.remedy) == ("fail", "pip install 'cliploop[gemini]'")
    assert found.detail.startswith("google-genai is 3.1.0, not ")

    def none(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", none)
    assert libraries("x", "wan").detail.endswith(" is not installed")


@pytest.mark.parametrize(
    ("version", "limits", "fits"),
    [
        ("2.34.0", "<3,>=2.34", True),
        ("2.33.9", "<3,>=2.34", False),
        ("3.0", "<3,>=2.34", False),
        ("2.13.0+cpu", ">=2.13,<3", True),
        ("2.14.0rc1", ">=2.13,<3", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_held_against_their_limits(version: str, limits: str, fits: bool) -> None:
    assert _within(version, limits) is fits


def test_a_whole_checkpoint_is_counted_and_a_cut_one_is_named_by_its_file(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(whole, tmp_path / "wan")
    settings = f'[generators.w]\ntype = "wan"\nmodel = "{folder}"\n'
    found = checks(capsys, settings)
    state, detail, _ = standing(found, "generators.w checkpoint")
    assert state == "ok"
    assert "WanImageToVideoPipeline" in detail
    assert "billion parameters" in detail
    assert "of weights (bfloat16, offload none) fit into" in found["generators.w memory"]["detail"]
    weights = next((folder / "transformer").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-10])
    state, detail, remedy = standing(checks(capsys, settings), "generators.w checkpoint")
    assert state == "fail"
    assert str(weights) in detail + remedy


def test_memory_is_reckoned_by_number_format_and_offload(whole: Path) -> None:
    counts = {"transformer": 14 * 2**30, "transformer_2": 14 * 2**30, "text_encoder": 6 * 2**30, "vae": 2**27}
    assert needed_gib(counts, Knobs()) == pytest.approx(28 + 28 + 12 + 0.5)
    assert needed_gib(counts, Knobs(offload="model")) == pytest.approx(28)
    quantized = Knobs(quantization="torchao", quantization_type="int8", offload="model")
    assert needed_gib(counts, quantized) == pytest.approx(14)
    assert needed_gib(counts, Knobs(offload="group")) < 4
    real = parameters(read(whole))
    assert set(real) == {"transformer", "transformer_2", "text_encoder", "vae"}
    assert real["transformer"] == real["transformer_2"] > 1000


def test_the_parts_of_a_service_that_variables_name_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "broker" not in checks(capsys, "")
    monkeypatch.setenv("CLIPLOOP_DATABASE_URL", f"postgresql://me:{KEY}@127.0.0.1/none")
    monkeypatch.setenv("CLIPLOOP_ARTIFACTS_URL", "s3://bucket")
    monkeypatch.setenv("CLIPLOOP_REDIS_URL", f"redis://:{KEY}@127.0.0.1:{free_port()}/0")
    found = checks(capsys, "")
    assert found["database packages"]["detail"].startswith("psycopg ")
    assert found["store packages"]["detail"].startswith("s3fs ")
    assert standing(found, "broker")[::2] == ("fail", "is it running?")
    with embedded(tmp_path / "broker") as broker:
        monkeypatch.setenv("CLIPLOOP_REDIS_URL", broker)
        assert standing(checks(capsys, ""), "broker")[:2] == ("ok", "CLIPLOOP_REDIS_URL answers")


# --- --deep -------------------------------------------------------------------------------------------------

DEEP = """
[generators.far]
type = "openai_videos"
base_url = "VIDEOS/v1"
min_frames = 9
size_multiple = 16

[generators.veo]
type = "veo"
base_url = "GOOGLE"
poll_seconds = 0.01

[vlms.gemini]
type = "gemini"
base_url = "GOOGLE"

[vlms.qwen]
type = "openai_compatible"
base_url = "CHAT/v1"
model = "qwen"
"""


@pytest.mark.slow
def test_deep_tries_each_backend_once_and_renders_nothing_that_costs(
    chat: Chat, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    google, videos = Google(), VideosServer()
    google.gemini.replies = [candidate(SEES), candidate(SEES)]
    with served(google) as at, served(videos) as far:
        settings = DEEP.replace("VIDEOS", far).replace("GOOGLE", at).replace("CHAT", url)
        found = checks(capsys, settings, "--deep")
        assert found["a small job"]["ok"]
        assert "9 frames of" in found["generators.far clip"]["detail"]
        assert standing(found, "generators.veo clip")[0] == "skip"
        assert google.veo.submitted == []
        state, detail, _ = standing(found, "vlms.gemini reply")
        assert (state, detail[:34]) == ("ok", "gemini-2.5-pro-001 sees the pictur")
        assert standing(found, "vlms.qwen reply")[0] == "ok"
        assert len(google.gemini.asked) == 1
        assert google.gemini.asked[0].pictures
        paid = checks(capsys, settings, "--deep", "--paid")
        assert "96 frames of" in paid["generators.veo clip"]["detail"]
        assert len(google.veo.submitted) == 1


def test_deep_leaves_out_what_is_broken_and_names_a_model_that_does_not_see(
    chat: Chat, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cliploop.commands import doctor

    monkeypatch.setattr(doctor, "small_job", lambda: "left out")
    blind = json.dumps({"reason": "I see none.", "task_complete": False})
    google = Google()
    google.gemini.replies = [candidate(blind), candidate("no JSON")]
    with served(google) as at:
        settings = f'[vlms.g]\ntype = "gemini"\nbase_url = "{at}"\n' + vlm(f"http://127.0.0.1:{free_port()}")
        found = checks(capsys, settings, "--deep")
        assert standing(found, "vlms.own reply") == ("skip", "it was not tried: see above", "")
        assert standing(found, "vlms.g reply")[::2] == ("note", "name a model that sees pictures")
        assert "no complete object" in checks(capsys, settings, "--deep")["vlms.g reply"]["detail"]


# --- how it is told -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "detail", "remedy"),
    [
        ("http://x: connection refused: is it running?", "http://x: connection refused", "is it running?"),
        ("model m: no such folder; name a checkpoint", "model m: no such folder", "name a checkpoint"),
        ("http://x: it does not know 'm' (a: b)", "http://x: it does not know 'm' (a: b)", ""),
        ("out of order", "out of order", ""),
    ],
)
def test_a_message_is_split_into_what_is_wrong_and_what_to_do(words: str, detail: str, remedy: str) -> None:
    found = failed("x", BackendMisconfigured(words))
    assert (found.detail, found.remedy) == (detail, remedy)


def test_on_a_terminal_it_is_a_table_with_a_remedy_in_each_row_that_needs_one(tmp_path: Path) -> None:
    with (tmp_path / "said").open("w") as file:
        terminal = Terminal(json=False, out=Stream(file), err=Stream(None))
        show([Finding("a", "ok", "fine"), Finding("b", "fail", "broken \x1b[31m", "mend it")], terminal)
    lines = [line.split() for line in (tmp_path / "said").read_text().splitlines()]
    assert lines[0] == ["check", "found", "what", "to", "do"]
    assert lines[1] == ["ok", "a", "fine"]
    assert lines[2] == ["FAIL", "b", "broken", "\\x1b[31m", "mend", "it"]


def test_elsewhere_it_is_a_line_each(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cliploop.toml").write_text(vlm(url, model="qwem"))
    said = command(capsys, "doctor")
    assert said.code == 1
    (line,) = [line for line in said.out.splitlines() if "own server" in line]
    assert line.startswith("FAIL vlms.own server")
    assert line.endswith("does not have qwem: set model to one that it has: qwen, other")
