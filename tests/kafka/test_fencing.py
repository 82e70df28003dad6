"""Producers of kclient, Java and librdkafka with one transactional id: the newer one fences the older, both ways."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs
import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.java import missing_compiler
from harness.real_kafka.node import POM, POM_2_8
from harness.real_kafka.transactional_producers import (
    JavaProducers,
    KclientProducer,
    LibrdkafkaProducer,
    Refused,
    TransactionalProducer,
    java_producers,
)
from harness.requirements import skip_if
from harness.topics import new_topic, read_all
from kclient import KafkaAdminClient, OffsetSpec, TopicPartition
from kclient.client.network_client import NetworkClient

OURS = ["kclient-TV2", "kclient-TV1"]
JAVA = {"java-4.3.1": POM, "java-2.8.2": POM_2_8}
LIBRDKAFKA = "librdkafka"

Make = Callable[[str, str], TransactionalProducer]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], JavaProducers]]:
    """Processes of Java by their names, started when they are asked for."""
    running: dict[str, JavaProducers] = {}
    with ExitStack() as stack:

        def get(name: str) -> JavaProducers:
            if name not in running:
                directory = tmp_path_factory.mktemp("java")
                running[name] = stack.enter_context(java_producers(directory, JAVA[name]))
            return running[name]

        yield get


@pytest.fixture
def make(
    kafka: RealKafka, java: Callable[[str], JavaProducers], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """Makes producers of a client and a transactional id, which are closed with the test."""
    with ExitStack() as stack:

        def new(client: str, name: str) -> TransactionalProducer:
            producer: TransactionalProducer
            if client in JAVA:
                skip_if(missing_compiler())
                producer = java(client).new(kafka.bootstrap_servers, name)
            elif client == LIBRDKAFKA:
                known = importlib.util.find_spec("confluent_kafka")
                skip_if(None if known else "confluent-kafka is not installed (pip install '.[peers]')")
                producer = LibrdkafkaProducer(kafka.bootstrap_servers, name)
            else:
                if client == "kclient-TV1":
                    monkeypatch.setattr(NetworkClient, "finalized_level", lambda self, feature: 0)
                producer = KclientProducer(kafka.bootstrap_servers, name)
            stack.callback(producer.close)
            return producer

        yield new


FENCED, OLD_EPOCH = "ProducerFenced", "InvalidProducerEpoch"


@attrs.frozen
class Place:
    """The moment at which a newer producer begins, and what the older one is told then, call by call, in Java's words.

    `told_before` holds where the coordinator is asked before the partition's leader, which is so with the transactions
    of clients and brokers before Kafka 4.
    """

    open: bool
    told: dict[str, str]
    told_before: dict[str, str] | None = None


PLACES = {
    "commits": Place(True, {"commit": FENCED, "abort": FENCED, "begin": FENCED}),
    "aborts": Place(True, {"abort": FENCED, "begin": FENCED}),
    "sends": Place(True, {"send": OLD_EPOCH, "commit": OLD_EPOCH, "abort": FENCED, "begin": FENCED}),
    "sends-offsets": Place(True, {"send_offsets": FENCED, "commit": FENCED, "abort": FENCED}),
    "begins-with-records": Place(
        False,
        {"send": OLD_EPOCH, "commit": OLD_EPOCH, "abort": FENCED, "begin": FENCED},
        {"send": FENCED, "commit": FENCED, "abort": FENCED, "begin": FENCED},
    ),
    "begins-with-offsets": Place(False, {"send_offsets": FENCED, "commit": FENCED, "abort": FENCED}),
}


def told(place: Place, client: str) -> dict[str, str]:
    """The errors that `client` raises."""
    if client == LIBRDKAFKA:
        return dict.fromkeys(place.told, FENCED)  # that is all it knows
    if client in {"kclient-TV1", "java-2.8.2"} and place.told_before is not None:
        return place.told_before
    return place.told


def reason(refused: Refused) -> str:
    """The name of the error; of an old epoch where ours says that the transaction has to be aborted because of that."""
    return OLD_EPOCH if refused.names[:2] == ["TransactionAbortable", OLD_EPOCH] else refused.names[0]


def marks(older: str, newer: str) -> list[pytest.MarkDecorator]:
    found = [pytest.mark.peers] if LIBRDKAFKA in {older, newer} else []
    # One more release of Java, and our older way of transactions in the newer producer, change little.
    seldom = "java-2.8.2" in {older, newer} or newer == "kclient-TV1"
    return [*found, pytest.mark.soak] if seldom else found


PAIRS = [
    pytest.param(older, newer, marks=marks(older, newer), id=f"{older}-then-{newer}")
    for ours in OURS
    for theirs in [*JAVA, LIBRDKAFKA]
    for older, newer in ((ours, theirs), (theirs, ours))
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_the_older_one_is_told_so_and_nothing_of_its_transaction_is_read(
    kafka: RealKafka, make: Make, older: str, newer: str, place: str
) -> None:
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, 1)
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    at = PLACES[place]
    zombie = make(older, topic)
    zombie.init()
    if at.open:
        zombie.begin()
        zombie.send(topic, "zombie")
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        following = make(newer, topic)
        following.init()
        stable = admin.list_offsets({tp: OffsetSpec.LATEST}, isolation_level="read_committed")[tp].offset
        assert stable == (2 if at.open else 0), "the open transaction was not aborted at once"
        following.begin()
        following.send(topic, "newer")
        if not at.open:
            zombie.begin()
        calls: dict[str, Callable[[], None]] = {
            "begin": zombie.begin,
            "send": lambda: zombie.send(topic, "late"),
            "send_offsets": lambda: zombie.send_offsets(topic, 1, group),
            "commit": zombie.commit,
            "abort": zombie.abort,
        }
        answers = {}
        for call in told(at, older):
            with pytest.raises(Refused) as caught:
                calls[call]()
            answers[call] = reason(caught.value)
        assert answers == told(at, older)
        following.commit()
        assert admin.list_consumer_group_offsets(group) == {}
    committed = [record.value for record in read_all(servers, topic, isolation_level="read_committed")]
    assert committed == [b"newer"]
    assert [record.value for record in read_all(servers, topic)] == [b"zombie"] * at.open + [b"newer"]


@pytest.mark.peers
def test_a_name_that_goes_from_client_to_client_leaves_what_each_has_committed(
    kafka: RealKafka, make: Make
) -> None:
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, 1)
    owners = ["kclient-TV2", "java-4.3.1", "kclient-TV2", LIBRDKAFKA, "kclient-TV2", "java-4.3.1", LIBRDKAFKA]
    former: list[TransactionalProducer] = []
    for number, client in enumerate(owners):
        owner = make(client, topic)
        owner.init()
        for zombie in former:
            with pytest.raises(Refused):
                zombie.commit()
        owner.begin()
        owner.send(topic, f"kept-{number}")
        owner.commit()
        owner.begin()
        owner.send(topic, f"lost-{number}")
        former.append(owner)
    former[-1].abort()
    committed = [record.value for record in read_all(servers, topic, isolation_level="read_committed")]
    assert committed == [b"kept-%d" % number for number in range(len(owners))]
    assert len(read_all(servers, topic)) == 2 * len(owners)
