"""Error codes in responses: every one is counted, wherever it stands, as far as the version has it."""

from __future__ import annotations

import pytest

from kclient.broker.apis.registry import served_apis
from kclient.broker.metrics.error_counts import error_counts
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.heartbeat import HeartbeatResponse
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.protocol.registry import response_class
from kclient.protocol.schema import Message


def produced(*codes: int) -> ProduceResponse:
    parts = [PartitionProduceResponse(index=number, error_code=code) for number, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=parts)] * 2)


def fetched(code: int, *codes: int) -> FetchResponse:
    parts = [PartitionData(partition_index=number, error_code=each) for number, each in enumerate(codes)]
    return FetchResponse(error_code=code, responses=[FetchableTopicResponse(topic="t", partitions=parts)])


def described(code: int, *codes: int) -> MetadataResponse:
    parts = [MetadataResponsePartition(partition_index=0, error_code=each) for each in codes]
    return MetadataResponse(topics=[MetadataResponseTopic(error_code=code, name="t", partitions=parts)])


@pytest.mark.parametrize(
    ("response", "version", "counts"),
    [
        pytest.param(HeartbeatResponse(error_code=27), 4, {27: 1}, id="the only one"),
        pytest.param(produced(0, 0, 0), 9, {0: 6}, id="partitions without an error"),
        pytest.param(produced(0, 2, 2), 9, {0: 2, 2: 4}, id="partitions with and without"),
        pytest.param(fetched(0, 0, 1), 12, {0: 2, 1: 1}, id="of the whole and of partitions"),
        pytest.param(fetched(70, 0), 4, {0: 1}, id="not in this version"),
        pytest.param(described(3), 12, {3: 1}, id="a topic"),
        pytest.param(described(0, 5, 0), 12, {0: 2, 5: 1}, id="a topic and its partitions"),
        pytest.param(
            FindCoordinatorResponse(error_code=15, coordinators=[Coordinator(error_code=16)]), 3, {15: 1}, id="old"
        ),
        pytest.param(
            FindCoordinatorResponse(error_code=15, coordinators=[Coordinator(error_code=16)]), 4, {16: 1}, id="new"
        ),
    ],
)  # fmt: skip
def test_every_code_of_the_version_is_counted(
    response: Message, version: int, counts: dict[int, int]
) -> None:
    assert error_counts(response, version) == counts


def test_codes_of_all_responses_that_are_served_are_found_in_every_version() -> None:
    for api in served_apis().values():
        for version in range(api.min_version, api.max_version + 1):
            error_counts(response_class(api.key)(), version)
