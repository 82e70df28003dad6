"""ApiKeys: numbers, header versions and the range that brokers name; test_messages of golden has Java's table."""

from __future__ import annotations

import copy
import pickle

import pytest

from kclient.protocol.api_keys import ApiKeys


def test_an_api_is_found_by_its_number_and_an_unknown_one_is_none() -> None:
    assert all(ApiKeys.for_id(int(api)) is api for api in ApiKeys)
    assert [ApiKeys.for_id(number) for number in (-1, len(ApiKeys), 32767)] == [None] * 3


def test_numbers_have_no_gaps() -> None:
    assert [int(api) for api in ApiKeys] == list(range(len(ApiKeys)))


def test_an_api_that_was_removed_has_no_versions_and_nobody_answers_it() -> None:
    removed = [api for api in ApiKeys if api.max_version < api.min_version]
    assert [int(api) for api in removed] == [4, 5, 6, 7]
    assert not any(api.on_broker_listener for api in removed)


@pytest.mark.parametrize(
    ("api", "version", "request_version", "response_version"),
    [
        (ApiKeys.FETCH, 11, 1, 0),
        (ApiKeys.FETCH, 12, 2, 1),
        (ApiKeys.FETCH, 999, 2, 1),
        (ApiKeys.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKeys.LIST_PARTITION_REASSIGNMENTS, 0, 2, 1),
        (ApiKeys.API_VERSIONS, 2, 1, 0),
        (ApiKeys.API_VERSIONS, 3, 2, 0),
        (ApiKeys.LEADER_AND_ISR, 0, 1, 0),
    ],
)
def test_flexible_versions_have_headers_with_tags_but_for_the_answer_that_tells_the_versions(
    api: ApiKeys, version: int, request_version: int, response_version: int
) -> None:
    assert api.request_header_version(version) == request_version
    assert api.response_header_version(version) == response_version


def test_produce_alone_is_advertised_with_versions_that_are_refused() -> None:
    differing = [api for api in ApiKeys if api.advertised_min_version != api.min_version]
    assert differing == [ApiKeys.PRODUCE]
    assert ApiKeys.PRODUCE.advertised_min_version == 0


def test_the_title_is_the_name_of_its_messages() -> None:
    assert ApiKeys.INIT_PRODUCER_ID.title == "InitProducerId"
    assert ApiKeys.PRODUCE.title == "Produce"


def test_an_api_is_its_number_and_survives_copies() -> None:
    assert ApiKeys.FETCH == 1
    assert {1: "fetch"}[ApiKeys.FETCH] == "fetch"
    for api in ApiKeys:
        assert pickle.loads(pickle.dumps(api)) is api
        assert copy.deepcopy(api) is api
