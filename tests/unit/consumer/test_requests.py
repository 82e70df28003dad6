"""Commits that go together before they are sent."""

from __future__ import annotations

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.requests import CommitRequest, PendingRequest, Request
from kclient.errors import BootstrapError, ConnectionFailure, DisconnectError, KafkaError, KafkaTimeoutError
from kclient.utils.backoff import ExponentialBackoff

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def commit(generation: int = 1, *, automatic: bool = False, **offsets: int) -> CommitRequest:
    named = {TopicPartition("t", int(name[1:])): OffsetAndMetadata(at) for name, at in offsets.items()}
    return CommitRequest(1000, named, Generation(generation, "m"), retry=False, automatic=automatic)


def test_newer_offsets_take_the_place_of_older_ones() -> None:
    request = commit(t0=1, t1=1)
    assert request.add(commit(t1=5, automatic=True))
    assert request.offsets == {T0: OffsetAndMetadata(1), T1: OffsetAndMetadata(5)}
    assert request.automatic


@pytest.mark.parametrize("why", ["sealed", "done", "another generation"])
def test_nothing_is_added_where_it_would_not_be_sent(why: str) -> None:
    request, newer = commit(t0=1), commit(2 if why == "another generation" else 1, t0=2)
    if why == "sealed":
        request.seal()
    elif why == "done":
        request.complete(request.offsets)
    assert not request.add(newer)
    assert request.offsets == {T0: OffsetAndMetadata(1)}


def test_a_request_is_tried_again_later_each_time_and_says_at_the_end_what_was_wrong() -> None:
    pending = PendingRequest(Request[int](1000))
    backoff = ExponentialBackoff(100, 1000, jitter=0)
    waits = []
    for _ in range(3):
        pending.back_off(backoff, 5)
        waits.append(pending.retry_ms - 5)
    assert waits == [100, 200, 400]
    pending.last_error = KafkaError("the last one")
    pending.expire("No answer came", None)
    with pytest.raises(KafkaTimeoutError, match=r"No answer came: the last one$"):
        pending.request.result()


@pytest.mark.parametrize(
    ("answered", "told", "place"),
    [
        (None, ": unreachable", "b2"),
        (KafkaError("odd"), ": odd; unreachable", "b2"),
        (DisconnectError("cut", connection=ConnectionFailure(host="b1")), ": cut", "b1"),
    ],
    ids=["nothing", "no word of it", "the same"],
)
def test_a_broker_that_is_out_of_reach_is_the_reason_if_the_last_error_does_not_say_it(
    answered: KafkaError | None, told: str, place: str
) -> None:
    pending = PendingRequest(Request[int](1000))
    pending.last_error = answered
    pending.expire("Late", BootstrapError("unreachable", connection=ConnectionFailure(host="b2")))
    error = pending.request.exception()
    assert isinstance(error, KafkaTimeoutError)
    assert str(error) == f"Late{told}"
    assert error.connection == ConnectionFailure(host=place)
