"""Arguments that cannot be right, for every public method of every client."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from harness.network.scripted_broker import ScriptedBroker
from harness.scenarios.wrong_admin_arguments import ADMIN_CASES, Invoke
from harness.scenarios.wrong_values import VALUES
from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import (
    InvalidGroupIdError,
    InvalidTopicError,
    RecordTooLargeError,
    SerializationError,
)
from kclient.producer import KafkaProducer, ProducerRecord
from kclient.protocol.api_keys import ApiKeys

TP = TopicPartition("t", 0)

# What a client does by itself.
_HOUSEKEEPING = {ApiKeys.API_VERSIONS, ApiKeys.METADATA, ApiKeys.INIT_PRODUCER_ID, ApiKeys.FIND_COORDINATOR}


class Clients:
    """A client of each kind at a broker that answers nothing but housekeeping."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.producer: KafkaProducer[Any, Any] = KafkaProducer(bootstrap_servers=broker.bootstrap)
        self.consumer: KafkaConsumer[Any, Any] = KafkaConsumer(
            bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
        )
        self.admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)

    def sent(self) -> list[ApiKeys | int]:
        """Requests that were made for an application."""
        keys = [header.api_key for header, _ in list(self.broker.requests)]
        return [key for key in keys if key not in _HOUSEKEEPING]

    def close(self) -> None:
        for client in (self.producer, self.consumer, self.admin):
            client.close(timeout_ms=0)


Call = Callable[[Clients, Any], object]
Case = tuple[str, Call, str, type[Exception] | tuple[type[Exception], ...], list[Any]]

_TABLE = pa.table({"value": [b"v"]})
_WRONG = (TypeError, ValueError)
_TIMEOUTS: list[Any] = [-1, 1.5, math.nan, math.inf, "100", True, b"1", []]
_TOPICS: list[Any] = ["", ".", "..", "a/b", "a b", "x" * 250, "t\n", "é"]
_NO_STR: list[Any] = [None, 5, b"t", 1.5, ["t"]]
_PARTITIONS: list[Any] = [
    None,
    5,
    "t",
    ("t", 0),
    TopicPartition("t", -1),
    TopicPartition("t", 2**31),
    TopicPartition("t", True),
    TopicPartition("t", "0"),  # type: ignore[arg-type]
    TopicPartition("t", math.nan),  # type: ignore[arg-type]
]
_BAD_TOPIC_PARTITIONS: list[Any] = [TopicPartition(topic, 0) for topic in _TOPICS]
_ALL_PARTITIONS = [*_PARTITIONS, *_BAD_TOPIC_PARTITIONS]
_COLLECTIONS: list[Any] = [
    5,
    "t",
    b"t",
    TP,
    1.5,
    *([each] for each in _ALL_PARTITIONS),
    [[TP]],
    [{}],
    [TopicPartition("t", [])],  # type: ignore[arg-type]
]
_WRONG_PARTITIONS = (*_WRONG, InvalidTopicError)


def timeouts(what: str, call: Call) -> Case:
    return what, call, "timeout_ms", _WRONG, _TIMEOUTS


def _close_as(clients: Clients, operation: Any) -> None:
    clients.consumer.close(group_membership_operation=operation)


def of_admin(call: Invoke) -> Call:
    return lambda clients, value: call(clients.admin, value)


