"""IdempotenceManager by itself: the way to a producer id, and what ends it for good."""

from __future__ import annotations

import pytest

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AuthenticationError,
    ClusterAuthorizationError,
    ErrorCode,
    Errors,
    KafkaError,
    KafkaTimeoutError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnsupportedVersionError,
)
from kclient.producer.internals.idempotence.fate import Fate
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.idempotence.state import State
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.record import BatchBuilder, BatchResult
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext


class Rig:
    """A manager whose client knows one broker, or none."""

    def __init__(self, *, brokers: bool = True) -> None:
        self.time = MockTime()
        backoff = ExponentialBackoff(100, 1000, jitter=0)
        metadata = Metadata(MetadataSchedule(backoff, 300_000))
        if brokers:
            metadata.bootstrap([("mock", 9092)])
        self.client = MockClient(self.time, metadata)
        self.manager = IdempotenceManager(backoff, lambda topic: None, LogContext())

    def ask(self) -> int | None:
        """Ask once the connection is there."""
        wait_ms = self.manager.maybe_send_init_producer_id(self.client, self.time.monotonic_ms())
        self.client.poll(0, self.time.monotonic_ms())
        return wait_ms

    def answer(self, code: int = 0, producer_id: int = 7) -> None:
        self.client.respond(
            InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=2)
        )
        self.client.poll(0, self.time.monotonic_ms())

    def ready(self) -> Rig:
        self.ask()
        self.answer()
        assert self.manager.state is State.READY
        return self


def batch(queue: PartitionQueue | None = None) -> ProducerBatch:
    builder = BatchBuilder("t", 0, 10_000, BatchResult("t", 0), 0)
    builder.append(0, None, b"v", None)
    queue = queue or PartitionQueue(TopicPartition("t", 0))
    made = ProducerBatch(builder, queue, number=0, created_ms=0, charge=0, queued_ms=0)
    queue.batches.append(made)
    return made


def test_an_id_is_asked_for_once() -> None:
    rig = Rig()
    assert rig.ask() is None
    assert rig.ask() is None
    assert len(rig.client.sent) == 1
    assert rig.manager.state is State.INITIALIZING
    rig.answer()
    assert (rig.manager.identity.producer_id, rig.manager.identity.epoch) == (7, 2)
    assert rig.manager.at_rest
    assert rig.ask() is None
    assert len(rig.client.sent) == 1


def test_without_a_broker_to_ask_it_comes_back_after_the_longest_wait() -> None:
    rig = Rig(brokers=False)
    assert rig.ask() == 1000
    assert rig.manager.state is State.UNINITIALIZED


def test_each_passing_error_makes_the_wait_grow_until_there_is_an_id() -> None:
    rig = Rig()
    for wait_ms in (100, 200, 400):
        rig.ask()
        rig.answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert rig.ask() == wait_ms
        rig.time.advance(wait_ms - 1)
        assert rig.ask() == 1
        rig.time.advance(1)
    rig.ready()
    assert len(rig.client.sent) == 4


def test_an_id_that_no_rule_allows_is_asked_for_again_after_a_wait_that_grows() -> None:
    rig = Rig()
    refusals = []
    for wait_ms in (100, 200, 400):
        rig.ask()
        rig.answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert (rig.manager.state, rig.manager.fatal_error) == (State.UNINITIALIZED, None)
        assert isinstance(rig.manager.refusal, ClusterAuthorizationError)
        refusals.append(rig.manager.refusal)
        assert rig.ask() == wait_ms
        rig.time.advance(wait_ms)
    assert len({id(each) for each in refusals}) == 3  # each is news to those who wait
    assert "an ACL has to allow WRITE" in str(refusals[0])
    made = batch()
    rig.manager.on_failure(made, refusals[2])
    assert rig.manager.fatal_error is None
    rig.ready()
    assert rig.manager.refusal is None


def test_a_broker_that_has_no_ids_is_the_end_and_nobody_is_asked_again() -> None:
    rig = Rig()
    rig.ask()
    rig.answer(Errors.UNSUPPORTED_VERSION)
    assert rig.manager.state is State.FATAL_ERROR
    assert rig.manager.fatal_error is not None
    assert rig.ask() is None
    assert len(rig.client.sent) == 1
    assert not rig.manager.may_drain(batch(), rig.time.monotonic_ms())


def test_nothing_is_sent_before_there_is_an_id() -> None:
    rig = Rig()
    made = batch()
    assert not rig.manager.may_drain(made, rig.time.monotonic_ms())
    rig.ready()
    assert rig.manager.may_drain(made, rig.time.monotonic_ms())


@pytest.mark.parametrize(
    ("error", "fatal"),
    [
        (ClusterAuthorizationError("no"), True),
        (ProducerFencedError("no"), True),
        (UnsupportedVersionError("no"), True),
        (KafkaTimeoutError("late"), False),
        (OutOfOrderSequenceError("gap"), False),
    ],
)
def test_only_errors_of_the_producer_itself_end_it(error: KafkaError, fatal: bool) -> None:
    rig = Rig().ready()
    made = batch()
    rig.manager.on_drain(made)
    rig.manager.on_wire_ended(made)
    rig.manager.on_failure(made, error)
    assert rig.manager.fatal_error is (error if fatal else None)


def test_the_first_fatal_error_is_the_one_that_is_told() -> None:
    rig = Rig().ready()
    first = ClusterAuthorizationError("first")
    for error in (first, ProducerFencedError("second")):
        made = batch()
        rig.manager.on_drain(made)
        rig.manager.on_failure(made, error)
    assert rig.manager.fatal_error is first


def test_a_leader_that_forgot_the_producer_while_its_log_is_not_known_is_asked_again_as_before() -> None:
    rig = Rig().ready()
    made = batch()
    rig.manager.on_drain(made)
    error = Errors.UNKNOWN_PRODUCER_ID
    told = Errors.for_code(error)
    assert told is not None
    assert rig.manager.can_retry(made, error, told, -1)
    assert rig.manager.at_rest
    assert rig.manager.can_retry(made, error, told, 0)
    assert not rig.manager.at_rest


def test_only_a_proven_batch_of_unclear_fate_is_taken_for_written_when_it_is_refused() -> None:
    rig = Rig().ready()
    made = batch()
    gap = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for proven, fate, code, written in (
        (True, Fate.UNKNOWN, gap, True),
        (False, Fate.UNKNOWN, gap, False),
        (True, Fate.NOT_WRITTEN, gap, False),
        (True, Fate.UNKNOWN, ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
    ):
        made.proven, made.fate = proven, fate
        assert rig.manager.is_written(made, code) is written


def test_a_password_that_is_wrong_is_the_end() -> None:
    rig = Rig()
    node = rig.client.least_loaded_node(rig.time.monotonic_ms())
    assert node is not None
    error = AuthenticationError("wrong password")
    rig.client.refuse_authentication(node, error)
    assert rig.ask() is None
    assert rig.manager.fatal_error is error
