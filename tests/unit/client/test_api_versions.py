from __future__ import annotations

import pytest

from kclient.client.api_versions import ApiVersionsNegotiation, NodeApiVersions, parse_api_versions_response
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

NEWEST = ApiKeys.API_VERSIONS.max_version


def answer_35(*api_keys: ApiVersion) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=35, api_keys=list(api_keys))


def test_the_highest_common_version_is_used() -> None:
    versions = NodeApiVersions({ApiKeys.FETCH: (0, 11), ApiKeys.METADATA: (0, 99)})
    assert versions.usable_version(ApiKeys.FETCH) == 11
    assert versions.usable_version(ApiKeys.METADATA) == ApiKeys.METADATA.max_version
    assert versions.usable_version(ApiKeys.METADATA, 1, 5) == 5


@pytest.mark.parametrize(
    ("ranges", "low", "high", "reason"),
    [
        ({}, None, None, "does not support FETCH at all"),
        ({ApiKeys.FETCH: (0, 3)}, None, None, "supports versions 0 to 3 of FETCH"),
        ({ApiKeys.FETCH: (90, 99)}, None, None, "supports versions 90 to 99 of FETCH"),
        ({ApiKeys.FETCH: (4, 9)}, 10, None, "needed is one of 10 to"),
        ({ApiKeys.FETCH: (8, 9)}, None, 7, "needed is one of 4 to 7"),
        ({ApiKeys.FETCH: (9, 4)}, None, None, "does not support FETCH at all"),
        ({ApiKeys.FETCH: (-5, -1)}, None, None, "does not support FETCH at all"),
    ],
)
def test_no_common_version_is_an_error_that_names_both_ranges(
    ranges: dict[int, tuple[int, int]], low: int | None, high: int | None, reason: str
) -> None:
    with pytest.raises(UnsupportedVersionError, match=reason):
        NodeApiVersions(ranges).usable_version(ApiKeys.FETCH, low, high)


def test_the_first_question_is_in_our_newest_version_and_names_the_client() -> None:
    negotiation = ApiVersionsNegotiation()
    assert negotiation.version == NEWEST
    assert negotiation.request().client_software_name == "kclient"


@pytest.mark.parametrize(
    ("cluster_id", "broker_id", "asked"),
    [("c", 3, ("c", 3)), (None, 3, (None, -1)), ("c", None, (None, -1)), ("c", 0, ("c", 0))],
)
def test_a_broker_is_asked_who_it_is_where_both_cluster_and_broker_are_known(
    cluster_id: str | None, broker_id: int | None, asked: tuple[str | None, int]
) -> None:
    request = ApiVersionsNegotiation().request(cluster_id, broker_id)
    assert (request.cluster_id, request.node_id) == asked


def test_error_35_chooses_from_the_range_in_the_answer() -> None:
    negotiation = ApiVersionsNegotiation()
    negotiation.request()
    assert negotiation.unsupported(answer_35(ApiVersion(api_key=18, min_version=0, max_version=2)))
    assert negotiation.version == 2


def test_error_35_without_a_range_goes_back_to_version_0() -> None:
    negotiation = ApiVersionsNegotiation()
    negotiation.request()
    assert negotiation.unsupported(answer_35())
    assert negotiation.version == 0


@pytest.mark.parametrize("highest", [NEWEST, 99, -7])
def test_a_broker_that_contradicts_itself_is_asked_three_times_at_most(highest: int) -> None:
    negotiation = ApiVersionsNegotiation()
    tries = 0
    while True:
        negotiation.request()
        tries += 1
        if not negotiation.unsupported(answer_35(ApiVersion(api_key=18, min_version=0, max_version=highest))):
            break
    assert tries <= 3


def test_a_closed_connection_or_an_unreadable_answer_goes_back_to_version_0() -> None:
    negotiation = ApiVersionsNegotiation()
    negotiation.request()
    negotiation.failed()
    assert negotiation.version == 0
    negotiation.restart()
    assert negotiation.version == NEWEST
    assert not negotiation.exhausted


def frame(response: ApiVersionsResponse, version: int) -> memoryview:
    return memoryview(b"".join(response_buffers(response, ApiKeys.API_VERSIONS, version, 1))[4:])


def test_an_answer_in_version_0_with_error_35_is_understood_whatever_was_asked() -> None:
    response = answer_35(ApiVersion(api_key=18, min_version=0, max_version=3))
    assert parse_api_versions_response(NEWEST, frame(response, 0)) == response


def test_an_answer_in_another_version_without_error_35_is_not() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=3)] * 3)
    with pytest.raises(SchemaError):
        parse_api_versions_response(NEWEST, frame(response, 0))
    with pytest.raises(SchemaError):
        parse_api_versions_response(0, frame(response, 0)[:-1])
