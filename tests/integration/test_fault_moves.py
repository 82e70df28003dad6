"""Brokers that are not what or where they were: older after a restart, under other addresses, of another cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.wire import batch
from harness.network.ports import closed_port
from harness.network.scripted_broker import Reply, ScriptedBroker, cluster_of
from harness.producer.cluster import Cluster
from harness.producer.model import FakeBroker
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.client import bootstrap
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer import KafkaConsumer
from kclient.errors import BootstrapError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse

_QUICK = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 20,
}

# Older after a restart.

_ID = Uuid(b"a topic's own id")


def with_topic_ids(broker: ScriptedBroker) -> None:
    """Have the metadata tell the id of each topic, where its version can."""
    plain = broker.metadata

    def metadata() -> Any:
        answer = plain()
        for topic in answer.topics:
            topic.topic_id = _ID
        return answer

    broker.metadata = metadata  # type: ignore[method-assign]


def restart_with(broker: ScriptedBroker, api: ApiKeys, newest: int) -> None:
    """End all connections; those made from now on find a broker that knows `api` up to `newest`."""
    broker.versions[api] = (broker.versions[api][0], newest)
    broker.drop_connections()


def versions_used(broker: ScriptedBroker, api: ApiKeys) -> list[int]:
    return [header.api_version for header, _ in list(broker.requests) if header.api_key is api]


def test_a_broker_that_comes_back_older_gets_the_batch_in_flight_in_a_version_that_it_knows() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker:
        with_topic_ids(broker)
        cluster = Cluster(broker)
        cluster.logs.names[_ID] = "t"

        def take_and_restart(header: Any, message: Any) -> Any:
            cluster.produce(message)
            restart_with(broker, ApiKeys.PRODUCE, 8)
            return Reply.CLOSE

        with cluster.producer() as producer:
            cluster.send(producer)
            producer.flush()
            broker.once(ApiKeys.PRODUCE, take_and_restart)
            cluster.send(producer, 5)
            producer.flush()
        used = versions_used(broker, ApiKeys.PRODUCE)
        assert used[:2] == [13, 13]
        assert set(used[2:]) == {8}
        cluster.check()


def test_a_broker_that_comes_back_older_is_read_on_from_the_same_record() -> None:
    tp = TopicPartition("t", 0)

    def fetch(header: Any, message: Any) -> FetchResponse:
        if len(broker.received(ApiKeys.FETCH)) == 4:
            restart_with(broker, ApiKeys.FETCH, 11)
        offset = message.topics[0].partitions[0].fetch_offset
        data = PartitionData(
            partition_index=0, high_watermark=offset + 1, records=batch(b"%d" % offset, base_offset=offset)
        )
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=message.topics[0].topic, topic_id=message.topics[0].topic_id, partitions=[data]
                )
            ]
        )

    with ScriptedBroker(topics={"t": 1}) as broker:
        with_topic_ids(broker)
        broker.on(ApiKeys.FETCH, fetch)
        with KafkaConsumer({"bootstrap.servers": broker.bootstrap, **_QUICK}) as consumer:
            consumer.assign([tp])
            consumer.seek(tp, 0)
            values: list[bytes | None] = []
            while len(values) < 10:
                values += [record.value for record in consumer.poll(20_000)]
        assert values == [b"%d" % i for i in range(len(values))]
        used = versions_used(broker, ApiKeys.FETCH)
        assert min(used[:4]) >= 13
        assert set(used[4:]) == {11}
        assert broker.errors == []


def test_a_broker_that_comes_back_older_is_administered_in_a_version_that_it_knows() -> None:
    with (
        ScriptedBroker() as broker,
        KafkaAdminClient({"bootstrap.servers": broker.bootstrap, **_QUICK}) as admin,
    ):
        created = CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
        broker.answer(ApiKeys.CREATE_TOPICS, created, Reply.CLOSE, created)
        admin.create_topics(["t"])
        restart_with(broker, ApiKeys.CREATE_TOPICS, 4)
        admin.create_topics(["t"])
        assert versions_used(broker, ApiKeys.CREATE_TOPICS) == [7, 4, 4]


# Metadata that is wrong.


@pytest.mark.parametrize("wrong", ["host", "port"])
def test_a_broker_with_a_wrong_address_holds_up_no_other_and_gets_its_records_when_it_is_put_right(
    wrong: str,
) -> None:
    nobody = closed_port()
    right = threading.Event()
    logs = FakeBroker()
    brokers = cluster_of(2, {"t": 2})
    with brokers[0], brokers[1]:

        def metadata(header: Any, message: Any) -> Any:
            answer = brokers[0]._answer_metadata(header, message)
            if not right.is_set():
                if wrong == "host":
                    answer.brokers[1].host = "no-such-host.invalid"
                else:
                    answer.brokers[1].port = nobody
            return answer

        for broker in brokers:
            broker.on(ApiKeys.METADATA, metadata)
            broker.on(ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=1))
            broker.on(ApiKeys.PRODUCE, lambda h, m: logs.produce(m))
        with KafkaProducer({"bootstrap.servers": brokers[0].bootstrap, **_QUICK}) as producer:
            waiting = [producer.send("t", b"%d" % i, partition=1) for i in range(5)]
            for i in range(50):
                assert producer.send("t", b"%d" % i, partition=0).result(5).offset == i
            assert not any(future.done() for future in waiting)
            right.set()
            assert [future.result(20).offset for future in waiting] == list(range(5))
    assert logs.log("t", 1).values == [b"%d" % i for i in range(5)]


def test_a_broker_that_turns_out_to_be_of_another_cluster_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ScriptedBroker(topics={"t": 1}) as broker:
        cluster = Cluster(broker)
        plain = broker.metadata

        def elsewhere() -> Any:
            answer = plain()
            answer.cluster_id = "elsewhere"
            return answer

        with cluster.producer(client_id="mover", metadata_max_age_ms=200) as producer:
            cluster.send(producer)
            producer.flush()
            broker.metadata = elsewhere  # type: ignore[method-assign]
            with caplog.at_level(logging.WARNING):
                wait_until(lambda: "changed from scripted to elsewhere" in caplog.text)
            cluster.send(producer)
        cluster.check()
    assert "clientId=mover" in caplog.text


# Names that do not resolve for a while, or to something else.

_NAME = "kafka.test"


class Names:
    """Addresses that host names resolve to; a name that is not in the table does not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table: dict[str, list[str]] = {"127.0.0.1": ["127.0.0.1"]}
        self.asked: list[str] = []
        monkeypatch.setattr(bootstrap, "_addrinfo", self._look_up)

    def _look_up(self, host: str) -> list[str]:
        self.asked.append(host)
        if host not in self.table:
            raise OSError(f"{host} is not known")
        return self.table[host]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
