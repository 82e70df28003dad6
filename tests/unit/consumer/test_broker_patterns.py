"""Patterns that the coordinator matches."""

from __future__ import annotations

from typing import Any

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel, Told
from kclient.client.api_versions import NodeApiVersions
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import SubscriptionPattern
from kclient.errors import (
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import metadata

T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in "tu" for number in (0, 1))
HEARTBEAT = ApiKeys.CONSUMER_GROUP_HEARTBEAT


class TestPatternsOfTheBroker:
    def test_the_pattern_is_sent_and_the_topics_assigned_are_found_by_their_ids(
        self, group: ConsumerGroupModel
    ) -> None:
        group.rig.fill(T0, 5)
        group.matched = ("t",)
        group.rig.handlers[ApiKeys.METADATA] = lambda request, _version: names_by_id(group, request)
        told = Told()
        records = group.join(SubscriptionPattern("[a-t]"), told)
        first = group.requests[0]
        assert first.subscribed_topic_regex == "[a-t]"
        assert first.subscribed_topic_names == []
        assert told.calls[-1] == ("assigned", [T0, T1])
        assert group.rig.consumer.subscription() == {"t"}
        assert len(records + group.poll_for(200)) == 5
        group.poll_for(2000)
        assert group.requests[-1].subscribed_topic_regex is None

    def test_new_topics_come_and_gone_ones_go(self, group: ConsumerGroupModel) -> None:
        group.matched = ("t",)
        group.rig.handlers[ApiKeys.METADATA] = lambda request, _version: names_by_id(group, request)
        group.join(SubscriptionPattern(".*"))
        group.matched = ("u",)
        group.poll_for(1000)
        group._topics = group.matched
        group.poll_for(3000)
        assert group.rig.consumer.assignment() == {U0, U1}
        assert group.rig.consumer.subscription() == {"u"}
        assert group.rig.core.metadata.topics_to_request() == ["u"]

    def test_a_topic_that_the_broker_matched_and_somebody_deleted_is_not_made_anew(
        self, group: ConsumerGroupModel
    ) -> None:
        metadata = group.rig.core.metadata
        group.rig.consumer.subscribe(SubscriptionPattern("a"))
        assert not metadata.allow_auto_topic_creation
        group.rig.consumer.unsubscribe()
        group.rig.consumer.subscribe(["t"])
        assert metadata.allow_auto_topic_creation

    def test_another_pattern_takes_the_place_of_one(self, group: ConsumerGroupModel) -> None:
        group.rig.handlers[ApiKeys.METADATA] = lambda request, _version: names_by_id(group, request)
        group.join(SubscriptionPattern("a"))
        group.rig.consumer.subscribe(SubscriptionPattern("b"))
        group.poll_for(50)
        assert [request.subscribed_topic_regex for request in group.requests] == ["a", None, "b"]

    def test_a_broker_whose_heartbeats_have_no_pattern_is_too_old(self, group: ConsumerGroupModel) -> None:
        group.rig.client.set_api_versions(brokers_with_heartbeats_up_to(0))
        group.rig.consumer.subscribe(SubscriptionPattern("a"))
        with pytest.raises(UnsupportedVersionError, match="SubscriptionPattern"):
            group.poll_for(500)

    def test_the_classic_protocol_has_none(self, rig: Any) -> None:
        with pytest.raises(UnsupportedVersionError, match=r"group\.protocol=consumer"):
            rig.consumer.subscribe(SubscriptionPattern("a"))

    @pytest.mark.parametrize(("given", "error"), [(3, TypeError), ("", ValueError), (None, TypeError)])
    def test_it_is_made_of_a_str_that_says_something(self, given: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match="pattern"):
            SubscriptionPattern(given)

    def test_kinds_of_subscriptions_exclude_each_other(self, group: ConsumerGroupModel) -> None:
        group.rig.consumer.subscribe(SubscriptionPattern("a"))
        with pytest.raises(RuntimeError, match="unsubscribe"):
            group.rig.consumer.subscribe(["t"])


def brokers_with_heartbeats_up_to(version: int | None) -> NodeApiVersions:
    ranges = {api.value: (api.min_version, api.max_version) for api in ApiKeys}
    del ranges[HEARTBEAT.value]
    return NodeApiVersions(ranges if version is None else {**ranges, HEARTBEAT.value: (0, version)})


def names_by_id(group: ConsumerGroupModel, request: Any) -> metadata.MetadataResponse:
    """The answer to a lookup of topics by their ids."""
    names = {topic_id: name for name, topic_id in group.rig.topic_ids.items()}
    assert not request.allow_auto_topic_creation
    return metadata.MetadataResponse(
        topics=[group.rig.topic_metadata(names[topic.topic_id]) for topic in request.topics]
    )
