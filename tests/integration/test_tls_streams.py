"""TLS in mid-stream, between real clients and a broker: new keys, new handshakes, and all ways in which it can end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs
import pytest

from harness.network.certificates import Authority
from harness.network.ports import free_port
from harness.network.tls_server import TLS_1_2, TLS_1_3, Answering, TlsConnection, TlsServer, missing
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.broker.embedded import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition

_RECORDS = 120


@attrs.define
class Front:
    """TLS before a broker: clients that begin at `server` have all of their connections through it."""

    server: TlsServer
    plaintext: str
    authority: Authority

    def there_and_back(self, topic: str) -> tuple[list[bytes | None], float]:
        """Send records that are large and small; return those that can be read, and how many connections ended."""
        settings = {
            "bootstrap.servers": self.server.bootstrap,
            "security.protocol": "SSL",
            "ssl.truststore.location": str(self.authority.file),
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 20,
            "retry.backoff.ms": 5,
            "request.timeout.ms": 100_000,  # whatever is waited for in vain is longer than any test
        }
        read: list[bytes | None] = []
        with ExitStack() as stack:
            producer = stack.enter_context(KafkaProducer(settings, linger_ms=0, batch_size=0))
            consumer = stack.enter_context(KafkaConsumer(settings, group_id=topic, fetch_max_bytes=200_000))
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            futures = [producer.send(topic, value(number)) for number in range(_RECORDS)]
            assert [future.result(60).offset for future in futures] == list(range(_RECORDS))
            wait_until(
                lambda: read.extend(record.value for record in consumer.poll(100)) or len(read) >= _RECORDS,
                60,
                "all records",
            )
            ended = sum(client.metrics()["connection-close-total"] for client in (producer, consumer))
        assert self.server.failures == []
        return read, ended


def value(number: int) -> bytes:
    """A record that tells of any byte that is not its own."""
    return b"%08d" % number * (1 + 997 * number % 4000)


EVERY_VALUE = [value(number) for number in range(_RECORDS)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def fronts(authority: Authority) -> Iterator[dict[int, Front]]:
    """One for each version, before one broker."""
    skip_if(missing())
    plain = f"127.0.0.1:{free_port()}"
    behind = {version: free_port() for version in (TLS_1_2, TLS_1_3)}
    pair = authority.issue("127.0.0.1")
    with ExitStack() as stack:
        servers = {
            version: stack.enter_context(TlsServer(("127.0.0.1", port), pair, version=version))
            for version, port in behind.items()
        }
        listeners = [plain, *(f"127.0.0.1:{port}" for port in behind.values())]
        advertised = [plain, *(server.bootstrap for server in servers.values())]
        settings = {"listeners": listeners, "advertised.listeners": advertised}
        stack.enter_context(
            EmbeddedKafka(
                **{name: [f"PLAINTEXT://{each}" for each in given] for name, given in settings.items()}
            )
        )
        yield {version: Front(server, plain, authority) for version, server in servers.items()}


@pytest.fixture(params=[TLS_1_2, TLS_1_3], ids=["TLSv1.2", "TLSv1.3"])
def front(fronts: dict[int, Front], request: pytest.FixtureRequest) -> Iterator[Front]:
    chosen = fronts[request.param]
    yield chosen
    chosen.server.answer = TlsConnection.send


@pytest.mark.parametrize("front", [TLS_1_3], indirect=True, ids=["TLSv1.3"])
def test_keys_that_change_in_mid_stream_change_nothing_else(front: Front) -> None:
    turns = itertools.count(1)

    def answer(connection: TlsConnection, data: bytes) -> None:
        middle = len(data) // 2
        connection.send(data[:middle])
        connection.update_keys(of_both=next(turns) % 2 == 0)
        connection.send(data[middle:])

    front.server.answer = answer
    assert front.there_and_back(new_topic(front.plaintext, 1)) == (EVERY_VALUE, 0)
    assert next(turns) > 50


@pytest.mark.parametrize("front", [TLS_1_2], indirect=True, ids=["TLSv1.2"])
def test_a_server_that_wants_a_new_handshake_in_mid_stream_is_refused(
    front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    turns = itertools.count(1)

    def answer(connection: TlsConnection, data: bytes) -> None:
        middle = len(data) // 2
        connection.send(data[:middle])
        if next(turns) % 20 == 0:
            connection.renegotiate()
        connection.send(data[middle:])

    front.server.answer = answer
    read, ended = front.there_and_back(new_topic(front.plaintext, 1))
    assert read == EVERY_VALUE
    assert ended >= 3
    assert "did not complete" not in caplog.text


def end_between_frames(connection: TlsConnection, data: bytes) -> None:
    connection.send(data)


def end_in_a_frame(connection: TlsConnection, data: bytes) -> None:
    connection.send(data[: len(data) // 2])


def end_in_a_record(connection: TlsConnection, data: bytes) -> None:
    connection.begin_record()


@pytest.mark.parametrize(
    ("part", "end"),
    [
        (end_between_frames, TlsConnection.say_goodbye),
        (end_between_frames, TlsConnection.hang_up),
        (end_in_a_frame, TlsConnection.say_goodbye),
        (end_in_a_frame, TlsConnection.hang_up),
        (end_in_a_record, TlsConnection.hang_up),
    ],
)
def test_a_server_that_ends_is_a_connection_that_ended_and_nothing_is_cut_off(
    front: Front, part: Answering, end: Callable[[TlsConnection], None]
) -> None:
    turns = itertools.count(1)
    ends: list[int] = []

    def answer(connection: TlsConnection, data: bytes) -> None:
        if next(turns) % 20:
            connection.send(data)
            return
        part(connection, data)
        end(connection)
        ends.append(len(data))

    front.server.answer = answer
    read, ended = front.there_and_back(new_topic(front.plaintext, 1))
    assert read == EVERY_VALUE
    assert len(ends) >= ended >= 3
