"""NetworkReceive over a transport that gives bytes as it pleases, and with memory that it has to ask for."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.network.portions import PortionedTransport
from kclient.errors import InvalidReceiveError
from kclient.network.receive import NetworkReceive


@given(st.binary(max_size=300), st.lists(st.integers(0, 7), max_size=60))
def test_a_frame_is_received_whole_however_it_is_cut_up(payload: bytes, portions: list[int]) -> None:
    wire = PortionedTransport(len(payload).to_bytes(4, "big") + payload + b"next", portions)
    receive = NetworkReceive("peer", 1000)
    while not receive.completed:
        receive.read_from(wire)
    assert bytes(receive.payload) == payload
    assert wire.incoming == b"next"


def test_a_frame_larger_than_the_first_buffer_is_received_whole() -> None:
    payload = bytes(range(256)) * 4096
    wire = PortionedTransport(len(payload).to_bytes(4, "big") + payload, [4, 70_000, 1, 5])
    receive = NetworkReceive("peer", 1 << 24)
    while not receive.completed:
        receive.read_from(wire)
    assert bytes(receive.payload) == payload


@pytest.mark.parametrize("size", [-1, -(2**31), 104_857_601, 2**31 - 1])
def test_an_impossible_length_is_refused_and_nothing_is_allocated_for_it(size: int) -> None:
    receive = NetworkReceive("broker:9092", 104_857_600)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidReceiveError, match=str(size)):
            receive.read_from(PortionedTransport(size.to_bytes(4, "big", signed=True) + b"x" * 10))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_memory_grows_with_what_arrives_and_not_with_what_is_announced() -> None:
    receive = NetworkReceive("peer", 1 << 30)
    tracemalloc.start()
    try:
        wire = PortionedTransport((100 << 20).to_bytes(4, "big") + bytes(100_000))
        receive.read_from(wire)
        assert not receive.completed
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_a_frame_larger_than_the_first_memory_arrives_whole() -> None:
    contents = random.Random(1).randbytes(9_000_000)
    receive = NetworkReceive("peer", 1 << 30)
    wire = PortionedTransport(len(contents).to_bytes(4, "big") + contents)
    while not receive.completed:
        receive.read_from(wire)
    assert receive.payload == contents


def test_a_frame_that_is_held_is_not_written_over_by_the_next_ones() -> None:
    held = []
    for i in range(20):
        receive = NetworkReceive("peer", 1 << 30)
        size = 70_000 * (1 + i % 3)
        receive.read_from(PortionedTransport(size.to_bytes(4, "big") + bytes([i]) * size))
        assert receive.completed
        if i % 2:
            held.append((i, size, receive.payload))
    assert all(payload == bytes([i]) * size for i, size, payload in held)


def test_an_unlimited_receive_takes_any_length_but_a_negative_one() -> None:
    NetworkReceive("peer", -1).read_from(PortionedTransport((1 << 30).to_bytes(4, "big")))
    with pytest.raises(InvalidReceiveError):
        NetworkReceive("peer", -1).read_from(PortionedTransport(b"\xff\xff\xff\xff"))


def test_a_stranger_is_recognised_by_its_first_bytes() -> None:
    with pytest.raises(InvalidReceiveError, match="speaks HTTP"):
        NetworkReceive("peer", 1000).read_from(PortionedTransport(b"HTTP/1.1 400 Bad Request"))
    with pytest.raises(InvalidReceiveError, match="speaks TLS"):
        NetworkReceive("peer", 1000).read_from(PortionedTransport(b"\x15\x03\x03\x00\x02"))


def test_an_empty_frame_is_a_frame() -> None:
    receive = NetworkReceive("peer", 1000)
    receive.read_from(PortionedTransport(bytes(4)))
    assert receive.completed
    assert bytes(receive.payload) == b""


def test_a_payload_cannot_be_written_to() -> None:
    receive = NetworkReceive("peer", 1000)
    receive.read_from(PortionedTransport(b"\0\0\0\1x"))
    with pytest.raises(TypeError):
        receive.payload[0] = 0


class Memory:
    """Has room for `room` bytes, and notes what it is asked."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked: list[tuple[int, int]] = []
        self.taken: list[int] = []

    def hold(self, size: int, whole: int) -> bool:
        self.asked.append((size, whole))
        return size <= self.room

    def take(self, size: int) -> None:
        self.taken.append(size)


