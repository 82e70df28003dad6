"""Both PreparedFetches follow the answers of which only the ends of batches have to be looked at, and no others."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fetched_batches import batch
from kclient._accel import end_of_batches, pure_prepared
from kclient.common.uuid import Uuid
from kclient.errors import SchemaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response, response_buffers
from kclient.protocol.messages import fetch

native = pytest.importorskip("kclient._accel.poller", reason="the native body is not built")

BODIES: dict[str, Any] = {"python": pure_prepared.PreparedFetch, "c": native.PreparedFetch}
ANSWERED, SESSION, CORRELATION, EPOCH = 70, 80, 71, 5
IDS = [Uuid(bytes([number]) * 16) for number in (1, 2)]
KNOWN = [(IDS[0], 0), (IDS[0], 1), (IDS[1], 0)]
OFFSETS = [10, 20, 30]
EPOCH_AT, OFFSETS_AT = 20, [30, 40, 60]


def prepared(body: str, occupied: bytearray | None = None, armed: bool = True) -> Any:
    made = BODIES[body](
        bytes(range(80)),
        EPOCH_AT,
        OFFSETS_AT,
        [(topic_id.bytes, number) for topic_id, number in KNOWN],
        bytearray(1) if occupied is None else occupied,
    )
    if armed:
        made.arm(ANSWERED, SESSION, CORRELATION, EPOCH, OFFSETS)
    return made


def partition(index: int, records: bytes | None = b"", **fields: Any) -> fetch.PartitionData:
    return fetch.PartitionData(partition_index=index, high_watermark=9, records=records, **fields)


def frame(response: fetch.FetchResponse, version: int = 18, correlation_id: int = ANSWERED) -> bytes:
    return b"".join(response_buffers(response, ApiKeys.FETCH, version, correlation_id))[4:]


def answer(*partitions: fetch.PartitionData, topic_id: Uuid = IDS[0], **fields: Any) -> fetch.FetchResponse:
    topic = fetch.FetchableTopicResponse(topic_id=topic_id, partitions=list(partitions))
    return fetch.FetchResponse(**{"session_id": SESSION, "responses": [topic], **fields})


def expected(data: bytes, version: int) -> list[int] | None:
    """The offsets to go on at, found out by way of the codec; None if the answer is to be looked at."""
    try:
        correlation_id, message = parse_response(ApiKeys.FETCH, version, data)
    except SchemaError:
        return None
    assert isinstance(message, fetch.FetchResponse)
    if correlation_id != ANSWERED or message.error_code or message.throttle_time_ms:
        return None
    if message.session_id != SESSION or message.node_endpoints:
        return None
    ends: dict[tuple[Uuid, int], int] = {}
    for topic in message.responses:
        for each in topic.partitions:
            known = topic.topic_id, each.partition_index
            if known not in KNOWN or known in ends or each.error_code or each.preferred_read_replica != -1:
                return None
            if each.records:
                end = end_of_batches(each.records)
                if end is None or not OFFSETS[KNOWN.index(known)] < end <= 2**62:
                    return None
                ends[known] = end
    return [ends.get(known, offset) for known, offset in zip(KNOWN, OFFSETS, strict=True)] if ends else None


def check(data: bytes, version: int = 18) -> bool:
    """Have both bodies look at `data`; whether they follow."""
    offsets = expected(data, version)
    outcomes = []
    for body in BODIES:
        made = prepared(body)
        before = made.unwritten()
        followed = made.follow(data)
        assert followed == made.followed
        if followed:
            # What has a tagged field is left to the codec, whatever it says, so not all that is expected is followed.
            assert made.offsets() == offsets
        else:
            assert made.unwritten() == before
        outcomes.append((followed, made.unwritten()))
    assert outcomes[0] == outcomes[1]
    return outcomes[0][0]


RECORDS = st.one_of(
    st.none(),
    st.just(b""),
    st.builds(batch, st.integers(0, 2**40), st.integers(1, 3)),
    st.builds(
        lambda base, cut: batch(base, 2) + batch(base + 2, 2)[:cut], st.integers(0, 99), st.integers(0, 80)
    ),
    st.binary(max_size=40),
)
PARTITIONS = st.builds(
    partition,
    st.sampled_from([0, 0, 1, 2]),
    RECORDS,
    error_code=st.sampled_from([0, 0, 0, 0, 0, 1]),
    preferred_read_replica=st.sampled_from([-1, -1, -1, -1, 3]),
    aborted_transactions=st.sampled_from(
        [None, [], [fetch.AbortedTransaction(producer_id=1, first_offset=2)] * 2]
    ),
)
TOPICS = st.builds(
    fetch.FetchableTopicResponse,
    topic_id=st.sampled_from([*IDS, *IDS, Uuid(b"x" * 16)]),
    partitions=st.lists(PARTITIONS, max_size=3),
)
RESPONSES = st.builds(
    fetch.FetchResponse,
    session_id=st.sampled_from([SESSION, SESSION, SESSION, 81]),
    error_code=st.sampled_from([0, 0, 0, 71]),
    throttle_time_ms=st.sampled_from([0, 0, 0, 5]),
    responses=st.lists(TOPICS, max_size=3),
)


@given(RESPONSES, st.integers(13, 18))
def test_they_follow_what_the_codec_finds_nothing_special_in(
    response: fetch.FetchResponse, version: int
) -> None:
    data = frame(response, version)
    assert check(data, version) == (expected(data, version) is not None)


@given(RESPONSES, st.integers(0, 2**16), st.integers(0, 255), st.booleans())
@example(answer(partition(0, batch(5, 2))), 0, 255, False)
def test_they_agree_on_answers_that_are_damaged_or_cut_off(
    response: fetch.FetchResponse, at: int, byte: int, cut: bool
) -> None:
    data = bytearray(frame(response))
    at %= len(data)
    if cut:
        del data[at:]
    else:
        data[at] = byte
    check(bytes(data))


@given(st.binary(max_size=60))
def test_they_agree_on_any_bytes(data: bytes) -> None:
    check(data)
    check(struct.pack(">ibihi", ANSWERED, 0, 0, 0, SESSION) + data)


@pytest.mark.parametrize("body", BODIES)
class TestEach:
    def test_the_frame_gets_the_numbers_and_the_ends_of_the_batches_and_keeps_the_rest(
        self, body: str
    ) -> None:
        made = prepared(body)
        assert made.follow(frame(answer(partition(1, batch(20, 3)), partition(0, None))))
        wanted = bytearray(range(80))
        struct.pack_into(">i", wanted, 8, CORRELATION)
        struct.pack_into(">i", wanted, EPOCH_AT, EPOCH)
        for at, offset in zip(OFFSETS_AT, [10, 23, 30], strict=True):
            struct.pack_into(">q", wanted, at, offset)
        assert made.unwritten() == wanted
        assert made.offsets() == [10, 23, 30]

    def test_an_answer_is_followed_once(self, body: str) -> None:
        made, data = prepared(body), frame(answer(partition(0, batch(10, 1))))
        assert made.follow(data)
        assert not made.follow(data)
        assert made.followed
        made.arm(ANSWERED, SESSION, 72, 6, OFFSETS)
        assert not made.followed
        assert made.follow(data)

    def test_nothing_is_followed_before_it_is_armed_or_once_it_is_disarmed(self, body: str) -> None:
        made, data = prepared(body, armed=False), frame(answer(partition(0, batch(10, 1))))
        assert not made.follow(data)
        made.arm(ANSWERED, SESSION, CORRELATION, EPOCH, OFFSETS)
        made.disarm()
        assert not made.follow(data)

    def test_nothing_is_followed_while_something_is_occupied(self, body: str) -> None:
        occupied = bytearray(b"\1")
        made, data = prepared(body, occupied), frame(answer(partition(0, batch(10, 1))))
        assert not made.follow(data)
        occupied[0] = 0
        assert made.follow(data)

    def test_an_answer_without_data_is_not_followed(self, body: str) -> None:
        assert not prepared(body).follow(frame(answer(partition(0), partition(1))))
        assert not prepared(body).follow(frame(answer()))

    def test_an_offset_that_leads_nowhere_is_not_followed(self, body: str) -> None:
        data = bytearray(batch(10, 1))
        for base in (-1, -(2**63), 2**63 - 1, 2**62, 9):
            struct.pack_into(">q", data, 0, base)
            assert not prepared(body).follow(frame(answer(partition(0, bytes(data)))))

    @pytest.mark.parametrize(
        ("epoch_at", "offsets_at", "known", "occupied"),
        [
            (-1, [30], [(b"1" * 16, 0)], b"0"),
            (73, [30], [(b"1" * 16, 0)], b"0"),
            (20, [73], [(b"1" * 16, 0)], b"0"),
            (20, [-1], [(b"1" * 16, 0)], b"0"),
            (20, [30], [(b"1" * 15, 0)], b"0"),
            (20, [30], [], b"0"),
            (20, [30], [(b"1" * 16, 0)], b""),
        ],
    )
    def test_what_does_not_fit_the_frame_is_refused(
        self, body: str, epoch_at: int, offsets_at: list[int], known: list[tuple[bytes, int]], occupied: bytes
    ) -> None:
        with pytest.raises(ValueError):
            BODIES[body](bytes(80), epoch_at, offsets_at, known, bytearray(occupied))

    def test_arming_needs_an_offset_for_every_partition(self, body: str) -> None:
        with pytest.raises(ValueError, match="every partition has an offset"):
            prepared(body).arm(ANSWERED, SESSION, CORRELATION, EPOCH, [1, 2])
