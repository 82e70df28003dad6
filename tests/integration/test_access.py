"""Access rules (ACLs) of the embedded broker: who may do what, through the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.broker.requests import produce
from harness.broker.wire import Wire, batch
from harness.scenarios import access, access_rules
from harness.scenarios.access_clients import check_clients
from harness.scenarios.access_sessions import SessionReader, check_sessions, reading
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)
from kclient.broker import EmbeddedKafka
from kclient.errors import ClusterAuthorizationError, ConfigError, TopicAuthorizationError
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{access.LISTENER}://127.0.0.1:0",
        "listener.security.protocol.map": f"{access.LISTENER}:SASL_PLAINTEXT",
    }
    with EmbeddedKafka({**access.settings(), **listeners}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(kafka: EmbeddedKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers.split(",")[0]) as made:
        yield made


@pytest.mark.parametrize("case", access.CASES, ids=lambda case: case.name)
def test_requests_are_answered_as_far_as_their_sender_has_the_rights(
    kafka: EmbeddedKafka, admin: KafkaAdminClient, case: access.Case
) -> None:
    access.check(case, admin, *kafka.bootstrap_servers.split(","))


@pytest.mark.parametrize("check", access_rules.CHECKS, ids=lambda check: check.__name__)
def test_rules_are_added_found_and_removed_as_far_as_they_can_be_ones(
    kafka: EmbeddedKafka, check: Callable[[str], None]
) -> None:
    check(kafka.bootstrap_servers.split(",")[0])


def allow(operation: AclOperation, kind: ResourceType, name: str, principal: str) -> AclBinding:
    return AclBinding(ResourcePattern(kind, name), AccessControlEntry(principal, operation))


def test_super_users_give_rights_which_outlive_a_restart_and_a_snapshot() -> None:
    rule = allow(AclOperation.READ, ResourceType.TOPIC, "t", "User:alice")
    users = {"admin": "a", "alice": "b"}
    with (
        EmbeddedKafka(
            security="SASL_PLAINTEXT",
            users=users,
            super_users=["admin"],
            metadata_log_max_record_bytes_between_snapshots=1,
        ) as broker,
        KafkaAdminClient(broker.client_settings("admin")) as admin,
        KafkaAdminClient(broker.client_settings("alice")) as alice,
    ):
        admin.create_topics(["t"])
        assert alice.list_topics() == {}
        with pytest.raises(ClusterAuthorizationError):
            alice.create_acls([rule])
        admin.create_acls([rule])
        assert list(alice.list_topics()) == ["t"]
        admin.create_topics(["u"])
        broker.restart()
        assert (admin.describe_acls(), list(alice.list_topics())) == ([rule], ["t"])
        admin.delete_acls([rule.to_filter()])
        assert alice.list_topics() == {}


def test_the_owner_of_a_certificate_can_be_a_super_user() -> None:
    with (
        EmbeddedKafka(security="SSL", super_users=["ops, first"], ssl_client_auth="required") as broker,
        KafkaAdminClient(broker.client_settings("ops, first")) as ops,
        KafkaAdminClient(broker.client_settings("other")) as other,
    ):
        ops.create_topics(["t"])
        with pytest.raises(TopicAuthorizationError):
            other.create_topics(["u"])
        ops.create_acls([allow(AclOperation.CREATE, ResourceType.TOPIC, "u", "User:CN=other")])
        other.create_topics(["u"])


def test_whoever_is_not_asked_is_anonymous() -> None:
    with (
        EmbeddedKafka(super_users=["ANONYMOUS"]) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        admin.create_topics(["t"])
        assert admin.describe_acls() == []
    with (
        EmbeddedKafka(super_users=[]) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        pytest.raises(TopicAuthorizationError),
    ):
        admin.create_topics(["t"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"super_users": ["a"]}, "knows everybody as ANONYMOUS, nobody as 'a'"),
        ({"super_users": ["b"], "security": "SASL_SSL", "users": {"a": "x"}}, "'b' is none of the users"),
        ({"super_users": ["a;b"], "security": "SSL"}, "semicolon"),
        ({"super_users": ["ANONYMOUS"], "config": {"super.users": "User:a"}}, "say the same"),
        ({"super_users": [], "config": {"authorizer.class.name": ""}}, "say the same"),
        ({"config": {"super.users": "alice"}}, "'alice' is no principal such as User:alice"),
        ({"config": {"authorizer.class.name": "os.system"}}, "it must be empty or org.apache.kafka"),
    ],
)
def test_super_users_that_cannot_be_are_refused(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        EmbeddedKafka(**arguments).start()


def test_one_name_is_no_list_of_super_users() -> None:
    with pytest.raises(TypeError, match="super_users must be a list of names, not 'ANONYMOUS'"):
        EmbeddedKafka(super_users="ANONYMOUS")


def test_a_right_that_is_taken_away_ends_what_a_fetch_session_reads(
    kafka: EmbeddedKafka, admin: KafkaAdminClient
) -> None:
    admin.create_topics(["session", "session-2"])
    rules = [
        allow(AclOperation.READ, ResourceType.TOPIC, name, "User:fetch") for name in ("session", "session-2")
    ]
    admin.create_acls(rules)
    with Wire(kafka.bootstrap_servers.split(",")[1]) as wire:
        access.log_in(wire, "fetch")
        wanted = [FetchPartition(partition=0, partition_max_bytes=1000)]
        topics = [FetchTopic(topic=name, partitions=wanted) for name in ("session", "session-2")]
        first = wire.ask(FetchRequest(max_bytes=1000, session_epoch=0, topics=topics), 12)
        assert [topic.partitions[0].error_code for topic in first.responses] == [0, 0]
        admin.delete_acls([rules[1].to_filter()])
        follow = FetchRequest(max_bytes=1000, session_id=first.session_id, session_epoch=1)
        told = wire.ask(follow, 12).responses
        assert [(topic.topic, topic.partitions[0].error_code) for topic in told] == [("session-2", 29)]


@pytest.mark.parametrize("version", [12, 13, 18])
def test_a_session_reads_what_may_be_read_now(
    kafka: EmbeddedKafka, admin: KafkaAdminClient, version: int
) -> None:
    check_sessions(admin, *kafka.bootstrap_servers.split(","), version)


@pytest.mark.parametrize("version", [12, 17])
def test_a_session_that_a_quota_holds_back_gets_all_that_it_may_read_and_nothing_else(version: int) -> None:
    users = {"admin": access.PASSWORD, "reader": access.PASSWORD}
    sent = [b"%d" % number * 1000 for number in range(9)]
    with (
        EmbeddedKafka(
            {"quota.window.num": "2"}, security="SASL_PLAINTEXT", users=users, super_users=["admin"]
        ) as broker,
        KafkaAdminClient(broker.client_settings("admin")) as admin,
        Wire(broker.bootstrap_servers) as writer,
        Wire(broker.bootstrap_servers) as wire,
    ):
        admin.create_topics(["mine", "theirs"])
        admin.create_acls([reading("mine", "reader")])
        quota = ClientQuotaAlteration(ClientQuotaEntity({"user": "reader"}), {"consumer_byte_rate": 4000})
        admin.alter_client_quotas([quota])
        access.log_in(writer, "admin")
        for value in sent:
            produce(writer, "mine", batch(value))
            produce(writer, "theirs", batch(b"secret"))
        access.log_in(wire, "reader")
        topics = {name: topic.topic_id for name, topic in admin.list_topics().items()}
        reader = SessionReader(wire, version, topics)
        while len(reader.values) < len(sent):
            waited = reader.throttled
            codes = reader.read()
            # Whoever is held back is told nothing: the next answer tells it.
            assert codes == ({} if reader.throttled > waited else {"mine": 0, "theirs": 29})
        assert reader.values == sent
        assert reader.throttled


def test_clients_go_on_as_far_as_they_have_the_rights(kafka: EmbeddedKafka, admin: KafkaAdminClient) -> None:
    check_clients(admin, kafka.bootstrap_servers.split(",")[1])
