"""Operations on settings of resources, as brokers see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker, cluster_of
from kclient.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    KafkaAdminClient,
)
from kclient.errors import (
    AdminError,
    Errors,
    InvalidConfigurationError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import describe_configs as describe
from kclient.protocol.messages import incremental_alter_configs as alter
from kclient.protocol.messages import list_config_resources as listing

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "orders")
EVERY_BROKER = ConfigResource(ConfigResourceType.BROKER, "")
SETTING: dict[str, Any] = {"read_only": False, "is_sensitive": False, "documentation": None}


def described(header: Any, message: Any) -> describe.DescribeConfigsResponse:
    """One setting for each resource, whose value is the resource's name."""
    return describe.DescribeConfigsResponse(
        results=[
            describe.DescribeConfigsResult(
                error_message=None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=[
                    describe.DescribeConfigsResourceResult(name="x", value=each.resource_name, **SETTING)
                ],
            )
            for each in message.resources
        ]
    )


@pytest.fixture
def two() -> Iterator[list[ScriptedBroker]]:
    brokers = cluster_of(2)
    with brokers[0], brokers[1]:
        for broker in brokers:
            broker.on(ApiKeys.DESCRIBE_CONFIGS, described)
        yield brokers


def test_settings_have_all_that_brokers_say_of_them(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    setting = describe.DescribeConfigsResourceResult(
        name="retention.ms",
        value="5",
        read_only=True,
        config_source=1,
        is_sensitive=False,
        synonyms=[describe.DescribeConfigsSynonym(name="log.retention.ms", value="7", source=4)],
        config_type=5,
        documentation="how long",
    )
    secret = describe.DescribeConfigsResourceResult(
        name="password", value=None, read_only=False, config_source=88, is_sensitive=True, documentation=None
    )
    result = describe.DescribeConfigsResult(
        error_message=None, resource_type=2, resource_name="orders", configs=[setting, secret]
    )
    scripted.answer(ApiKeys.DESCRIBE_CONFIGS, describe.DescribeConfigsResponse(results=[result]))
    found = client.describe_configs([TOPIC], include_synonyms=True, include_documentation=True)[TOPIC]
    assert found["retention.ms"] == ConfigEntry(
        "retention.ms",
        "5",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        is_read_only=True,
        type=ConfigType.LONG,
        documentation="how long",
        synonyms=(ConfigSynonym("log.retention.ms", "7", ConfigSource.STATIC_BROKER_CONFIG),),
    )
    assert (found["password"].value, found["password"].is_sensitive) == (None, True)
    assert found["password"].source == 88
    (request,) = scripted.received(ApiKeys.DESCRIBE_CONFIGS)
    assert (request.include_synonyms, request.include_documentation) == (True, True)
    assert request.resources[0].configuration_keys is None


def test_each_broker_is_asked_about_itself(two: list[ScriptedBroker]) -> None:
    resources = [
        ConfigResource(ConfigResourceType.BROKER, "0"),
        ConfigResource(ConfigResourceType.BROKER, "1"),
        ConfigResource(ConfigResourceType.BROKER_LOGGER, "1"),
    ]
    with KafkaAdminClient(bootstrap_servers=two[0].bootstrap) as admin:
        found = admin.describe_configs([*resources, EVERY_BROKER, TOPIC])
    assert {each: settings["x"].value for each, settings in found.items()} == {
        each: each.name for each in (*resources, EVERY_BROKER, TOPIC)
    }
    asked = [
        {(each.resource_type, each.resource_name) for each in request.resources}
        for broker in two
        for request in broker.received(ApiKeys.DESCRIBE_CONFIGS)
    ]
    assert {(4, "0")} in asked
    assert {(4, "1"), (8, "1")} in asked
    assert {(4, ""), (2, "orders")} in asked
    assert {(4, "1"), (8, "1")} in [
        {(each.resource_type, each.resource_name) for each in request.resources}
        for request in two[1].received(ApiKeys.DESCRIBE_CONFIGS)
    ]


def test_a_resource_that_is_refused_hides_no_other(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    def answer(header: Any, message: Any) -> describe.DescribeConfigsResponse:
        made = described(header, message)
        made.results[0].error_code = Errors.TOPIC_AUTHORIZATION_FAILED
        return made

    scripted.on(ApiKeys.DESCRIBE_CONFIGS, answer)
    with pytest.raises(AdminError, match="Describing settings failed for topic orders") as raised:
        client.describe_configs([TOPIC, EVERY_BROKER])
    assert isinstance(raised.value.errors[TOPIC], TopicAuthorizationError)
    assert list(raised.value.results) == [EVERY_BROKER]
    scripted.on(ApiKeys.DESCRIBE_CONFIGS, lambda h, m: describe.DescribeConfigsResponse(results=[]))
    with pytest.raises(UnknownServerError, match="topic orders: The broker's answer says nothing of it"):
        client.describe_configs([TOPIC])


def test_a_broker_that_has_no_documentation_is_not_asked_for_it(scripted: ScriptedBroker) -> None:
    scripted.versions[ApiKeys.DESCRIBE_CONFIGS] = (1, 2)
    scripted.on(ApiKeys.DESCRIBE_CONFIGS, described)
    with KafkaAdminClient(bootstrap_servers=scripted.bootstrap) as client:
        with pytest.raises(UnsupportedVersionError, match="DESCRIBE_CONFIGS"):
            client.describe_configs([TOPIC], include_documentation=True)
        assert client.describe_configs([TOPIC])[TOPIC]["x"].value == "orders"


def test_single_settings_are_changed_in_one_request(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    answer = alter.IncrementalAlterConfigsResponse(
        responses=[
            alter.AlterConfigsResourceResponse(error_message=None, resource_type=2, resource_name="orders")
        ]
    )
    scripted.answer(ApiKeys.INCREMENTAL_ALTER_CONFIGS, answer)
    ops = [
        AlterConfigOp("retention.ms", "5"),
        AlterConfigOp("segment.ms", op_type=AlterConfigOpType.DELETE),
        AlterConfigOp("cleanup.policy", "compact", AlterConfigOpType.APPEND),
    ]
    assert client.incremental_alter_configs({TOPIC: ops}, validate_only=True) == {TOPIC: None}
    (request,) = scripted.received(ApiKeys.INCREMENTAL_ALTER_CONFIGS)
    assert request.validate_only
    assert [(each.name, each.config_operation, each.value) for each in request.resources[0].configs] == [
        ("retention.ms", 0, "5"),
        ("segment.ms", 1, None),
        ("cleanup.policy", 2, "compact"),
    ]


def test_a_change_that_is_refused_says_of_what(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    response = alter.AlterConfigsResourceResponse(
        error_code=Errors.INVALID_CONFIG, error_message="no such", resource_type=2, resource_name="orders"
    )
    scripted.answer(
        ApiKeys.INCREMENTAL_ALTER_CONFIGS, alter.IncrementalAlterConfigsResponse(responses=[response])
    )
    with pytest.raises(InvalidConfigurationError, match="Altering settings failed for topic orders: no such"):
        client.incremental_alter_configs({TOPIC: [AlterConfigOp("x", "y")]})


def test_what_has_settings_is_listed_by_type(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    answer = listing.ListConfigResourcesResponse(
        config_resources=[
            listing.ConfigResource(resource_name="g", resource_type=32),
            listing.ConfigResource(resource_name="?", resource_type=99),
        ]
    )
    scripted.answer(ApiKeys.LIST_CONFIG_RESOURCES, answer)
    assert client.list_config_resources([ConfigResourceType.GROUP]) == [
        ConfigResource(ConfigResourceType.GROUP, "g"),
        ConfigResource(ConfigResourceType(99), "?"),
    ]
    assert scripted.received(ApiKeys.LIST_CONFIG_RESOURCES)[0].resource_types == [32]


def test_a_broker_that_knows_subscriptions_to_metrics_alone_is_asked_for_nothing_else(
    scripted: ScriptedBroker,
) -> None:
    scripted.versions[ApiKeys.LIST_CONFIG_RESOURCES] = (0, 0)
    made = listing.ListConfigResourcesResponse(config_resources=[listing.ConfigResource(resource_name="m")])
    scripted.answer(ApiKeys.LIST_CONFIG_RESOURCES, made)
    metrics = ConfigResourceType.CLIENT_METRICS
    with KafkaAdminClient(bootstrap_servers=scripted.bootstrap) as client:
        assert client.list_config_resources([metrics]) == [ConfigResource(metrics, "m")]
        for types in ([], [metrics, ConfigResourceType.GROUP]):
            with pytest.raises(UnsupportedVersionError, match="LIST_CONFIG_RESOURCES"):
                client.list_config_resources(types)