def named(names: Names) -> ScriptedBroker:
    """A broker that metadata knows by name alone; it is not started."""
    broker = ScriptedBroker(topics={"t": 1})
    plain = broker.metadata

    def by_name() -> Any:
        answer = plain()
        answer.brokers[0].host = _NAME
        return answer

    broker.metadata = by_name  # type: ignore[method-assign]
    # Producers ask for an id on the same connection, and a broker answers in order.
    broker.on(ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=1))
    return broker


def producer_asks(settings: dict[str, Any]) -> tuple[Any, Callable[[str], object]]:
    producer = KafkaProducer(settings)
    return producer, lambda topic: producer.partitions_for(topic)[0].topic


def consumer_asks(settings: dict[str, Any]) -> tuple[Any, Callable[[str], object]]:
    consumer = KafkaConsumer(settings)
    return consumer, lambda topic: consumer.partitions_for(topic)[0].topic


def admin_asks(settings: dict[str, Any]) -> tuple[Any, Callable[[str], object]]:
    admin = KafkaAdminClient(settings)
    return admin, lambda topic: admin.describe_topics([topic])[topic].name


Asks = Callable[[dict[str, Any]], tuple[Any, Callable[[str], object]]]
EVERY_CLIENT = pytest.mark.parametrize(
    "make", [producer_asks, consumer_asks, admin_asks], ids=["producer", "consumer", "admin"]
)


@EVERY_CLIENT
def test_a_client_that_could_not_be_made_for_want_of_a_name_can_be_made_once_it_resolves(
    make: Asks, names: Names, named: ScriptedBroker
) -> None:
    with named:
        settings = {"bootstrap.servers": f"{_NAME}:{named.port}", **_QUICK}
        before = set(threading.enumerate())
        with pytest.raises(BootstrapError, match=_NAME):
            make(settings)
        assert set(threading.enumerate()) <= before
        names.table[_NAME] = ["127.0.0.1"]
        client, ask = make(settings)
        with client:
            assert ask("t") == "t"


@EVERY_CLIENT
def test_a_client_whose_only_living_server_did_not_resolve_at_the_start_works_once_it_does(
    make: Asks, names: Names, named: ScriptedBroker
) -> None:
    with named:
        servers = f"{_NAME}:{named.port},127.0.0.1:{closed_port()}"
        client, ask = make({"bootstrap.servers": servers, **_QUICK})
        with client:
            tries = len(names.asked)
            # Several tries fail before the one that does not.
            wait_until(lambda: names.asked[tries:].count(_NAME) >= 2)
            names.table[_NAME] = ["127.0.0.1"]
            assert ask("t") == "t"


@EVERY_CLIENT
def test_a_broker_that_moves_to_another_address_is_found_by_its_name(
    make: Asks, names: Names, named: ScriptedBroker
) -> None:
    names.table[_NAME] = ["127.0.0.1"]
    with named:
        client, ask = make({"bootstrap.servers": f"{_NAME}:{named.port}", **_QUICK})
        with client:
            assert ask("t") == "t"
            named.stop()
            named.host = "127.0.0.2"
            named.start()
            names.table[_NAME] = ["127.0.0.2"]
            named.topics["new"] = 1
            assert ask("new") == "new"


def test_what_is_sent_while_the_brokers_name_is_gone_arrives_at_its_new_address_once_and_in_order(
    names: Names, named: ScriptedBroker
) -> None:
    names.table[_NAME] = ["127.0.0.1"]
    with named:
        cluster = Cluster(named)
        with cluster.producer(bootstrap_servers=f"{_NAME}:{named.port}") as producer:
            cluster.send(producer, 20)
            producer.flush()
            named.stop()
            del names.table[_NAME]
            cluster.send(producer, 100)
            asked = len(names.asked)
            wait_until(lambda: len(names.asked) > asked + 2)
            named.host = "127.0.0.2"
            named.start()
            names.table[_NAME] = ["127.0.0.2"]
            cluster.send(producer, 20)
            producer.flush(20_000)
        cluster.check()
        assert len(cluster.logs.log("t").values) == 140
