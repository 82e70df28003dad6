"""A transactional producer without a thread, and the coordinators that it asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from harness.mock_client import SentRequest
from harness.producer.model import ProducerModel
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kclient.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kclient.utils.steps import Pause, Steps

T = TypeVar("T")

LOST = "lost"
"""In place of a code: the coordinator does what it is asked, and the connection ends before its answer."""
UNHEARD = "unheard"
"""In place of a code: the connection ends before the request arrives."""


class Call:
    """A call of the application that somebody else takes through its steps."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self.done = False
        self.error: BaseException | None = None
        self.advance()

    def advance(self) -> None:
        """Go on to the next wait, or to the end."""
        if self.done:
            return
        try:
            assert isinstance(next(self._steps), Pause)
        except StopIteration:
            self.done = True
        except Exception as error:
            self.error, self.done = error, True

    def interrupt(self) -> None:
        """End it in its wait, as a Ctrl-C does."""
        self._steps.close()
        self.done = True


class FakeCoordinator:
    """A transaction coordinator, and that of groups: it answers with the codes that a test gives, or does as asked."""

    def __init__(self) -> None:
        self.producer_id = 7
        self.epoch = -1
        self.partitions: set[tuple[str, int]] = set()
        self.offsets: dict[tuple[str, int], int] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.ended: list[bool] = []
        """True for each commit, False for each abort."""
        self._scripted: dict[ApiKeys, deque[int | str]] = {}
        self._refused: dict[int, int] = {}

    def refuse_partitions(self, codes: dict[int, int]) -> None:
        """Answer the next request that names partitions with a code for each of these, and do nothing of it."""
        self._refused = codes

    def script(self, api_key: ApiKeys, *answers: int | str) -> None:
        """Answer the next requests with codes, or with LOST or UNHEARD."""
        self._scripted.setdefault(api_key, deque()).extend(answers)

    def answer(self, sent: SentRequest) -> Any:
        """Return the answer to a request, None for none."""
        scripted = self._scripted.get(sent.request.api_key)
        what: int | str = scripted.popleft() if scripted else 0
        if what == UNHEARD:
            return None
        response = _HANDLERS[sent.request.api_key](self, sent, 0 if what == LOST else int(what))
        return None if what == LOST else response

    def find(self, sent: SentRequest, code: int) -> FindCoordinatorResponse:
        request: FindCoordinatorRequest = sent.message
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=0, host="localhost", port=9092, error_code=code)
                for key in request.coordinator_keys
            ]
        )

    def init(self, sent: SentRequest, code: int) -> InitProducerIdResponse:
        request: InitProducerIdRequest = sent.message
        assert request.transactional_id == "x"
        if not code:
            self.epoch += 1
            self.partitions.clear()
            self.offsets.clear()
        return InitProducerIdResponse(
            error_code=code, producer_id=-1 if code else self.producer_id, producer_epoch=self.epoch
        )

    def add_partitions(self, sent: SentRequest, code: int) -> AddPartitionsToTxnResponse:
        request: AddPartitionsToTxnRequest = sent.message
        self._check(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        topics = request.v3_and_below_topics
        refused, self._refused = self._refused, {}
        if not code and not refused:
            self.partitions |= {(topic.name, number) for topic in topics for number in topic.partitions}
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=number, partition_error_code=refused.get(number, code)
                        )
                        for number in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )

    def add_offsets(self, sent: SentRequest, code: int) -> AddOffsetsToTxnResponse:
        self._check(sent.message.producer_id, sent.message.producer_epoch)
        return AddOffsetsToTxnResponse(error_code=code)

    def commit_offsets(self, sent: SentRequest, code: int) -> TxnOffsetCommitResponse:
        request: TxnOffsetCommitRequest = sent.message
        self._check(request.producer_id, request.producer_epoch)
        refused, self._refused = self._refused, {}
        if not code and not refused:
            self.offsets |= {
                (topic.name, partition.partition_index): partition.committed_offset
                for topic in request.topics
                for partition in topic.partitions
            }
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=refused.get(each.partition_index, code),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def end(self, sent: SentRequest, code: int) -> EndTxnResponse:
        request: EndTxnRequest = sent.message
        bumps = sent.version >= 5
        repeated = bumps and request.producer_epoch == self.epoch - 1
        if not code and not repeated:
            self._check(request.producer_id, request.producer_epoch)
            self.ended.append(request.committed)
            if request.committed:
                self.committed |= self.offsets
            self.offsets.clear()
            self.partitions.clear()
            self.epoch += bumps
        return EndTxnResponse(
            error_code=code,
            producer_id=self.producer_id if bumps and not code else -1,
            producer_epoch=self.epoch if bumps and not code else -1,
        )

    def _check(self, producer_id: int, epoch: int) -> None:
        assert (producer_id, epoch) == (self.producer_id, self.epoch)


