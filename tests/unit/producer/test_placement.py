"""The way of a record from the application to the queue of its partition: topic, serializers, partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.producer.model import ProducerModel
from kclient.errors import BufferExhaustedError, KafkaTimeoutError, UnsupportedVersionError
from kclient.producer import ProducerRecord, RecordMetadata
from kclient.producer.internals.placement import Placement
from kclient.producer.partitioner import partition_for_key
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.utils.steps import run

PARTITIONS = 5


class Placed(ProducerModel):
    """A producer that knows topic `t`, and sends by its Placement."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**{"linger_ms": 1000, "enable_idempotence": False, **settings})
        self.know({"t": PARTITIONS})
        self.placement = Placement(self.core)

    def place(
        self,
        value: Any = b"v",
        key: Any = None,
        partition: int | None = None,
        *,
        topic: str = "t",
        **rest: Any,
    ) -> None:
        run(self.placement.send(topic, value, key, partition, **rest), self.time)

    def counts(self, topic: str = "t") -> dict[int, int]:
        """Records in the open batch of each partition that has one."""
        queues = self.accumulator.topic(topic).queues
        return {number: queue.open.count for number, queue in queues.items() if queue.open is not None}


class Choosing:
    """A partitioner that chooses what it is told to."""

    def __init__(self, choice: Any) -> None:
        self.choice = choice

    def partition(self, *_: Any) -> Any:
        return self.choice

    def close(self) -> None:
        """There is nothing to close."""


class TestPartitions:
    def test_the_partition_that_is_asked_for_goes_before_key_and_partitioner(self) -> None:
        m = Placed(partitioner_class=Choosing(1))
        m.place(key=b"k", partition=3)
        assert m.counts() == {3: 1}

    def test_records_of_one_key_go_where_its_hash_says(self) -> None:
        m = Placed()
        keys = [b"%d" % number for number in range(20)]
        for key in keys:
            m.place(key=key)
            m.place(key=key)
        expected: dict[int, int] = {}
        for key in keys:
            partition = partition_for_key(key, PARTITIONS)
            expected[partition] = expected.get(partition, 0) + 2
        assert m.counts() == expected

    @pytest.mark.parametrize(
        "settings", [{"partitioner_ignore_keys": True}, {"partitioner_class": Choosing(None)}]
    )
    def test_keys_that_do_not_count_leave_records_where_those_before_went(
        self, settings: dict[str, object]
    ) -> None:
        m = Placed(**settings)
        for number in range(20):
            m.place(key=b"%d" % number)
        assert list(m.counts().values()) == [20]

    def test_an_empty_key_is_a_key(self) -> None:
        m = Placed()
        by_key = partition_for_key(b"", PARTITIONS)
        queues = m.accumulator.topic("t")
        queues.sticky_queue = queues.queue((by_key + 1) % PARTITIONS)
        m.place(key=b"")
        assert m.counts() == {by_key: 1}

    @pytest.mark.parametrize(
        ("choice", "error"), [(PARTITIONS, ValueError), (-1, ValueError), ("1", TypeError), (1.0, TypeError)]
    )
    def test_a_partitioner_that_chooses_what_is_no_partition_is_told_so(
        self, choice: Any, error: type[Exception]
    ) -> None:
        m = Placed(partitioner_class=Choosing(choice))
        with pytest.raises(error, match="partition"):
            m.place()
        assert m.counts() == {}


class TestSerializers:
    """Serializers that see what they are given."""

    def made(self) -> tuple[Placed, list[tuple[Any, ...]]]:
        seen: list[tuple[Any, ...]] = []

        class Noting:
            def __init__(self, what: str) -> None:
                self.what = what

            def serialize(self, topic: str, data: Any, headers: Sequence[Any]) -> bytes:
                seen.append((self.what, topic, data, tuple(headers)))
                return str(data).encode()

        return Placed(key_serializer=Noting("key"), value_serializer=Noting("value")), seen

    def test_they_see_topic_and_headers_and_the_partition_is_chosen_by_their_bytes(self) -> None:
        m, seen = self.made()
        m.place(12, 34, headers=[("h", bytearray(b"1"))])
        headers = (("h", b"1"),)
        assert seen == [("key", "t", 34, headers), ("value", "t", 12, headers)]
        assert m.counts() == {partition_for_key(b"34", PARTITIONS): 1}

    def test_what_is_serialized_already_is_not_serialized_again(self) -> None:
        m, seen = self.made()
        run(m.placement.accept("t", b"v", b"k", None, (), None, None, serialized=True), m.time)
        assert seen == []
        assert m.counts() == {partition_for_key(b"k", PARTITIONS): 1}


