"""What the user configured: `cliploop.toml`, overridden by CLIPLOOP_* variables, read once.

Knows shapes and names of keys, no backend: `cliploop.compose` resolves types and options against the catalogs.

Variables: `CLIPLOOP_CONFIG` is the file; `CLIPLOOP_MAX_STEPS=5` overrides a default; nested keys are joined
with two underscores, `CLIPLOOP_GENERATORS__WAN22__MODEL=…`; a hyphen in a name is an underscore there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from cliploop.files import FileUnusable, read_regular
from cliploop.serving import Serving
from orchestrator.faults import must_be, suggest, words

FILE_NAME = "cliploop.toml"
MAX_BYTES = 1_000_000
SHOWN_CHARACTERS = 80  # of a wrong value
PREFIX = "CLIPLOOP_"
RESERVED = frozenset(  # read by name, not keys of the file
    f"{PREFIX}{name}"
    for name in ("CONFIG", "REDIS_URL", "DATABASE_URL", "ARTIFACTS_URL", "DATA", "PARENT", "URL", "API_KEY")
)
BACKEND_SECTIONS = ("generators", "vlms", "planners", "verifiers")
IN_TOML = {  # what is called otherwise there
    "string_type": 'a text in quotes, such as "a"',
    "dict_type": "a table, such as {usd = 5}",
    "model_type": "a table",
}
FLAT_SECTIONS = ("defaults", "service")
SECTIONS = ("defaults", "presets", *BACKEND_SECTIONS, "service")


class SettingsUnusable(Exception):
    """One line: which file or variable, which key, what to do. `compose` raises it as BackendMisconfigured."""


class Choices(BaseModel):
    """What a preset, the defaults or a command choose; None = not said here."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    generator: str | None = None
    planner: str | None = None
    verifier: str | None = None
    router: str | None = None
    assessor: str | None = None
    selector: str | None = None
    strategy: str | None = None
    max_steps: int | None = None
    max_attempts: int | None = None
    seed: int | None = None
    gate: str | None = None
    budget: dict[str, float] | str | None = None
    fps: float | None = None
    first_step_seconds: float | None = None
    step_seconds: float | None = None
    denoising_steps: int | None = None
    guidance: float | None = None
    vlm_temperature: float | None = None
    submit_unknown: str | None = None
    allow_unchainable: bool | None = None
    deliver_long_side_max: int | None = None


class Defaults(Choices):
    """`[defaults]`: a preset's name beside the same keys."""

    preset: str | None = None