_HANDLERS: dict[ApiKeys, Callable[[FakeCoordinator, SentRequest, int], Any]] = {
    ApiKeys.FIND_COORDINATOR: FakeCoordinator.find,
    ApiKeys.INIT_PRODUCER_ID: FakeCoordinator.init,
    ApiKeys.ADD_PARTITIONS_TO_TXN: FakeCoordinator.add_partitions,
    ApiKeys.ADD_OFFSETS_TO_TXN: FakeCoordinator.add_offsets,
    ApiKeys.TXN_OFFSET_COMMIT: FakeCoordinator.commit_offsets,
    ApiKeys.END_TXN: FakeCoordinator.end,
}


class TransactionModel(ProducerModel):
    """A ProducerModel with transactional.id=x; `by_broker` if the brokers have transaction.version 2 (KIP-890)."""

    def __init__(self, *, by_broker: bool = True, partitions: int = 2, **settings: object) -> None:
        super().__init__(**{"linger_ms": 0, "transactional_id": "x", **settings})
        self.client.features = {"transaction.version": 2} if by_broker else {}
        self.coordinator = FakeCoordinator()
        self.know({"t": partitions})
        assert self.core.transactions is not None
        self.transactions = self.core.transactions

    def open(self) -> TransactionModel:
        """Go through init_transactions, and begin a transaction."""
        self.ended(Call(self.transactions.initialize()))
        self.transactions.begin()
        return self

    def answer_all(self) -> None:
        """Answer every request that waits, and go on."""
        while self.client.requests:
            sent = self.client.requests[0]
            if isinstance(sent.message, ProduceRequest):
                self.answer()
                continue
            response = self.coordinator.answer(sent)
            self.client.respond(
                response, matcher=lambda m, of=sent.message: m is of, disconnected=response is None
            )
            self.sender.run_once()

    def rounds(self, count: int = 10) -> None:
        """Let the sender and the brokers work for some rounds, and a little time pass."""
        for _ in range(count):
            self.run(advance_ms=20)
            self.answer_all()

    def ended(self, call: Call) -> Call:
        """Go on until `call` has ended, and raise what it raises."""
        for _ in range(100):
            if call.done:
                break
            self.rounds(1)
            call.advance()
        assert call.done, "the call does not end"
        if call.error is not None:
            raise call.error
        return call

    def commit(self) -> None:
        self.ended(Call(self.transactions.complete(commit=True)))

    def abort(self) -> None:
        self.ended(Call(self.transactions.complete(commit=False)))

    def asked(self, api_key: ApiKeys) -> list[SentRequest]:
        """All requests of an API."""
        return [sent for sent in self.client.sent if sent.request.api_key is api_key]


GROUP = ConsumerGroupMetadata("g", 3, "member", None)
OFFSETS = {TopicPartition("in", 0): OffsetAndMetadata(5, "note", 2)}


def send_offsets(m: TransactionModel) -> None:
    """Make OFFSETS of GROUP part of the transaction."""
    m.ended(Call(m.transactions.send_offsets(OFFSETS, GROUP)))


def next_transaction_is_clean(m: TransactionModel) -> None:
    """Commit one more transaction, whose records are all there."""
    before = list(m.coordinator.ended)
    m.transactions.begin()
    future = m.send(b"next")
    m.commit()
    assert future.exception(0) is None
    assert m.coordinator.ended == [*before, True]
