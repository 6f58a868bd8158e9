"""The nouns of the loop as frozen, validated records; bytes, arrays and tensors never enter one.

Pictures and video are named by artifact key: the SHA-256 of the content plus a suffix, `"9f…e1.png"`.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from orchestrator.plain import all_encodable

SCHEMA_VERSION = 1

ArtifactKey = str
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]

Progress = Literal["none", "partial", "complete"]
Confidence = Literal["low", "medium", "high"]
Decision = Literal["accept", "reject", "unclear"]
FailureKind = Literal[
    "wrong_direction",
    "wrong_target",
    "wrong_action",
    "illegal_move",
    "scene_collapse",
    "no_motion",
    "incomplete",
    "identity_drift",
    "first_frame",
    "unverified",
    "other",
]
RouteAction = Literal["regenerate", "split", "fallback"]
StepStatus = Literal["accepted", "best_effort", "empty", "split", "unverified", "running"]
OutcomeKind = Literal["completed", "exhausted"]
WaitReason = Literal["review", "unclear", "backend", "disk", "changed"]

MAX_SHOTS = 16  # the k of pass@k
STRATEGY_NAMES = ("collabvr", *(f"pass@{k}" for k in range(1, MAX_SHOTS + 1)))

CONFIDENCE_VALUE: dict[Confidence, float] = {"low": 0.3, "medium": 0.6, "high": 0.9}


class Record(BaseModel):
    """Base of every record: frozen, unknown fields refused, JSON in and out; its texts can be stored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _encodable(cls, given: Any) -> Any:
        return all_encodable(given) if isinstance(given, dict) else given


R = TypeVar("R", bound=Record)


class Size(Record):
    """A picture's size in pixels."""

    width: int = Field(ge=1)
    height: int = Field(ge=1)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


class Box(Record):
    """A rectangle in pixels, left and top included, right and bottom not."""

    left: int
    top: int
    width: int = Field(ge=1)
    height: int = Field(ge=1)


class Task(Record):
    """What was asked: a picture and a prompt.

    `picture` is the normalised upload (PNG, RGB, EXIF applied); `size` is its own size, which the
    deliverable has again.
    """

    prompt: str
    picture: ArtifactKey
    size: Size


class Canvas(Record):
    """The one frame size of a job, and where the picture lies in it.

    `content` is the rectangle of the canvas that shows the picture. `fit`: `identity` (canvas = picture),
    `pad` (picture unscaled, edges replicated), `scale` (stretched by less than a pixel's worth of aspect),
    `scale_pad` (scaled, then padded).
    """

    size: Size
    content: Box
    fit: Literal["identity", "pad", "scale", "scale_pad"]


class Capabilities(Record):
    """What an image-to-video backend can do; the loop snaps to it before a call.

    Frame counts are valid when `(n - frame_offset) % frame_step == 0` and `min_frames <= n <= max_frames`.
    """

    name: str
    size_multiple: int = 1
    min_side: int = 16
    max_side: int = 4096
    max_pixels: int = 4096 * 4096
    frame_step: int = 1
    frame_offset: int = 0
    min_frames: int = 2
    max_frames: int = 257
    fps: float = 16.0
    prompt_chars: int = 4000
    first_frame_psnr_min: float = 30.0  # dB; below it the clip cannot be chained
    chainable: bool = True  # False: re-imagines frame 0
    seeded: bool = True
    remote: bool = False  # a render goes on without us: its token is journaled and polled after a restart
    one_shot_strong: bool = False
    usd_per_video_second: float = 0.0


class Budget(Record):
    """What a job may use; None is unlimited. Same fields as Spend."""

    video_seconds: float | None = Field(default=None, ge=0)
    gpu_seconds: float | None = Field(default=None, ge=0)
    vlm_calls: int | None = Field(default=None, ge=0)
    vlm_tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    wall_seconds: float | None = Field(default=None, ge=0)


class Spend(Record):
    """What was used. `video_seconds` = (frames − 1) / fps of every rendered clip, rejected ones too."""

    video_seconds: float = 0.0
    gpu_seconds: float = 0.0
    vlm_calls: int = 0
    vlm_tokens: int = 0
    usd: float = 0.0
    wall_seconds: float = 0.0  # measured; without queueing

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            video_seconds=self.video_seconds + other.video_seconds,
            gpu_seconds=self.gpu_seconds + other.gpu_seconds,
            vlm_calls=self.vlm_calls + other.vlm_calls,
            vlm_tokens=self.vlm_tokens + other.vlm_tokens,
            usd=self.usd + other.usd,
            wall_seconds=self.wall_seconds + other.wall_seconds,
        )


