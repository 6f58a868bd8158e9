"""What speaks against an answer that lets a step or a job pass: its fields, its reasons, the prose around it.

Fail-closed: a doubt too many costs one more ask, a doubt too few lets a bad clip through. Prose before the answer
may weigh things up ("it does not cross a wall"); prose after it may be polite, but any denial there is a doubt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from planners.lenient_json import Found, Value

_STEM = r"think|thought|reason|analys|scratch|reflect|draft|ponder|deliberat|rationale|monolog|chain_of|\bcot\b"
_MARK = re.compile(
    r"<\|channel\|?>\s{0,8}(?P<channel>\w{0,40})|(?P<ended><channel\|>|<\|(?:end|return|call)\|>)"
    r"|[<◁]\|?\s{0,8}(?P<slash>/?)\s{0,8}(?P<name>[\w:.|-]{1,80})(?:\s[^<>◁▷]{0,200})?[>▷]"
    r"|[\[【]\s{0,8}(?P<slash2>/?)\s{0,8}(?P<name2>[\w:.-]{1,80})\s{0,8}[\]】]"
)
_STEMS = re.compile(_STEM, re.IGNORECASE)
_END_NAME = re.compile(r"^\|?(?:end|eo)[_:.|-]|[_:.|-]end\|?$", re.IGNORECASE)

_KNOWING = (
    r"(?:sure|certain|verif|confirm|determin|tell\b|judge|assess|see\b|seen\b|check|establish|view|access|watch"
    r"|evaluat|inspect|observ|open\b|load|play\b|know|guarantee|analy[sz]e|decide|answer|help|review|validat"
    r"|decod|read\b|find\b|receiv|say\b|be (?:said|told|done))"
)
_UNVERIFIED = re.compile(
    r"\b(?:can ?not|can't|could not|couldn't|(?:un|not )able to|impossible to|not possible to|hard to"
    r"|difficult to|failed to|no way (?:to|of)|no means (?:to|of)|nothing to) (?:\w{1,30} ){0,2}?"
    + _KNOWING
    + r"|\b(?:did"
    r"|do|does|have|has|had|was|were|is|are)(?: not|n't) (?:\w{1,30} ){0,2}?"
    r"(?:verif|confirm(?:ed)?\b|check|watch|view|assess|inspect|evaluat|review|validat|receive|given"
    r"|provided|attached|look\b|looked|seen|load|decod|open|have access|show\b)"
    r"|\bno (?:access|information|knowledge)\b|\bno evidence (?:that|of) (?:it|the mov|move|motion)|\bunreadable"
    r"|\bimpossible to\b|\btoo (?:dark|blurr|small|fast)|\bvisibility\b|\black(?:s|ed|ing)?\b|\bskipp|\bunknown\b"
    r"|\bprobabl|\bperhaps\b|\bmight\b|\bmay have\b|\bpossibly\b|\btrust\b|\bserver error|\btimed out"
    r"|\bfailed to (?:show|load|open|decode)|\bnothing (?:could|can) be|\brate limit|\bquota\b"
    r"|\bnever (?:verified|confirmed|checked|watched|saw)|\bno way to\b"
    r"|\bwithout (?:verif|seeing|watching|check|access)"
    r"|\bno (?:\w{1,30} )?(?:video|clip|footage|attachment)s?\b"
    r"|\bno (?:\w{1,30} )?(?:image|frame|picture|input)s?\b(?: \w{1,30}){0,3}"
    r" (?:provided|attached|given|available|supplied|received|included|visible|shown|uploaded|present)"
    r"|\b(?:video|clip|image|frame|picture)s? (?:is|was|are|were) (?:missing|black|blank|empty|corrupt)"
    r"|\bunverif|\binconclusive|\binsufficient|\bnot enough\b|\bunsure\b|\buncertain|\bunclear"
    r"|\bnot (?:\w{1,30} )?(?:sure|certain|clear|verified|verifiable|convinced|possible to (?:say|tell))\b"
    r"|\bby default\b|\bguess"
    r"|\bassum(?:e|ed|ing)\b|\bpresum|\bverification (?:\w{1,30} )?(?:not possible|impossible|fail)"
)
_REJECTS = re.compile(
    r"\breject|\b(?:not|n't|never) (?:be )?(?:accept|approv)|\bunacceptable|\bnot acceptable|\bmust fail\b"
    r"|\bit (?:did not|didn't) move(?:[.,;!]|$)|\b(?:move|action|clip|task) (?:has )?failed\b"
    r"|\bi withdraw|\bretract"
    r"|\bdisregard|\bmade (?:this|that|it) up|\b(?:do not|don't) use\b|\bjust a test|\bformality|\billustrativ"
    r"|\bgrain of salt|\bpremature|\bverdict (?:\w{1,20} ){0,3}(?:fail|reject|unclear)"
    r"|\b(?:did not|didn't) move at all|\bnothing (?:moved|happen)|\bno (?:movement|motion)\b"
    r"|\bnot (?:executed|performed|carried out)|\bverdict:? (?:is )?(?:fail|no\b|unclear)|\bdecline to\b|\brefuse"
    r"|\bfor example\b|\bexample:|\be\.g\.|\b(?:the|this|your) format (?:is|was)\b|\bjson like\b|\btemplate\b"
    r"|\babgelehnt|\brejet[eé]|\brechaz"
)
_ADVERSE = re.compile(
    r"\b(?:through|into|over|cross\w{0,3}) (?:a|the|one|two|several|some)(?: \w{1,20})? walls?\b"
    r"|\bwalls? (?:was|were) cross|\billegal|\bovershoo?t|\bmorph"
    r"|\bhit(?:s|ting)? (?:a|the) wall|\b(?:second|extra|another) \w{1,20} appear|\bteleport|\bviolat"
    r"|\bdisappear|\bvanish"
    r"|\bwrong (?:way|direction|object|move|tile|cell|place)"
)
_DENIAL = re.compile(r"\b(?:no|not|never|none|without|neither|nor|cannot|instead of|avoid\w*)\b|n't\b")
_INCOMPLETE = re.compile(
    r"\b(?:not|n't|never)(?: \w{1,20}){0,2} (?:complete|solve|finish|reach|done|achiev"
    r"|(?:at|on|in|inside) (?:the|its) (?:\w{1,20} )?(?:goal|target|exit|finish|destination|square|place))"
    r"|\bincomplete|\bunsolved|\bunfinished|\bstill (?:need|ha[sv]|miss|remain|requir)|\bremains? to\b"
    r"|\bshort of\b"
)
_RETRACTS = re.compile(
    r"\bwait\b|\bactually\b|\bcorrection\b|\bsecond thought|\bmistake|\bretract|\bdisregard|\bignore\b|\bforget\b"
    r"|\bscratch that|\bstrike that|\bnever ?mind\b|\bhold on\b|\bchang\w{1,3} my mind|\bwithdraw|\brevoke"
    r"|\boops\b|\btak(?:e|ing) (?:it|that|this) back|\boverturn|\brescind|\bno:|\bundo\b"
)
_BACKS_OFF = re.compile(
    r"\bhowever\b|\bbut\b|\balthough|\bthough\b|\bwrong|\bincorrect|\binvalid|\bfail|\berror|\bsorry|\bapolog"
    r"|\binstead\b|\bcloser\b|\bon reflection|\blook(?:ing|ed)? again|\bre-?(?:consider"
    r"|check|watch|examin|evaluat"
    r"|assess)|\bhmm"
    r"|\bstill\b|\bremain|\bneeds\b|\brequires\b|\bexample|\bplaceholder|\btemplate|\bdraft|\bhypothetic"
    r"|\bfalse\b|\bvoid\b"
    r"|\bproblem|\bissue|\bbad\b|\bfault|\bflaw|\bunable|\bunreliab|\bdoubt|\bimpossib|\bcheat|\bcross|\bcollid"
    r"|\bnope\b|\bstrike the\b|\bsecond look|\bclip(?:s|ped|ping) (?:a|the)\b|\bsample\b|\bmade up\b"
    r"|\bblurr|\blow\b"
    r"|\bjump|\bduplicat|\bearlier answer|\bunfortunately|\bmoot\b|\bdisqualif|\bdeny|\bdenied|\bimproper"
    r"|\bshould (?:be|have)|\bmissed\b"
    r"|\bnein\b|\bnicht\b|\bkein|\bfalsch|\bdoch\b|\bpas\b|\bfaux\b|不|错|錯|拒|否|没|沒|无|無"
)
_HARMLESS = re.compile(
    r"\b(?:accept(?:ed|ing)?|pass) ?(?:or|/|\|) ?(?:to )?(?:be )?reject(?:ed|ing)?"
    r"|\breject(?:ed)? ?(?:or|/|\|) ?(?:to )?accept(?:ed)?"
    r"|\bno reason to (?:reject|doubt)|\b(?:do not|don't) hesitate\b|\bno doubts?\b|\bwithout (?:any |a )?doubt"
    r"|\bno (?:other |further |visible )?(?:issue|problem|error|violation|mistake|illegal move"
    r"|wall cross)(?:s|es|ings?)?\b"
)
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)

_UNSET = ("", "none", "null", "n/a", "no", "false")
_REFUSALS = frozenset({"reject", "rejected", "unclear", "fail", "failed", "refuse", "refused", "error", "denied"})
_PASSES = re.compile(
    r"(?:is|was|can|has|be)?(?:action|move|clip|step)?(?:be)?(?:executed|success(?:ful)?|pass(?:ed)?|ok|valid|legal"
    r"|verif(?:y|ied|iable)|accept(?:ed|able)?|approved?|correct)"
)
_BAD_STATUS = re.compile(
    r"(?:error|err|fail|timeout|timed|abort|cancel|reject|refus|block|unavail|incomplete|den)"
)
_ERROR_ENDS = ("error", "errors", "exception")
_ERRORS = frozenset({"err", "fault", "timeout", "timedout", "truncated", "refusal", "refused", "blocked"})
_NOT_REASONS = frozenset({"suggestion", "suggestions", "instruction", "targetstate", "remaininggoal", "hint"})


def without_thoughts(text: str) -> str:
    """What stands outside marks of thinking; before a lone closing mark and after an open one, all is thought.

    A mark is tag-like (<think>, [THINK], <seed:think>, ◁think▷, <|begin_of_thought|>) with a name of thinking, or
    opens a channel that is not the final one.
    """
    kept: list[str] = []
    open_marks: list[str] = []
    position = 0
    for mark in _MARK.finditer(text):
        stem, closes = _kind(mark)
        if not stem:
            continue
        if not open_marks:
            kept.append(text[position : mark.start()])
        position = mark.end()
        if stem == "final":
            open_marks.clear()
        elif not closes:
            open_marks.append(stem)
        elif stem in open_marks:
            while open_marks.pop() != stem:
                pass
        elif not open_marks and stem != "channel":
            kept.clear()
    if not open_marks:
        kept.append(text[position:])
    return "\n".join(kept)


def _kind(mark: re.Match[str]) -> tuple[str, bool]:
    """Which thinking a mark opens or closes ("" for none), and whether it closes."""
    if mark["ended"]:
        return "channel", True
    if mark["channel"] is not None:
        return ("final" if mark["channel"].casefold() == "final" else "channel"), False
    name = mark["name"] or mark["name2"]
    stem = _STEMS.search(name)
    closes = bool(mark["slash"] or mark["slash2"] or _END_NAME.search(name))
    return (stem.group().casefold() if stem else ""), closes


def word(value: Value) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


def says_something(value: Value) -> bool:
    """Whether a field says anything: a missing, empty or false one does not."""
    return (
        value is not None
        and value is not False
        and value not in ([], {})
        and (not isinstance(value, str) or word(value) not in _UNSET)
    )


def flag(value: Value) -> bool | None:
    """True or False, also as a word; None where it is neither."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return {1.0: True, 0.0: False}.get(value)
    return {"true": True, "yes": True, "false": False, "no": False}.get(word(value))


