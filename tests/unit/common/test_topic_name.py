"""Names of topics: those that a broker takes, and what is said of the others."""

from __future__ import annotations

import pytest

from kclient.common.topic_name import check_topic
from kclient.errors import InvalidTopicError


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "é", "٣", "x" * 250, "a\n", "a\0"])
def test_a_name_that_no_broker_takes_is_refused(topic: str) -> None:
    with pytest.raises(InvalidTopicError):
        check_topic(topic)


@pytest.mark.parametrize("topic", ["a", "A.b_c-9", "x" * 249, "..."])
def test_a_legal_name_is_taken(topic: str) -> None:
    check_topic(topic)


@pytest.mark.parametrize("value", [None, b"t", 1])
def test_a_topic_must_be_a_str(value: object) -> None:
    with pytest.raises(TypeError, match=r"^topic: .* must be a str, not (NoneType|bytes|int)$"):
        check_topic(value)


@pytest.mark.parametrize(("given", "error"), [(7, TypeError), ("a b", InvalidTopicError)])
def test_the_callers_argument_is_named(given: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^new_topics: "):
        check_topic(given, "new_topics")


def test_an_illegal_name_is_shown_with_its_control_characters_escaped() -> None:
    with pytest.raises(InvalidTopicError) as refused:
        check_topic("a\n\x1b[31m")
    assert r"'a\n\x1b[31m' is not a topic name" in str(refused.value)


def test_of_an_endless_name_only_the_beginning_is_shown() -> None:
    with pytest.raises(InvalidTopicError) as refused:
        check_topic("x" * 1_000_000)
    assert len(str(refused.value)) < 500
    assert "1 to 249 characters" in str(refused.value)
