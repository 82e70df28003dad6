"""Requests of users with more and more rights, on the embedded broker and a real one with the same answers.

Each case of the table has a user of its own, who begins without rights, a topic and a group of the same name, and the
name of a topic that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.broker.wire import Wire
from harness.scenarios import access_cases, access_cluster_cases, access_id_cases
from harness.scenarios import access_requests as ask
from harness.scenarios.access_cases import UNKNOWN_MEMBER
from harness.scenarios.access_requests import Scene
from harness.scenarios.access_table import Case
from harness.waiting import wait_until
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    KafkaAdminClient,
    ResourcePattern,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kclient.protocol.messages.sasl_handshake import SaslHandshakeRequest

CASES: Sequence[Case] = [*access_cases.CASES, *access_id_cases.CASES, *access_cluster_cases.CASES]
"""The table."""
PASSWORD = "secret"
LISTENER = "USERS"
CLIENTS, SESSIONS = "clients", "sessions"
"""Users of scenarios of their own."""

_WITH_OFFSETS = {
    "offset-fetch",
    "offset-fetch-all",
    "offset-fetch-old",
    "offset-fetch-by-id",
    "offset-fetch-all-by-id",
    "offset-commit",
    "offset-commit-by-id",
    "offset-delete",
    "leave-group",
    "describe-groups",
    "list-groups",
    "list-groups-cluster",
}


def settings() -> dict[str, str]:
    """Settings of a broker, but for its listeners: whoever comes without authentication is a super user."""
    users = " ".join(
        f'user_{user}="{PASSWORD}"' for user in (*(case.name for case in CASES), CLIENTS, SESSIONS)
    )
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        f"listener.name.{LISTENER.lower()}.sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f"{module} required {users};",
    }


def log_in(wire: Wire, user: str) -> None:
    """Prove to be a user."""
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{user}\0{PASSWORD}".encode()
    assert wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0


def _has_coordinator(wire: Wire, scene: Scene) -> bool:
    wire.ask(FindCoordinatorRequest(key_type=0, key=scene.name), 2)  # who makes the topic of offsets
    return bool(
        wire.ask(HeartbeatRequest(group_id=scene.name, member_id="m"), 4).error_code == UNKNOWN_MEMBER
    )


def _has_committed(wire: Wire, scene: Scene) -> bool:
    topics = wire.ask(ask.commit(scene), 8).topics
    return ask.by_topic(scene, topics)[0] == 0


def check(case: Case, admin: KafkaAdminClient, plain: str, address: str) -> None:
    """Give the user of a case one right after the other, and look at the answers.

    `plain` is where nobody is asked who it is, `address` where users are.
    """
    admin.create_topics([case.name])
    (node,) = admin.describe_cluster().nodes
    wait_until(lambda: case.name in admin.list_topics(), 30, "the topic")
    scene = Scene(case.name, admin.list_topics()[case.name].topic_id, node.id)
    with Wire(plain) as wire:
        # Of groups nobody is told anything before somebody has looked for their coordinator.
        wait_until(lambda: _has_coordinator(wire, scene), 30, "the coordinator")
        if case.name in _WITH_OFFSETS:
            wait_until(lambda: _has_committed(wire, scene), 30, "the offset")
    with Wire(address) as wire:
        log_in(wire, case.name)
        for right, expected in case.steps:
            if right is not None:
                operation, kind, name = right
                pattern = ResourcePattern(kind, name.format(t=scene.name, n=scene.none))
                entry = AccessControlEntry(f"User:{case.name}", operation)
                admin.create_acls([AclBinding(pattern, entry)])
            answers: list[object] = []

            def answered(expected: object = expected, answers: list[object] = answers) -> bool:
                # Rules reach a real broker a little after the controller has answered.
                answers.append(case.seen(scene, wire.ask(case.request(scene), case.version)))
                return answers[-1] == expected

            try:
                wait_until(answered, 10, "the answer")
            except AssertionError:
                raise AssertionError(
                    f"with {right}: {answers[0]}, {answers[-1]} instead of {expected}"
                ) from None
