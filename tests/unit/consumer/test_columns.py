"""poll_columns() and poll_arrow(), over a whole consumer without threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.fetched_batches import TIME_MS, batch, marker, transactional
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerInterceptor, RecordColumns
from kclient.consumer.internals.fetch_collector import FetchCollector
from kclient.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    WakeupError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import fetch
from kclient.record import MemoryRecordsBuilder
from kclient.record.control import ControlRecordType

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def serve(rig: Any, *answers: bytes, **fields: Any) -> None:
    """The fetches of t-0 get these, whatever the offset, and nothing more after them."""
    waiting = list(answers)

    def partition_data(tp: TopicPartition, offset: int) -> Any:
        records = waiting.pop(0) if waiting else b""
        return fetch.PartitionData(
            partition_index=0, high_watermark=100, last_stable_offset=100, records=records, **fields
        )

    rig.partition_data = partition_data
    rig.consumer.assign([T0])
    rig.consumer.seek(T0, 0)


def offsets(found: dict[TopicPartition, RecordColumns], tp: TopicPartition = T0) -> list[int]:
    return list(found[tp].offsets) if found else []


class TestPolling:
    def test_the_records_of_a_fetch_come_as_columns_and_the_position_moves_past_them(self, rig: Any) -> None:
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        [(tp, columns)] = rig.consumer.poll_columns(1000).items()
        assert (tp, columns.topic_partition, columns.count, len(columns)) == (T0, T0, 5, 5)
        assert list(columns.offsets) == [0, 1, 2, 3, 4]
        assert list(columns.timestamps_ms) == [TIME_MS] * 5
        assert list(columns.timestamp_types) == [0] * 5
        assert list(columns.keys) == [None] * 5
        assert columns.keys.null_count == 5
        assert list(columns.values) == [b"0", b"1", b"2", b"3", b"4"]
        assert (columns.values[0], columns.values[-1], columns.values.validity) == (b"0", b"4", None)
        assert columns.headers is None
        assert columns.next_offset == rig.consumer.position(T0) == 5
        assert (columns.offsets.format, columns.timestamp_types.format) == ("q", "b")
        assert (columns.values.offsets.format, columns.values.data.format) == ("i", "B")
        with pytest.raises(IndexError):
            columns.values[5]
        assert offsets(rig.consumer.poll_columns(1000)) == [5, 6, 7]
        assert rig.consumer.current_lag(T0) == 0

    def test_headers_have_columns_of_their_own(self, rig: Any) -> None:
        builder = MemoryRecordsBuilder()
        builder.append(1, None, b"a")
        builder.append(1, b"k", None, [("x", b"1"), ("ü", None)])
        serve(rig, builder.close())
        columns = rig.consumer.poll_columns(1000)[T0]
        assert list(columns.headers.offsets) == [0, 0, 2]
        assert list(columns.headers.names) == [b"x", "ü".encode()]
        assert list(columns.headers.values) == [b"1", None]
        assert list(columns.values) == [b"a", None]
        assert repr(columns) == "RecordColumns(2 records of t-0)"

    def test_a_timeout_gives_nothing(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        before = rig.time.monotonic_ms()
        assert rig.consumer.poll_columns(300) == {}
        assert rig.time.monotonic_ms() - before == pytest.approx(300, abs=20)

    def test_max_records_is_for_all_partitions_together(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.fill(T1, 5)
        rig.consumer.assign([T0, T1])
        rig.rounds(100)
        counts = [
            {tp.partition: columns.count for tp, columns in rig.consumer.poll_columns(0, 3).items()}
            for _ in range(5)
        ]
        assert [sum(each.values()) for each in counts] == [3, 3, 3, 1, 0]
        assert rig.consumer.position(T0) == rig.consumer.position(T1) == 5

    def test_max_records_may_be_more_than_there_can_be(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert offsets(rig.consumer.poll_columns(1000, 10**30)) == [0, 1, 2, 3, 4]

    def test_max_poll_records_does_not_apply(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(max_poll_records=2)
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert offsets(rig.consumer.poll_columns(1000)) == [0, 1, 2, 3, 4]

    def test_all_ways_of_reading_can_take_turns(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(max_poll_records=2)
        rig.fill(T0, 40)
        rig.consumer.assign([T0])
        seen: list[int] = []
        for turn in range(40):
            if turn % 4 == 0:
                seen += offsets(rig.consumer.poll_columns(1000, 3))
            elif turn % 4 == 1:
                seen += [record.offset for record in rig.consumer.poll(1000)]
            elif turn % 4 == 2:
                # One of two that were decoded: the other one has to come with what is next.
                seen.append(next(rig.consumer).offset)
            else:
                seen += offsets(rig.consumer.poll_columns(1000, 1))
            assert rig.consumer.position(T0) == len(seen)
            if len(seen) == 40:
                break
        assert seen == list(range(40))

    def test_paused_partitions_give_nothing_and_a_seek_counts_at_once(self, rig: Any) -> None:
        rig.fill(T0, 20)
        rig.consumer.assign([T0])
        rig.rounds(50)
        rig.consumer.pause([T0])
        assert rig.consumer.poll_columns(50) == {}
        rig.consumer.resume([T0])
        rig.consumer.seek(T0, 12)
        assert offsets(rig.consumer.poll_columns(1000)) == [12, 13, 14, 15, 16]

    def test_deserializers_are_not_applied(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(value_deserializer=lambda data: 1 // (int(data) - 2))
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert len(rig.consumer.poll(1000)) == 2
        with pytest.raises(RecordDeserializationError):
            rig.consumer.poll(1000)
        # What cannot be deserialized can be looked at.
        assert list(rig.consumer.poll_columns(1000, 1)[T0].values) == [b"2"]
        assert [record.offset for record in rig.consumer.poll(1000)] == [3, 4]

    def test_interceptors_are_refused_as_they_would_see_nothing(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(interceptor_classes=[ConsumerInterceptor()])
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        with pytest.raises(IllegalStateError, match="interceptor"):
            rig.consumer.poll_columns(1000)
        assert len(rig.consumer.poll(1000)) == 5

    def test_wrong_arguments_are_refused(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        for wrong in (0, -1):
            with pytest.raises(ValueError, match="max_records"):
                rig.consumer.poll_columns(0, wrong)
        for wrong in ("1", True):
            with pytest.raises(TypeError, match="max_records"):
                rig.consumer.poll_columns(0, wrong)
        with pytest.raises(ValueError, match="timeout_ms"):
            rig.consumer.poll_columns(-1)
        rig.consumer.unsubscribe()
        with pytest.raises(IllegalStateError):
            rig.consumer.poll_columns(0)

    def test_wakeup_ends_the_wait(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.consumer.wakeup()
        with pytest.raises(WakeupError):
            rig.consumer.poll_columns(1000)

    def test_what_earlier_calls_returned_is_committed(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(group_id="g", auto_commit_interval_ms=0)
        rig.fill(T0, 10)
        rig.consumer.assign([T0])
        assert offsets(rig.consumer.poll_columns(1000)) == [0, 1, 2, 3, 4]
        assert rig.committed.get(T0) is None
        assert offsets(rig.consumer.poll_columns(1000)) == [5, 6, 7, 8, 9]
        rig.rounds()
        assert rig.committed[T0] == 5

    def test_what_is_interrupted_moves_no_position(self, rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])

        def interrupted(*arguments: Any) -> Any:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(RecordColumns, "of", interrupted)
            with pytest.raises(KeyboardInterrupt):
                rig.consumer.poll_columns(1000)
        assert rig.consumer.position(T0) == 0
        assert offsets(rig.consumer.poll_columns(1000)) == [0, 1, 2, 3, 4]

    def test_columns_that_were_decoded_and_not_handed_out_come_in_whatever_form_is_asked_for(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.fill(T0, 20)
        rig.consumer.assign([T0])
        for again in ("columns", "fewer", "records"):
            with monkeypatch.context() as patch:
                # As when the I/O thread begins to validate the position in between.
                patch.setattr(FetchCollector, "hand_out", lambda *_: False)
                assert rig.consumer.poll_columns(100) == {}
            if again == "columns":
                assert offsets(rig.consumer.poll_columns(0)) == [0, 1, 2, 3, 4]
                rig.consumer.seek(T0, 0)
            elif again == "fewer":
                assert offsets(rig.consumer.poll_columns(0, 2)) == [0, 1]
            else:
                assert [record.offset for record in rig.consumer.poll(0)] == [2, 3, 4]

    def test_metrics_count_them(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        rig.consumer.poll_columns(1000)
        found = {name.name: value for name, value in rig.consumer.metrics().items()}
        assert found["records-consumed-total"] == 5


class TestContents:
    def test_a_broken_checksum_is_raised_after_what_comes_before_it(self, rig: Any) -> None:
        broken = bytearray(batch(3, 2))
        broken[-2] ^= 1
        serve(rig, batch(0, 3) + bytes(broken), batch(3, 2))
        assert offsets(rig.consumer.poll_columns(1000)) == [0, 1, 2]
        with pytest.raises(CorruptRecordError, match=r"t-0.*3"):
            rig.consumer.poll_columns(1000)
        assert rig.consumer.position(T0) == 3
        assert offsets(rig.consumer.poll_columns(1000)) == [3, 4]  # it was damaged on the way

    def test_checksums_are_not_looked_at_with_check_crcs_off(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(check_crcs=False)
        broken = bytearray(batch(0, 3))
        broken[17] ^= 1
        serve(rig, bytes(broken))
        assert offsets(rig.consumer.poll_columns(1000)) == [0, 1, 2]

    def test_bytes_without_a_whole_batch_are_an_error(self, rig: Any) -> None:
        serve(rig, *[batch(0, 3)[:40]] * 5)
        with pytest.raises(KafkaError, match="no whole batch"):
            rig.consumer.poll_columns(1000)

    def test_an_offset_out_of_range_is_raised(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(auto_offset_reset="none")
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 50)
        with pytest.raises(OffsetOutOfRangeError):
            rig.consumer.poll_columns(1000)

    def test_an_error_of_one_partition_hides_no_records_of_others(self, rig: Any) -> None:
        rig.fill(T1, 10)
        usual = rig.partition_data
        odd = bytearray(batch(0, 3))
        odd[22] |= 6  # a codec that there is not

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            if tp == T1:
                return usual(tp, offset)
            return fetch.PartitionData(partition_index=0, high_watermark=100, records=bytes(odd))

        rig.partition_data = partition_data
        rig.consumer.assign([T0, T1])
        got, errors = [], 0
        for _ in range(30):
            try:
                for tp, columns in rig.consumer.poll_columns(100).items():
                    got += [(tp.partition, offset) for offset in columns.offsets]
            except KafkaError:
                errors += 1
        assert got == [(1, offset) for offset in range(10)]
        assert errors

    def test_the_position_passes_what_holds_no_records_for_the_application(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(isolation_level="read_committed")

        log = b"".join(
            (
                transactional(1, 0, 2),
                transactional(2, 2, 2),
                batch(4, 1),
                marker(1, 5, ControlRecordType.ABORT),
                transactional(1, 6, 1),
                marker(2, 7, ControlRecordType.ABORT),
                marker(1, 8, ControlRecordType.COMMIT),
                MemoryRecordsBuilder(base_offset=9).empty_batch(14, -1),
            )
        )
        aborted = [
            fetch.AbortedTransaction(producer_id=2, first_offset=2),
            fetch.AbortedTransaction(producer_id=1, first_offset=0),
        ]
        serve(rig, log, aborted_transactions=aborted)
        found = rig.consumer.poll_columns(1000)
        assert (offsets(found), found[T0].next_offset) == ([4, 6], 15)
        assert rig.consumer.position(T0) == 15
        serve(rig, transactional(1, 0, 3), batch(3, 2), aborted_transactions=aborted[1:])
        assert offsets(rig.consumer.poll_columns(1000)) == [3, 4]


class TestArrow:
    @pytest.fixture(autouse=True)
    def pa(self) -> Any:
        return pytest.importorskip("pyarrow", minversion="19")

    @pytest.mark.parametrize("binary", ["copy", "view"])
    def test_a_record_batch_has_the_records_of_one_partition(self, rig: Any, pa: Any, binary: str) -> None:
        builder = MemoryRecordsBuilder(base_offset=0, partition_leader_epoch=5)
        builder.append(TIME_MS, b"k", b"short", [("h", b"x"), ("n", None)])
        builder.append(TIME_MS + 1, None, b"long" * 10)
        builder.append(TIME_MS + 2, b"key" * 10, None, [("h", b"")])
        serve(rig, builder.close())
        found = rig.consumer.poll_arrow(1000, binary=binary)
        found.validate(full=True)
        kind = pa.binary_view() if binary == "view" else pa.binary()
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        assert found.schema == pa.schema(
            [
                ("topic", pa.dictionary(pa.int32(), pa.string())),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("ms", "UTC")),
                ("timestamp_type", pa.int8()),
                ("key", kind),
                ("value", kind),
                ("headers", pa.list_(header)),
            ]
        )
        columns = found.to_pydict()
        assert columns["topic"] == ["t"] * 3
        assert columns["partition"] == [0] * 3
        assert columns["offset"] == [0, 1, 2]
        assert found["timestamp"].cast(pa.int64()).to_pylist() == [TIME_MS, TIME_MS + 1, TIME_MS + 2]
        assert columns["timestamp_type"] == [0] * 3
        assert columns["key"] == [b"k", None, b"key" * 10]
        assert columns["value"] == [b"short", b"long" * 10, None]
        assert columns["headers"] == [
            [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
            [],
            [{"key": "h", "value": b""}],
        ]
        assert rig.consumer.position(T0) == 3
        empty = rig.consumer.poll_arrow(50, binary=binary)
        assert (empty.num_rows, empty.schema) == (0, found.schema)

    def test_partitions_take_turns_and_max_records_holds(self, rig: Any) -> None:
        rig.fill(T0, 10)
        rig.fill(T1, 10)
        rig.consumer.assign([T0, T1])
        rig.rounds(100)
        order = []
        while (found := rig.consumer.poll_arrow(1000, max_records=3)).num_rows:
            order.append((found["partition"][0].as_py(), found["offset"].to_pylist()))
        first, second = (0, 1) if order[0][0] == 0 else (1, 0)
        assert order == [
            (first, [0, 1, 2]),
            (first, [3, 4]),
            (second, [0, 1, 2]),
            (second, [3, 4]),
            (first, [5, 6, 7]),
            (first, [8, 9]),
            (second, [5, 6, 7]),
            (second, [8, 9]),
        ]

    def test_columns_become_the_same_batch(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        columns = rig.consumer.poll_columns(1000)[T0]
        rig.consumer.seek(T0, 0)
        assert columns.to_arrow().equals(rig.consumer.poll_arrow(1000))

    def test_a_batch_that_cannot_be_made_moves_no_position(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        with monkeypatch.context() as patch:
            patch.setattr("kclient.consumer.internals.arrow.ArrowBatches.batch", lambda *_: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                rig.consumer.poll_arrow(1000)
        assert rig.consumer.position(T0) == 0
        assert rig.consumer.poll_arrow(1000).num_rows == 5

    def test_an_unknown_form_is_refused(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        with pytest.raises(ValueError, match="copy, view"):
            rig.consumer.poll_arrow(0, binary="zero")


def test_without_pyarrow_it_is_said_how_to_get_it(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    with pytest.raises(ImportError, match=r"pip install 'kclient-kafka\[arrow\]'"):
        rig.consumer.poll_arrow(1000)
    columns = rig.consumer.poll_columns(1000)[T0]
    with pytest.raises(ImportError, match="pyarrow"):
        columns.to_arrow()
    assert rig.sent(ApiKeys.FETCH)
