"""Transactional producers of kclient, of Java and of librdkafka: the same calls, and failures in the same words."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from harness.real_kafka.java import compiled
from harness.real_kafka.node import POM, SHORT_LIVED, classpath
from kclient import ConsumerGroupMetadata, KafkaProducer, TopicPartition
from kclient.errors import KafkaError

_TIMEOUT_S = 30
_PROGRAM = "TransactionalProducers"


class Refused(Exception):  # noqa: N818
    """A call that failed. `names` are those of its error and of the causes, less Error or Exception at the end."""

    def __init__(self, names: list[str], said: str) -> None:
        super().__init__(f"{' <- '.join(names)}: {said}")
        self.names = names


class TransactionalProducer(Protocol):
    """A producer with a transactional id. All calls wait for their outcome, and raise Refused."""

    def init(self) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, value: str) -> None: ...

    def send_offsets(self, topic: str, offset: int, group: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None:
        """Close it as it stands."""


class KclientProducer:
    """A producer of this package."""

    def __init__(self, servers: str, name: str) -> None:
        self._producer: KafkaProducer[str, str] = KafkaProducer(
            bootstrap_servers=servers, transactional_id=name, value_serializer=str.encode
        )

    def init(self) -> None:
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str) -> None:
        self._call(lambda: self._producer.send(topic, value).result(_TIMEOUT_S))

    def send_offsets(self, topic: str, offset: int, group: str) -> None:
        offsets = {TopicPartition(topic, 0): offset}
        self._call(lambda: self._producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(group)))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close()

    def _call(self, call: Callable[[], object]) -> None:
        try:
            call()
        except KafkaError as error:
            names: list[str] = []
            cause: BaseException | None = error
            while cause is not None:
                names.append(type(cause).__name__.removesuffix("Error"))
                cause = cause.__cause__
            raise Refused(names, str(error)) from error


class JavaProducers:
    """A process of Java with any number of producers; one thread at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._numbers = itertools.count()

    def new(self, servers: str, name: str) -> JavaProducer:
        """A producer more."""
        return JavaProducer(self, next(self._numbers), servers, name)

    def call(self, *words: object) -> None:
        """Have the process do what a line says."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"Java ended at {words}")
        names, _, said = answer.strip().partition(" : ")
        if names:
            raise Refused([name.removesuffix("Exception") for name in names.split()], said)


class JavaProducer:
    """A producer of Java."""

    def __init__(self, process: JavaProducers, number: int, servers: str, name: str) -> None:
        self._process = process
        self._number = number
        self._call("new", servers, name)

    def init(self) -> None:
        self._call("init")

    def begin(self) -> None:
        self._call("begin")

    def send(self, topic: str, value: str) -> None:
        self._call("send", topic, value)

    def send_offsets(self, topic: str, offset: int, group: str) -> None:
        self._call("send_offsets", topic, offset, group)

    def commit(self) -> None:
        self._call("commit")

    def abort(self) -> None:
        self._call("abort")

    def close(self) -> None:
        self._call("close")

    def _call(self, *words: object) -> None:
        self._process.call(self._number, *words)


@contextmanager
def java_producers(directory: Path, pom: Path = POM) -> Iterator[JavaProducers]:
    """Producers of the release that `pom` says; the program's class and its log are in `directory`."""
    path = f"{classpath(pom)}:{compiled(_PROGRAM, directory)}"
    with (
        (directory / "java.log").open("wb") as log,
        subprocess.Popen(
            ["java", *SHORT_LIVED, "-Xmx128m", "-cp", path, _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield JavaProducers(process)
        finally:
            process.kill()


class LibrdkafkaProducer:
    """A producer of confluent-kafka."""

    def __init__(self, servers: str, name: str) -> None:
        import confluent_kafka

        self._library: Any = confluent_kafka
        self._servers = servers
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "transactional.id": name, "log_level": 0}
        )

    def init(self) -> None:
        self._call(lambda: self._producer.init_transactions(_TIMEOUT_S))

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str) -> None:
        def send() -> None:
            self._producer.produce(topic, value.encode())
            # What is fatal is raised here; with a callback for the delivery there would be a SystemError.
            assert self._producer.flush(_TIMEOUT_S) == 0

        self._call(send)

    def send_offsets(self, topic: str, offset: int, group: str) -> None:
        consumer = self._library.Consumer({"bootstrap.servers": self._servers, "group.id": group})
        try:
            offsets = [self._library.TopicPartition(topic, 0, offset)]
            member = consumer.consumer_group_metadata()
            self._call(lambda: self._producer.send_offsets_to_transaction(offsets, member, _TIMEOUT_S))
        finally:
            consumer.close()

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(_TIMEOUT_S))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(_TIMEOUT_S))

    def close(self) -> None:
        del self._producer

    def _call(self, call: Callable[[], object]) -> None:
        try:
            call()
        except self._library.KafkaException as raised:
            error = raised.args[0]
            fenced = error.fatal() and error.code() == self._library.KafkaError._FENCED
            raise Refused(["ProducerFenced" if fenced else error.name()], error.str()) from raised
