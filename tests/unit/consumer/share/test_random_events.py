"""Random calls and faults: what the application said is what the broker hears, and every record is done in the end."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.consumer.share_model import ShareModel
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import AcknowledgeType
from kclient.errors import Errors, WakeupError
from kclient.protocol.api_keys import ApiKeys

PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1))
EVENTS = (
    *("poll", "poll", "next", "commit", "background", "rounds", "unsubscribe"),
    *("break fetch", "break acknowledge", "lose session", "unlock", "refuse", "fence", "fill", "loading"),
)
Word = tuple[TopicPartition, int, int]


@attrs.define
class _Application:
    """An application that acknowledges all it gets, and remembers every word."""

    share: ShareModel
    words: list[AcknowledgeType]
    said: set[Word] = attrs.field(factory=set)
    got: list[Any] = attrs.field(factory=list)

    def take(self, records: list[Any]) -> None:
        for record in records:
            word = self.words[len(self.got) % len(self.words)]
            self.got.append(record)
            self.share.consumer.acknowledge(record, word)
            self.said.add((record.topic_partition, record.offset, word))

    def do(self, event: str) -> None:
        share, consumer = self.share, self.share.consumer
        if event == "poll":
            self.take(share.poll(60))
        elif event == "next" and share.core._current:
            consumer.wakeup()  # so that it does not wait for ever
            with contextlib.suppress(WakeupError):
                self.take([next(consumer)])
        elif event == "commit":
            consumer.commit_sync(timeout_ms=500)
        elif event == "background":
            consumer.commit_async()
        elif event == "rounds":
            share.rounds(5)
        elif event == "unsubscribe":
            consumer.unsubscribe()
            consumer.subscribe(["t"])
        elif event == "break fetch":
            share.on(ApiKeys.SHARE_FETCH, ConnectionError())
        elif event == "break acknowledge":
            share.on(ApiKeys.SHARE_ACKNOWLEDGE, ConnectionError())
        elif event == "lose session":
            share.sessions.clear()
            self.unlock()
        elif event == "unlock":
            self.unlock()
        elif event == "refuse":
            share.fetch_error[PARTITIONS[0]] = Errors.NOT_LEADER_OR_FOLLOWER
            share.acknowledge_error[PARTITIONS[1]] = Errors.COORDINATOR_NOT_AVAILABLE
        elif event == "fence":
            share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, ConnectionError())
        elif event == "loading":
            share.fetch_error.clear()
            share.acknowledge_error.clear()
        elif event == "fill":
            for tp in PARTITIONS:
                share.fill(tp, 3)

    def unlock(self) -> None:
        for tp in PARTITIONS:
            self.share.unlock(tp)


def check_requests(share: ShareModel) -> None:
    """No request has acknowledgements that overlap or go back, and none opens a session with them."""
    for request in share.sent(ApiKeys.SHARE_FETCH) + share.sent(ApiKeys.SHARE_ACKNOWLEDGE):
        for topic in request.topics:
            for partition in topic.partitions:
                end = -1
                for batch in partition.acknowledgement_batches:
                    assert request.share_session_epoch != 0
                    assert end < batch.first_offset <= batch.last_offset
                    end = batch.last_offset


@settings(max_examples=80, deadline=None)
@given(
    events=st.lists(st.sampled_from(EVENTS), max_size=25),
    words=st.lists(st.sampled_from(list(AcknowledgeType)), min_size=1, max_size=7),
    most=st.sampled_from([2, 5, 500]),
)
def test_what_was_said_is_heard_and_every_record_is_done_in_the_end(
    events: list[str], words: list[AcknowledgeType], most: int
) -> None:
    share = ShareModel(share_acknowledgement_mode="explicit", max_poll_records=most)
    try:
        share.subscribe()
        application = _Application(share, words)
        for tp in PARTITIONS:
            share.fill(tp, 4)
        for event in events:
            application.do(event)
        share.fetch_error.clear()
        share.acknowledge_error.clear()
        application.words = [AcknowledgeType.ACCEPT]
        for _ in range(60):
            application.unlock()
            application.do("poll")
            application.do("commit")
            if all(len(share.shares[tp].archived) == share.shares[tp].end for tp in PARTITIONS):
                break
        for tp in PARTITIONS:
            model = share.shares[tp]
            assert model.archived == set(range(model.end)), f"{tp}: not every record is done"
            assert {(tp, offset, 1) for offset in model.accepted} <= application.said
        # Nobody else releases records that the application has; those that it never got it may give back.
        got = {(record.topic_partition, record.offset) for record in application.got}
        for tp, offset, type_ in share.said:
            if type_ != AcknowledgeType.RELEASE:
                assert (tp, offset, type_) in application.said
            else:
                assert (
                    (tp, offset, type_) in application.said or (tp, offset) in got or "unsubscribe" in events
                )
        check_requests(share)
    finally:
        share.consumer.close(100)
    assert not any(share.shares[tp].locked for tp in PARTITIONS)
