"""A broker that is asked for coordinators, in any version of FindCoordinator."""

from __future__ import annotations

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.api_versions import NodeApiVersions
from kclient.client.coordinators import CoordinatorKey, CoordinatorType
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.request_sender import RequestSender
from kclient.common.node import Node
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.utils.backoff import ExponentialBackoff

BACKOFF_MS = 100
ONE_KEY, MANY_KEYS = 3, 6
"""The last version with one key in the message, and the newest."""


def group(name: str) -> CoordinatorKey:
    return CoordinatorKey(CoordinatorType.GROUP, name)


def transaction(name: str) -> CoordinatorKey:
    return CoordinatorKey(CoordinatorType.TRANSACTION, name)


def at(node_id: int) -> Coordinator:
    return Coordinator(node_id=node_id, host=f"broker-{node_id}", port=9092)


def node(node_id: int) -> Node:
    return Node(node_id, f"broker-{node_id}", 9092)


def failed(code: int, message: str | None = None) -> Coordinator:
    return Coordinator(node_id=-1, host="", port=-1, error_code=code, error_message=message)


class Broker:
    """One broker that answers FindCoordinator from `entries`, in one version, when it is told to."""

    def __init__(self, version: int = MANY_KEYS) -> None:
        self.time = MockTime()
        metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
        metadata.bootstrap([("mock", 9092)])
        self.client = MockClient(self.time, metadata)
        self.sender = RequestSender(self.client, 30_000)
        self.entries: dict[CoordinatorKey, Coordinator] = {}
        self.speaks(version)

    def speaks(self, version: int) -> None:
        self.client.set_api_versions(NodeApiVersions({ApiKeys.FIND_COORDINATOR: (0, version)}))

    @property
    def asked(self) -> list[list[CoordinatorKey]]:
        """The keys of every request so far."""
        return [
            [
                CoordinatorKey(CoordinatorType(sent.message.key_type), name)
                for name in (sent.message.coordinator_keys or [sent.message.key])
            ]
            for sent in self.client.sent
        ]

    def answer(self) -> None:
        """Answer everything that waits."""
        for sent in list(self.client.requests):
            kind = CoordinatorType(sent.message.key_type)
            if sent.version <= ONE_KEY:
                entry = self.entries[CoordinatorKey(kind, sent.message.key)]
                response = FindCoordinatorResponse(
                    error_code=entry.error_code,
                    error_message=entry.error_message,
                    node_id=entry.node_id,
                    host=entry.host,
                    port=entry.port,
                )
            else:
                response = FindCoordinatorResponse(coordinators=[])
                for name in reversed(sent.message.coordinator_keys):
                    entry = self.entries[CoordinatorKey(kind, name)]
                    response.coordinators.append(
                        Coordinator(
                            key=name,
                            node_id=entry.node_id,
                            host=entry.host,
                            port=entry.port,
                            error_code=entry.error_code,
                            error_message=entry.error_message,
                        )
                    )
            self.client.respond(response)

    def poll(self) -> None:
        self.sender.poll(0, self.time.monotonic_ms())
