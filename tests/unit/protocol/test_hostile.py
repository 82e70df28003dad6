"""Bytes that nobody honest sends: one typed error, and memory in proportion to what came in."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import SchemaError
from kclient.protocol import ApiKeys, decode, encode
from kclient.protocol.codegen import build
from kclient.protocol.guard import BUDGET_RATIO, BUDGET_SLACK
from kclient.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest
from kclient.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kclient.protocol.registry import request_class, response_class
from kclient.protocol.schema import Message
from kclient.protocol.wire import unsigned_varint

SLACK = 64 * 1024
PAIRS = [
    (cls, version)
    for api in ApiKeys
    if api.on_broker_listener
    for cls in (request_class(api), response_class(api))
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
]


def peak_of_decoding(cls: type[Message], version: int, raw: bytes) -> int:
    """The most memory that decoding took, successful or not."""
    build(cls, version)  # made once; it is not what the input costs
    error: Exception | None = None
    tracemalloc.start()
    try:
        decode(cls, version, raw)
    except SchemaError as raised:
        error = raised
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert type(error) in (SchemaError, type(None))
    return peak


# Pieces that hostile frames are made of: sizes that lie, counts of all magnitudes, and the cheapest elements.
PIECES = st.one_of(
    st.sampled_from(
        [
            b"\0",
            b"\1",
            b"\x02",
            b"\x7f",
            b"\xff",
            b"\xff\xff\xff\xff",
            b"\x7f\xff\xff\xff",
            b"\0\0\0\x10",
            b"\0\0\1\0",
        ]
    ),
    st.integers(0, 2**32).map(unsigned_varint),
    st.builds(lambda piece, times: piece * times, st.binary(min_size=1, max_size=4), st.integers(1, 200)),
    st.binary(max_size=64),
)


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(PAIRS), st.lists(PIECES, max_size=12).map(b"".join))
def test_memory_stays_below_eight_times_made_up_bytes(pair: tuple[type[Message], int], raw: bytes) -> None:
    assert peak_of_decoding(*pair, raw) < 8 * len(raw) + SLACK


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(PAIRS), st.binary(max_size=4096))
def test_memory_stays_below_eight_times_random_bytes(pair: tuple[type[Message], int], raw: bytes) -> None:
    assert peak_of_decoding(*pair, raw) < 8 * len(raw) + SLACK


def counted(count: int, element: bytes) -> bytes:
    return unsigned_varint(count + 1) + element * count


# The elements that cost most for their bytes; each is in its place a valid one.
CHEAP: list[tuple[type[Message], int, Any]] = [
    (DescribeClientQuotasResponse, 1, lambda n: bytes(6) + b"\0" + counted(n // 3, b"\1\1\0") + b"\0"),
    (CreatePartitionsRequest, 3, lambda n: b"\2\1\0\0\0\1" + counted(n // 2, b"\1\0") + bytes(7)),
    (FetchRequest, 12, lambda n: bytes(25) + counted(n // 3, b"\1\1\0") + b"\1\1\0"),
    (MetadataRequest, 9, lambda n: counted(n // 2, b"\1\0") + bytes(4)),
    (HeartbeatRequest, 4, lambda n: b"\1\0\0\0\0\1\0" + unsigned_varint(n // 4) + tags(n // 4)),
]


def tags(count: int) -> bytes:
    return b"".join(unsigned_varint(tag) + b"\0" for tag in range(count))


@pytest.mark.parametrize(("cls", "version", "frame"), CHEAP)
@pytest.mark.parametrize("size", [10, 100, 200, 500, 1000, 2000, 3000])
def test_the_cheapest_elements_stay_below_eight_times_the_input_in_short_frames(
    cls: type[Message], version: int, frame: Any, size: int
) -> None:
    raw = frame(size)
    assert peak_of_decoding(cls, version, raw) < 8 * len(raw) + SLACK


@pytest.mark.parametrize(("cls", "version", "frame"), CHEAP)
@pytest.mark.parametrize("size", [500, 20_000, 400_000])
def test_the_cheapest_elements_cannot_ask_for_more_than_the_budget(
    cls: type[Message], version: int, frame: Any, size: int
) -> None:
    raw = frame(size)
    # Lists grow by an eighth more than they need.
    assert peak_of_decoding(cls, version, raw) < (BUDGET_RATIO * len(raw) + BUDGET_SLACK) * 9 / 8 + SLACK


@pytest.mark.parametrize(
    ("cls", "version", "raw"),
    [
        (MetadataRequest, 1, b"\x7f\xff\xff\xff"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x07"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f"),
        (AddPartitionsToTxnRequest, 0, b"\0\1t" + bytes(10) + b"\x7f\xff\xff\xff"),
        (HeartbeatRequest, 0, b"\x7f\xff"),
        (HeartbeatRequest, 0, b"\xff\xff"),
        (HeartbeatRequest, 4, b"\1\0\0\0\0\1\0\xff\xff\xff\xff\x0f"),
        (HeartbeatRequest, 4, b"\1\0\0\0\0\1\0" + unsigned_varint(10_001) + tags(10_001)),
        (FetchResponse, 4, b"\0\0\0\0\0\0\0\1\0\1t\0\0\0\1" + bytes(26) + b"\x7f\xff\xff\xff"),
    ],
)
def test_a_size_that_cannot_be_is_refused_before_anything_is_made_for_it(
    cls: type[Message], version: int, raw: bytes
) -> None:
    with pytest.raises(SchemaError):
        decode(cls, version, raw)
    assert peak_of_decoding(cls, version, raw) < 8 * len(raw) + SLACK


def test_tagged_fields_must_ascend_and_end_where_they_say() -> None:
    start = b"\1\0\0\0\0\1\0"
    assert decode(HeartbeatRequest, 4, start + b"\2\1\0\2\0").unknown_tagged_fields == {1: b"", 2: b""}
    for bad in (b"\2\2\0\1\0", b"\2\1\0\1\0", b"\1\1\5x", b"\1\1"):
        with pytest.raises(SchemaError):
            decode(HeartbeatRequest, 4, start + bad)
    good = encode(FetchRequest(cluster_id="abc"), 12)
    assert good.endswith(b"\1\0\4\4abc")
    with pytest.raises(SchemaError, match="cluster_id"):
        decode(FetchRequest, 12, good[:-7] + b"\1\0\3\4abc")


def test_honest_messages_of_the_largest_kind_are_within_the_budget() -> None:
    part = [OffsetDeleteRequestPartition(partition_index=i) for i in range(30_000)]
    delete = OffsetDeleteRequest(topics=[OffsetDeleteRequestTopic(name="t", partitions=part)])
    assert decode(OffsetDeleteRequest, 0, encode(delete, 0)) == delete
    parts = [
        MetadataResponsePartition(partition_index=i, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        for i in range(20_000)
    ]
    metadata = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=parts)])
    for version in (0, 1, 9, 13):
        assert decode(MetadataResponse, version, encode(metadata, version)) == metadata
