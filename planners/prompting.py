"""Prompts as files: loaded, checked, hashed and filled in; what others wrote is marked as data.

A file has the parts `# system`, `# question` and, optional, `# examples`, each under a heading of that name, with
placeholders in double braces. Those that are shipped can be replaced one by one from a folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import get_args

from cliploop.files import FileUnusable, read_regular
from orchestrator.errors import BackendMisconfigured
from orchestrator.faults import suggest
from planners.lenient_json import clean
from planners.questions import Part, Role

MAX_BYTES = 200_000  # of a prompt's file
DATA = "data"  # the file that says what the marks mean
MARK_DIGITS = 16
ROLES: tuple[Role, ...] = get_args(Role)

SYSTEM, QUESTION, EXAMPLES = "system", "question", "examples"
_IN_SYSTEM = ("data_rule", "schema")
NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "planner": {
        SYSTEM: (*_IN_SYSTEM, "prompt_chars"),
        QUESTION: ("task", "history", "step", "max_steps", "is_last", "first_picture", "current_frame"),
    },
    "verifier": {
        SYSTEM: _IN_SYSTEM,
        QUESTION: (
            *("task", "instruction", "target_state", "told", "notes", "step", "max_steps", "is_last"),
            *("first_picture", "start_frame", "num_frames", "last_frame_number", "seconds", "clip"),
        ),
    },
    "router": {
        SYSTEM: (*_IN_SYSTEM, "steps_left", "prompt_chars"),
        QUESTION: (
            *("task", "instruction", "target_state", "attempts", "step", "max_steps"),
            *("first_picture", "current_frame"),
        ),
    },
    "selector": {
        SYSTEM: (*_IN_SYSTEM, "last_index"),
        QUESTION: ("task", "instruction", "first_picture", "start_frame", "candidates"),
    },
    "assessor": {SYSTEM: _IN_SYSTEM, QUESTION: ("task", "history", "first_picture", "last_frame")},
}

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_HEADING = re.compile(r"^# (\w+)[ \t]*$", re.MULTILINE)
# What servers' chat templates, or models, may take for the end of a turn, for a picture, or for a thought.
_TAG = re.compile(
    r"<(?=[|｜/!\w])|\[(?=/?(?:[A-Z][A-Z_]+\w*|gMASK)\])"  # <|im_end|>, <｜User｜>, [INST], [THINK], [gMASK]
    r"|\](?=~\w+\])|\[(?=\w+~\[)|◁(?=/?\w+▷)"  # ]~b], [e~[, ◁think▷
)
_BRACKETS = {"<": "‹", "[": "(", "]": ")", "◁": "‹"}


@dataclass(frozen=True)
class Prompt:
    """One role's prompt. `where` is what messages call its file; `digest` covers all of it that is sent."""

    where: str
    system: str
    question: str
    digest: str


@dataclass(frozen=True)
class Asked:
    """A prompt, filled in."""

    system: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Prompts:
    """The prompts of every role, and the rule about data that all of them hold."""

    by_role: Mapping[Role, Prompt]
    data_rule: str

    def filled(
        self,
        role: Role,
        *,
        facts: Mapping[str, str],
        written: Mapping[str, str],
        shown: Mapping[str, Sequence[Part]],
    ) -> Asked:
        """The prompt of a role. `facts` are ours and stand as they are; `written` is others', marked as data."""
        prompt = self.by_role[role]
        texts = {name: harmless(text) for name, text in written.items()}
        begin, end = marks(texts.values())
        rule = _PLACEHOLDER.sub(lambda found: {"begin": begin, "end": end}[found[1]], self.data_rule)
        values = {**facts, "data_rule": rule}
        values |= {name: f"{begin}\n{text}\n{end}" for name, text in texts.items()}
        system = _PLACEHOLDER.sub(lambda found: values[found[1]], prompt.system)
        return Asked(system, tuple(_parts(prompt.question, values, shown)))

    def digests(self) -> dict[str, str]:
        """What versions the prompts, by role."""
        return {role: prompt.digest for role, prompt in self.by_role.items()}


def load(folder: str = "", *, few_shot: bool = False) -> Prompts:
    """The shipped prompts, with those of the folder in place of its namesakes. Raises BackendMisconfigured."""
    own = _own_files(Path(folder).expanduser()) if folder else {}
    rule, where = _text(DATA, own)
    _refuse_placeholders(where, rule, ("begin", "end"))
    return Prompts({role: _prompt(role, own, rule, few_shot) for role in ROLES}, rule.strip())


