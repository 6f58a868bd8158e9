"""The one place that picks concrete backends: names -> catalogs -> a frozen policy and ports.

A name is one of a catalog's own (`simulated`, `oracle`), or one that `cliploop.toml` defines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cliploop import settings as configured
from cliploop.budgets import parse_budget
from cliploop.choosing import Chosen, Wanted, choose
from cliploop.settings import Backend, Settings, SettingsUnusable
from generators import catalog as generators
from media.canvas import choose as choose_canvas
from media.encode import encoder_version
from media.frames import FrameReader
from orchestrator.catalogs import Catalog
from orchestrator.errors import BackendMisconfigured, JobWaiting
from orchestrator.faults import suggest, words
from orchestrator.pacing import InProcess
from orchestrator.ports import Artifacts, Clock, Generator, Planner, Ports, RateLimiter, check
from orchestrator.records import MAX_SHOTS, STRATEGY_NAMES, Policy, Size
from planners import catalog as planners
from storage.digest import digest

MODEL_ROLES = ("planner", "verifier", "router", "assessor", "selector")
LATER_STRATEGIES = ("preplan", "videotpo")
STRATEGIES_TOLD = f"collabvr, pass@1 to pass@{MAX_SHOTS}"
POLICY_KEYS = (
    *("strategy", "max_steps", "max_attempts", "seed", "gate", "first_step_seconds", "step_seconds"),
    *("denoising_steps", "guidance", "vlm_temperature", "submit_unknown", "allow_unchainable"),
    "deliver_long_side_max",
)
SECTIONS = {"generator": "generators", "verifier": "verifiers"}  # all other roles: planners
# Types that a later version brings.
LATER_MODELS = ("htv", "escalate", "human")
SINGLE = "single"  # the verifier that asks one VLM once; it is that VLM's catalog entry


@dataclass(frozen=True)
class Resolved:
    """A name, the catalog entry behind it, and the options that were given for it."""

    role: str
    name: str
    type: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Composition:
    """Settings, resolved against the catalogs on demand."""

    settings: Settings
    pacing: RateLimiter = field(default_factory=lambda: InProcess(time.monotonic), compare=False)

    @classmethod
    def read(cls, config: Path | None, environ: Mapping[str, str], folder: Path) -> Composition:
        """From file and environment. Raises BackendMisconfigured."""
        try:
            return cls(configured.read(config, environ, folder, _types()))
        except SettingsUnusable as error:
            raise BackendMisconfigured(str(error)) from None

    def policy(self, wanted: Wanted, size: Size) -> Policy:
        """The frozen policy of a job on a picture of this size.

        Raises BackendMisconfigured for unknown names and values out of range, TaskRejected for a budget.
        """
        chosen = choose(self.settings, wanted)
        _refuse_strategy(chosen["strategy"])
        _refuse_gate(chosen["strategy"], chosen["gate"])
        roles = _roles(chosen)
        resolved = {role: self._resolve(role, said) for role, said in roles.items()}
        generator = self.generator(resolved["generator"].name)
        values: dict[str, Any] = {key: chosen[key].value for key in POLICY_KEYS if key in chosen}
        if "budget" in chosen:
            values["budget"] = parse_budget(chosen["budget"].value, chosen["budget"].where)
        values["fps"] = chosen["fps"].value if "fps" in chosen else generator.capabilities.fps
        try:
            policy = Policy(
                **{role: said.value for role, said in roles.items()},
                **values,
                generator_options=_options(resolved["generator"]),
                capabilities=generator.capabilities,
                canvas=choose_canvas(size, generator.capabilities),
                encoder=encoder_version(),
                backends_digest=_digest(resolved),
            )
        except ValidationError as error:
            raise _out_of_range(error, chosen) from None
        return policy.model_copy(update=_limits(policy))

    def ports(
        self,
        policy: Policy,
        artifacts: Artifacts,
        *,
        clock: Clock,
        progress: Callable[[str, float], None] = lambda _key, _fraction: None,
        cancelled: Callable[[], bool] = lambda: False,
        scratch: Path | None = None,
        pacing: RateLimiter | None = None,
    ) -> Ports:
        """Build what the policy names, over these artifacts; `pacing`: where others ask the same models.

        Raises BackendMisconfigured, JobWaiting(changed) where that is no longer what the job was submitted with.
        """
        self._refuse_changed(policy)
        from media.editor import VideoEditor  # brings scipy: not for processes that only start, or only answer

        reader = FrameReader(artifacts)
        models = self._models(policy, reader, pacing or self.pacing, clock)
        return Ports(
            planner=models["planner"],
            verifier=models["verifier"],
            router=models["router"],
            assessor=models["assessor"],
            generator=self.generator(policy.generator, reader),
            editor=VideoEditor(artifacts, reader, scratch=scratch),
            clock=clock,
            progress=progress,
            selector=models.get("selector"),
            cancelled=cancelled,
        )

    def backends_digest(self, policy: Policy) -> str:
        """What the backends that a policy names are like now. Raises BackendMisconfigured."""
        names = {role: getattr(policy, role) for role in ("generator", *MODEL_ROLES)}
        said = {role: Chosen(name, where="") for role, name in names.items() if name is not None}
        return _digest({role: self._resolve(role, name) for role, name in said.items()})

    def _refuse_changed(self, policy: Policy) -> None:
        if policy.backends_digest not in ("", self.backends_digest(policy)):
            raise JobWaiting(
                "changed",
                "a backend of this job is set up otherwise than when it was submitted (an option in"
                f" {self.settings.origin}, a prompt, or the version of cliploop): put that back, or fork the job"
                " from the step where the new one should begin",
                outside="a model of this job has changed since it was submitted: fork it from the step where the"
                " new one should begin",
            )

    def generator(self, name: str, reader: FrameReader | None = None) -> Generator:
        """Build the generator of that name; without a reader only to ask what it can do."""
        found = self._resolve("generator", Chosen(name, where=""))
        return generators.build(found.type, found.given, reader)

    def planner(self, name: str, reader: FrameReader) -> Planner:
        """Build the planner of that name alone. Raises BackendMisconfigured."""
        return self._model("planner", name, reader)

    def generator_names(self) -> dict[str, str]:
        """Every name that --generator takes, with its type."""
        own = {name: name for name in generators.GENERATORS}
        return {**own, **{name: backend.type or "" for name, backend in self.settings.generators.items()}}

    def usable_generators(self) -> list[str]:
        """The default one, then every other that says what it can do: no option is missing, or wrong.

        Raises BackendMisconfigured where the default one does not.
        """
        default = str(choose(self.settings, Wanted())["generator"].value)
        _ = self.generator(default).capabilities
        return [default, *(name for name in self.generator_names() if name != default and self._is_usable(name))]

    def _is_usable(self, name: str) -> bool:
        try:
            _ = self.generator(name).capabilities
        except BackendMisconfigured:
            return False
        return True

    def entries(self) -> list[tuple[str, str]]:
        """Every backend that is defined, and those that the defaults name: section and name."""
        sections = ("generators", "vlms", "planners", "verifiers")
        defined = [(section, name) for section in sections for name in getattr(self.settings, section)]
        chosen = choose(self.settings, Wanted())
        named = [(SECTIONS.get(role, "planners"), str(said.value)) for role, said in _roles(chosen).items()]
        return [*defined, *dict.fromkeys(entry for entry in named if entry not in defined)]

    def entry(self, section: str, name: str) -> Resolved:
        """What an entry is. Raises BackendMisconfigured."""
        role = {"generators": "generator", "verifiers": "verifier"}.get(section, "planner")
        if section != "vlms":
            return self._resolve(role, Chosen(name, where=""))
        vlm = self.settings.vlms[name]
        where, kind = self.settings.where("vlms", name), vlm.type or ""
        if kind not in _catalog(role) and ":" not in kind:
            raise self._unknown_type("vlms", name, kind, _catalog(role))
        self._check_options(role, where, kind, vlm.options)
        return Resolved(role, name, kind, vlm.options)

    def model_names(self, role: str) -> dict[str, str]:
        """Every name that --planner or --verifier takes, with its type, or the VLM that serves it."""
        defined: Mapping[str, Backend] = getattr(self.settings, "verifiers" if role == "verifier" else "planners")
        own = {name: name for name in planners.PLANNERS}
        return {**own, **{name: backend.type or backend.vlm or "" for name, backend in defined.items()}}

    def check(self, policy: Policy) -> None:
        """What the policy's backends lack on this machine: a library, a key, a checkpoint.

        Nothing is loaded, nobody is asked. Raises BackendMisconfigured.
        """
        names = {(role, getattr(policy, role)) for role in MODEL_ROLES if getattr(policy, role) is not None}
        for role, name in sorted(names):
            check(self._model(role, name, None))
        check(self.generator(policy.generator))

    def require_model(self, role: str, name: str) -> None:
        """Raise BackendMisconfigured where the model of that name lacks something: an option, a prompt."""
        _content(self._resolve(role, Chosen(name, where="")))

    def _models(self, policy: Policy, reader: FrameReader, pacing: RateLimiter, clock: Clock) -> dict[str, Any]:
        """The model of each role; one that has several roles is built once."""
        built: dict[tuple[str, str], Any] = {}
        models: dict[str, Any] = {}
        for role in MODEL_ROLES:
            name = getattr(policy, role)
            if name is not None:
                place = (_section(role, self.settings, name), name)
                if place not in built:
                    built[place] = self._model(role, name, reader, pacing, clock)
                models[role] = built[place]
        return models

    def _model(
        self,
        role: str,
        name: str,
        reader: FrameReader | None,
        pacing: RateLimiter | None = None,
        clock: Clock | None = None,
    ) -> Any:
        found = self._resolve(role, Chosen(name, where=""))
        return planners.build(found.type, found.given, reader, limiter=pacing, clock=clock)

    def _resolve(self, role: str, said: Chosen) -> Resolved:
        """The entry behind a name: the file's own definition first, then the catalog."""
        section = SECTIONS.get(role, "planners")
        defined: Mapping[str, Backend] = getattr(self.settings, section)
        catalog = _catalog(role)
        name = str(said.value)
        if name in defined:
            kind, given = self._defined(section, name, defined[name])
            if kind not in catalog and ":" not in kind:  # with one, it is `module:attribute`
                raise self._unknown_type(section, name, kind, catalog)
            self._check_options(role, self._place(section, name, defined[name]), kind, given)
            return Resolved(role, name, kind, given)
        if name not in catalog:
            known = {*defined, *catalog}
            where = f"{said.where}: " if said.where else ""
            raise BackendMisconfigured(f"{where}no {role} {name!r}{suggest(name, known)}")
        return Resolved(role, name, name, {})

    def _check_options(self, role: str, where: str, kind: str, given: Mapping[str, Any]) -> None:
        try:
            _catalog(role).options(kind, given)
        except BackendMisconfigured as error:
            outside = "it is not set up rightly on this server: choose another, or tell whoever runs it"
            raise BackendMisconfigured(f"{where}: {error}", outside=outside) from None

    def _place(self, section: str, name: str, backend: Backend) -> str:
        """Where the options of an entry are written: with its VLM, unless it has its own."""
        if backend.vlm is None or backend.options:
            return self.settings.where(section, name)
        return self.settings.where("vlms", backend.vlm)

    def _defined(self, section: str, name: str, backend: Backend) -> tuple[str, dict[str, Any]]:
        """Type and options of an entry; one that names a VLM has the VLM's, refined by its own."""
        self._refuse_mixed_type(section, name, backend)
        if backend.vlm is None:
            return backend.type or "", backend.options
        if backend.vlm not in self.settings.vlms:
            where = self.settings.where(section, name, "vlm")
            raise BackendMisconfigured(
                f"{where}: no VLM {backend.vlm!r}{suggest(backend.vlm, self.settings.vlms)}"
            )
        vlm = self.settings.vlms[backend.vlm]
        kind = vlm.type or ""
        if kind not in _catalog("planner") and ":" not in kind:
            raise self._unknown_type("vlms", backend.vlm, kind, _catalog("planner"))
        return kind, {**vlm.options, **backend.options}

    def _refuse_mixed_type(self, section: str, name: str, backend: Backend) -> None:
        """A type beside a VLM says how a verifier asks it."""
        where, kind = self.settings.where(section, name, "type"), backend.type
        if kind == SINGLE and section != "verifiers":
            raise BackendMisconfigured(f"{where}: {SINGLE!r} is a type of verifiers: leave it out here")
        if kind == SINGLE and backend.vlm is None:
            raise BackendMisconfigured(f"{where}: {SINGLE!r} needs vlm = the name of an entry of [vlms]")
        if backend.vlm is not None and kind not in (None, SINGLE):
            if kind in LATER_MODELS:
                raise self._unknown_type(section, name, kind, _catalog("planner"))
            raise BackendMisconfigured(
                f"{where}: {kind!r} stands beside vlm = {backend.vlm!r}, which has its own type: leave one out"
            )

    def _unknown_type(
        self, section: str, name: str, kind: str, catalog: Mapping[str, Any]
    ) -> BackendMisconfigured:
        where = self.settings.where(section, name, "type")
        later = () if section == "generators" else LATER_MODELS
        if kind in later:
            return BackendMisconfigured(
                f"{where}: type {kind!r} is not in this version, it comes with a later one; "
                f"this one has {', '.join(catalog)}"
            )
        return BackendMisconfigured(f"{where}: unknown type {kind!r}{suggest(kind, {*catalog, *later})}")