class TestUnknownTopics:
    def test_a_known_topic_is_not_waited_for_and_starts_no_clock(self) -> None:
        m = Placed()
        with pytest.raises(StopIteration) as done:
            next(m.placement.topic("t", PARTITIONS - 1))
        queues, timer = done.value.value
        assert (queues, timer) == (m.accumulator.topic("t"), None)

    def test_a_new_topic_is_asked_for_at_once_and_goes_on_when_it_is_known(self) -> None:
        m = Placed()
        wakeups = m.client.wakeups
        steps = m.placement.send("new", b"v", None, 1)
        next(steps)
        assert m.client.wakeups > wakeups
        assert m.core.metadata.new_topics_to_request() == ["new"]
        m.know({"t": PARTITIONS, "new": 2})
        with pytest.raises(StopIteration):
            next(steps)
        assert m.counts("new") == {1: 1}

    def test_a_partition_that_is_not_there_yet_is_waited_for(self) -> None:
        m = Placed()
        steps = m.placement.send("t", b"v", None, PARTITIONS)
        next(steps)
        assert m.core.metadata.update_requested
        m.know({"t": PARTITIONS})
        next(steps)  # an update without it
        m.know({"t": PARTITIONS + 1})
        with pytest.raises(StopIteration):
            next(steps)
        assert m.counts() == {PARTITIONS: 1}

    def test_the_wait_for_a_topic_leaves_the_wait_for_memory_what_is_left_of_max_block_ms(self) -> None:
        m = Placed(buffer_memory=1000, batch_size=900, max_block_ms=500)
        m.place(b"x" * 800, partition=0)
        steps = m.placement.send("new", b"x" * 800, None, 0)
        pause = next(steps)
        assert pause.remaining_ms() == 500
        m.time.advance(300)
        m.know({"t": PARTITIONS, "new": 1})
        pause = next(steps)
        assert pause.remaining_ms() == 200
        m.time.advance(200)
        with pytest.raises(BufferExhaustedError):
            next(steps)

    def test_the_time_that_was_waited_is_counted_also_when_it_was_in_vain(self) -> None:
        m = Placed(max_block_ms=500)
        steps = m.placement.send("new", b"v", None, None)
        next(steps)
        m.time.advance(500)
        with pytest.raises(KafkaTimeoutError, match=r"Topic new was not found within 500 ms"):
            next(steps)
        waits = {n.name: v for n, v in m.core.metrics.snapshot().items() if "metadata-wait" in n.name}
        assert waits == {"metadata-wait-time-ns-total": 500_000_000}


class Interceptor:
    """Notes what it hears of, and sends records elsewhere."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.heard: list[tuple[str, int, BaseException | None]] = []

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return ProducerRecord(**{"topic": record.topic, "value": record.value, **self.changes})

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        self.heard.append((metadata.topic, metadata.partition, error))


class TestInterceptors:
    def test_what_they_make_of_a_record_is_what_is_sent(self) -> None:
        m = Placed(interceptor_classes=[Interceptor(partition=4)])
        m.place(partition=1)
        assert m.counts() == {4: 1}

    def test_they_hear_of_a_record_that_was_refused_as_they_changed_it(self) -> None:
        interceptor = Interceptor(topic="t", value=5, partition=4)
        m = Placed(interceptor_classes=[interceptor])
        with pytest.raises(Exception, match=r"value\.serializer") as refused:
            m.place(partition=1)
        assert interceptor.heard == [("t", 4, refused.value)]


def test_after_an_error_that_is_final_nothing_is_usable_and_the_error_says_why() -> None:
    m = ProducerModel()
    m.know({"t": 1})
    placement = Placement(m.core)
    placement.check_usable()
    m.run()
    m.client.respond(InitProducerIdResponse(error_code=UnsupportedVersionError().code))
    m.run()
    with pytest.raises(UnsupportedVersionError, match="cannot go on and has to be closed") as refused:
        placement.check_usable()
    assert refused.value.__cause__ is m.core.idempotence.fatal_error  # type: ignore[union-attr]
