"""What the oracle knows of a task: the scene of its first picture, and the state that was last read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from media.frames import FrameReader
from media.pictures import to_array
from orchestrator.errors import ReplyUnreadable, TaskRejected
from orchestrator.records import ArtifactKey, Progressed, Spend, Task, View
from worlds.catalog import understand
from worlds.chain import legal_count, outcome
from worlds.world import Action, Frame, Reading, Scene, State, World

SCENES_KEPT = 16
READ_SIDE_MAX = 1920  # pixels
MODEL_REMEDY = (
    "configure a vision-language model, which can read any picture: write [vlms.<name>] into cliploop.toml, and"
    " name it in [planners.<name>] and [verifiers.<name>], as in examples/backends/openai_compatible.toml"
)
REMEDY = (
    "say in the prompt what moves, where to, and what is forbidden (`cliploop worlds sample NAME` writes pictures"
    f" and prompts that are understood); or {MODEL_REMEDY}"
)
REMEDY_OUTSIDE = (
    "say in the prompt what moves, where to, and what is forbidden (POST /v1/worlds/{name}/sample gives pictures"
    " and prompts that are understood), or choose a planner and a verifier that read any picture, where this"
    " server has them (GET /v1/planners)"
)


@dataclass(frozen=True)
class Known:
    """The current frame as read; `guessed` if it cannot be read and this is the last state known."""

    scene: Scene
    reading: Reading
    guessed: bool = False

    @property
    def world(self) -> World:
        return self.scene.world


class Sight:
    """Reads pictures by key, and keeps the scenes of the last few tasks."""

    def __init__(self, reader: FrameReader | None) -> None:
        self._reader = reader
        self._scenes: OrderedDict[tuple[ArtifactKey, str], Scene | None] = OrderedDict()

    @property
    def reader(self) -> FrameReader:
        """Raises TaskRejected where the oracle was built without artifacts."""
        if self._reader is None:
            raise TaskRejected("this oracle was built without artifacts: it sees no picture", reason="unreadable")
        return self._reader

    def scene(self, picture: ArtifactKey, prompt: str) -> Scene | None:
        """The scene of a first picture with its task prompt; None if no built-in world reads it."""
        key = (picture, prompt)
        if key not in self._scenes:
            self._scenes[key] = understand(self.reader.picture(picture), prompt)
            while len(self._scenes) > SCENES_KEPT:
                self._scenes.popitem(last=False)
        return self._scenes[key]

    def refuse_unreadable(self, task: Task) -> None:
        """Raise TaskRejected, naming the remedy, if no built-in world reads the picture or it has no solution."""
        scene = self._task_scene(task)
        if scene is None:
            raise TaskRejected(
                f"no built-in world reads this picture with this prompt; {REMEDY}",
                reason="unreadable",
                outside=f"no built-in world reads this picture with this prompt; {REMEDY_OUTSIDE}",
            )
        try:
            scene.world.oracle_plan(scene.start.state)
        except ValueError as error:
            what = f"the picture reads as {scene.world.name}, but that has no solution ({error})"
            raise TaskRejected(
                f"{what}; check picture and prompt, or {MODEL_REMEDY}",
                reason="unsolvable",
                outside=f"{what}; check picture and prompt",
            ) from error

    def _task_scene(self, task: Task) -> Scene | None:
        """The scene of the picture as it was given; a large one is read reduced, for time and memory."""
        if max(task.size.width, task.size.height) <= READ_SIDE_MAX:
            return self.scene(task.picture, task.prompt)
        image = Image.fromarray(self.reader.picture(task.picture))
        image.thumbnail((READ_SIDE_MAX, READ_SIDE_MAX), Image.Resampling.LANCZOS)
        return understand(to_array(image), task.prompt)

    def known(self, task: Task, view: View) -> Known:
        """The current frame, or the last state known. Raises ReplyUnreadable if the first picture is not read."""
        scene = self.scene(view.first_picture, task.prompt)
        if scene is None:
            raise ReplyUnreadable("the first picture is of no built-in world", spend=Spend())
        reading = readable(scene, self.reader.picture(view.current_frame))
        if reading is not None:
            return Known(scene, reading)
        state = last_state(scene.world, scene.start.state, view.history)
        return Known(scene, Reading(state, scene.world.configuration(state), confidence=0.2), guessed=True)


def readable(scene: Scene, frame: Frame) -> Reading | None:
    """A reading with nothing left out, or None."""
    reading = scene.read(frame)
    return reading if reading is not None and not reading.unreadable else None


def last_state(world: World, state: State, history: Sequence[Progressed]) -> State:
    """Where the accepted actions lead from a state: what is known when the frame cannot be read."""
    for line in history:
        if line.progress == "complete":
            for action in world.parse(line.instruction):
                after = outcome(world, state, action)
                state = state if after is None else after
    return state


def actions_left(known: Known, history: Sequence[Progressed]) -> list[Action]:
    """What still has to be done, a piece that is under way to the goal included. ValueError if nothing can."""
    world, reading = known.world, known.reading
    plan = list(world.oracle_plan(reading.state))
    if plan or not reading.moving:
        return plan
    said = [action for line in history for action in world.parse(line.instruction)]
    for action in [*reversed(said), *reversed(world.oracle_plan(known.scene.start.state))]:
        if outcome(world, reading.state, action) == reading.state:
            return [action]
    return plan


def named_actions(known: Known, text: str) -> list[Action]:
    """The actions that an instruction names, as far as they are legal from here."""
    actions = known.world.parse(text)
    return actions[: legal_count(known.world, known.reading.state, actions)]
