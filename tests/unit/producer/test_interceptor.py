"""Interceptors of producers: their order, what they raise, and records that were never accepted."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kclient.errors import ConfigError
from kclient.producer.interceptor import ProducerInterceptors, make_interceptors
from kclient.producer.types import ProducerRecord, RecordMetadata
from kclient.utils.log_context import LogContext

RECORD: ProducerRecord[Any, Any] = ProducerRecord("t", "value")
METADATA = RecordMetadata("t", 1, 5, 0, -1, -1)


class Noted:
    """Appends its name to values, and tells what it saw; raises `error` if there is one."""

    def __init__(self, name: str, seen: list[Any], error: BaseException | None = None) -> None:
        self.name, self.seen, self.error = name, seen, error

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        self.seen.append((self.name, record.value))
        if self.error is not None:
            raise self.error
        return attrs.evolve(record, value=record.value + self.name)

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        self.seen.append((self.name, metadata, error))
        if self.error is not None:
            raise self.error


def chain(*noted: Noted) -> ProducerInterceptors:
    return ProducerInterceptors(noted, LogContext("[p] "))


def test_each_sees_what_the_one_before_made_of_the_record() -> None:
    seen: list[Any] = []
    assert chain(Noted("a", seen), Noted("b", seen)).on_send(RECORD).value == "valueab"
    assert seen == [("a", "value"), ("b", "valuea")]


def test_one_that_raises_is_logged_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    made = chain(Noted("a", seen), Noted("b", seen, RuntimeError("odd")), Noted("c", seen))
    assert made.on_send(RECORD).value == "valueac"
    made.on_acknowledgement(METADATA, None)
    assert [each[0] for each in seen] == ["a", "b", "c"] * 2
    assert [message for message in caplog.messages if message.startswith("[p] The interceptor Noted raised")]
    assert caplog.text.count("odd") >= 2


def test_an_interrupt_of_the_caller_is_logged_and_reaches_the_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Any] = []
    made = chain(Noted("a", seen, KeyboardInterrupt()), Noted("b", seen))
    with pytest.raises(KeyboardInterrupt):
        made.on_send(RECORD)
    with pytest.raises(KeyboardInterrupt):
        made.on_acknowledgement(METADATA, None)
    assert [each[0] for each in seen] == ["a", "a"]
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(("partition", "told"), [(None, -1), (0, 0), (3, 3)])
def test_a_record_that_was_never_accepted_is_told_without_an_offset(partition: int | None, told: int) -> None:
    seen: list[Any] = []
    error = ValueError("too large")
    chain(Noted("a", seen)).on_send_error("t", partition, error)
    ((_, metadata, caught),) = seen
    assert caught is error
    assert (metadata.topic, metadata.partition, metadata.offset) == ("t", told, -1)


def test_the_interceptors_hear_of_a_record_before_its_callback() -> None:
    seen: list[Any] = []
    made = chain(Noted("a", seen))
    made.around(lambda metadata, error: seen.append(("callback", metadata, error)))(METADATA, None)
    made.around(None)(METADATA, None)
    assert [each[0] for each in seen] == ["a", "callback", "a"]


def test_none_of_them_is_false_and_they_can_be_gone_through_to_be_closed() -> None:
    one = Noted("a", [])
    assert not chain()
    assert list(chain(one)) == [one]


def test_classes_are_made_objects_and_objects_are_taken_as_they_are() -> None:
    class Plain:
        def on_send(self, record: Any) -> Any:
            return record

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            pass

    given = Plain()
    made, kept = make_interceptors([Plain, given])
    assert isinstance(made, Plain)
    assert kept is given


@pytest.mark.parametrize("value", ["a.Name", object, len, None])
def test_what_lacks_the_methods_is_refused_by_the_settings_name(value: object) -> None:
    with pytest.raises(ConfigError, match="needs the methods on_send and on_acknowledgement") as raised:
        make_interceptors([value] if value is not len else [type("Half", (), {"on_send": len})])
    assert raised.value.name == "interceptor.classes"
