"""What each configured backend needs, and whether it is here: libraries, key, server, checkpoint, memory."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliploop.commands.doctor_servers import key_finding, server_finding, server_of
from cliploop.commands.findings import Finding, failed
from cliploop.compose import Composition, Resolved
from cliploop.settings import Backend
from generators.catalog import GENERATORS
from generators.checkpoints import folder_of, read, require_whole
from generators.knob_options import Knobs
from generators.weights import GIB, needed_gib, parameters
from orchestrator.catalogs import Catalog
from orchestrator.errors import BackendMisconfigured
from planners.catalog import PLANNERS

LOOKED_AT_ONCE = 8
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,-]*\])?([^;]*)(?:;.*extra == ['\"]([\w-]+)['\"])?")
_LIMIT = re.compile(r"(>=|<|==)\s*([\d.]+)")


@dataclass(frozen=True)
class Configured:
    """A backend that was resolved. `place` is where it is written: `vlms.gemini`."""

    place: str
    backend: Resolved
    options: Any
    extra: str

    @property
    def catalog(self) -> Catalog:
        return GENERATORS if self.backend.role == "generator" else PLANNERS


def configured(composition: Composition) -> Iterator[Configured | Finding]:
    """Each backend once, or why it is none. A planner that names a VLM is looked at as that VLM."""
    seen: list[tuple[str, Any]] = []
    for section, name in composition.entries():
        place = f"{section}.{name}"
        try:
            found = _resolved(composition, section, name)
        except BackendMisconfigured as error:
            yield failed(place, error)
            continue
        same = (found.backend.type, found.options)
        if section in ("planners", "verifiers") and (_names_a_vlm(composition, section, name) or same in seen):
            continue
        seen.append(same)
        yield found


def _resolved(composition: Composition, section: str, name: str) -> Configured:
    backend = composition.entry(section, name)
    catalog = GENERATORS if backend.role == "generator" else PLANNERS
    line, options = catalog.find(backend.type), catalog.options(backend.type, backend.given)
    if section in ("planners", "verifiers"):
        composition.require_model(backend.role, name)
    return Configured(f"{section}.{name}", backend, options, line.extra)


def _names_a_vlm(composition: Composition, section: str, name: str) -> bool:
    defined: Mapping[str, Backend] = getattr(composition.settings, section)
    return name in defined and defined[name].vlm is not None


def examined(composition: Composition) -> Iterator[Finding]:
    """The findings of all backends, in the order in which they are written; servers are asked side by side."""
    found = list(configured(composition))
    with ThreadPoolExecutor(LOOKED_AT_ONCE) as pool:
        asked = {
            each.place: pool.submit(server_finding, f"{each.place} server", server)
            for each in found
            if isinstance(each, Configured) and (server := server_of(each.options)) is not None
        }
        for each in found:
            if isinstance(each, Finding):
                yield each
                continue
            yield _defined(each, composition)
            if each.extra:
                yield libraries(f"{each.place} packages", each.extra)
            if (server := server_of(each.options)) is not None:
                yield key_finding(f"{each.place} key", server)
                yield asked[each.place].result()
            if isinstance(each.options, Knobs):
                yield from _checkpoint(each, each.options)


def _defined(each: Configured, composition: Composition) -> Finding:
    """Whether it can be built, without anything being loaded or asked."""
    try:
        if each.backend.role == "generator":
            return Finding(each.place, "ok", composition.generator(each.backend.name).capabilities.name)
        each.catalog.content(each.backend.type, each.backend.given)
    except BackendMisconfigured as error:
        return failed(each.place, error)
    model = getattr(each.options, "model", "")
    return Finding(each.place, "ok", f"{each.backend.type}{f' ({model})' if model else ''}")


def libraries(name: str, extra: str) -> Finding:
    """Whether all that an extra brings is installed, in versions that fit."""
    remedy = f"pip install 'cliploop[{extra}]'"
    try:
        wanted = [_REQUIREMENT.match(each) for each in importlib.metadata.requires("cliploop") or []]
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "note", "cliploop itself is not installed, so what it needs is not known", remedy)
    here: list[str] = []
    for found in wanted:
        if found is None or found[3] != extra:
            continue
        try:
            version = importlib.metadata.version(found[1])
        except importlib.metadata.PackageNotFoundError:
            return Finding(name, "fail", f"{found[1]} is not installed", remedy)
        if not _within(version, found[2]):
            return Finding(name, "fail", f"{found[1]} is {version}, not {found[2].strip()}", remedy)
        here.append(f"{found[1]} {version}")
    return Finding(name, "ok", ", ".join(here))


def _within(version: str, limits: str) -> bool:
    """Whether a version keeps to `>=2.34,<3`; what else a requirement may say is not looked at."""
    mine = _numbers(version)
    for sign, limit in _LIMIT.findall(limits):
        other = _numbers(limit)
        size = max(len(mine), len(other))
        left, right = (each + [0] * (size - len(each)) for each in (mine, other))
        if not (left >= right if sign == ">=" else left < right if sign == "<" else left == right):
            return False
    return True


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", re.split(r"[a-z+-]", version, maxsplit=1)[0])]


def _checkpoint(each: Configured, knobs: Knobs) -> Iterator[Finding]:
    """Whether a model's files are here and whole, and whether they fit into the memory that is."""
    name, options = f"{each.place} checkpoint", each.options
    try:
        checkpoint = read(folder_of(str(options.model), revision=getattr(options, "revision", None)))
        require_whole(checkpoint)
    except BackendMisconfigured as error:
        if getattr(options, "allow_download", False) and not Path(str(options.model)).expanduser().exists():
            yield Finding(name, "note", f"{options.model} is not here", "it is fetched before the first clip")
        else:
            yield failed(name, error)
        return
    counts = parameters(checkpoint)
    size = f", {sum(counts.values()) / 1e9:.3g} billion parameters" if counts else ""
    yield Finding(name, "ok", f"{checkpoint.pipeline} in {checkpoint.folder}{size}")
    yield _memory(f"{each.place} memory", knobs, needed_gib(counts, knobs))


def _memory(name: str, knobs: Knobs, needed: float) -> Finding:
    """The weights alone are compared: frames need a few GiB more, by their size."""
    set_up = f"{knobs.dtype}, offload {knobs.offload}"
    wanted = f"{needed:.3g} GiB of weights ({set_up})"
    less = "set offload to model, group or sequential, or quantization; or use a smaller model"
    device = _device()
    if isinstance(device, Finding):
        return Finding(name, device.state, device.detail, device.remedy)
    title, gib, is_gpu = device
    if needed > gib:
        return Finding(name, "fail", f"{wanted} do not fit into {title}, {gib:.3g} GiB", less)
    found = f"{wanted} fit into {title}, {gib:.3g} GiB"
    if is_gpu:
        return Finding(name, "ok", found)
    return Finding(name, "note", f"{found}; there is no GPU, and a clip may take hours", "use a machine with one")


def _device() -> tuple[str, float, bool] | Finding:
    """What torch would compute on: its name, its memory in GiB, whether it is a GPU."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return Finding("", "skip", "torch is not installed, so it is not known what it could use")
    if torch.cuda.is_available():
        name, size = torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory
        return f"{name}", size / GIB, True
    if Path("/proc/driver/nvidia").exists():
        return Finding(
            "",
            "fail",
            f"there is an NVIDIA GPU, and torch {torch.__version__} cannot use it",
            "install the build of torch for CUDA that fits the driver",
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return "main memory", memory / GIB, False