PRODUCER: list[Case] = [
    (
        "update_credentials",
        lambda c, v: c.producer.update_credentials(v, "p"),
        "username",
        TypeError,
        _NO_STR,
    ),
    (
        "update_credentials",
        lambda c, v: c.producer.update_credentials("u", v),
        "password",
        TypeError,
        _NO_STR,
    ),
    ("send", lambda b, x: b.producer.send(x, b"v"), "topic", InvalidTopicError, _TOPICS),
    ("send", lambda b, x: b.producer.send(x, b"v"), "topic", TypeError, _NO_STR),
    ("send", lambda b, x: b.producer.send(ProducerRecord(x, b"v")), "topic", InvalidTopicError, _TOPICS),
    (
        "send",
        lambda b, x: b.producer.send("t", b"v", partition=x),
        "partition",
        _WRONG,
        [-1, 2**31, 2**63, "0", 0.0, math.nan, True, []],
    ),
    (
        "send",
        lambda b, x: b.producer.send("t", b"v", timestamp_ms=x),
        "timestamp_ms",
        _WRONG,
        [-1, -2, 2**63, 1.5, math.nan, "1", True],
    ),
    (
        "send",
        lambda b, x: b.producer.send("t", b"v", headers=x),
        "headers",
        TypeError,
        [
            5,
            "kv",
            b"kv",
            {"k": b"v"},
            [("k",)],
            ["kv"],
            [(None, b"v")],
            [(b"k", b"v")],
            [("k", "v")],
            [("k", 5)],
        ],
    ),
    (
        "send",
        lambda b, x: b.producer.send("t", b"v", on_delivery=x),
        "on_delivery",
        TypeError,
        [5, "print", []],
    ),
    ("send", lambda b, x: b.producer.send("t", x), "value", SerializationError, ["v", 5, 1.5, [], {}]),
    ("send", lambda b, x: b.producer.send("t", b"v", key=x), "key", SerializationError, ["k", 5, 1.5, []]),
    (
        "send",
        lambda b, x: b.producer.send("t", b"v" * x),
        "max.request.size",
        RecordTooLargeError,
        [1 << 20, 64 << 20],
    ),
    ("send_many", lambda b, x: b.producer.send_many(x, [b"v"]), "topic", InvalidTopicError, _TOPICS),
    ("send_many", lambda b, x: b.producer.send_many(x, [b"v"]), "topic", TypeError, _NO_STR),
    ("send_many", lambda b, x: b.producer.send_many("t", x), "values", TypeError, [None, 5, "v", b"v", 1.5]),
    (
        "send_many",
        lambda b, x: b.producer.send_many("t", x),
        "value",
        SerializationError,
        [["v"], [b"v", 5], [[]]],
    ),
    (
        "send_many",
        lambda b, x: b.producer.send_many("t", [b"v"], keys=x),
        "keys",
        _WRONG,
        [5, "k", b"k", [], [b"k", b"k"]],
    ),
    (
        "send_many",
        lambda b, x: b.producer.send_many("t", [b"v"], partition=x),
        "partition",
        _WRONG,
        [-1, "0", 0.0, math.nan, True, []],
    ),
    (
        "send_arrow",
        lambda b, x: b.producer.send_arrow(x, topic="t"),
        "data",
        _WRONG,
        [None, 5, "v", [b"v"]],
    ),
    (
        "send_arrow",
        lambda b, x: b.producer.send_arrow(_TABLE, topic=x),
        "topic",
        InvalidTopicError,
        _TOPICS,
    ),
    ("send_arrow", lambda b, x: b.producer.send_arrow(_TABLE, topic=x), "topic", TypeError, [5, b"t", ["t"]]),
    timeouts("flush", lambda b, x: b.producer.flush(x)),
    timeouts("close", lambda b, x: b.producer.close(x)),
    ("partitions_for", lambda b, x: b.producer.partitions_for(x), "topic", InvalidTopicError, _TOPICS),
    ("partitions_for", lambda b, x: b.producer.partitions_for(x), "topic", TypeError, _NO_STR),
]

_COUNTS: list[Any] = [0, -1, 1.5, math.nan, "1", True, []]
_OFFSETS: list[Any] = [-1, 2**63, 1.5, math.nan, "1", None, True, b"1"]
_OFFSET_MAPS: list[Any] = [
    5,
    "t",
    [TP],
    {"t": 1},
    {("t", 0): 1},
    *({TP: each} for each in _OFFSETS),
    *({each: 1} for each in _ALL_PARTITIONS if each is not None),
]