def frame(size: int) -> bytes:
    return size.to_bytes(4, "big") + random.Random(size).randbytes(size)


def test_without_memory_the_frame_waits_in_the_socket_and_goes_on_when_there_is_some() -> None:
    memory = Memory(room=0)
    wire = PortionedTransport(frame(1000))
    receive = NetworkReceive("peer", 10_000, memory)
    assert receive.read_from(wire) == 4
    assert receive.started
    assert receive.starved
    assert len(wire.incoming) == 1000
    memory.room = 1000
    assert receive.read_from(wire) == 1000
    assert receive.completed
    assert not receive.starved
    assert memory.asked == [(1000, 1000)] * 2


def test_twice_what_has_arrived_is_asked_for_and_no_more_than_the_frame() -> None:
    size = 500_000
    memory = Memory(room=size)
    receive = NetworkReceive("peer", 1 << 20, memory)
    receive.read_from(PortionedTransport(frame(size)))
    assert receive.completed
    assert [asked for asked, _ in memory.asked] == [65_536, 131_072, 262_144, 500_000]
    assert receive.payload == frame(size)[4:]


def test_a_size_that_is_likely_is_asked_for_at_once() -> None:
    memory = Memory(room=1 << 20)
    receive = NetworkReceive("peer", 1 << 20, memory, 300_000)
    receive.read_from(PortionedTransport(frame(400_000)))
    assert [asked for asked, _ in memory.asked] == [300_000, 400_000]


def test_bytes_that_came_ahead_are_accounted_for_without_asking() -> None:
    memory = Memory(room=0)
    receive = NetworkReceive("peer", 1 << 20, memory)
    whole = frame(100)
    with receive.ahead(1000) as view:
        view[:44] = whole[:44]
    receive.advance(44)
    assert memory.taken == [40]
    assert receive.arrived == 44
    assert not receive.completed
    memory.room = 100
    receive.read_from(PortionedTransport(whole[44:]))
    assert bytes(receive.payload) == whole[4:]


def test_what_came_ahead_is_never_more_than_the_frame_may_have() -> None:
    """The rest of a frame that fits into the memory ahead needs no other, and nothing behind it is taken."""
    whole = frame(100)
    receive = NetworkReceive("peer", 1 << 20)
    with receive.ahead(1000) as view:
        view[:10] = whole[:10]
    receive.advance(10)
    wire = PortionedTransport(whole[10:] + b"next")
    receive.read_from(wire)
    assert bytes(receive.payload) == whole[4:]
    assert wire.incoming == b"next"


@pytest.mark.parametrize("came", [0, 1, 3, 4])
def test_a_length_that_comes_ahead_in_part_is_gone_on_with(came: int) -> None:
    whole = frame(100)
    receive = NetworkReceive("peer", 1 << 20)
    with receive.ahead(1000) as view:
        view[:came] = whole[:came]
    receive.advance(came)
    assert receive.started == (came > 0)
    assert receive.size == (100 if came == 4 else -1)
    receive.read_from(PortionedTransport(whole[came:]))
    assert bytes(receive.payload) == whole[4:]


def test_an_impossible_length_that_came_ahead_is_refused() -> None:
    receive = NetworkReceive("peer", 1000)
    with receive.ahead(5000) as view:
        view[:8] = (1001).to_bytes(4, "big") + b"what"
    with pytest.raises(InvalidReceiveError) as raised:
        receive.advance(8)
    assert (raised.value.size, raised.value.limit) == (1001, 1000)


def test_the_rest_is_offered_only_where_it_is_much() -> None:
    receive = NetworkReceive("peer", 1 << 20)
    assert receive.rest() is None
    whole = frame(100_000)
    wire = PortionedTransport(whole[:20_000])
    receive.read_from(wire)
    rest = receive.rest()
    assert rest is not None
    with rest:
        count = len(rest)
        rest[:] = whole[20_000 : 20_000 + count]
    receive.advance(count)
    assert receive.rest() is None
    receive.read_from(PortionedTransport(whole[20_000 + count :]))
    assert bytes(receive.payload) == whole[4:]