class Backend(BaseModel):
    """A named backend: its catalog type, or the VLM that serves it, and the options of that type."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    type: str | None = None
    vlm: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


@dataclass(frozen=True)
class Settings:
    """File and environment, shape-checked. `origin` is what messages call the file."""

    origin: str = "built-in settings"
    defaults: Defaults = field(default_factory=Defaults)
    environment: Defaults = field(default_factory=Defaults)
    presets: Mapping[str, Choices] = field(default_factory=dict[str, Choices])
    generators: Mapping[str, Backend] = field(default_factory=dict[str, Backend])
    vlms: Mapping[str, Backend] = field(default_factory=dict[str, Backend])
    planners: Mapping[str, Backend] = field(default_factory=dict[str, Backend])
    verifiers: Mapping[str, Backend] = field(default_factory=dict[str, Backend])
    service: Serving = field(default_factory=Serving)
    variables: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])

    def where(self, section: str, name: str, key: str = "") -> str:
        """Where a value was written, for a message: `cliploop.toml: [generators.wan22] model`."""
        variable = self.variables.get((section, name, key))
        return variable or f"{self.origin}: [{section}.{name}] {key}".rstrip()


def read(
    config: Path | None,
    environ: Mapping[str, str],
    folder: Path,
    types: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Settings:
    """Read file and environment. `config` is what `--config` says; `folder` is where a file is looked for.

    `types` are the catalog entries of a section, for a message.

    Raises SettingsUnusable for a named file that is missing, bad TOML, unknown keys and wrong types.
    """
    path, named_by = _file(config, environ, folder)
    table = _parse(path, named_by) if path else {}
    origin = str(path) if path else Settings.origin
    _check_sections(table, origin)
    variables, values = _overrides(environ, table)
    for keys in values:
        if keys[0] != "defaults":
            _put(table, keys, values[keys])
    from_environment = {keys[1]: value for keys, value in values.items() if keys[0] == "defaults"}
    return Settings(
        origin=origin,
        defaults=_validated(Defaults, table.get("defaults", {}), f"{origin}: [defaults]", strict=True),
        environment=_environment(from_environment, variables),
        presets={
            name: _validated(Choices, body, f"{origin}: [presets.{name}]", strict=not _named(variables, name))
            for name, body in _tables(table, "presets", origin)
        },
        **{
            section: _backends(table, section, origin, sorted(types.get(section, ())))
            for section in BACKEND_SECTIONS
        },
        service=_validated(
            Serving, table.get("service", {}), f"{origin}: [service]", strict=not _flat(variables, "service")
        ),
        variables=variables,
    )


def _file(config: Path | None, environ: Mapping[str, str], folder: Path) -> tuple[Path | None, str]:
    if config is not None:
        return config, "--config"
    if environ.get("CLIPLOOP_CONFIG"):
        return Path(environ["CLIPLOOP_CONFIG"]), "CLIPLOOP_CONFIG"
    found = folder / FILE_NAME
    return (Path(FILE_NAME) if folder == Path() else found, "") if found.exists() else (None, "")


def _parse(path: Path, named_by: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path, named_by))
    except UnicodeDecodeError:
        raise SettingsUnusable(f"{path}: not UTF-8 text; save it as a TOML file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsUnusable(f"{path}: not valid TOML ({error}); correct that line") from None
    except RecursionError:
        raise SettingsUnusable(f"{path}: nested too deeply; write tables and single values") from None
    except ValueError as error:  # a number of thousands of digits, a path with NUL
        raise SettingsUnusable(f"{path}: cannot be used ({error}); correct it") from None


def _text(path: Path, named_by: str) -> str:
    """With line ends as a text file has them."""
    try:
        data = read_regular(path, MAX_BYTES)
    except FileUnusable as error:
        if error.fault == "missing_file":
            raise SettingsUnusable(f"{path}: no such file; correct {named_by}, or create it") from None
        why = f"cannot be read ({error})" if error.fault == "not_a_file" else str(error)
        raise SettingsUnusable(f"{path}: {why}; name a TOML file") from None
    return data.decode("utf-8").replace("\r\n", "\n")


def _check_sections(table: Mapping[str, Any], origin: str) -> None:
    for section, body in table.items():
        if section not in SECTIONS:
            raise SettingsUnusable(f"{origin}: unknown section [{section}]{suggest(section, SECTIONS)}")
        if not isinstance(body, dict):
            raise SettingsUnusable(f"{origin}: {section} must be a table, written [{section}]")


def _tables(table: Mapping[str, Any], section: str, origin: str) -> list[tuple[str, dict[str, Any]]]:
    bodies = cast(dict[str, Any], table.get(section, {}))
    for name, body in bodies.items():
        if not isinstance(body, dict):
            raise SettingsUnusable(
                f"{origin}: [{section}] {name} must be a table of its own, written [{section}.{name}]"
            )
    return list(bodies.items())


def _backends(table: Mapping[str, Any], section: str, origin: str, types: Sequence[str]) -> dict[str, Backend]:
    backends = {
        name: _validated(Backend, body, f"{origin}: [{section}.{name}]", strict=True)
        for name, body in _tables(table, section, origin)
    }
    for name, backend in backends.items():
        if backend.type is None and (section in ("generators", "vlms") or backend.vlm is None):
            remedy = "" if section in ("generators", "vlms") else ", or vlm = the name of an entry of [vlms]"
            raise SettingsUnusable(
                f"{origin}: [{section}.{name}] has no type; add type = {_one_of(types)}{remedy}"
            )
    return backends


def _one_of(types: Sequence[str]) -> str:
    known = ", ".join(f'"{name}"' for name in types)
    return f"one of {known} (this version knows no others)" if types else "a catalog entry"


def _overrides(
    environ: Mapping[str, str], table: Mapping[str, Any]
) -> tuple[dict[tuple[str, ...], str], dict[tuple[str, ...], str]]:
    """Variables as paths into the file: {path: variable}, {path: value}."""
    variables: dict[tuple[str, ...], str] = {}
    values: dict[tuple[str, ...], str] = {}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in RESERVED:
            continue
        path = _path(variable, table)
        variables[path], values[path] = variable, environ[variable]
    return variables, values


def _path(variable: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    parts = [part.lower() for part in variable.removeprefix(PREFIX).split("__")]
    if len(parts) == 1:
        parts = ["defaults", *parts]
    if parts[0] not in SECTIONS:
        raise SettingsUnusable(f"{variable}: unknown section {parts[0]!r}{suggest(parts[0], SECTIONS)}")
    wanted = 2 if parts[0] in FLAT_SECTIONS else 3
    if len(parts) != wanted or not all(parts):
        form = f"CLIPLOOP_{parts[0].upper()}__KEY" if wanted == 2 else f"CLIPLOOP_{parts[0].upper()}__NAME__KEY"
        raise SettingsUnusable(f"{variable}: write it as {form}")
    if wanted == 3:
        parts[1] = _name(parts[1], cast(Mapping[str, Any], table.get(parts[0], {})))
    return tuple(parts)


def _name(written: str, known: Mapping[str, Any]) -> str:
    return next((name for name in known if name.lower().replace("-", "_") == written), written)


def _named(variables: Mapping[tuple[str, ...], str], preset: str) -> bool:
    """Whether a variable overrides this preset: then its values arrive as text and are converted."""
    return any(path[:2] == ("presets", preset) for path in variables)


def _flat(variables: Mapping[tuple[str, ...], str], section: str) -> bool:
    """The same of a section that has keys and no names."""
    return any(path[0] == section for path in variables)


def _put(table: dict[str, Any], keys: Sequence[str], value: str) -> None:
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    table[keys[-1]] = value


def _environment(values: Mapping[str, str], variables: Mapping[tuple[str, ...], str]) -> Defaults:
    for key in values:
        if key not in Defaults.model_fields:
            variable = variables["defaults", key]
            raise SettingsUnusable(f"{variable}: unknown key {key!r}{suggest(key, Defaults.model_fields)}")
    for key, value in values.items():
        _validated(Defaults, {key: value}, f"{variables['defaults', key]}:", strict=False)
    return Defaults.model_validate(values)


M = Any


def _validated(kind: type[Any], body: Mapping[str, Any], where: str, *, strict: bool) -> Any:
    try:
        return kind.model_validate(body, strict=strict)
    except ValidationError as error:
        raise SettingsUnusable(f"{where} {_explain(kind, error)}") from None


def _explain(kind: type[BaseModel], error: ValidationError) -> str:
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return f"has no key {key!r}{suggest(key, kind.model_fields)}"
    at = ": ".join([key, *_inside(first["loc"])])
    wanted = must_be(first, own=IN_TOML)
    says = words(first) if wanted is None else f"must be {wanted}"
    return f"{at} {says} (got {_shortened(first['input'])})"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _inside(place: Sequence[int | str]) -> list[str]:
    """The keys of a table inside a value; what pydantic calls the branch of a union is none."""
    return [str(part) for part in place[2:]]