def visible(text: str) -> str:
    """A text without characters that cannot be seen."""
    return _INVISIBLE.sub("", text).strip()


def reports_error(item: Value) -> bool:
    """Whether an object, or one inside it, is the report of a failed call."""
    for key, value in _fields(item):
        if key == "error" and _trouble(value):
            return True
        if key in ("status", "status_code", "code") and _bad_status(value):
            return True
    return False


def reports_trouble(item: Value) -> bool:
    """As reports_error, and errors under any other name."""
    return reports_error(item) or any(_error_name(_name(key)) and _trouble(value) for key, value in _fields(item))


def against_accept(found: Found, keys: Sequence[str], *, complete: bool) -> str | None:
    """Why a reply whose answer (an object with one of the keys) is an accept, or complete, cannot be relied on.

    `complete`: the answer says that the whole task is done; then nothing may be left to do.
    """
    for item in found.objects:
        for key, value in _fields(item):
            if doubt := _field_doubt(key, value, complete=complete):
                return doubt
    answered = False
    for index, prose in enumerate(found.prose):
        plain = _plain(prose)
        if _doubtful(plain, complete=complete) or (answered and _backs_off(plain)):
            return "the prose around the answer takes it back, or says that it cannot be verified"
        answered = answered or (index < len(found.groups) and _holds(list(found.groups[index]), keys))
    return None


