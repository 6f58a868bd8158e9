"""Whatever a server says, what is made of it can be stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import BackendFailed, ReplyUnreadable
from orchestrator.plain import encodable
from orchestrator.records import Answer, Asked, Plan, Spend, Token, Verdict

ODD = "a\ud800b\udfff"
ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_every_text_becomes_one_that_can_be_encoded_and_good_ones_stay(text: str) -> None:
    assert encodable(text).encode().decode() == encodable(text)
    if "\ufffd" not in encodable(text):
        assert encodable(text) == text


def test_records_of_what_servers_say_can_be_written_down() -> None:
    answer = Answer[Plan](value=Plan(instruction=ODD), raw=ODD, model=ODD, sent=(ODD,), spend=Spend(vlm_calls=1))
    for record in (
        answer,
        Asked[Plan](answer=answer, blocked=ODD),
        Token(token=ODD),
        Verdict(decision="reject", reason=ODD),
    ):
        assert "\ufffd" in type(record).model_validate_json(record.model_dump_json()).model_dump_json()
    assert answer.value.instruction == "a\ufffdb\ufffd"


def test_messages_of_errors_can_be_stored() -> None:
    for error in (BackendFailed(ODD), ReplyUnreadable(ODD)):
        assert str(error) == "a\ufffdb\ufffd"