class Policy(Record):
    """How a job runs, resolved and frozen at submission. Defaults: CollabVR, arXiv 2605.08735."""

    strategy: Annotated[str, Field(pattern=r"^(collabvr|pass@([1-9]|1[0-6]))$")] = "collabvr"
    generator: str
    planner: str
    verifier: str
    router: str
    assessor: str
    selector: str | None = None  # None: best attempt by rule
    generator_options: dict[str, JsonValue] = Field(default_factory=dict)
    capabilities: Capabilities
    canvas: Canvas
    max_steps: int = Field(default=3, ge=1)
    max_attempts: int = Field(default=3, ge=1, le=1000)
    seed: int = Field(default=0, ge=0)
    gate: Literal["none", "single_shot"] = "none"
    budget: Budget = Budget()
    fps: float = Field(default=16.0, ge=1, le=240)
    first_step_seconds: float = Field(default=6.0, gt=0, le=600)
    step_seconds: float = Field(default=3.0, gt=0, le=600)
    denoising_steps: int = Field(default=20, ge=1)
    guidance: float = 5.0
    vlm_temperature: float = Field(default=0.2, ge=0)
    submit_unknown: Literal["resubmit", "wait"] = "resubmit"
    allow_unchainable: bool = False
    deliver_long_side_max: int = Field(default=1920, ge=16, le=16384)
    encoder: str  # the encoder's version: other bytes, other policy
    backends_digest: str = ""  # profiles, prompts and options of every backend, hashed

    @property
    def num_shots(self) -> int:
        """The k of pass@k: so often the raw task is rendered, with nothing planned or judged. 0 for the loop."""
        name, _, many = self.strategy.partition("@")
        return int(many) if name == "pass" else 0


class Plan(Record):
    """The next visual action. `instruction` is empty only when `task_complete`."""

    observation: str = ""
    remaining_goal: str = ""
    task_complete: bool = False
    instruction: str = ""
    target_state: str = ""
    estimated_steps_remaining: int | None = None
    confidence: Confidence = "high"


class Shot(Record):
    """What a generator is given. `start_frame` equals, bit for bit, the frame that the clip continues."""

    prompt: str
    start_frame: ArtifactKey
    seconds: float  # (num_frames − 1) / fps
    num_frames: int = Field(ge=2)
    fps: float
    seed: int
    canvas: Size
    denoising_steps: int
    guidance: float


class Clip(Record):
    """What came back, stored: a lossless mezzanine on the canvas and its last frame as PNG.

    `rendered_size` is what the backend returned; `frames_digest` is the SHA-256 of the canvas frames.
    `first_frame_psnr` is in dB, 100.0 stands for identical.
    """

    mezzanine: ArtifactKey
    last_frame: ArtifactKey
    num_frames: int
    fps: float
    size: Size
    rendered_size: Size
    frames_digest: str
    first_frame_psnr: float
    first_frame_ssim: float


class Segment(Record):
    """Frames first … stop − 1 of a mezzanine, shown at fps.

    A still is a segment too: `mezzanine` is then the key of a PNG (it ends in `.png`), with first 0, stop 1.
    """

    mezzanine: ArtifactKey
    first: int = Field(ge=0)
    stop: int = Field(ge=1)
    fps: float

    @property
    def num_frames(self) -> int:
        return self.stop - self.first


class Footage(Record):
    """Frames in order, as an edit list over mezzanines: nothing is encoded again to cut or join.

    A candidate (kept prefix + new clip), a kept prefix and the stitched answer are all footage.
    """

    segments: tuple[Segment, ...] = ()

    @property
    def num_frames(self) -> int:
        return sum(segment.num_frames for segment in self.segments)

    @property
    def seconds(self) -> float:
        """Shown time, every frame held for 1 / fps."""
        return sum(segment.num_frames / segment.fps for segment in self.segments)


class Prefix(Record):
    """What is kept of a rejected candidate: frames 0 … k, and frame k as PNG, where the next clip starts."""

    footage: Footage
    last_frame: ArtifactKey


class Drift(Record):
    """How the last frame of a step differs from the first picture: ratios, 1.0 = unchanged; hue in levels."""

    saturation: float
    brightness: float
    sharpness: float
    colour_levels: float  # mean absolute difference of the channel means, 0–255


class Check(Record):
    """Quick checks of a candidate, without a VLM: a reject, or notes for the verifier."""

    failure: Literal["no_motion", "first_frame"] | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    drift: Drift


