"""Digests: what must not matter does not, what must matter does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.records import Answer, Plan, Progressed, View
from storage.digest import canonical, digest
from tests.storage.jobs_for_tests import POLICY, TASK, child

KEY = "f" * 64 + ".png"

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any, seed: int) -> Any:
    """The same value with every mapping's keys in another order, and lists as tuples."""
    if isinstance(value, dict):
        items: list[tuple[str, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        random.Random(seed).shuffle(items)
        return {key: shuffled(item, seed) for key, item in items}
    if isinstance(value, list):
        return tuple(shuffled(item, seed) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return value


@settings(max_examples=60)
@given(values, st.integers(0, 1000))
def test_the_order_of_keys_and_the_kind_of_sequence_do_not_matter(value: Any, seed: int) -> None:
    assert digest(shuffled(value, seed)) == digest(value)


@settings(max_examples=60)
@given(st.integers(-(2**53) + 1, 2**53 - 1))
def test_a_whole_float_is_the_same_number_as_the_int(number: int) -> None:
    assert canonical([float(number)]) == canonical([number])


@settings(max_examples=60)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_two_floats_share_a_digest_only_if_they_are_equal(one: float, other: float) -> None:
    assert (digest(one) == digest(other)) == (one == other)


@settings(max_examples=60)
@given(st.text(), st.text())
def test_two_texts_share_a_digest_only_if_they_are_equal(one: str, other: str) -> None:
    assert (digest(one) == digest(other)) == (one == other)


def test_composed_and_decomposed_accents_are_different_prompts() -> None:
    assert digest("é") != digest("e\u0301")


def test_a_lone_surrogate_has_a_digest_too() -> None:
    assert digest("\ud800") != digest("\ud801")


@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0), (None, 0), ("1", 1), ([], {}), ("", None)])
def test_values_of_different_kinds_are_different(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_a_record_anywhere_is_its_json_form() -> None:
    view = View(
        first_picture=KEY, current_frame=KEY, history=(Progressed(step=1, instruction="x", progress="none"),)
    )
    nested = {"shown": [view, {"task": TASK}]}
    plain = {"shown": [view.model_dump(mode="json"), {"task": TASK.model_dump(mode="json")}]}
    assert digest(nested) == digest(plain)


def test_every_field_of_a_nested_record_counts() -> None:
    other = POLICY.model_copy(update={"canvas": POLICY.canvas.model_copy(update={"fit": "pad"})})
    assert digest({"policy": other}) != digest({"policy": POLICY})


def test_a_bare_answer_keeps_the_fields_of_its_value() -> None:
    one, other = Answer(value=Plan(instruction="up")), Answer(value=Plan(instruction="down"))
    assert digest(one) != digest(other)
    assert digest(one) == digest(Answer[Plan](value=Plan(instruction="up")))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_in_json_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="inputs/frames/1"):
        digest({"frames": [1.0, number]})


@pytest.mark.parametrize("value", [b"png", {1, 2}, object(), {1: "key"}, bytearray(2)])
def test_bytes_sets_objects_and_other_keys_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="inputs/x"):
        digest({"x": value})


def test_another_process_computes_the_same_digest() -> None:
    code = (
        "from storage.digest import digest; from tests.storage.jobs_for_tests import POLICY, TASK\n"
        "print(digest({'p': POLICY, 't': TASK}))"
    )
    assert child(code).stdout.strip() == digest({"t": TASK, "p": POLICY})