def takes_back(prose: str) -> bool:
    """Whether what follows an answer of any kind withdraws it."""
    return _RETRACTS.search(_plain(prose)) is not None


def _holds(value: Value, keys: Sequence[str]) -> bool:
    return any(key in keys for key, _ in _fields(value))


def _fields(value: Value) -> Iterator[tuple[str, Value]]:
    """Every key and value of an object, those of nested objects included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _fields(inner) if isinstance(inner, dict) else _fields_of_list(key, inner)
    elif isinstance(value, list):
        yield from _fields_of_list("", value)


def _fields_of_list(key: str, value: Value) -> Iterator[tuple[str, Value]]:
    for inner in value if isinstance(value, list) else []:
        if isinstance(inner, dict):
            yield from _fields(inner)
        else:
            yield key, inner
            yield from _fields_of_list(key, inner)


def _field_doubt(key: str, value: Value, *, complete: bool) -> str | None:
    name = _name(key)
    if _error_name(name) and _trouble(value):
        return f"accepted, yet it reports `{name[:40]}`"
    if word(value) in _REFUSALS:
        return f"accepted, yet `{name[:40]}` says {word(value)}"
    if _is_decision(name, value) and word(value) not in ("accept", "accepted"):
        return f"accepted, yet `{name[:40]}` says otherwise"
    if name.startswith(("failure", "violation", "illegal", "rejected")) and says_something(value):
        return "accepted, yet with a failure"
    if name == "actionexecuted" and value is not None and flag(value) is not True:
        return "accepted, yet the action was not executed"
    if name == "progress" and value is not None and word(value) not in ("partial", "complete"):
        return "accepted, yet without progress"
    if _PASSES.fullmatch(name) and flag(value) is False:
        return f"accepted, yet `{name}` is false"
    if complete and _left_to_do(name, value):
        return f"complete, yet `{name[:40]}` says otherwise"
    if isinstance(value, str) and name not in _NOT_REASONS and _doubtful(_plain(value), complete=complete):
        return f"accepted, yet the {name[:40]} says that it cannot be verified, or must not pass"
    return None


def _name(key: str) -> str:
    """A key as it is compared: lower case, no separators, nothing invisible."""
    return re.sub(r"[\s_-]+", "", visible(_folded(key)).casefold())


def _is_decision(name: str, value: Value) -> bool:
    return (
        ("verdict" in name or "decision" in name)
        and not name.endswith(
            ("reason", "reasons", "reasoning", "explanation", "rationale", "confidence", "notes")
        )
        and value is not None
        and not isinstance(value, dict | list)
    )


def _left_to_do(name: str, value: Value) -> bool:
    if name.endswith(("reached", "complete", "completed", "solved", "done", "achieved", "satisfied", "finished")):
        return flag(value) is False
    return name == "progress" and word(value) == "partial"


def _error_name(name: str) -> bool:
    return name.startswith(("error", "exception")) or name.endswith(_ERROR_ENDS) or name in _ERRORS


def _trouble(value: Value) -> bool:
    return says_something(value) and value != 0


def _bad_status(value: Value) -> bool:
    if isinstance(value, float):
        return value >= 400
    return _BAD_STATUS.match(word(value)) is not None or re.fullmatch(r"[45]\d\d", word(value)) is not None


def _plain(text: str) -> str:
    """Lower case, straight apostrophes, single spaces, no emphasis, nothing invisible, no set phrases."""
    plain = visible(_folded(text)).casefold().replace("’", "'").replace("‘", "'")
    return _HARMLESS.sub(" ", " ".join(re.sub(r"[*_`~]+", "", plain).split()))


def _folded(text: str) -> str:
    """A text in plain letters; a character that stands for many is left as it is, so that no text swells up."""
    if text.isascii():
        return text
    plain = {ord(c): unicodedata.normalize("NFKC", c) for c in set(text) if not c.isascii()}
    return text.translate({code: short for code, short in plain.items() if len(short) <= 3})


def _doubtful(plain: str, *, complete: bool) -> bool:
    if _UNVERIFIED.search(plain) or _REJECTS.search(plain) or (complete and _INCOMPLETE.search(plain)):
        return True
    return any(
        _ADVERSE.search(sentence) and not _DENIAL.search(sentence) for sentence in re.split(r"[.!?;:]\s", plain)
    )


def _backs_off(plain: str) -> bool:
    return any(doubt.search(plain) for doubt in (_RETRACTS, _BACKS_OFF, _ADVERSE, _DENIAL))