PRODUCER += [
    (
        "send_offsets_to_transaction",
        lambda c, v: c.producer.send_offsets_to_transaction(v, ConsumerGroupMetadata("g")),
        "offsets",
        _WRONG_PARTITIONS,
        [None, *_OFFSET_MAPS],
    ),
    (
        "send_offsets_to_transaction",
        lambda c, v: c.producer.send_offsets_to_transaction({TP: 1}, v),
        "group_metadata",
        TypeError,
        [None, "g", ("g", 1, "m"), {"group_id": "g"}],
    ),
]

CONSUMER: list[Case] = [
    (
        "update_credentials",
        lambda c, v: c.consumer.update_credentials(v, "p"),
        "username",
        TypeError,
        _NO_STR,
    ),
    (
        "update_credentials",
        lambda c, v: c.consumer.update_credentials("u", v),
        "password",
        TypeError,
        _NO_STR,
    ),
    (
        "subscribe",
        lambda b, x: b.consumer.subscribe(x),
        "topics",
        (TypeError, InvalidTopicError),
        [5, None, "t", b"t", [5], [None], [["t"]], [b"t"], *([each] for each in _TOPICS)],
    ),
    (
        "subscribe",
        lambda b, x: b.consumer.subscribe(["t"], x),
        "listener",
        TypeError,
        [5, "listener", lambda partitions: None, object],
    ),
    ("assign", lambda b, x: b.consumer.assign(x), "partitions", _WRONG_PARTITIONS, [None, *_COLLECTIONS]),
    timeouts("poll", lambda b, x: b.consumer.poll(x)),
    timeouts("poll_columns", lambda b, x: b.consumer.poll_columns(x)),
    ("poll_columns", lambda b, x: b.consumer.poll_columns(0, x), "max_records", _WRONG, _COUNTS),
    timeouts("poll_arrow", lambda b, x: b.consumer.poll_arrow(x)),
    ("poll_arrow", lambda b, x: b.consumer.poll_arrow(0, max_records=x), "max_records", _WRONG, _COUNTS),
    (
        "poll_arrow",
        lambda b, x: b.consumer.poll_arrow(0, binary=x),
        "binary",
        _WRONG,
        ["", "bytes", None, 5],
    ),
    ("commit_sync", lambda b, x: b.consumer.commit_sync(x), "offsets", _WRONG_PARTITIONS, _OFFSET_MAPS),
    timeouts("commit_sync", lambda b, x: b.consumer.commit_sync({TP: 1}, timeout_ms=x)),
    ("commit_async", lambda b, x: b.consumer.commit_async(x), "offsets", _WRONG_PARTITIONS, _OFFSET_MAPS),
    (
        "commit_async",
        lambda b, x: b.consumer.commit_async({TP: 1}, x),
        "on_commit",
        TypeError,
        [5, "print", []],
    ),
    (
        "committed",
        lambda b, x: b.consumer.committed(x),
        "partitions",
        _WRONG_PARTITIONS,
        [None, *_COLLECTIONS],
    ),
    timeouts("committed", lambda b, x: b.consumer.committed([TP], timeout_ms=x)),
    ("seek", lambda b, x: b.consumer.seek(x, 0), "tp", _WRONG_PARTITIONS, _ALL_PARTITIONS),
    ("seek", lambda b, x: b.consumer.seek(TP, x), "offset", _WRONG, _OFFSETS),
    (
        "seek_to_beginning",
        lambda b, x: b.consumer.seek_to_beginning(x),
        "partitions",
        _WRONG_PARTITIONS,
        _COLLECTIONS,
    ),
    ("seek_to_end", lambda b, x: b.consumer.seek_to_end(x), "partitions", _WRONG_PARTITIONS, _COLLECTIONS),
    ("position", lambda b, x: b.consumer.position(x), "tp", _WRONG_PARTITIONS, _ALL_PARTITIONS),
    timeouts("position", lambda b, x: b.consumer.position(TP, timeout_ms=x)),
    ("pause", lambda b, x: b.consumer.pause(x), "partitions", _WRONG_PARTITIONS, [None, *_COLLECTIONS]),
    ("resume", lambda b, x: b.consumer.resume(x), "partitions", _WRONG_PARTITIONS, [None, *_COLLECTIONS]),
    (
        "beginning_offsets",
        lambda b, x: b.consumer.beginning_offsets(x),
        "partitions",
        _WRONG_PARTITIONS,
        [None, *_COLLECTIONS],
    ),
    timeouts("beginning_offsets", lambda b, x: b.consumer.beginning_offsets([TP], timeout_ms=x)),
    (
        "end_offsets",
        lambda b, x: b.consumer.end_offsets(x),
        "partitions",
        _WRONG_PARTITIONS,
        [None, *_COLLECTIONS],
    ),
    timeouts("end_offsets", lambda b, x: b.consumer.end_offsets([TP], timeout_ms=x)),
    (
        "offsets_for_times",
        lambda b, x: b.consumer.offsets_for_times(x),
        "timestamps",
        _WRONG_PARTITIONS,
        [None, *_OFFSET_MAPS],
    ),
    timeouts("offsets_for_times", lambda b, x: b.consumer.offsets_for_times({TP: 1}, timeout_ms=x)),
    ("current_lag", lambda b, x: b.consumer.current_lag(x), "tp", _WRONG_PARTITIONS, _ALL_PARTITIONS),
    ("partitions_for", lambda b, x: b.consumer.partitions_for(x), "topic", InvalidTopicError, _TOPICS),
    ("partitions_for", lambda b, x: b.consumer.partitions_for(x), "topic", TypeError, _NO_STR),
    timeouts("partitions_for", lambda b, x: b.consumer.partitions_for("t", timeout_ms=x)),
    timeouts("list_topics", lambda b, x: b.consumer.list_topics(timeout_ms=x)),
    ("enforce_rebalance", lambda b, x: b.consumer.enforce_rebalance(x), "reason", TypeError, _NO_STR),
    timeouts("close", lambda b, x: b.consumer.close(x)),
    ("close", _close_as, "group_membership_operation", TypeError, [None, 5, "leave_group", True, []]),
]

