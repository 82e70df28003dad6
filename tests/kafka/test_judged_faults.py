"""A real broker behind a network and a cluster that misbehave; the checker judges what producers and groups saw.

A row is a fault of faults.md by its number. Others are in test_judged_answers.py and test_judged_programs.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.network.edits import older_versions, wrong_address
from harness.network.ports import closed_port
from harness.network.produce_answers import refuse
from harness.network.proxy import FaultProxy, Rule
from harness.real_kafka.broker import RealKafka
from harness.scenarios.faults import REQUEST_MS, UnderFault, judged_behind
from harness.seeds import new_seed
from harness.topics import new_topic
from kclient.errors import ErrorCode, KafkaError, RecordTooLargeError, SchemaError
from kclient.protocol.api_keys import ApiKeys

_APIS = (
    ApiKeys.PRODUCE,
    ApiKeys.FETCH,
    ApiKeys.OFFSET_COMMIT,
    ApiKeys.HEARTBEAT,
    ApiKeys.CONSUMER_GROUP_HEARTBEAT,
)
"""Requests of producers and members of both protocols that are made all the time."""


def broken_off(proxy: FaultProxy, running: UnderFault, end: Callable[..., Rule], rng: random.Random) -> None:
    """Each kind of request, and of answer, is broken off once, at a byte by chance."""
    rules = [end(api, rng.randrange(80), on_response=way) for api in _APIS for way in (False, True)]
    running.happened(*rules)


def resets(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    for _ in range(2):
        broken_off(proxy, running, proxy.reset, rng)


def cut_frames(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    for _ in range(2):
        broken_off(proxy, running, proxy.cut, rng)


def silence(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    """Connections from which nothing comes any more, and one that nobody needs for a while."""
    seldom = running.more_load("seldom", per_s=4, **{"connections.max.idle.ms": 100})
    running.happened(
        *(proxy.blackhole(api, on_response=way) for api in _APIS[:2] for way in (False, True)),
        *(proxy.swallow(api) for api in _APIS[2:]),
    )
    running.until(lambda: seldom.metric("connection-close-total") >= 3, "idle connections that are closed")
    sent = seldom.acked
    running.until(lambda: seldom.acked > sent, "a connection that is made again")


def a_byte_a_second(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    rules = [proxy.drip(api, 1) for api in _APIS[:3]]
    rules.append(proxy.drip(ApiKeys.PRODUCE, 1, on_response=False))
    accepted = proxy.accepted
    running.happened(*rules)
    # One of them may spoil what two rules are about.
    running.until(lambda: proxy.accepted > accepted, "a new connection")


def a_broker_that_stops_reading(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    proxy.receive_buffer_bytes = 64_000
    batches = {"batch.size": 400_000, "linger.ms": 200, "send.buffer.bytes": 65_536}
    large = running.more_load("large", per_s=100, size=20_000, **batches)
    running.until(lambda: large.acked > 0, "large records")
    # Nothing more is read from a connection while the proxy holds a request back.
    stopped = proxy.delay(ApiKeys.PRODUCE, 2 * REQUEST_MS, on_response=False, times=-1)
    running.until(lambda: proxy.unfinished > 0, "a request that is given up in its middle")
    assert stopped.hits > 0
    proxy.clear()
    large.stop()


def impossible_lengths(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    lengths = (-1, 0, 2**31 - 1, (100 << 20) + 1)
    running.happened(
        *(proxy.lie_about_length(api, length) for api in _APIS[:2] for length in lengths),
        *(proxy.lie_about_length(api, rng.choice(lengths)) for api in _APIS[2:]),
    )


def foreign_answers(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    """Answers with another request's number, answers given twice, and two that change places."""
    low_byte = 3  # of the number
    running.happened(*(proxy.corrupt(api, low_byte) for api in _APIS))
    running.happened(*(proxy.duplicate(api) for api in _APIS))
    held_up = proxy.delay(ApiKeys.PRODUCE, 50, times=4)
    running.happened(held_up, proxy.swap(ApiKeys.PRODUCE, times=2))


def an_older_broker(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    """After a break of all connections the broker knows only older versions, and after another one the newer again."""
    named: list[bool] = []

    def look(message: object) -> None:
        named.append(bool(message.topic_data[0].name))  # type: ignore[attr-defined]  # a ProduceRequest

    older = proxy.edit(ApiKeys.API_VERSIONS, older_versions, times=-1)
    proxy.answer(ApiKeys.PRODUCE, look, times=-1)
    proxy.drop_connections()
    running.until(lambda: older.hits > 0, "an older broker")
    running.until(lambda: True in named, "requests that name topics")
    running.wait_for_progress()
    proxy.clear()
    proxy.answer(ApiKeys.PRODUCE, look, times=-1)
    proxy.drop_connections()
    named.clear()
    running.until(lambda: False in named, "requests with ids of topics")


def wrong_addresses(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    wrong = proxy.edit(ApiKeys.METADATA, wrong_address(closed_port()), times=2)
    refused = proxy.answer(ApiKeys.PRODUCE, refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER), times=2)
    running.happened(refused, wrong)


def lost_answers(proxy: FaultProxy, running: UnderFault, rng: random.Random) -> None:
    for _ in range(3):
        running.happened(proxy.swallow(ApiKeys.PRODUCE, times=2))


ROWS: Mapping[str, Callable[[FaultProxy, UnderFault, random.Random], None]] = {
    "F6": resets,
    "F7": silence,
    "F8": a_byte_a_second,
    "F9": a_broker_that_stops_reading,
    "F10": cut_frames,
    "F11": impossible_lengths,
    "F12": foreign_answers,
    "F20": an_older_broker,
    "F23": wrong_addresses,
    "F24": lost_answers,
}


_TOLERATED: Mapping[str, tuple[type[KafkaError], ...]] = {
    # What no broker writes an application is told of, once; the next poll goes on.
    "F11": (SchemaError, RecordTooLargeError),
}


@pytest.mark.parametrize("row", ROWS)
def test_nothing_is_lost_doubled_out_of_order_or_committed_ahead(
    kafka: RealKafka, kafka_proxy: FaultProxy, tmp_path: Path, row: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    with judged_behind(kafka_proxy, kafka, tmp_path, topic, tolerated=_TOLERATED.get(row, ())) as running:
        ROWS[row](kafka_proxy, running, random.Random(new_seed()))
