"""Faults in plain words: every kind that pydantic finds in the product's own models, and none in its words."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from orchestrator.faults import must_be, place, unknown_field, words
from orchestrator.records import Budget

THEIRS = re.compile(r"[Ii]nput|valid |Value error|dictionary|Field required|Extra")


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Everything(BaseModel):
    """One field of each kind that requests, settings and options have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    needed: int
    whole: int = Field(default=1, ge=1, le=9)
    between: float = Field(default=1.0, gt=0, lt=2, allow_inf_nan=False)
    flag: bool = False
    text: str = Field(default="aa", min_length=2, max_length=3, pattern="^a+$")
    one_of: Literal["high", "low"] = "low"
    inner: Inner = Inner()
    either: Inner | str | None = None
    several: list[int] = Field(default=[], max_length=1)
    pair: tuple[int, int] = (1, 1)
    named: dict[str, int] = Field(default={})
    even: Annotated[int, Field(multiple_of=2)] = 2
    ours: str = "fine"

    @field_validator("ours")
    @classmethod
    def _ours(cls, value: str) -> str:
        if value != "fine":
            raise ValueError("write fine")
        return value


WRONG: dict[str, list[Any]] = {
    "needed": ["a", None, 1.5, "1"],
    "whole": [0, 10, "", [1]],
    "between": [0, 2, float("nan"), float("inf"), "x"],
    "flag": ["yes", 2],
    "text": ["a", "aaaa", "bb", 1, None],
    "one_of": ["middle", 1],
    "inner": [1, None, {"usd": -1}, {"euros": 1}, {"usd": "x"}],
    "either": [1, {"usd": -1}, {"euros": 1}],
    "several": [1, [1, 2], ["a"]],
    "pair": [(1,), 3, (1, 2, 3)],
    "named": [1, {"a": "b"}],
    "even": [3],
    "ours": ["bad"],
    "colour": ["red"],
}


def faults(**fields: Any) -> list[dict[str, Any]]:
    with pytest.raises(ValidationError) as raised:
        Everything.model_validate({"needed": 1, **fields})
    return [dict(error) for error in raised.value.errors()]


@pytest.mark.parametrize("field", WRONG)
def test_no_fault_is_told_in_the_words_of_a_library(field: str) -> None:
    for value in WRONG[field]:
        for error in faults(**{field: value}):
            said = words(error)
            assert not THEIRS.search(said), (value, said)
            assert "{" not in said
            assert said != "is not what can stand here", (value, error)


def test_a_missing_field_is_told() -> None:
    with pytest.raises(ValidationError) as raised:
        Everything.model_validate({})
    assert words(dict(raised.value.errors()[0])) == "is missing"


def test_limits_are_said_with_their_figures() -> None:
    assert words(faults(whole=0)[0]) == "must be at least 1"
    assert must_be(faults(between=2)[0]) == "less than 2"
    assert words(faults(text="aaaa")[0]) == "must have at most 3 characters"
    assert words(faults(one_of="x")[0]) == "must be 'high' or 'low'"
    assert words(faults(ours="x")[0]) == "write fine"
    assert must_be(faults(colour="red")[0]) is None
    assert must_be(faults(text=1)[0], own={"string_type": "a text in quotes"}) == "a text in quotes"


def test_a_place_has_the_names_of_fields_alone() -> None:
    assert place(Everything, ("either", "Inner", "usd"))[0] == ["either", "usd"]
    assert place(Everything, ("either", "str")) == (["either"], ["usd"])
    assert place(Everything, ("several", 1))[0] == ["several", "1"]
    assert place(Inner | None, ("usd",)) == (["usd"], [])
    assert "usd" in place(Budget, ())[1]


def test_an_unknown_field_names_the_nearest_and_all() -> None:
    assert (
        unknown_field("sed", ["seed", "step"]) == "there is no such field; did you mean 'seed'? known: seed, step"
    )
