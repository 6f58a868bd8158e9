"""How a name becomes a backend: catalog lines are strings, imported when the backend is built.

So naming a backend loads no library of its own. It knows no backend and no role.

A type with a colon is a backend from outside: `module:attribute` of a Line. As it is imported, only an operator
may write one: whoever takes names from a request asks `name in catalog` first, which knows only its own lines.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from orchestrator.errors import BackendMisconfigured
from orchestrator.faults import suggest, words


@dataclass(frozen=True)
class Line:
    """A catalog entry; each string is `module:attribute`.

    `builder(options, …)` builds the backend, `options` is the pydantic model of its options, `figures(options)`
    says what else decides how it behaves. `preset` are options that the name stands for. `extra` is the
    distribution's, which brings the libraries that it needs: pip install 'cliploop[extra]'.
    """

    builder: str
    options: str
    figures: str
    preset: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra: str = ""


@dataclass(frozen=True)
class Catalog(Mapping[str, Line]):
    """Entries by name. `kind` is what errors call one of them, `asked` what they call one that is not there."""

    kind: str
    lines: Mapping[str, Line]
    asked: str = ""

    def __getitem__(self, name: str) -> Line:
        return self.lines[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def find(self, name: str) -> Line:
        """The entry of that name. Raises BackendMisconfigured, naming those that exist."""
        if ":" in name:
            return self._foreign(name)
        if name not in self.lines:
            kind = self.asked or self.kind
            raise BackendMisconfigured(f"there is no {kind} {name!r}{suggest(name, self.lines)}")
        return self.lines[name]

    def _foreign(self, name: str) -> Line:
        """A backend from outside. Raises BackendMisconfigured where there is none by that name."""
        try:
            line = resolved(name)
        except (ImportError, AttributeError, ValueError) as error:
            raise BackendMisconfigured(
                f"{self.kind} {name!r} cannot be imported ({error}): write module:attribute of an"
                " orchestrator.catalogs.Line, in a module that is installed beside cliploop"
            ) from error
        if not isinstance(line, Line):
            raise BackendMisconfigured(
                f"{self.kind} {name!r} is a {type(line).__name__}, not an orchestrator.catalogs.Line"
            )
        return line

    def options(self, name: str, given: Mapping[str, Any] | None = None) -> BaseModel:
        """The options of an entry, its preset first, then what is given. Raises BackendMisconfigured."""
        line = self.find(name)
        model: type[BaseModel] = resolved(line.options)
        try:
            return model(**{**line.preset, **(given or {})})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            says = f"{where} {words(first)}; its options: {', '.join(model.model_fields)}"
            if first["type"] == "extra_forbidden":
                says = f"it has no option {where!r}{suggest(where, model.model_fields)}"
            raise BackendMisconfigured(f"{self.kind} {name!r}: {says}") from error

    def build(self, name: str, given: Mapping[str, Any], *parts: Any) -> Any:
        """Build the backend of that name from its options and what else it is made of."""
        return resolved(self.find(name).builder)(self.options(name, given), *parts)

    def content(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """All that decides how a backend behaves, for a digest: its options and the figures behind them.

        Options that its model lists as `OPERATIONAL` (where it is, how long it is waited for) decide nothing.
        """
        chosen = self.options(name, given)
        operational: Iterable[str] = getattr(type(chosen), "OPERATIONAL", ())
        options = chosen.model_dump(mode="json", exclude=set(operational))
        return {"options": options, "figures": resolved(self.find(name).figures)(chosen)}


def resolved(name: str) -> Any:
    """What `module:attribute` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