_NAMES: list[Any] = [5, None, "t", b"t", [5], [None], [["t"]], [b"t"], [{}], *([each] for each in _TOPICS)]
_GROUPS: list[Any] = [5, None, "g", b"g", [5], [None], [["g"]], [b"g"], [""]]
_WORDS: list[Any] = [5, None, "Stable", b"Stable", [5], [None], [[]]]
_FLAGS: list[Any] = [None, 0, 1, "false", []]
_WRONG_NAMES = (TypeError, InvalidTopicError)

ADMIN: list[Case] = [
    ("update_credentials", lambda c, v: c.admin.update_credentials(v, "p"), "username", TypeError, _NO_STR),
    ("update_credentials", lambda c, v: c.admin.update_credentials("u", v), "password", TypeError, _NO_STR),
    (
        "create_topics",
        lambda b, x: b.admin.create_topics(x),
        "new_topics",
        _WRONG_NAMES,
        [*_NAMES, NewTopic("t", configs={}), *([NewTopic(each)] for each in _TOPICS), [NewTopic(5)]],  # type: ignore[arg-type]
    ),
    (
        "create_topics",
        lambda b, x: b.admin.create_topics(["t"], validate_only=x),
        "validate_only",
        TypeError,
        _FLAGS,
    ),
    timeouts("create_topics", lambda b, x: b.admin.create_topics(["t"], timeout_ms=x)),
    (
        "NewTopic",
        lambda b, x: NewTopic("t", num_partitions=x),
        "num_partitions",
        _WRONG,
        [0, -1, 2**31, "3", 1.5, math.nan, True],
    ),
    (
        "NewTopic",
        lambda b, x: NewTopic("t", replication_factor=x),
        "replication_factor",
        _WRONG,
        [0, -1, 2**15, "3", 1.5, math.nan, True],
    ),
    (
        "NewTopic",
        lambda b, x: NewTopic("t", replica_assignments=x),
        "replica_assignments",
        TypeError,
        [5, [[1]], {"0": [1]}, {0: 1}, {0: ["1"]}, {0: "1"}, {0: [True]}],
    ),
    (
        "NewTopic",
        lambda b, x: NewTopic("t", configs=x),
        "configs",
        TypeError,
        [5, None, ["a=b"], {"a": 5}, {5: "b"}, {"a": None}],
    ),
    ("delete_topics", lambda b, x: b.admin.delete_topics(x), "names", _WRONG_NAMES, _NAMES),
    timeouts("delete_topics", lambda b, x: b.admin.delete_topics(["t"], timeout_ms=x)),
    (
        "list_topics",
        lambda b, x: b.admin.list_topics(include_internal=x),
        "include_internal",
        TypeError,
        _FLAGS,
    ),
    timeouts("list_topics", lambda b, x: b.admin.list_topics(timeout_ms=x)),
    ("describe_topics", lambda b, x: b.admin.describe_topics(x), "names", _WRONG_NAMES, _NAMES),
    timeouts("describe_topics", lambda b, x: b.admin.describe_topics(["t"], timeout_ms=x)),
    timeouts("describe_cluster", lambda b, x: b.admin.describe_cluster(timeout_ms=x)),
    (
        "list_offsets",
        lambda b, x: b.admin.list_offsets(x),
        "specs",
        _WRONG_PARTITIONS,
        [
            5,
            None,
            [TP],
            {"t": 1},
            *({TP: each} for each in (-6, 2**63, "latest", 1.5, math.nan, None, True)),
            *({each: OffsetSpec.LATEST} for each in _ALL_PARTITIONS if each is not None),
        ],
    ),
    (
        "list_offsets",
        lambda b, x: b.admin.list_offsets({TP: 1}, isolation_level=x),
        "isolation_level",
        ValueError,
        ["", "committed", "READ_COMMITTED", None, 1, []],
    ),
    timeouts("list_offsets", lambda b, x: b.admin.list_offsets({TP: 1}, timeout_ms=x)),
    ("list_groups", lambda b, x: b.admin.list_groups(states=x), "states", TypeError, _WORDS),
    ("list_groups", lambda b, x: b.admin.list_groups(types=x), "types", TypeError, _WORDS),
    timeouts("list_groups", lambda b, x: b.admin.list_groups(timeout_ms=x)),
    (
        "describe_groups",
        lambda b, x: b.admin.describe_groups(x),
        "group_ids",
        (TypeError, InvalidGroupIdError),
        _GROUPS,
    ),
    timeouts("describe_groups", lambda b, x: b.admin.describe_groups(["g"], timeout_ms=x)),
    (
        "delete_groups",
        lambda b, x: b.admin.delete_groups(x),
        "group_ids",
        (TypeError, InvalidGroupIdError),
        _GROUPS,
    ),
    timeouts("delete_groups", lambda b, x: b.admin.delete_groups(["g"], timeout_ms=x)),
    (
        "list_consumer_group_offsets",
        lambda b, x: b.admin.list_consumer_group_offsets(x),
        "group_id",
        (TypeError, InvalidGroupIdError),
        ["", *_NO_STR],
    ),
    (
        "list_consumer_group_offsets",
        lambda b, x: b.admin.list_consumer_group_offsets("g", x),
        "partitions",
        _WRONG_PARTITIONS,
        _COLLECTIONS,
    ),
    timeouts(
        "list_consumer_group_offsets", lambda b, x: b.admin.list_consumer_group_offsets("g", timeout_ms=x)
    ),
    timeouts("close", lambda b, x: b.admin.close(x)),
    *(
        (what, of_admin(call), argument, errors, values)
        for what, call, argument, errors, values in ADMIN_CASES
    ),
]

CASES: list[tuple[type[Any] | None, Case]] = [
    *((KafkaProducer, case) for case in PRODUCER),
    *((KafkaConsumer, case) for case in CONSUMER),
    *((KafkaAdminClient, case) for case in ADMIN),
    *((None, case) for case in VALUES),
]
