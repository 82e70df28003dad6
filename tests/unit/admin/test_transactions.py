"""Transactions and their producers: as values, and as brokers see what is done about them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import (
    AbortTransactionSpec,
    FencedProducer,
    KafkaAdminClient,
    PartitionProducerState,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    ClusterAuthorizationError,
    CoordinatorNotAvailableError,
    Errors,
    InvalidProducerEpochError,
    InvalidTxnTimeoutError,
    KafkaError,
    NotLeaderOrFollowerError,
    TransactionalIdAuthorizationError,
    TransactionalIdNotFoundError,
    TransactionCoordinatorFencedError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import describe_producers as producers
from kclient.protocol.messages import describe_transactions as describe
from kclient.protocol.messages import list_transactions as lists
from kclient.protocol.messages import write_txn_markers as markers
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse

TP = TopicPartition("t", 0)
SPEC = AbortTransactionSpec(TP, 7, 3, 5)


@pytest.fixture(autouse=True)
def coordinator(scripted: ScriptedBroker) -> None:
    """The broker coordinates every transactional id, and leads t-0 and t-1."""
    scripted.topics["t"] = 2

    def found(header: Any, message: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=0, host="127.0.0.1", port=scripted.port)
                for key in message.coordinator_keys
            ]
        )

    scripted.on(ApiKeys.FIND_COORDINATOR, found)


def listing(*ids: str, code: int = 0) -> lists.ListTransactionsResponse:
    return lists.ListTransactionsResponse(
        error_code=code,
        transaction_states=[
            lists.TransactionState(transactional_id=each, producer_id=9, transaction_state="Ongoing")
            for each in ids
        ],
    )


def described(**fields: Any) -> Callable[[Any, Any], describe.DescribeTransactionsResponse]:
    """A handler that says the same of every id, and of what nobody asked for."""
    return lambda h, m: describe.DescribeTransactionsResponse(
        transaction_states=[
            describe.TransactionState(transactional_id=each, **fields)
            for each in ("other", *m.transactional_ids)
        ]
    )


def written(
    tp: TopicPartition, code: int = 0, producer_id: int = SPEC.producer_id
) -> markers.WriteTxnMarkersResponse:
    partition = markers.WritableTxnMarkerPartitionResult(partition_index=tp.partition, error_code=code)
    topic = markers.WritableTxnMarkerTopicResult(name=tp.topic, partitions=[partition])
    return markers.WriteTxnMarkersResponse(
        markers=[markers.WritableTxnMarkerResult(producer_id=producer_id, topics=[topic])]
    )


def states(
    partition: int, *found: producers.ProducerState, code: int = 0
) -> producers.DescribeProducersResponse:
    one = producers.PartitionResponse(
        partition_index=partition, error_code=code, error_message=None, active_producers=list(found)
    )
    return producers.DescribeProducersResponse(topics=[producers.TopicResponse(name="t", partitions=[one])])


def test_transactions_are_listed_with_their_coordinator(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.LIST_TRANSACTIONS, listing("a", "b"))
    assert client.list_transactions() == {
        each: TransactionListing(each, 9, TransactionState.ONGOING, coordinator_id=0) for each in "ab"
    }
    (request,) = scripted.received(ApiKeys.LIST_TRANSACTIONS)
    assert (request.state_filters, request.producer_id_filters) == ([], [])
    assert (request.duration_filter, request.transactional_id_pattern) == (-1, None)


def test_filters_are_the_brokers_to_apply(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.answer(ApiKeys.LIST_TRANSACTIONS, listing())
    filters = {"duration_ms": 0, "transactional_id_pattern": "a.*"}
    wanted = [TransactionState.ONGOING, "Empty", "Ongoing"]
    assert client.list_transactions(states=wanted, producer_ids=[3, 4, 3], **filters) == {}  # type: ignore[arg-type]  # int or str
    (request,) = scripted.received(ApiKeys.LIST_TRANSACTIONS)
    assert (request.state_filters, request.producer_id_filters) == (["Ongoing", "Empty"], [3, 4])
    assert (request.duration_filter, request.transactional_id_pattern) == (0, "a.*")


@pytest.mark.parametrize(
    ("newest", "filters"), [(0, {"duration_ms": 5}), (1, {"transactional_id_pattern": "x"})]
)
def test_a_broker_that_cannot_filter_is_not_asked_to(
    scripted: ScriptedBroker, newest: int, filters: dict[str, Any]
) -> None:
    scripted.versions[ApiKeys.LIST_TRANSACTIONS] = (0, newest)
    scripted.answer(ApiKeys.LIST_TRANSACTIONS, listing())
    with KafkaAdminClient(bootstrap_servers=scripted.bootstrap) as client:
        with pytest.raises(UnsupportedVersionError, match=r"broker 0: .*LIST_TRANSACTIONS"):
            client.list_transactions(**filters)
        assert client.list_transactions(states=["Empty"], producer_ids=[1]) == {}


def test_a_coordinator_that_loads_is_asked_again_and_one_that_ends_is_not(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(
        ApiKeys.LIST_TRANSACTIONS, listing(code=Errors.COORDINATOR_LOAD_IN_PROGRESS), listing("a")
    )
    assert list(client.list_transactions()) == ["a"]
    scripted.answer(ApiKeys.LIST_TRANSACTIONS, listing(code=Errors.COORDINATOR_NOT_AVAILABLE))
    with pytest.raises(CoordinatorNotAvailableError, match="Listing transactions failed for broker 0"):
        client.list_transactions()


def test_a_transaction_is_described_by_its_coordinator(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    fields = {
        "transaction_state": "PrepareAbort",
        "transaction_timeout_ms": 60_000,
        "transaction_start_time_ms": 5,
        "producer_id": 9,
        "producer_epoch": 2,
        "topics": [describe.TopicData(topic="t", partitions=[0, 1])],
    }
    scripted.on(ApiKeys.DESCRIBE_TRANSACTIONS, described(**fields))
    parts = frozenset({TP, TopicPartition("t", 1)})
    assert client.describe_transactions(["a", "b", "a"]) == {
        each: TransactionDescription(each, 0, TransactionState.PREPARE_ABORT, 9, 2, 60_000, 5, parts)
        for each in "ab"
    }
    asked = scripted.received(ApiKeys.DESCRIBE_TRANSACTIONS)
    assert sorted(each.transactional_ids for each in asked) == [["a"], ["b"]]
    assert {each.key_type for each in scripted.received(ApiKeys.FIND_COORDINATOR)} == {1}


def test_without_a_transaction_there_is_no_start(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.on(
        ApiKeys.DESCRIBE_TRANSACTIONS, described(transaction_state="Empty", transaction_start_time_ms=-1)
    )
    found = client.describe_transactions(["a"])["a"]
    assert (found.transaction_start_time_ms, found.topic_partitions) == (None, frozenset())


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Errors.TRANSACTIONAL_ID_NOT_FOUND, TransactionalIdNotFoundError),
        (Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TransactionalIdAuthorizationError),
    ],
)
def test_an_id_that_cannot_be_described_is_named(
    scripted: ScriptedBroker, client: KafkaAdminClient, code: int, error: type[KafkaError]
) -> None:
    scripted.on(ApiKeys.DESCRIBE_TRANSACTIONS, described(error_code=code, transaction_state=""))
    with pytest.raises(error, match="Describing transactions failed for a: "):
        client.describe_transactions(["a"])
    with pytest.raises(AdminError, match=r"a: .*; b: ") as failed:
        client.describe_transactions(["a", "b"])
    assert list(failed.value.errors) == ["a", "b"]


def test_a_coordinator_that_moved_is_looked_up_again(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.once(
        ApiKeys.DESCRIBE_TRANSACTIONS, described(error_code=Errors.NOT_COORDINATOR, transaction_state="")
    )
    scripted.on(ApiKeys.DESCRIBE_TRANSACTIONS, described(transaction_state="Empty"))
    assert client.describe_transactions(["a"])["a"].state is TransactionState.EMPTY
    assert len(scripted.received(ApiKeys.FIND_COORDINATOR)) == 2


def test_an_answer_without_the_id_is_an_error_of_that_id(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    empty = describe.DescribeTransactionsResponse(transaction_states=[])
    scripted.answer(ApiKeys.DESCRIBE_TRANSACTIONS, empty)
    with pytest.raises(UnknownServerError, match="failed for a: "):
        client.describe_transactions(["a"])


def test_producers_are_described_by_the_leader(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    idle = producers.ProducerState(producer_id=1, coordinator_epoch=-1)
    busy = producers.ProducerState(
        producer_id=2,
        producer_epoch=3,
        last_sequence=4,
        last_timestamp=5,
        coordinator_epoch=6,
        current_txn_start_offset=7,
    )
    scripted.answer(ApiKeys.DESCRIBE_PRODUCERS, states(0, idle, busy))
    found = client.describe_producers([TP])
    assert found == {
        TP: PartitionProducerState((ProducerState(1, 0, -1, -1, None, None), ProducerState(2, 3, 4, 5, 6, 7)))
    }
    (request,) = scripted.received(ApiKeys.DESCRIBE_PRODUCERS)
    assert request.topics == [producers.TopicRequest(name="t", partition_indexes=[0])]


def test_a_leader_that_moved_is_looked_up_again(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.answer(ApiKeys.DESCRIBE_PRODUCERS, states(1, code=Errors.NOT_LEADER_OR_FOLLOWER), states(1))
    tp = TopicPartition("t", 1)
    assert client.describe_producers([tp]) == {tp: PartitionProducerState(())}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Errors.NOT_LEADER_OR_FOLLOWER, NotLeaderOrFollowerError),
        (Errors.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopicOrPartitionError),
    ],
)
def test_what_a_given_broker_says_is_the_answer(
    scripted: ScriptedBroker, client: KafkaAdminClient, code: int, error: type[KafkaError]
) -> None:
    scripted.answer(ApiKeys.DESCRIBE_PRODUCERS, states(0, code=code))
    with pytest.raises(error, match="Describing producers failed for t-0: "):
        client.describe_producers([TP], broker_id=0)
    assert not any(request.topics for request in scripted.received(ApiKeys.METADATA))


def test_the_marker_of_an_abort_is_what_the_spec_says(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.on(ApiKeys.WRITE_TXN_MARKERS, lambda h, m: written(TP))
    client.abort_transaction(SPEC)
    client.abort_transaction(AbortTransactionSpec(TP, 7, 3))
    first, second = (request.markers for request in scripted.received(ApiKeys.WRITE_TXN_MARKERS))
    topics = [markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    expected = markers.WritableTxnMarker(
        producer_id=7, producer_epoch=3, transaction_result=False, topics=topics, coordinator_epoch=5
    )
    assert first == [expected]
    assert second[0].coordinator_epoch == 0


def test_an_abort_follows_the_leader(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.answer(
        ApiKeys.WRITE_TXN_MARKERS,
        written(TP, Errors.NOT_LEADER_OR_FOLLOWER),
        written(TP, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        written(TP),
    )
    client.abort_transaction(SPEC)
    assert len(scripted.received(ApiKeys.WRITE_TXN_MARKERS)) == 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (written(TP, Errors.INVALID_PRODUCER_EPOCH), InvalidProducerEpochError),
        (written(TP, Errors.TRANSACTION_COORDINATOR_FENCED), TransactionCoordinatorFencedError),
        (written(TP, Errors.CLUSTER_AUTHORIZATION_FAILED), ClusterAuthorizationError),
        (written(TP, producer_id=8), UnknownServerError),
        (written(TopicPartition("t", 1)), UnknownServerError),
        (markers.WriteTxnMarkersResponse(markers=[]), UnknownServerError),
    ],
)
def test_an_abort_that_failed_says_of_what(
    scripted: ScriptedBroker, client: KafkaAdminClient, answer: Any, error: type[KafkaError]
) -> None:
    scripted.answer(ApiKeys.WRITE_TXN_MARKERS, answer)
    with pytest.raises(error, match=r"failed for t-0 \(producer id 7, epoch 3, coordinator epoch 5\): "):
        client.abort_transaction(SPEC)


def test_producers_are_fenced_by_their_ids(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.on(
        ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=9, producer_epoch=4)
    )
    assert client.fence_producers(["a", "b"]) == dict.fromkeys("ab", FencedProducer(9, 4))
    client.force_terminate_transaction("c")
    asked = scripted.received(ApiKeys.INIT_PRODUCER_ID)
    assert sorted(each.transactional_id for each in asked) == ["a", "b", "c"]
    assert {(each.producer_id, each.producer_epoch) for each in asked} == {(-1, -1)}
    assert not any(each.enable2_pc or each.keep_prepared_txn for each in asked)


@pytest.mark.parametrize(("timeout_ms", "sent_ms"), [(None, 30_000), (10**7, 30_000), (20_000, 20_000)])
def test_the_timeout_of_a_fenced_id_is_one_that_brokers_take(
    scripted: ScriptedBroker, client: KafkaAdminClient, timeout_ms: int | None, sent_ms: int
) -> None:
    scripted.answer(ApiKeys.INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=9))
    client.fence_producers(["a"], timeout_ms=timeout_ms)
    (request,) = scripted.received(ApiKeys.INIT_PRODUCER_ID)
    assert request.transaction_timeout_ms == sent_ms


def test_fencing_waits_for_the_end_of_the_transaction_at_the_same_coordinator(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    ending = InitProducerIdResponse(error_code=Errors.CONCURRENT_TRANSACTIONS)
    scripted.answer(ApiKeys.INIT_PRODUCER_ID, ending, ending, InitProducerIdResponse(producer_id=9))
    assert client.fence_producers(["a"]) == {"a": FencedProducer(9, 0)}
    assert len(scripted.received(ApiKeys.FIND_COORDINATOR)) == 1


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TransactionalIdAuthorizationError),
        (Errors.INVALID_TRANSACTION_TIMEOUT, InvalidTxnTimeoutError),
    ],
)
def test_an_id_that_cannot_be_fenced_is_named(
    scripted: ScriptedBroker, client: KafkaAdminClient, code: int, error: type[KafkaError]
) -> None:
    scripted.on(ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(error_code=code))
    with pytest.raises(error, match="Fencing producers failed for a: "):
        client.fence_producers(["a"])
    with pytest.raises(error, match="Fencing producers failed for b: "):
        client.force_terminate_transaction("b")


def test_a_state_that_is_not_known_keeps_its_word(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.on(ApiKeys.DESCRIBE_TRANSACTIONS, described(transaction_state="PrepareNothing"))
    state = client.describe_transactions(["a"])["a"].state
    assert state == "PrepareNothing"
    assert isinstance(state, TransactionState)
    assert (state.name, pickle.loads(pickle.dumps(state))) == ("UNKNOWN", state)
    assert "PrepareNothing" not in list(TransactionState)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (("t-0", 1, 0), "topic_partition must be a TopicPartition"),
        ((TP, "1", 0), "producer_id must be an int"),
        ((TP, -1, 0), "producer_id must be 0 to"),
        ((TP, 1, 2**15), "producer_epoch must be 0 to 32767"),
        ((TP, 1, True), "producer_epoch must be an int"),
        ((TP, 1, None), "producer_epoch must be an int"),
        ((TP, 1, 0, -1), "coordinator_epoch must be 0 to"),
        ((TP, 1, 0, "2"), "coordinator_epoch must be an int"),
    ],
)
def test_a_transaction_that_cannot_be_is_not_aborted(fields: tuple[Any, ...], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"AbortTransactionSpec: {said}"):
        AbortTransactionSpec(*fields)
