"""Fetch sessions (KIP-227) over a whole consumer without threads, with a broker that keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.consumer.fetched_batches import batch
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import fetch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
RECORDS = 5


class SessionBroker:
    """Answers fetches in a session, at most RECORDS records of each partition, and holds those that find nothing."""

    def __init__(self, rig: Any) -> None:
        self._rig = rig
        self._names = {topic_id: name for name, topic_id in rig.topic_ids.items()}
        self._epoch = 0
        self.id = 7
        self._taken_in: fetch.FetchRequest | None = None
        self.session: dict[TopicPartition, int] = {}
        self.refuse: list[int] = []
        self.errors: dict[TopicPartition, int] = {}
        rig.handlers[ApiKeys.FETCH] = self.fetch

    def fetch(self, request: fetch.FetchRequest, version: int) -> Any:
        if self.refuse:
            return fetch.FetchResponse(error_code=self.refuse.pop())
        if request.session_epoch == -1:
            return fetch.FetchResponse()
        if request is not self._taken_in:
            if request.session_epoch == 0:
                self.session, self._epoch, self.id = {}, 0, self.id + 1
            if request.session_epoch != self._epoch or (self._epoch and request.session_id != self.id):
                return fetch.FetchResponse(error_code=71)
            self._take_in(request)
        response = self.response(full=request.session_epoch == 0)
        if not response.responses and self._rig.time.monotonic_ms() < self._rig.fetch_deadline_ms(request):
            return None
        self._epoch += 1
        return response

    def _take_in(self, request: fetch.FetchRequest) -> None:
        self._taken_in = request
        for topic in request.topics:
            for asked in topic.partitions:
                self.session[TopicPartition(self._names[topic.topic_id], asked.partition)] = (
                    asked.fetch_offset
                )
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                del self.session[TopicPartition(self._names[forgotten.topic_id], number)]

    def response(self, full: bool) -> fetch.FetchResponse:
        response = fetch.FetchResponse(session_id=self.id)
        for tp, offset in self.session.items():
            logged = self._rig.logs.get(tp, [])
            code = self.errors.pop(tp, 0)
            records = batch(offset, min(RECORDS, len(logged) - offset)) if offset < len(logged) else b""
            if full or records or code:
                data = fetch.PartitionData(
                    partition_index=tp.partition,
                    error_code=code,
                    high_watermark=len(logged),
                    last_stable_offset=len(logged),
                    records=b"" if code else records,
                )
                response.responses.append(
                    fetch.FetchableTopicResponse(topic_id=self._rig.topic_ids[tp.topic], partitions=[data])
                )
        return response


@pytest.fixture
def broker(rig: Any) -> SessionBroker:
    return SessionBroker(rig)


def fetches(rig: Any) -> list[fetch.FetchRequest]:
    return list(rig.sent(ApiKeys.FETCH))


def asked(request: fetch.FetchRequest) -> dict[int, int]:
    """Offset by partition of what a request names."""
    return {each.partition: each.fetch_offset for topic in request.topics for each in topic.partitions}


def waiting(rig: Any) -> list[fetch.FetchRequest]:
    return [each.message for each in rig.client.requests if each.request.api_key is ApiKeys.FETCH]


def answer_alone(rig: Any) -> None:
    """Answer the fetch that waits, and let the consumer do nothing."""
    (sent,) = [each for each in rig.client.requests if each.request.api_key is ApiKeys.FETCH]
    rig.answer_one(sent)


def until_it_waits(rig: Any, *partitions: TopicPartition) -> None:
    """Read all there is, until a fetch in the open session waits for more."""
    rig.consumer.assign(partitions)
    while list(rig.consumer.poll(200)):
        pass
    assert len(waiting(rig)) == 1
    assert waiting(rig)[0].session_epoch > 0


def test_all_records_come_once_and_in_order_in_one_session(rig: Any, broker: SessionBroker) -> None:
    rig.fill(T0, 203)
    rig.fill(T1, 101)
    rig.consumer.assign([T0, T1])
    seen: dict[TopicPartition, list[int]] = {T0: [], T1: []}
    while sum(map(len, seen.values())) < 304:
        for record in rig.consumer.poll(1000):
            seen[TopicPartition(record.topic, record.partition)].append(record.offset)
    assert seen == {T0: list(range(203)), T1: list(range(101))}
    epochs = [request.session_epoch for request in fetches(rig)]
    assert epochs == list(range(len(epochs)))


def test_one_that_was_paused_meanwhile_is_left_out_of_the_next_fetch(rig: Any, broker: SessionBroker) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0, T1)
    rig.consumer.pause([T0])
    rig.fill(T0, 20)
    rig.fill(T1, 5)
    answer_alone(rig)
    for count in (5, 10, 15):
        rig.fill(T1, count)
        assert [record.partition for record in rig.consumer.poll(100)] == [1] * 5
    assert broker.session.keys() == {T1}
    assert [request.session_epoch for request in fetches(rig)].count(0) == 1
    rig.consumer.resume([T0])
    assert [record.offset for _ in range(4) for record in rig.consumer.poll(600)] == list(range(5, 20))


def test_the_session_has_what_may_be_read_while_others_are_fetched(rig: Any, broker: SessionBroker) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0, T1)
    read = 0
    for change, session in [(rig.consumer.pause, {T1}), (rig.consumer.resume, {T0, T1})]:
        change([T0])
        for _ in range(5):
            read += 5
            rig.fill(T1, read)
            assert [record.partition for record in rig.consumer.poll(100)] == [1] * 5
        assert broker.session.keys() == session
    assert [request.session_epoch for request in fetches(rig)].count(0) == 1


def test_seeking_meanwhile_reads_from_there(rig: Any, broker: SessionBroker) -> None:
    rig.fill(T0, 30)
    until_it_waits(rig, T0)
    rig.fill(T0, 40)
    answer_alone(rig)
    rig.consumer.seek(T0, 3)
    assert [record.offset for _ in range(9) for record in rig.consumer.poll(100)] == list(range(3, 40))


def test_a_new_leader_epoch_is_told_by_the_next_fetch(rig: Any, broker: SessionBroker) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0)
    rig.leaders[T0] = (0, 6)
    rig.core.metadata.request_update()
    rig.rounds(3)
    for count in (10, 15, 20):
        rig.fill(T0, count)
        assert len(list(rig.consumer.poll(200))) == 5
    newest = fetches(rig)[-1]
    assert [each.current_leader_epoch for topic in newest.topics for each in topic.partitions] == [6]


@pytest.mark.parametrize("code", [70, 71])
def test_a_session_that_was_lost_is_opened_anew(rig: Any, broker: SessionBroker, code: int) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0)
    broker.refuse = [code]
    rig.fill(T0, 30)
    assert [record.offset for _ in range(6) for record in rig.consumer.poll(500)] == list(range(5, 30))
    assert [request.session_epoch for request in fetches(rig)].count(0) == 2
    assert [request.session_id for request in waiting(rig)] == [broker.id]


def test_an_error_of_a_partition_is_looked_at_before_anything_is_fetched(
    rig: Any, broker: SessionBroker
) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0, T1)
    broker.errors = {T1: 6}
    rig.fill(T0, 10)
    answer_alone(rig)
    assert waiting(rig) == []
    rig.fill(T1, 3)
    records = [(record.partition, record.offset) for _ in range(6) for record in rig.consumer.poll(500)]
    assert sorted(records) == [(0, number) for number in range(5, 10)] + [(1, number) for number in range(3)]


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_connection_that_breaks_with_a_fetch_under_way_loses_and_doubles_nothing(
    rig: Any, broker: SessionBroker, rounds: int
) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0)
    rig.fill(T0, 23)
    answer_alone(rig)
    rig.rounds(rounds)
    rig.client.disconnect(0)
    assert [record.offset for _ in range(8) for record in rig.consumer.poll(500)] == list(range(5, 23))


def test_closing_ends_the_session_whatever_is_answered_meanwhile(rig: Any, broker: SessionBroker) -> None:
    rig.fill(T0, 5)
    until_it_waits(rig, T0)
    rig.network._goodbye(rig.time.monotonic_ms())
    assert fetches(rig)[-1].session_epoch == -1
    rig.fill(T0, 10)
    rig.time.advance(1000)
    rig.answer()
    rig.answer()
    assert waiting(rig) == []
    rig.client.poll(0, rig.time.monotonic_ms())  # raises what a callback raises