def _types() -> dict[str, Iterable[str]]:
    """What `type` may be in a section of the settings file."""
    models: dict[str, Iterable[str]] = dict.fromkeys(("vlms", "planners"), planners.PLANNERS)
    return {"generators": generators.GENERATORS, **models, "verifiers": (*planners.PLANNERS, SINGLE)}


def _roles(chosen: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """Generator, planner, verifier; the planner serves as router and assessor unless those are named.

    And as selector where the strategy is pass@k; the loop has one only if it is named.
    """
    roles = {role: chosen[role] for role in ("generator", "planner", "verifier")}
    serves = {role: chosen.get(role, chosen["planner"]) for role in ("router", "assessor")}
    strategy = chosen["strategy"].value
    selects = strategy != "pass@1" and ("selector" in chosen or strategy != "collabvr")
    return {**roles, **serves, **({"selector": chosen.get("selector", chosen["planner"])} if selects else {})}


def _limits(policy: Policy) -> dict[str, int]:
    """What pass@k makes of the limits of the loop: one step of k attempts."""
    return {"max_steps": 1, "max_attempts": policy.num_shots} if policy.num_shots > 1 else {}


def _options(backend: Resolved) -> dict[str, Any]:
    """The checked options of an entry, defaults included. Raises BackendMisconfigured."""
    return _catalog(backend.role).options(backend.type, backend.given).model_dump(mode="json")


def _content(backend: Resolved) -> dict[str, Any]:
    """What decides how a backend behaves: its type, its options, and the files that these name."""
    return _catalog(backend.role).content(backend.type, backend.given)


def _section(role: str, settings: Settings, name: str) -> str:
    """Where a model of that name is defined; the catalog's own are the same in every role."""
    section = SECTIONS.get(role, "planners")
    return section if name in getattr(settings, section) else "catalog"


def _digest(backends: Mapping[str, Resolved]) -> str:
    return digest({role: _content(backend) for role, backend in backends.items()})


def _catalog(role: str) -> Catalog:
    return generators.GENERATORS if role == "generator" else planners.PLANNERS


def _refuse_strategy(chosen: Chosen) -> None:
    if chosen.value in LATER_STRATEGIES:
        raise BackendMisconfigured(
            f"{chosen.where}: strategy {chosen.value!r} is not built yet; choose one of {STRATEGIES_TOLD}"
        )
    if chosen.value not in STRATEGY_NAMES:
        meant = suggest(chosen.value, STRATEGY_NAMES).partition(";")[2].partition("known:")[0]
        raise BackendMisconfigured(
            f"{chosen.where}: no strategy {chosen.value!r};{meant}known: {STRATEGIES_TOLD}"
        )


def _refuse_gate(strategy: Chosen, gate: Chosen) -> None:
    if strategy.value != "collabvr" and gate.value not in (None, "none"):
        raise BackendMisconfigured(
            f"{gate.where}: the gate {gate.value!r} belongs to the strategy 'collabvr', but {strategy.where} says"
            f" {strategy.value!r}; set the gate to 'none', or the strategy to 'collabvr'"
        )


def _out_of_range(error: ValidationError, chosen: Mapping[str, Chosen]) -> BackendMisconfigured:
    """`--max-steps must be at least 1 (got 0)`."""
    first = error.errors()[0]
    key = str(first["loc"][0])
    where = chosen[key].where if key in chosen else key
    return BackendMisconfigured(f"{where} {words(first)} (got {first['input']!r})")
