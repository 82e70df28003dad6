"""Error codes that this client does not know, in every answer that only a share consumer gets."""

from __future__ import annotations

import pytest

from harness.consumer.share_model import ShareModel
from kclient.common.topic_partition import TopicPartition
from kclient.errors import UnknownServerError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from kclient.protocol.messages.share_fetch import ShareFetchResponse
from kclient.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

UNKNOWN = 32000
T0 = TopicPartition("t", 0)


def read_offsets(share: ShareModel, count: int) -> list[int]:
    """Poll until so many records came."""
    found: list[int] = []
    for _ in range(20):
        found += [record.offset for record in share.poll()]
        if len(found) >= count:
            break
    return found


def test_in_a_heartbeat_it_is_raised_by_poll_with_its_number_and_the_next_poll_joins_again(
    share: ShareModel,
) -> None:
    share.subscribe()
    share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatResponse(error_code=UNKNOWN))
    with pytest.raises(UnknownServerError, match=str(UNKNOWN)) as caught:
        share.poll(3000)
    assert caught.value.code == UNKNOWN
    before = len(share.sent(ApiKeys.SHARE_GROUP_HEARTBEAT))
    share.fill(T0, 3)
    assert read_offsets(share, 3) == [0, 1, 2]
    assert share.sent(ApiKeys.SHARE_GROUP_HEARTBEAT)[before].member_epoch == 0


def test_of_a_whole_fetch_it_is_raised_by_poll_with_its_number_and_the_next_poll_reads(
    share: ShareModel,
) -> None:
    share.subscribe()
    share.fill(T0, 3)
    share.on(ApiKeys.SHARE_FETCH, ShareFetchResponse(error_code=UNKNOWN))
    with pytest.raises(UnknownServerError) as caught:
        share.poll(3000)
    assert caught.value.code == UNKNOWN
    assert read_offsets(share, 3) == [0, 1, 2]


def test_of_a_fetched_partition_it_is_raised_with_its_number_and_the_partition_and_the_next_poll_reads(
    share: ShareModel,
) -> None:
    share.subscribe()
    share.fill(T0, 3)
    share.fetch_error[T0] = UNKNOWN
    with pytest.raises(UnknownServerError, match="t-0: ") as caught:
        share.poll(3000)
    assert caught.value.code == UNKNOWN
    share.fetch_error.clear()
    assert read_offsets(share, 3) == [0, 1, 2]


@pytest.mark.parametrize("whole", [True, False], ids=["whole answer", "partition"])
def test_of_an_acknowledgement_commit_tells_it_with_its_number_and_reading_goes_on(
    explicit: ShareModel, whole: bool
) -> None:
    explicit.subscribe()
    explicit.fill(T0, 1)
    (record,) = explicit.poll()
    explicit.consumer.acknowledge(record)
    if whole:
        explicit.on(ApiKeys.SHARE_ACKNOWLEDGE, ShareAcknowledgeResponse(error_code=UNKNOWN))
    else:
        explicit.acknowledge_error[T0] = UNKNOWN
    error = explicit.consumer.commit_sync()[explicit.tip(T0)]
    assert isinstance(error, UnknownServerError)
    assert error.code == UNKNOWN
    explicit.acknowledge_error.clear()
    explicit.fill(T0, 1)
    assert read_offsets(explicit, 1) == [1]


def test_of_an_acknowledgement_beside_a_fetch_it_is_told_to_the_callback_with_its_number(
    share: ShareModel,
) -> None:
    told: list[Exception | None] = []
    share.consumer.set_acknowledgement_commit_callback(lambda _offsets, error: told.append(error))
    share.subscribe()
    share.fill(T0, 2)
    assert read_offsets(share, 2) == [0, 1]
    share.acknowledge_error[T0] = UNKNOWN
    share.poll(1000)  # acknowledges what the one before returned
    share.acknowledge_error.clear()
    share.poll(100)
    (error,) = told
    assert isinstance(error, UnknownServerError)
    assert error.code == UNKNOWN