class Verdict(Record):
    """A judgement of a candidate. `good_fraction` = index of the last good frame / number of frames."""

    decision: Decision
    progress: Progress = "none"
    confidence: Confidence = "medium"
    failure: FailureKind | None = None
    reason: str = ""
    suggestion: str = ""
    good_fraction: Fraction = 0.0
    source: Literal["quick_check", "verifier", "person"] = "verifier"


class Route(Record):
    """What to do with a step whose attempts were all rejected."""

    action: RouteAction
    reason: str = ""
    suggestion: str = ""  # merged, for regenerate
    sub_actions: tuple[str, ...] = ()  # for split


class Choice(Record):
    """A selector's pick among candidates: the place in the list that it was shown, from 0."""

    index: int = Field(ge=0)
    reason: str = ""


class Assessment(Record):
    """The final judgement: only it may call a job completed."""

    task_complete: bool
    reason: str = ""


class Answer(Record, Generic[R]):
    """What a model answered: the value, what it cost, and the raw reply as text.

    `asks` counts the asks that it took; `defaulted` says why the stated default stands in for an answer. `sent`
    says in phrases what the model was shown.
    """

    value: R
    spend: Spend = Spend()
    raw: str = ""
    model: str = ""
    sent: tuple[str, ...] = ()
    asks: int = 1
    defaulted: str = ""


class Asked(Record, Generic[R]):
    """One ask of a model as recorded under `…/try/n`: an answer, or why there is none."""

    answer: Answer[R] | None = None
    unreadable: str = ""
    blocked: str = ""
    raw: str = ""
    sent: tuple[str, ...] = ()
    spend: Spend = Spend()


class Rendered(Record):
    """One render as recorded under `…/clip`."""

    clip: Clip
    spend: Spend


class Token(Record):
    """What a remote backend calls a render that is under way."""

    token: str = ""


class Doubt(Record):
    """A remote render that may have begun without anybody knowing its id."""

    renewals: int = 0  # of the clip's key when this was noted: a later one is somebody's consent to go on


class Progressed(Record):
    """A line of history for the planner."""

    step: int
    instruction: str
    progress: Progress


class View(Record):
    """What planner, verifier and assessor see beside the task: pictures on the canvas, by key.

    The task's first picture always stands beside the current frame: a piece that covers its goal hides it.
    """

    first_picture: ArtifactKey
    current_frame: ArtifactKey
    history: tuple[Progressed, ...] = ()
    step: int = 1
    max_steps: int = 1
    seed: int = 0  # derived per ask
    temperature: float = 0.2
    prompt_chars: int = 4000  # the generator's text limit: a longer instruction is asked again


class Attempt(Record):
    """One render and its verdict. `failed` says why there is no clip; `kept` is the prefix it started with."""

    index: int
    shot: Shot
    kept: Prefix | None = None
    clip: Clip | None = None
    candidate: Footage | None = None
    failed: str | None = None
    check: Check | None = None
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    spend: Spend = Spend()


class Step(Record):
    """One planned action and its attempts. `footage` is what it adds to the answer."""

    index: int
    plan: Plan
    attempts: tuple[Attempt, ...] = ()
    route: Route | None = None
    status: StepStatus
    chosen_attempt: int | None = None
    choice: Choice | None = None  # a selector's word on it; its index counts the attempts that have a clip
    footage: Footage = Footage()
    last_frame: ArtifactKey
    drift: Drift | None = None
    spend: Spend = Spend()


class Video(Record):
    """The deliverable: H.264 yuv420p, faststart. `notes` say what was adapted (odd sizes, a cap)."""

    artifact: ArtifactKey
    num_frames: int
    seconds: float
    size: Size
    notes: tuple[str, ...] = ()


class Outcome(Record):
    """How a job ended. `exhausted` = steps or budget used up, best video delivered."""

    kind: OutcomeKind
    reason: str
    best_effort: bool = False  # some footage was never accepted
    video: Video | None = None


class Shown(Record):
    """What one ask of a model showed it, in phrases: frames, sizes, rate. `key` is the journal's."""

    key: str
    model: str = ""
    sent: tuple[str, ...] = ()


class Trajectory(Record):
    """All of it: what was asked, every plan, attempt and verdict, and how it ended."""

    schema_version: int = SCHEMA_VERSION
    id: str
    task: Task
    policy: Policy
    first_frame: ArtifactKey
    gate: Step | None = None
    steps: tuple[Step, ...] = ()
    assessment: Assessment | None = None
    outcome: Outcome | None = None
    shown: tuple[Shown, ...] = ()
    spend: Spend = Spend()