def harmless(text: str) -> str:
    """A text that others wrote, without what a chat template could take for its own: `<|im_end|>`, `[INST]`."""
    return _TAG.sub(lambda found: _BRACKETS[found.group()], clean(text)).strip()


def marks(texts: Iterable[str]) -> tuple[str, str]:
    """What begins and ends data: a number that none of these texts holds, the same for the same texts."""
    held = "\n".join(texts)
    number = hashlib.sha256(held.encode()).hexdigest()[:MARK_DIGITS]
    while number in held:
        number = hashlib.sha256(f"{number}{held}".encode()).hexdigest()[:MARK_DIGITS]
    return f"<<<data {number}>>>", f"<<<end {number}>>>"


def _parts(question: str, values: Mapping[str, str], shown: Mapping[str, Sequence[Part]]) -> Iterator[Part]:
    """Text as long as it is text, then what is shown, in order."""
    text, position = "", 0
    for found in _PLACEHOLDER.finditer(question):
        text += question[position : found.start()]
        position = found.end()
        if found[1] not in shown:
            text += values[found[1]]
            continue
        if text.strip():
            yield text.strip()
        text = ""
        yield from shown[found[1]]
    text += question[position:]
    if text.strip():
        yield text.strip()


def _prompt(role: Role, own: Mapping[str, Path], rule: str, few_shot: bool) -> Prompt:
    text, where = _text(role, own)
    sections = _sections(where, text)
    for name, needed in NEEDED[role].items():
        if not sections.get(name, "").strip():
            raise BackendMisconfigured(f"{where}: there is no part '# {name}', or nothing in it: write one")
        _refuse_placeholders(where, sections[name], needed)
    examples = sections.get(EXAMPLES, "").strip() if few_shot else ""
    system = sections[SYSTEM].strip()
    if examples:
        system += f"\n\nExamples, of other tasks than the one at hand:\n\n{_escaped(examples)}"
    sent = "\0".join((system, sections[QUESTION].strip(), rule.strip()))
    digest = hashlib.sha256(sent.encode()).hexdigest()
    return Prompt(where, system, sections[QUESTION].strip(), digest)


def _escaped(examples: str) -> str:
    """Examples hold JSON and no placeholders."""
    return examples.replace("{{", "{ {")


def _sections(where: str, text: str) -> dict[str, str]:
    pieces = _HEADING.split(text)
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    known = (SYSTEM, QUESTION, EXAMPLES)
    for name in sections:
        if name not in known:
            raise BackendMisconfigured(f"{where}: unknown part '# {name}'{suggest(name, known)}")
    return sections


def _refuse_placeholders(where: str, text: str, needed: Sequence[str]) -> None:
    found = _PLACEHOLDER.findall(text)
    for name in found:
        if name not in needed:
            raise BackendMisconfigured(f"{where}: unknown placeholder {{{{{name}}}}}{suggest(name, needed)}")
    for name in needed:
        if name not in found:
            raise BackendMisconfigured(f"{where}: the placeholder {{{{{name}}}}} is missing: put it in")


def _own_files(folder: Path) -> dict[str, Path]:
    """The prompts that a folder holds. Raises BackendMisconfigured for a name that is none."""
    if not folder.is_dir():
        raise BackendMisconfigured(f"prompts: there is no folder {folder}: correct it, or make it")
    files = {path.stem: path for path in sorted(folder.glob("*.md")) if path.stem.lower() != "readme"}
    known = [f"{name}.md" for name in (*ROLES, DATA)]
    for name, path in files.items():
        if path.name not in known:
            raise BackendMisconfigured(f"prompts: {folder}: {name}.md is no prompt{suggest(path.name, known)}")
    if not files:
        raise BackendMisconfigured(f"prompts: {folder} holds none of {', '.join(known)}")
    return files


def _text(name: str, own: Mapping[str, Path]) -> tuple[str, str]:
    """A prompt's file, and what messages call it."""
    if name not in own:
        shipped = resources.files("planners").joinpath(f"prompts/{name}.md")
        return shipped.read_text(encoding="utf-8"), f"planners/prompts/{name}.md"
    path = own[name]
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8").replace("\r\n", "\n"), str(path)
    except (FileUnusable, UnicodeDecodeError) as error:
        raise BackendMisconfigured(f"{path}: not a readable text in UTF-8 ({error})") from error
