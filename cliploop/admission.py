"""Whether a job could run: asked before anything is stored, and without building what renders or judges."""

from __future__ import annotations

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from media.frames import FrameReader
from media.uploads import Upload
from orchestrator.loop import refuse_unplayable
from orchestrator.records import Policy, Task
from storage.artifacts import MemoryArtifacts


def admitted(composition: Composition, wanted: Wanted, prompt: str, upload: Upload) -> tuple[Task, Policy]:
    """The task and its frozen policy: within the limits, and readable for the planner. Nothing is written.

    Raises TaskRejected, BackendMisconfigured.
    """
    memory = MemoryArtifacts()
    task = Task(prompt=prompt, picture=memory.put(upload.png, ".png"), size=upload.size)
    policy = composition.policy(wanted, upload.size)
    refuse_unplayable(task, policy)
    composition.planner(policy.planner, FrameReader(memory)).accepts(task)
    return task, policy
