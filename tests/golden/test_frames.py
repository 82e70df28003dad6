"""Whole frames against those that the Java client sends and reads."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from harness.golden import golden_lines, message_classes
from kclient.protocol import ApiKeys
from kclient.protocol.header import (
    parse_request,
    parse_request_header,
    parse_response,
    peek_correlation_id,
    request_buffers,
    response_buffers,
)
from kclient.protocol.schema import Message, Structure
from kclient.protocol.wire import Array, Records

MESSAGES = message_classes()

pytestmark = pytest.mark.golden


def java_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def to_json(message: Structure, version: int) -> dict[str, Any]:
    """The contents of a message as the vectors have them."""
    return {
        java_name(field.name): value_to_json(field.kind, getattr(message, field.name), version)
        for field in message.FIELDS
        if version in field.versions
    }


def value_to_json(kind: Any, value: Any, version: int) -> Any:
    if isinstance(kind, Array) and value is not None:
        return [value_to_json(kind.of, item, version) for item in value]
    if isinstance(value, Structure):
        return to_json(value, version)
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, int | float | str) else str(value)


def covered(name: str) -> Iterator[dict[str, Any]]:
    for line in golden_lines(name):
        api = ApiKeys.for_id(line["apiKey"])
        if api is not None and api.on_broker_listener:
            yield line


def test_requests_are_read_as_java_wrote_them() -> None:
    for line in covered("requests"):
        frame = memoryview(bytes.fromhex(line["hex"]))[4:]
        header, message = parse_request(frame)
        where = f"{line['message']} v{line['version']}"
        assert header.api_key == line["apiKey"], where
        assert header.api_version == line["version"], where
        assert header.correlation_id == line["correlationId"], where
        assert header.client_id == line["clientId"], where
        assert type(message) is MESSAGES[line["message"]], where
        assert to_json(message, line["version"]) == line["json"], where
        assert parse_request_header(frame)[0] == header, where


def test_requests_are_written_as_java_wrote_them() -> None:
    for line in covered("requests"):
        frame = bytes.fromhex(line["hex"])
        _, message = parse_request(memoryview(frame)[4:])
        buffers = request_buffers(message, line["version"], line["correlationId"], line["clientId"])
        assert b"".join(buffers).hex() == line["hex"], f"{line['message']} v{line['version']}"


def test_responses_are_read_as_java_wrote_them() -> None:
    for line in covered("responses"):
        frame = memoryview(bytes.fromhex(line["hex"]))[4:]
        correlation_id, message = parse_response(ApiKeys(line["apiKey"]), line["version"], frame)
        where = f"{line['message']} v{line['version']}"
        assert correlation_id == line["correlationId"] == peek_correlation_id(frame), where
        assert to_json(message, line["version"]) == line["json"], where


def test_responses_are_written_as_java_wrote_them() -> None:
    for line in covered("responses"):
        api = ApiKeys(line["apiKey"])
        _, message = parse_response(api, line["version"], bytes.fromhex(line["hex"])[4:])
        buffers = response_buffers(message, api, line["version"], line["correlationId"])
        assert b"".join(buffers).hex() == line["hex"], f"{line['message']} v{line['version']}"


def test_large_records_are_passed_on_and_not_copied() -> None:
    for line in covered("requests"):
        if line["message"] != "ProduceRequest":
            continue
        message: Any = parse_request(memoryview(bytes.fromhex(line["hex"]))[4:])[1]
        mine = [p.records for t in message.topic_data for p in t.partition_data if p.records is not None]
        buffers = request_buffers(message, line["version"], line["correlationId"], line["clientId"])
        assert [id(r) for r in mine if len(r) > 1024] == [id(b) for b in buffers if any(b is r for r in mine)]


def test_every_covered_message_is_of_an_api_with_both_classes() -> None:
    for name in ("requests", "responses"):
        for line in covered(name):
            cls: type[Message] = MESSAGES[line["message"]]
            assert line["apiKey"] == cls.API_KEY
            assert not any(field.kind is Records and field.tag is not None for field in cls.FIELDS)
