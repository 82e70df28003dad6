"""ScriptedBroker: answers what a test tells it to."""

from __future__ import annotations

import enum
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from harness.network.listener import Listener, read_frame, reset
from kclient.errors import KafkaError, UnsupportedVersionError
from kclient.errors.codes import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import RequestHeader, parse_request, response_buffers
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class Reply(enum.Enum):
    """Answers that a handler may return instead of a message."""

    NOTHING = enum.auto()
    """No answer; the connection stays open."""
    CLOSE = enum.auto()
    """Close the connection with FIN."""
    RESET = enum.auto()
    """Close the connection with RST."""


Handler = Callable[[RequestHeader, Any], Any]
"""Gets header and message of a request; returns a message, raw bytes (length included) or a `Reply`."""


@attrs.frozen
class _Always:
    reply: Any

    def __call__(self, header: RequestHeader, message: Any) -> Any:
        return self.reply


class ScriptedBroker(Listener):
    """A broker that decodes requests with kclient's codec and answers by handlers.

    By default it answers ApiVersions with kclient's own ranges but telemetry (or `versions`) and Metadata with itself
    as the only broker and leader of `topics` (name -> number of partitions). Everything else it does not answer.
    `requests` holds what came, oldest first.
    """

    def __init__(
        self,
        *,
        node_id: int = 0,
        topics: Mapping[str, int] | None = None,
        versions: Mapping[ApiKeys, tuple[int, int]] | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(f"scripted-broker-{node_id}", port)
        self.node_id = node_id
        self.topics = dict(topics or {})
        self.versions = dict(versions or {api: (api.min_version, api.max_version) for api in _broker_apis()})
        self.brokers: list[ScriptedBroker] = [self]
        """The brokers that metadata names; those of a cluster share one list."""
        self.requests: list[tuple[RequestHeader, Any]] = []
        self.errors: list[BaseException] = []
        """Requests that could not be decoded, and what handlers raised."""
        self.reading = threading.Event()
        """While a handler has it cleared, no connection is read beyond the request that it answers."""
        self.reading.set()
        self._handlers: dict[ApiKeys, Handler] = {
            ApiKeys.API_VERSIONS: self._answer_api_versions,
            ApiKeys.METADATA: self._answer_metadata,
        }
        self._once: dict[ApiKeys, deque[Handler]] = {}

    def on(self, api: ApiKeys, handler: Handler) -> None:
        """Answer every request for `api` by `handler`."""
        self._handlers[api] = handler

    def once(self, api: ApiKeys, handler: Handler) -> None:
        """Answer one request for `api` by `handler`; several of them are used in order, before `on`'s."""
        self._once.setdefault(api, deque()).append(handler)

    def answer(self, api: ApiKeys, *replies: Any) -> None:
        """Give these replies, one for each of the next requests for `api`."""
        for reply in replies:
            self.once(api, _Always(reply))

    def received(self, api: ApiKeys) -> list[Any]:
        """The messages that came for `api`."""
        return [message for header, message in list(self.requests) if header.api_key == api]

    def metadata(self) -> MetadataResponse:
        """The default metadata answer, to be changed by a handler."""
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port) for b in self.brokers
            ],
            cluster_id="scripted",
            controller_id=self.brokers[0].node_id,
            topics=[
                MetadataResponseTopic(
                    name=name,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=self.brokers[index % len(self.brokers)].node_id,
                            leader_epoch=1,
                            replica_nodes=[self.node_id],
                            isr_nodes=[self.node_id],
                        )
                        for index in range(count)
                    ],
                )
                for name, count in self.topics.items()
            ],
        )

    def stop(self) -> None:
        self.reading.set()
        super().stop()

    def serve(self, sock: socket.socket) -> None:
        while self.reading.wait():
            frame = memoryview(read_frame(sock))
            reply = self._reply_to(frame)
            if reply is Reply.CLOSE:
                return
            if reply is Reply.RESET:
                reset(sock)
                return
            if reply is not Reply.NOTHING:
                sock.sendall(reply)

    def _reply_to(self, frame: memoryview) -> Any:
        try:
            header, message = parse_request(frame)
        except UnsupportedVersionError as error:
            header = error.header  # type: ignore[attr-defined]
            if header.api_key is not ApiKeys.API_VERSIONS:
                self.errors.append(error)
                return Reply.CLOSE
            message = None
        except KafkaError as error:
            self.errors.append(error)
            return Reply.CLOSE
        self.requests.append((header, message))
        api = header.api_key
        assert isinstance(api, ApiKeys)
        waiting = self._once.get(api)
        handler = waiting.popleft() if waiting else self._handlers.get(api)
        if handler is None:
            return Reply.NOTHING
        try:
            reply = handler(header, message)
        except Exception as error:
            self.errors.append(error)
            return Reply.CLOSE
        if isinstance(reply, Reply | bytes):
            return reply
        version = header.api_version
        if api is ApiKeys.API_VERSIONS and reply.error_code == Errors.UNSUPPORTED_VERSION:
            version = 0
        return b"".join(response_buffers(reply, api, version, header.correlation_id))

    def _answer_api_versions(self, header: RequestHeader, message: Any) -> ApiVersionsResponse:
        low, high = self.versions[ApiKeys.API_VERSIONS]
        supported = low <= header.api_version <= high
        return ApiVersionsResponse(
            error_code=0 if supported else Errors.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(api_key=api, min_version=bounds[0], max_version=bounds[1])
                for api, bounds in self.versions.items()
                if supported or api is ApiKeys.API_VERSIONS
            ],
        )

    def _answer_metadata(self, header: RequestHeader, message: Any) -> MetadataResponse:
        response = self.metadata()
        if message.topics is not None and not (header.api_version == 0 and not message.topics):
            wanted = {topic.name for topic in message.topics}
            known = {topic.name for topic in response.topics}
            response.topics = [topic for topic in response.topics if topic.name in wanted]
            response.topics += [
                MetadataResponseTopic(name=name, error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION)
                for name in sorted(wanted - known)
            ]
        return response


def _broker_apis() -> list[ApiKeys]:
    # As brokers do on which nobody receives metrics.
    telemetry = ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS, ApiKeys.PUSH_TELEMETRY
    return [api for api in ApiKeys if api.on_broker_listener and api not in telemetry]


def cluster_of(count: int, topics: Mapping[str, int] | None = None) -> list[ScriptedBroker]:
    """Brokers that name each other in their metadata; the caller starts and stops them."""
    brokers = [ScriptedBroker(node_id=i, topics=topics) for i in range(count)]
    for broker in brokers:
        broker.brokers = brokers
    return brokers
