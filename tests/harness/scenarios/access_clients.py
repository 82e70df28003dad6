"""A producer and a consumer of a user whose rights come and go, on the embedded broker and a real one."""

from __future__ import annotations

from collections.abc import Callable

from harness.scenarios.access import CLIENTS, PASSWORD
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)
from kclient.errors import (
    AuthorizationError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
)

_TOPIC, _GROUP = "clients", "clients"


def check_clients(admin: KafkaAdminClient, address: str) -> None:
    """Give and take one right after the other; the clients go on as far as they have them."""
    settings = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'PlainLoginModule required username="{CLIENTS}" password="{PASSWORD}";',
        # A member without partitions looks again by age alone.
        "metadata.max.age.ms": 500,
        "retry.backoff.ms": 10,
        "retry.backoff.max.ms": 20,
    }
    admin.create_topics([_TOPIC])
    write = _rule(AclOperation.WRITE, ResourceType.TOPIC, _TOPIC)
    read = _rule(AclOperation.READ, ResourceType.TOPIC, _TOPIC)
    group = _rule(AclOperation.READ, ResourceType.GROUP, _GROUP)
    with (
        KafkaProducer(settings) as producer,
        KafkaConsumer(settings, group_id=_GROUP, auto_offset_reset="earliest") as consumer,
    ):

        def send() -> None:
            producer.send(_TOPIC, b"v").result(30)

        def poll() -> None:
            consumer.poll(timeout_ms=100)

        consumer.subscribe([_TOPIC])
        _expect(send, TopicAuthorizationError, ClusterAuthorizationError)
        _expect(poll, TopicAuthorizationError, GroupAuthorizationError)
        admin.create_acls([write])
        _becomes(send, None)
        _becomes(poll, GroupAuthorizationError)
        admin.create_acls([group])
        # Describing is implied by writing, so that the group is joined; reading is not.
        _becomes(poll, TopicAuthorizationError)
        admin.create_acls([read])
        wait_until(lambda: _polled(consumer), 30, "the record")
        consumer.commit_sync()
        admin.delete_acls([group.to_filter()])
        _becomes(consumer.commit_sync, GroupAuthorizationError)
        admin.create_acls([group])
        _becomes(consumer.commit_sync, None)
        admin.delete_acls([write.to_filter()])
        _becomes(send, TopicAuthorizationError)
        admin.delete_acls([read.to_filter()])
        _becomes(poll, TopicAuthorizationError)


def _rule(operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
    return AclBinding(ResourcePattern(kind, name), AccessControlEntry(f"User:{CLIENTS}", operation))


def _raised(call: Callable[[], object]) -> type[KafkaError] | None:
    try:
        call()
    except AuthorizationError as error:
        return type(error)
    return None


def _expect(call: Callable[[], object], *errors: type[KafkaError]) -> None:
    found: list[type[KafkaError] | None] = []

    def comes() -> bool:
        found.append(_raised(call))
        return found[-1] is not None

    wait_until(comes, 30, "an error")
    assert found[-1] in errors, found[-1]


def _becomes(call: Callable[[], object], error: type[KafkaError] | None) -> None:
    wait_until(lambda: _raised(call) is error, 30, "no error" if error is None else error.__name__)


def _polled(consumer: KafkaConsumer[bytes, bytes]) -> bool:
    found: list[object] = []

    def poll() -> None:
        found.extend(consumer.poll(timeout_ms=100))

    return _raised(poll) is None and bool(found)
