"""Fetch sessions: what is sent, what is forgotten, and when they start over."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.fetch_session import FetchSession, SessionFetch, WantedPartition
from kclient.protocol.codec import decode, encode
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kclient.utils.log_context import LogContext

A, B = TopicPartition("a", 0), TopicPartition("b", 3)
IDS = {"a": Uuid(b"a" * 16), "b": Uuid(b"b" * 16)}


def wanted(**offsets: int) -> dict[TopicPartition, WantedPartition]:
    return {
        tp: WantedPartition(offsets[tp.topic], IDS[tp.topic], 1000) for tp in (A, B) if tp.topic in offsets
    }


def answer(*partitions: TopicPartition, session_id: int = 7, error_code: int = 0) -> FetchResponse:
    topics = [
        FetchableTopicResponse(
            topic_id=IDS[tp.topic], partitions=[PartitionData(partition_index=tp.partition)]
        )
        for tp in partitions
    ]
    return FetchResponse(session_id=session_id, responses=topics, error_code=error_code)


@pytest.fixture
def session() -> FetchSession:
    return FetchSession(1, LogContext())


def begun(session: FetchSession, **offsets: int) -> None:
    fetch = session.build(wanted(**offsets))
    assert session.on_response(answer(*fetch.to_send), 16) is not None


def on_the_wire(fetch: SessionFetch, version: int) -> FetchRequest:
    return decode(FetchRequest, version, encode(fetch.fill(FetchRequest(), version), version))


def test_the_first_fetch_names_everything_and_asks_for_a_session(session: FetchSession) -> None:
    fetch = session.build(wanted(a=1, b=2))
    assert (fetch.session_id, fetch.epoch) == (0, 0)
    assert set(fetch.to_send) == {A, B}
    assert session.on_response(answer(A, B), 16) is not None
    assert session.is_open


def test_later_fetches_name_what_changed_and_forget_what_is_not_wanted(session: FetchSession) -> None:
    begun(session, a=1, b=2)
    fetch = session.build(wanted(a=5, b=2))
    assert (fetch.session_id, fetch.epoch, set(fetch.to_send), fetch.to_forget) == (7, 1, {A}, ())
    session.on_response(answer(A), 16)
    fetch = session.build(wanted(b=2))
    assert (fetch.epoch, set(fetch.to_send), fetch.to_forget) == (2, set(), ((A, IDS["a"]),))
    session.on_response(answer(), 16)
    fetch = session.build(wanted(a=5, b=2))
    assert set(fetch.to_send) == {A}


def test_a_topic_made_again_is_forgotten_under_its_old_identifier(session: FetchSession) -> None:
    begun(session, a=1)
    fetch = session.build({A: WantedPartition(0, Uuid(b"n" * 16), 1000)})
    assert fetch.to_forget == ((A, IDS["a"]),)
    request = on_the_wire(fetch, 16)
    assert request.topics[0].topic_id == Uuid(b"n" * 16)
    assert request.forgotten_topics_data[0].topic_id == IDS["a"]


@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_names_are_sent_before_version_13_and_identifiers_from_then_on(
    session: FetchSession, version: int
) -> None:
    begun(session, a=1, b=2)
    request = on_the_wire(session.build(wanted(b=4)), version)
    (topic,) = request.topics
    (forgotten,) = request.forgotten_topics_data
    if version < 13:
        assert (topic.topic, forgotten.topic) == ("b", "a")
    else:
        assert (topic.topic_id, forgotten.topic_id) == (IDS["b"], IDS["a"])
    assert forgotten.partitions == [0]


def test_a_topic_without_an_identifier_limits_the_version_and_starts_a_session_by_name(
    session: FetchSession,
) -> None:
    begun(session, a=1)
    assert session.build(wanted(a=1)).max_version is None
    session.on_response(answer(), 16)
    fetch = session.build({A: WantedPartition(1, IDS["a"], 9), B: WantedPartition(0, Uuid.ZERO, 9)})
    assert (fetch.max_version, fetch.session_id, fetch.epoch) == (12, 7, 0)
    assert set(fetch.to_send) == {A, B}


@pytest.mark.parametrize(("code", "next_id"), [(70, 0), (71, 7), (106, 7), (-1, 7)])
def test_an_error_of_the_session_starts_a_full_one(session: FetchSession, code: int, next_id: int) -> None:
    begun(session, a=1)
    session.build(wanted(a=1))
    assert session.on_response(answer(error_code=code), 16) is None
    fetch = session.build(wanted(a=1))
    assert (fetch.session_id, fetch.epoch, set(fetch.to_send)) == (next_id, 0, {A})


def test_a_lost_answer_starts_a_full_session_that_closes_the_old_one(session: FetchSession) -> None:
    begun(session, a=1)
    session.build(wanted(a=3))
    session.start_over()
    fetch = session.build(wanted(a=3))
    assert (fetch.session_id, fetch.epoch, set(fetch.to_send)) == (7, 0, {A})


def test_an_answer_for_other_partitions_is_refused(session: FetchSession) -> None:
    session.build(wanted(a=1, b=2))
    assert session.on_response(answer(A), 16) is None  # a full answer must hold all of them
    begun(session, a=1)
    session.build(wanted(a=1))
    assert session.on_response(answer(B), 16) is None
    assert session.build(wanted(a=1)).epoch == 0


def test_a_broker_without_room_for_sessions_gets_full_fetches(session: FetchSession) -> None:
    session.build(wanted(a=1))
    session.on_response(answer(A, session_id=0), 16)
    fetch = session.build(wanted(a=2))
    assert (fetch.session_id, fetch.epoch, set(fetch.to_send)) == (0, 0, {A})


def test_an_evicted_session_still_gives_what_it_answered(session: FetchSession) -> None:
    begun(session, a=1)
    session.build(wanted(a=2))
    assert session.on_response(answer(A, session_id=0), 16) is not None
    fetch = session.build(wanted(a=3))
    assert (fetch.session_id, fetch.epoch) == (0, 0)


def test_the_epoch_wraps_to_one_because_zero_begins_a_session(session: FetchSession) -> None:
    begun(session, a=1)
    session.epoch = 2**31 - 1
    assert session.build(wanted(a=1)).epoch == 2**31 - 1
    session.on_response(answer(), 16)
    assert session.build(wanted(a=1)).epoch == 1


def test_closing_names_the_session_with_the_last_epoch(session: FetchSession) -> None:
    begun(session, a=1)
    fetch = session.build_close()
    assert (fetch.session_id, fetch.epoch, fetch.to_send) == (7, -1, {})
