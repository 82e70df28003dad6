"""The lag of queries from the progress that Spark tells of, without Spark's JVM."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.spark import KafkaLagListener

T0 = TopicPartition("t", 0)


def progress(name: str | None, *sources: tuple[str, str], query_id: uuid.UUID | None = None) -> Any:
    found = [SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources]
    query_id = query_id or uuid.UUID(int=7)
    return SimpleNamespace(progress=SimpleNamespace(name=name, id=query_id, sources=found))


def test_lag_is_the_latest_offset_less_what_was_read() -> None:
    told: list[Any] = []
    listener = KafkaLagListener(lambda *both: told.append(both))
    listener.onQueryProgress(
        progress(
            "q", ('{"t": {"0": 10}}', '{"t": {"0": 15, "1": 4}}'), ('{"u": {"0": 1}}', '{"u": {"0": 1}}')
        )
    )
    behind = {T0: 5, TopicPartition("t", 1): 4, TopicPartition("u", 0): 0}
    assert listener.behind("q") == behind
    assert listener.total_behind("q") == 9
    assert told == [("q", behind)]
    listener.onQueryTerminated(SimpleNamespace(id=uuid.UUID(int=7)))
    assert listener.queries() == []
    assert listener.behind("q") == {}


@pytest.mark.parametrize(
    "offsets", [("17", "18"), ("null", "null"), ('{"kclient": "initial"}', "{}"), ("x", '{"a": 1}')]
)
def test_sources_that_are_not_kafkas_have_no_lag(offsets: tuple[str, str]) -> None:
    listener = KafkaLagListener()
    listener.onQueryProgress(progress(None, offsets))
    assert listener.queries() == []


def test_a_query_without_a_name_goes_by_its_id() -> None:
    listener = KafkaLagListener()
    listener.onQueryProgress(progress(None, ('{"t": {"0": 1}}', '{"t": {"0": 1}}')))
    assert listener.queries() == [str(uuid.UUID(int=7))]


def test_two_sources_of_one_topic_are_as_far_behind_as_the_slower_one() -> None:
    ends = ('{"t": {"0": 2}}', '{"t": {"0": 10}}'), ('{"t": {"0": 10}}', '{"t": {"0": 10}}')
    for sources in (ends, ends[::-1]):
        listener = KafkaLagListener()
        listener.onQueryProgress(progress("q", *sources))
        assert listener.behind("q") == {T0: 8}


def test_nothing_is_less_than_not_behind() -> None:
    # A topic that was deleted and created again ends before what was read of the old one.
    listener = KafkaLagListener()
    listener.onQueryProgress(progress("q", ('{"t": {"0": 10}}', '{"t": {"0": 3}}')))
    assert listener.behind("q") == {T0: 0}


def test_offsets_may_come_as_objects_too() -> None:
    listener = KafkaLagListener()
    listener.onQueryProgress(progress("q", ({"t": {"0": 1}}, {"t": {"0": 3}})))  # type: ignore[arg-type]
    assert listener.total_behind("q") == 2


def test_a_progress_that_tells_nothing_leaves_what_is_known_and_calls_nobody() -> None:
    told: list[Any] = []
    listener = KafkaLagListener(lambda *both: told.append(both))
    listener.onQueryProgress(progress("q", ('{"t": {"0": 1}}', '{"t": {"0": 3}}')))
    listener.onQueryProgress(progress("q", (None, None)))  # type: ignore[arg-type]
    listener.onQueryProgress(progress("q"))
    assert listener.behind("q") == {T0: 2}
    assert len(told) == 1


def test_what_is_handed_out_is_the_callers_own() -> None:
    listener = KafkaLagListener(lambda query, behind: behind.clear())
    listener.onQueryProgress(progress("q", ('{"t": {"0": 1}}', '{"t": {"0": 3}}')))
    listener.behind("q").clear()
    assert listener.behind("q") == {T0: 2}


def test_the_end_of_one_query_leaves_the_others_and_that_of_an_unknown_one_does_nothing() -> None:
    listener = KafkaLagListener()
    for number, name in enumerate(("b", "a")):
        made = progress(name, ('{"t": {"0": 1}}', '{"t": {"0": 3}}'), query_id=uuid.UUID(int=number))
        listener.onQueryProgress(made)
    assert listener.queries() == ["a", "b"]
    listener.onQueryTerminated(SimpleNamespace(id=uuid.UUID(int=99)))
    listener.onQueryTerminated(SimpleNamespace(id=uuid.UUID(int=0)))
    assert listener.queries() == ["a"]
