"""kclient.on.deserialization.error, over a whole consumer without threads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.errors import ConfigError, RecordDeserializationError
from kclient.protocol.api_keys import ApiKeys

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SETTING = "kclient.on.deserialization.error"


def even(data: bytes) -> int:
    """Return the number that `data` is, if it is even."""
    if int(data) % 2:
        raise ValueError(f"{int(data)} is odd")
    return int(data)


@pytest.fixture
def make(make_rig: Callable[..., Any]) -> Callable[..., Any]:
    """Make a consumer that can read the even ones of ten numbers."""

    def made(wanted: object = "skip", **settings: object) -> Any:
        rig = make_rig(**{SETTING.replace(".", "_"): wanted, "value_deserializer": even, **settings})
        rig.fill(T0, 10)
        rig.consumer.assign([T0])
        return rig

    return made


def polled(rig: Any) -> list[Any]:
    """All that polls return, until one returns nothing."""
    found: list[Any] = []
    while records := rig.consumer.poll(300):
        found += records
    return found


class TestSkip:
    def test_records_are_left_out_and_positions_pass_them(self, make: Callable[..., Any]) -> None:
        rig = make(max_poll_records=2)
        assert [record.value for record in polled(rig)] == [0, 2, 4, 6, 8]
        assert rig.consumer.position(T0) == 10
        assert rig.consumer.current_lag(T0) == 0

    def test_a_loop_does_not_see_them_either(self, make: Callable[..., Any]) -> None:
        rig = make()
        seen = []
        for record in rig.consumer:
            seen.append((record.value, rig.consumer.position(T0)))
            if record.value == 8:
                break
        assert seen == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 10)]

    def test_they_count_as_consumed_when_positions_are_committed(self, make: Callable[..., Any]) -> None:
        rig = make(group_id="g", enable_auto_commit=False)
        polled(rig)
        rig.consumer.commit_sync()
        assert rig.committed == {T0: 10}

    def test_a_position_behind_records_that_were_all_left_out_is_committed_automatically(
        self, make: Callable[..., Any]
    ) -> None:
        def refuse(data: bytes) -> Any:
            raise ValueError(data)

        rig = make(group_id="g", value_deserializer=refuse)
        assert not rig.consumer.poll(300)
        rig.consumer.close()
        assert rig.committed == {T0: 10}

    def test_interceptors_do_not_see_them(self, make: Callable[..., Any]) -> None:
        seen: list[int] = []

        class Watching(ConsumerInterceptor):
            def on_consume(self, records: Any) -> Any:
                seen.extend(record.offset for record in records)
                return records

        polled(make(interceptor_classes=[Watching()]))
        assert seen == [0, 2, 4, 6, 8]

    def test_they_are_counted(self, make: Callable[..., Any]) -> None:
        rig = make()
        polled(rig)
        assert rig.consumer.metrics()["records-left-out-total"] == 5
        assert rig.consumer.metrics()["records-consumed-total"] == 5

    def test_there_is_one_warning_for_many_of_a_partition(
        self, make: Callable[..., Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        rig = make()
        rig.fill(T1, 4)
        rig.consumer.assign([T0, T1])
        with caplog.at_level(logging.WARNING):
            polled(rig)
        lines = sorted(record.getMessage() for record in caplog.records if "left out" in record.getMessage())
        assert len(lines) == 2
        assert "The record at offset 1 of t-0 is left out: its value cannot be deserialized" in lines[0]
        assert lines[0].endswith("ValueError: 1 is odd")
        assert "offset 1 of t-1" in lines[1]

    def test_a_warning_does_not_hold_the_whole_record(
        self, make: Callable[..., Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        def refuse(_data: bytes) -> Any:
            raise ValueError("x" * 100_000)

        with caplog.at_level(logging.WARNING):
            polled(make(value_deserializer=refuse))
        assert all(len(record.getMessage()) < 1000 for record in caplog.records)

    def test_columns_hold_them_as_the_bytes_they_are(self, make: Callable[..., Any]) -> None:
        rig = make()
        assert [bytes(value) for value in rig.consumer.poll_columns(1000)[T0].values] == [
            b"%d" % number for number in range(5)
        ]
        assert [record.value for record in polled(rig)] == [6, 8]

    def test_poll_returns_in_time_however_many_there_are(self, make: Callable[..., Any]) -> None:
        def refuse(_data: bytes) -> Any:
            rig.pump()  # the I/O thread is always ahead
            rig.time.advance(1)
            raise ValueError

        rig = make(value_deserializer=refuse)
        usual = rig.partition_data

        def endless(tp: TopicPartition, offset: int) -> Any:
            rig.fill(T0, offset + 5)
            return usual(tp, offset)

        rig.partition_data = endless
        began_ms = rig.time.monotonic_ms()
        assert not rig.consumer.poll(300)
        assert rig.time.monotonic_ms() - began_ms <= 320


class TestFunction:
    def test_it_is_given_the_error_that_would_be_raised(self, make: Callable[..., Any]) -> None:
        errors: list[RecordDeserializationError] = []
        rig = make(errors.append)
        assert [record.value for record in polled(rig)] == [0, 2, 4, 6, 8]
        assert [(error.topic_partition, error.offset, error.which) for error in errors] == [
            (T0, number, "value") for number in (1, 3, 5, 7, 9)
        ]
        assert errors[0].value == b"1"
        assert errors[0].timestamp_type == 0
        assert str(errors[0].__cause__) == "1 is odd"
        assert rig.consumer.metrics()["records-left-out-total"] == 5

    def test_what_it_returns_takes_the_place_of_the_value(self, make: Callable[..., Any]) -> None:
        rig = make(lambda error: -int(error.value))
        assert [record.value for record in polled(rig)] == [0, -1, 2, -3, 4, -5, 6, -7, 8, -9]
        assert rig.consumer.metrics()["records-left-out-total"] == 0

    def test_a_record_that_it_returns_takes_the_place_of_the_record(self, make: Callable[..., Any]) -> None:
        last: list[Any] = []

        def instead(error: RecordDeserializationError) -> Any:
            return attrs.evolve(last[0], offset=error.offset, value="other", headers=(("odd", None),))

        rig = make(instead, max_poll_records=1)
        last += rig.consumer.poll(1000)
        [record] = rig.consumer.poll(1000)
        assert (record.offset, record.value, record.headers) == (1, "other", (("odd", None),))
        assert rig.consumer.position(T0) == 2

    def test_a_record_of_another_place_is_refused(self, make: Callable[..., Any]) -> None:
        last: list[Any] = []
        rig = make(lambda _error: last[0], max_poll_records=1)
        last += rig.consumer.poll(1000)
        with pytest.raises(
            ValueError, match=rf"{SETTING}: a record of t-0 at offset 0 cannot take .* offset 1"
        ):
            rig.consumer.poll(1000)
        assert rig.consumer.position(T0) == 1

    @pytest.mark.parametrize("raised", [RuntimeError("stop"), ValueError("bad"), LookupError("no"), None])
    def test_what_it_raises_is_raised_by_poll_and_it_is_asked_again(
        self, make: Callable[..., Any], raised: Exception | None
    ) -> None:
        asked: list[int] = []
        given_up = False

        def decide(error: RecordDeserializationError) -> None:
            asked.append(error.offset)
            if not given_up:
                raise raised or error

        rig = make(decide)
        assert [record.value for record in rig.consumer.poll(1000)] == [0]
        fetches = len(rig.sent(ApiKeys.FETCH))
        for _ in range(2):
            with pytest.raises(type(raised or RecordDeserializationError())) as caught:
                rig.consumer.poll(1000)
            assert raised is None or caught.value is raised
            assert rig.consumer.position(T0) == 1
        rig.rounds()
        assert len(rig.sent(ApiKeys.FETCH)) <= fetches + 1, "what was fetched is kept"
        given_up = True
        assert [record.value for record in polled(rig)] == [2, 4, 6, 8]
        assert asked.count(1) == 3, "once for every error"

    def test_after_it_has_raised_the_application_can_seek_past_the_record(
        self, make: Callable[..., Any]
    ) -> None:
        def decide(error: RecordDeserializationError) -> None:
            raise RuntimeError(str(error.offset))

        rig = make(decide)
        found = []
        for offset in (1, 3):
            found += rig.consumer.poll(1000)
            with pytest.raises(RuntimeError, match=str(offset)):
                rig.consumer.poll(1000)
            rig.consumer.seek(T0, offset + 1)
        assert [record.value for record in found] == [0, 2]

    def test_its_error_comes_as_it_was_raised(self, make: Callable[..., Any]) -> None:
        def decide(error: RecordDeserializationError) -> None:
            try:
                raise KeyError("no schema")
            except KeyError as why:
                raise LookupError(error.offset) from why

        rig = make(decide)
        rig.consumer.poll(1000)
        with pytest.raises(LookupError, match="1") as caught:
            rig.consumer.poll(1000)
        assert repr(caught.value.__cause__) == repr(caught.value.__context__) == "KeyError('no schema')"
        # Of what the deserializer raised, which was being handled.
        assert isinstance(caught.value.__cause__.__context__, ValueError)  # type: ignore[union-attr]

    def test_its_error_hides_no_records_of_other_partitions(self, make: Callable[..., Any]) -> None:
        def decide(_error: RecordDeserializationError) -> None:
            raise RuntimeError

        rig = make(decide, value_deserializer=lambda data: 1 // (int(data) - 2))
        rig.fill(T1, 30)
        rig.consumer.assign([T0, T1])
        rig.consumer.seek(T1, 3)
        got, errors = [], 0
        for _ in range(40):
            try:
                got += [record.offset for record in rig.consumer.poll(100) if record.partition == 1]
            except RuntimeError:
                errors += 1
                rig.rounds()
        assert got == list(range(3, 30))
        assert errors > 1

    def test_columns_can_be_read_where_it_has_raised(self, make: Callable[..., Any]) -> None:
        def decide(_error: RecordDeserializationError) -> None:
            raise RuntimeError

        rig = make(decide)
        rig.consumer.poll(1000)
        with pytest.raises(RuntimeError):
            rig.consumer.poll(1000)
        assert bytes(next(iter(rig.consumer.poll_columns(1000)[T0].values))) == b"1"


class TestSetting:
    def test_by_default_poll_raises(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(value_deserializer=even)
        rig.fill(T0, 2)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        with pytest.raises(RecordDeserializationError):
            rig.consumer.poll(1000)
        assert "records-left-out-total" not in rig.consumer.metrics()

    @pytest.mark.parametrize("wrong", ["ignore", "", 5, dict, None])
    def test_another_word_or_object_is_refused_by_name(
        self, make_rig: Callable[..., Any], wrong: object
    ) -> None:
        with pytest.raises(ConfigError, match=SETTING.replace(".", r"\.")) as caught:
            make_rig(**{SETTING: wrong})
        assert caught.value.name == SETTING

    def test_a_coroutine_function_is_refused(self, make_rig: Callable[..., Any]) -> None:
        async def decide(_error: RecordDeserializationError) -> None: ...

        with pytest.raises(ConfigError, match="would not be awaited"):
            make_rig(**{SETTING: decide})
