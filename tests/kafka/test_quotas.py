"""Quotas and features on a real Kafka and on the embedded broker: the same requests, the same answers."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from harness.broker.wire import Wire, batch
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing, tool
from harness.requirements import skip_if
from harness.waiting import wait_until
from kclient.admin import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    KafkaAdminClient,
    NewTopic,
)
from kclient.broker import EmbeddedKafka
from kclient.errors import Errors, ThrottlingQuotaExceededError
from kclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

EXACT, DEFAULT, SPECIFIED = range(3)
PRODUCE, FETCH, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
Entry = tuple[Mapping[str, str | None], Mapping[str, float | None]]

ALTERATIONS: dict[str, list[Entry]] = {
    "of a user": [({"user": "a"}, {PRODUCE: 1000, FETCH: 2000, PERCENT: 12.5, MUTATIONS: 0.5})],
    "a value taken away": [({"user": "a"}, {FETCH: None, "no_such_quota": None})],
    "what is not there taken away": [({"user": "nobody"}, {FETCH: None})],
    "nothing at all": [({"user": "nobody"}, {})],
    "no entry": [],
    "zero": [({"user": "a"}, {PRODUCE: 0})],
    "negative": [({"user": "a"}, {PRODUCE: -1})],
    "a fraction": [({"user": "a"}, {PRODUCE: 1.5})],
    "nearly no fraction": [({"user": "a"}, {PRODUCE: 1.0000001})],
    "above a long": [({"user": "a"}, {PRODUCE: 1e19})],
    "the largest long": [({"user": "b"}, {PRODUCE: 2.0**63})],
    "an unknown quota": [({"user": "a"}, {"no_such_quota": 1})],
    "a quota of addresses": [({"user": "a"}, {CONNECTIONS: 1})],
    "an address": [({"ip": "1.2.3.4"}, {CONNECTIONS: 10})],
    "the default address": [({"ip": None}, {CONNECTIONS: 10_000})],
    "a host": [({"ip": "localhost"}, {CONNECTIONS: 10_000})],
    "an address of IPv6": [({"ip": "::1"}, {CONNECTIONS: 10_000})],
    "a host that is unknown": [({"ip": "no.such.host.invalid"}, {CONNECTIONS: 10})],
    "an address with a quota of users": [({"ip": "1.2.3.4"}, {PRODUCE: 10})],
    "a fraction of a connection": [({"ip": "1.2.3.4"}, {CONNECTIONS: 1.5})],
    "more connections than an int": [({"ip": "1.2.3.4"}, {CONNECTIONS: 2.0**31})],
    "an address and a user": [({"ip": "1.2.3.4", "user": "a"}, {CONNECTIONS: 10})],
    "an empty name": [({"user": ""}, {PRODUCE: 1})],
    "nobody": [({}, {PRODUCE: 1})],
    "an unknown type": [({"group": "g"}, {PRODUCE: 1})],
    "a known and an unknown type": [({"user": "a", "group": "g"}, {PRODUCE: 1})],
    "a user's clients": [({"user": "a", "client-id": None}, {PRODUCE: 1})],
    "everybody": [({"user": None, "client-id": None}, {FETCH: 1e9})],
    "one good and one bad value": [({"user": "c"}, {PRODUCE: 1, FETCH: -1})],
    "one good and one bad entity": [({"user": "d"}, {PRODUCE: 1}), ({"user": "e"}, {PRODUCE: -1})],
    "an entity twice": [({"user": "f"}, {PRODUCE: 1}), ({"user": "f"}, {FETCH: 1})],
    "an infinite number of bytes": [({"user": "a"}, {PRODUCE: math.inf})],
}
FILTERS: dict[str, tuple[list[tuple[str, int, str | None]], bool]] = {
    "all": ([], False),
    "strictly nothing": ([], True),
    "users": ([("user", SPECIFIED, None)], False),
    "users alone": ([("user", SPECIFIED, None)], True),
    "a user": ([("user", EXACT, "a")], False),
    "a user who has none": ([("user", EXACT, "nobody")], False),
    "the default user": ([("user", DEFAULT, None)], False),
    "a user's clients": ([("user", EXACT, "a"), ("client-id", SPECIFIED, None)], True),
    "addresses": ([("ip", SPECIFIED, None)], True),
    "exactly nothing": ([("user", EXACT, None)], False),
    "a default with a name": ([("user", DEFAULT, "a")], False),
    "all with a name": ([("user", SPECIFIED, "a")], False),
    "an unknown match": ([("user", 3, None)], False),
    "a negative match": ([("user", -1, None)], False),
    "an unknown type": ([("group", SPECIFIED, None)], False),
    "an empty type": ([("", SPECIFIED, None)], False),
    "a type twice": ([("user", SPECIFIED, None), ("user", EXACT, "a")], False),
    "addresses and users": ([("ip", SPECIFIED, None), ("user", EXACT, "a")], False),
}
UPDATES = {
    "an unknown feature": [("no.such.feature", 1, 1)],
    "an unknown feature's end": [("no.such.feature", 0, 1)],
    "the format of kclient": [("kclient.metadata", 2, 1)],
    "a negative level": [("metadata.version", -1, 1)],
    "a level of the future": [("metadata.version", 1000, 1)],
    "a level of the past": [("metadata.version", 1, 1)],
    "a level of the past by force": [("metadata.version", 1, 3)],
    "an unknown kind of change": [("metadata.version", 25, 9)],
    "nothing": [],
}


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedKafka]:
    skip_if(missing())
    with EmbeddedKafka({"quota.window.num": "3"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def brokers(embedded: EmbeddedKafka) -> Iterator[list[str]]:
    """The servers of a real Kafka of its own, and of the embedded broker."""
    with RealKafka(settings={"quota.window.num": "3"}) as real:
        yield [real.bootstrap_servers, embedded.bootstrap_servers]


def on_both(brokers: list[str], ask: Callable[[Wire], Any]) -> list[Any]:
    answers = []
    for servers in brokers:
        with Wire(servers) as wire:
            answers.append(ask(wire))
    return answers


def entry(entity: Mapping[str, str | None], changes: Mapping[str, float | None]) -> Any:
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[
            OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
            for key, value in changes.items()
        ],
    )


def altered(wire: Wire, entries: list[Entry], *, validate_only: bool = False) -> dict[Any, Any]:
    request = AlterClientQuotasRequest(
        entries=[entry(*each) for each in entries], validate_only=validate_only
    )
    return {
        frozenset((part.entity_type, part.entity_name) for part in result.entity): (
            result.error_code,
            result.error_message is None,
        )
        for result in wire.ask(request, 1).entries
    }


def described(wire: Wire, components: list[tuple[str, int, str | None]], strict: bool) -> Any:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    answer = wire.ask(request, 1)
    if answer.entries is None:
        return answer.error_code
    return {
        frozenset((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries
    }


def test_alterations_and_filters_are_answered_alike(brokers: list[str]) -> None:
    for name, entries in ALTERATIONS.items():
        for check in (True, False):
            real, ours = on_both(brokers, lambda wire: altered(wire, entries, validate_only=check))  # noqa: B023
            assert ours == real, name
    with Wire(brokers[1]) as wire:
        all_of_them = described(wire, [], strict=False)
    with Wire(brokers[0]) as wire:
        # A real broker describes what it has replayed, which may be a moment behind.
        wait_until(lambda: described(wire, [], strict=False) == all_of_them, 10)
    for name, (components, strict) in FILTERS.items():
        real, ours = on_both(brokers, lambda wire: described(wire, components, strict))  # noqa: B023
        assert ours == real, name


def test_features_are_refused_alike(brokers: list[str]) -> None:
    for name, updates in UPDATES.items():
        for version in (1, 2):
            request = UpdateFeaturesRequest(
                feature_updates=[
                    FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
                    for feature, level, kind in updates
                ],
                validate_only=True,
            )
            real, ours = on_both(brokers, lambda wire: wire.ask(request, version))  # noqa: B023
            assert ours.error_code == real.error_code, name
            assert ours.results == real.results == []


def set_quota(servers: str, client_id: str, key: str, value: float) -> None:
    """Set a quota, and one that is set after it, whose effect shows that both have come to the broker."""
    marker = f"{client_id}-marker"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        for name, quotas in ((client_id, {key: value}), (marker, {"request_percentage": 0.000001})):
            # The level above all others, which tests here set as well.
            entity = ClientQuotaEntity({"user": "ANONYMOUS", "client-id": name})
            admin.alter_client_quotas([ClientQuotaAlteration(entity, quotas)])

    def is_held_back() -> bool:
        with Wire(servers, client_id=marker) as wire:
            return bool(wire.ask(ListGroupsRequest(), 3).throttle_time_ms > 0)

    wait_until(is_held_back, 10)


def new_topic(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def produce(wire: Wire, topic: str, count: int) -> int:
    """Write records of 1000 bytes; returns for how long the client is held back."""
    data = [PartitionProduceData(index=0, records=batch(*[b"x" * 1000] * count))]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    answer = wire.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    throttle_ms = answer.throttle_time_ms
    assert isinstance(throttle_ms, int)
    return throttle_ms


def fetch(wire: Wire, topic: str) -> Any:
    wanted = [FetchPartition(partition=0, partition_max_bytes=1 << 20)]
    topics = [FetchTopic(topic=topic, partitions=wanted)]
    return wire.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics), 12)


def leader_is_there(wire: Wire, topic: str) -> bool:
    return bool(fetch(wire, topic).responses[0].partitions[0].error_code == 0)


def test_a_producer_is_held_back_below_its_quota_by_both(brokers: list[str]) -> None:
    for servers in brokers:
        name = f"t-{uuid.uuid4().hex[:12]}"
        with Wire(servers) as wire:
            assert wire.ask(new_topic(name, 1), 7).topics[0].error_code == 0
            wait_until(lambda: leader_is_there(wire, name), 30)  # noqa: B023
        set_quota(servers, name, "producer_byte_rate", 20_000)
        with Wire(servers, client_id=name) as wire:
            began = time.monotonic()
            held = [produce(wire, name, 10) for _ in range(10)]
            elapsed_s = time.monotonic() - began
        assert (held[0], max(held) > 0) == (0, True)
        # The quota of two windows is let pass at once, and the last request is held back after its answer.
        assert elapsed_s * 20_000 * 1.1 >= 90_000 - 2 * 20_000


def test_a_throttled_fetch_looks_alike(brokers: list[str]) -> None:
    for servers in brokers:
        name = f"t-{uuid.uuid4().hex[:12]}"
        with Wire(servers) as wire:
            assert wire.ask(new_topic(name, 1), 7).topics[0].error_code == 0
            wait_until(lambda: leader_is_there(wire, name), 30)  # noqa: B023
            for _ in range(15):
                produce(wire, name, 1)
        set_quota(servers, name, "consumer_byte_rate", 10_000)
        with Wire(servers, client_id=name) as wire:
            first, second = fetch(wire, name), fetch(wire, name)
            assert first.throttle_time_ms == 0
            assert first.responses[0].partitions[0].records
            assert second.throttle_time_ms > 0
            assert (second.error_code, second.session_id, second.responses) == (0, 0, [])


def test_mutations_above_their_quota_are_refused_alike(brokers: list[str]) -> None:
    for servers in brokers:
        name = f"m-{uuid.uuid4().hex[:12]}"
        set_quota(servers, name, "controller_mutation_rate", 1)
        with Wire(servers, client_id=name) as wire:
            # 11 tokens at first, and 20 more than there are.
            allowed = wire.ask(new_topic(f"{name}-1", 31), 7)
            assert (allowed.topics[0].error_code, allowed.throttle_time_ms) == (0, 0)
            refused = wire.ask(new_topic(f"{name}-2", 1), 7)
            assert refused.topics[0].error_code == Errors.THROTTLING_QUOTA_EXCEEDED
            assert 0 < refused.throttle_time_ms <= 20_000


def test_the_admin_client_waits_for_the_quota_of_mutations_or_tells_of_it(brokers: list[str]) -> None:
    for servers in brokers:
        name = f"w-{uuid.uuid4().hex[:12]}"
        set_quota(servers, name, "controller_mutation_rate", 1)
        with KafkaAdminClient({"bootstrap.servers": servers, "client.id": name}) as admin:
            # 11 tokens at first, and 3 more than there are.
            admin.create_topics([NewTopic(f"{name}-1", 14)])
            with pytest.raises(ThrottlingQuotaExceededError) as raised:
                admin.create_topics([f"{name}-2"], retry_on_quota_violation=False)
            assert 0 < raised.value.throttle_time_ms <= 3000
            assert f"{name}-2" in admin.create_topics([f"{name}-2"])
            assert admin.delete_topics([f"{name}-1", f"{name}-2"]) == {f"{name}-1": None, f"{name}-2": None}


def configs(servers: str, *arguments: str) -> str:
    return tool("kafka.admin.ConfigCommand", "--bootstrap-server", servers, *arguments)


def test_javas_tool_sets_and_describes_quotas_of_the_embedded_broker(embedded: EmbeddedKafka) -> None:
    servers = embedded.bootstrap_servers
    user = ("--entity-type", "users", "--entity-name", "tool", "--entity-type", "clients", "--entity-default")
    set_to = "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=50"
    configs(servers, "--alter", *user, "--add-config", set_to)
    told = configs(servers, "--describe", *user)
    assert all(part in told for part in ("producer_byte_rate=1024.0", "consumer_byte_rate=2048.0"))
    configs(servers, "--alter", *user, "--delete-config", "consumer_byte_rate")
    told = configs(servers, "--describe", *user)
    assert "producer_byte_rate" in told
    assert "consumer_byte_rate" not in told
    address = ("--entity-type", "ips", "--entity-name", "10.1.2.3")
    configs(servers, "--alter", *address, "--add-config", "connection_creation_rate=5")
    assert "connection_creation_rate=5.0" in configs(servers, "--describe", *address)


def test_javas_clients_go_on_under_quotas_of_the_embedded_broker(embedded: EmbeddedKafka) -> None:
    servers = embedded.bootstrap_servers
    for client_id, key in (("java-producer", PRODUCE), ("java-consumer", FETCH)):
        set_quota(servers, client_id, key, 50_000)
    with Wire(servers) as wire:
        assert wire.ask(new_topic("java", 1), 7).topics[0].error_code == 0
    said = tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "java", "--num-records", "200", "--record-size", "1000", "--throughput", "-1"),
        *("--print-metrics", "--producer-props", f"bootstrap.servers={servers}", "client.id=java-producer"),
        "batch.size=10000",
    )
    assert "200 records sent" in said
    (held,) = (line for line in said.splitlines() if "produce-throttle-time-max" in line)
    assert float(held.rpartition(":")[2]) > 0
    said = tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", servers, "--topic", "java", "--messages", "200", "--timeout", "30000"),
        *("--hide-header", "--print-metrics", "--command-property", "client.id=java-consumer"),
        *("--command-property", "max.partition.fetch.bytes=20000"),
    )
    read = next(line.split(",") for line in said.splitlines() if line.count(",") >= 9)
    assert int(read[4]) >= 200
    (held,) = (line for line in said.splitlines() if "fetch-throttle-time-max" in line)
    assert float(held.rpartition(":")[2]) > 0
