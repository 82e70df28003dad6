"""Notes of topics' ids, beside the offsets that are committed for a group."""

from __future__ import annotations

import json

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.spark.topic_ids import noted, noted_ids

A0, A1, B0, M0 = (TopicPartition(*each) for each in (("a", 0), ("a", 1), ("b", 0), ("markers", 0)))
IDS = {"a": Uuid(b"a" * 16), "b": Uuid(b"b" * 16)}


def test_one_partition_of_each_topic_has_the_ids_of_all() -> None:
    made = noted({A1: 5, A0: 3, B0: 4}, IDS, None)
    assert {tp: each.offset for tp, each in made.items()} == {A0: 3, A1: 5, B0: 4}
    assert made[A1].metadata == ""
    for tp in (A0, B0):
        assert noted_ids({tp: made[tp]}) == IDS


def test_the_marker_outlasts_all_topics() -> None:
    made = noted({A0: 3}, IDS, M0)
    assert made[M0].offset == 0
    assert noted_ids({M0: made[M0]}) == IDS
    assert noted({A0: 3}, IDS, A0)[A0].offset == 3


def test_a_topics_own_note_counts_more_than_anothers() -> None:
    other = {"a": IDS["a"], "b": Uuid(b"x" * 16)}
    for order in (1, -1):
        committed = [(A0, noted({A0: 1}, other, None)[A0]), (B0, noted({B0: 1}, IDS, None)[B0])][::order]
        assert noted_ids(dict(committed))["b"] == IDS["b"]


def test_notes_fit_into_what_brokers_take_and_every_topic_is_in_several() -> None:
    many = {f"a-topic-with-a-name-{number:04}": Uuid.random() for number in range(1000)}
    made = noted({TopicPartition(topic, 0): 7 for topic in many}, many, M0)
    assert max(len(each.metadata.encode()) for each in made.values()) <= 4096
    assert noted_ids(made) == many
    lost = TopicPartition("a-topic-with-a-name-0500", 0)
    del made[lost]
    assert noted_ids(made) == many


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "7", '{"rows": 3}', json.dumps({"kclient.topicIds": {"a": "x"}})]
)
def test_notes_of_others_are_passed_over(text: str) -> None:
    assert noted_ids({A0: OffsetAndMetadata(1, text)}) == {}


def test_where_no_id_is_known_nothing_is_noted() -> None:
    assert noted({A0: 3}, {}, None) == {A0: OffsetAndMetadata(3)}
