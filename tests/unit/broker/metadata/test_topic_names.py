"""Names of topics: those that no directory can have safely, and those that metrics take for one."""

from __future__ import annotations

import pytest

from kclient.broker.metadata.topic_names import colliding_topic, validate_topic_name
from kclient.errors import InvalidTopicError


@pytest.mark.parametrize(
    "name", ["../up", "a/../b", "\\", "a:b", "~", "\u0663", "\uff41", "-\n", " a", "a" * 1000]
)
def test_names_that_leave_their_directory_or_only_look_legal_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopicError, match="1 to 249 characters"):
        validate_topic_name(name)


@pytest.mark.parametrize("name", ["-", "_", "-rf", "..a", "....", "0", "__consumer_offsets"])
def test_odd_names_that_kafka_allows_are_accepted(name: str) -> None:
    validate_topic_name(name)


def test_a_collision_goes_both_ways_and_over_several_places() -> None:
    assert colliding_topic("a_b", ["a.b"]) == "a.b"
    assert colliding_topic("a.b_c", ["x", "a_b.c"]) == "a_b.c"
    assert colliding_topic("_", ["."]) == "."


def test_the_first_of_several_collisions_is_told_and_a_topic_never_collides_with_itself() -> None:
    assert colliding_topic("a.b.c", ["a.b.c", "a_b.c", "a.b_c"]) == "a_b.c"
    assert colliding_topic("a.b", iter(())) is None
    assert colliding_topic("a.b", ["A_B", "a_b_", "a__b"]) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "a" * 250, "a\n", "a\0"])
def test_names_that_no_topic_can_have_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopicError):
        validate_topic_name(name)


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "...", "a" * 249])
def test_names_that_topics_have_are_accepted(name: str) -> None:
    validate_topic_name(name)


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    assert colliding_topic("a.b", ["a_b", "c"]) == "a_b"
    assert colliding_topic("a.b", ["a.b", "ab", "a-b"]) is None
    assert colliding_topic("ab", ["a_b"]) is None
