"""Frames: headers in front of messages, and requests that a broker cannot understand."""

from __future__ import annotations

import pickle
import struct

import pytest

from kclient.errors import SchemaError
from kclient.protocol import ApiKeys
from kclient.protocol.header import (
    RequestHeader,
    RequestVersionError,
    UnknownApiError,
    parse_request,
    parse_request_header,
    parse_response,
    peek_correlation_id,
    request_buffers,
    response_buffers,
)
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


@pytest.mark.parametrize("client_id", [None, "", "client-1", "größe"])
@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_comes_back_with_its_header(version: int, client_id: str | None) -> None:
    message = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = b"".join(request_buffers(message, version, 77, client_id))
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    header, parsed = parse_request(memoryview(frame)[4:])
    assert header == RequestHeader(ApiKeys.HEARTBEAT, version, 77, client_id)
    assert parsed == message


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_response_comes_back_with_its_correlation_id(version: int) -> None:
    message = HeartbeatResponse(error_code=27)
    frame = b"".join(response_buffers(message, ApiKeys.HEARTBEAT, version, -5))[4:]
    assert peek_correlation_id(frame) == -5
    assert parse_response(ApiKeys.HEARTBEAT, version, memoryview(frame)) == (-5, message)


def test_the_response_header_of_api_versions_has_no_tags_in_any_version() -> None:
    message = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=5)])
    for version in range(6):
        frame = b"".join(response_buffers(message, ApiKeys.API_VERSIONS, version, 1))[4:]
        assert frame[4:6] == b"\0\0", "the error code follows the correlation id at once"
        assert parse_response(ApiKeys.API_VERSIONS, version, frame) == (1, message)


def test_the_length_counts_buffers_that_are_passed_on() -> None:
    records = bytes(10_000)
    part = PartitionProduceData(records=records)
    message = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[part])])
    buffers = request_buffers(message, 9, 1, "c")
    assert any(buffer is records for buffer in buffers)
    frame = b"".join(buffers)
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)


def test_a_data_type_is_no_request() -> None:
    with pytest.raises(TypeError, match="ConsumerProtocolAssignment is no request"):
        request_buffers(ConsumerProtocolAssignment(), 0, 1, None)


def raw_header(api: int, version: int, correlation_id: int = 9) -> bytes:
    return struct.pack(">hhih", api, version, correlation_id, 2) + b"me"


def test_an_unsupported_version_of_api_versions_can_be_answered() -> None:
    with pytest.raises(RequestVersionError) as caught:
        parse_request(raw_header(18, 99) + b"\0\xff\xff whatever a later version has")
    assert caught.value.header == RequestHeader(ApiKeys.API_VERSIONS, 99, 9, "me")
    assert caught.value.header.api_key is ApiKeys.API_VERSIONS


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_an_unsupported_version_is_refused_with_its_header(version: int) -> None:
    with pytest.raises(RequestVersionError, match="Produce has versions 3 to 13") as caught:
        parse_request_header(raw_header(0, version))
    assert caught.value.header == RequestHeader(ApiKeys.PRODUCE, version, 9, "me")


@pytest.mark.parametrize("number", [-1, 4, 52, 1000])
def test_an_api_that_no_broker_answers_is_refused_with_its_header(number: int) -> None:
    with pytest.raises(UnknownApiError) as caught:
        parse_request_header(raw_header(number, 0))
    assert caught.value.header.api_key == number
    assert caught.value.header.correlation_id == 9


def test_refusals_survive_pickling_with_their_header() -> None:
    with pytest.raises(UnknownApiError) as caught:
        parse_request_header(raw_header(1000, 0))
    assert pickle.loads(pickle.dumps(caught.value)).header == caught.value.header


def test_a_cut_frame_is_a_schema_error_at_every_length() -> None:
    frame = b"".join(request_buffers(ApiVersionsRequest(client_software_name="kclient"), 3, 1, "c"))[4:]
    for size in range(len(frame)):
        with pytest.raises(SchemaError) as caught:
            parse_request(frame[:size])
        assert type(caught.value) is SchemaError
    with pytest.raises(SchemaError):
        parse_request(frame + b"\0")
    answer = b"".join(response_buffers(HeartbeatResponse(), ApiKeys.HEARTBEAT, 4, 1))[4:]
    for size in range(len(answer)):
        with pytest.raises(SchemaError):
            parse_response(ApiKeys.HEARTBEAT, 4, answer[:size])
    with pytest.raises(SchemaError):
        peek_correlation_id(b"\0\0\0")
