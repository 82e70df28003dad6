"""Throttling: the answers after which it is the client that waits (KIP-219)."""

from __future__ import annotations

import pytest

from kclient.client.throttling import client_throttle_ms
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersionsResponse
from kclient.protocol.messages.describe_groups import DescribeGroupsResponse
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.offset_delete import OffsetDeleteResponse
from kclient.protocol.messages.sasl_handshake import SaslHandshakeResponse


@pytest.mark.parametrize(
    ("api_key", "response", "first"),
    [
        (ApiKeys.FETCH, FetchResponse(throttle_time_ms=70), 8),
        (ApiKeys.API_VERSIONS, ApiVersionsResponse(throttle_time_ms=70), 2),
        (ApiKeys.DESCRIBE_GROUPS, DescribeGroupsResponse(throttle_time_ms=70), 2),
    ],
)
def test_in_older_versions_the_broker_has_waited_already(
    api_key: ApiKeys, response: object, first: int
) -> None:
    assert client_throttle_ms(api_key, first - 1, response) == 0
    assert client_throttle_ms(api_key, first, response) == 70
    assert client_throttle_ms(api_key, api_key.max_version, response) == 70


def test_an_api_that_is_younger_than_the_rule_keeps_to_it_from_its_first_version() -> None:
    assert client_throttle_ms(ApiKeys.OFFSET_DELETE, 0, OffsetDeleteResponse(throttle_time_ms=70)) == 70


@pytest.mark.parametrize("throttle_ms", [0, -1, -(2**31)])
def test_a_time_that_is_none_asks_for_nothing(throttle_ms: int) -> None:
    assert client_throttle_ms(ApiKeys.FETCH, 12, FetchResponse(throttle_time_ms=throttle_ms)) == 0


def test_an_answer_that_has_no_such_field_asks_for_nothing() -> None:
    assert client_throttle_ms(ApiKeys.SASL_HANDSHAKE, 1, SaslHandshakeResponse()) == 0


def test_the_newest_version_of_every_api_leaves_the_waiting_to_the_client() -> None:
    spoken = [api for api in ApiKeys if api.max_version >= api.min_version]
    response = FetchResponse(throttle_time_ms=70)
    assert {client_throttle_ms(api, api.max_version, response) for api in spoken} == {70}
