"""Names of topics that a coordinator assigned by id alone, because a pattern of its own matched them."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.uuid import Uuid
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.utils.backoff import ExponentialBackoff

_FIRST_VERSION_BY_ID = 12


@attrs.define(eq=False, repr=False)
class TopicNames:
    """Asks any broker for names, again and again while they are wanted. For the I/O thread.

    `on_names` gets what was found. To know the name of a topic is enough to ask for its metadata as for any other.
    """

    _sender: RequestSender
    _backoff: ExponentialBackoff
    _on_names: Callable[[frozenset[str]], None]
    _in_flight: bool = attrs.field(default=False, init=False)
    _asked: frozenset[Uuid] = attrs.field(default=frozenset(), init=False)
    _attempts: int = attrs.field(default=0, init=False)
    _retry_ms: int = attrs.field(default=0, init=False)

    def poll(self, wanted: frozenset[Uuid], now_ms: int) -> int:
        """Ask for the names of `wanted`; returns after how many ms to call again at the latest."""
        if self._in_flight:
            return NEVER
        if not wanted <= self._asked:
            self._attempts = 0  # there are new ones, for which nobody has waited yet
        elif now_ms < self._retry_ms:
            return self._retry_ms - now_ms
        self._in_flight = True
        self._asked = wanted
        request = MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in sorted(wanted)],
            allow_auto_topic_creation=False,
        )
        self._sender.send(
            None,
            ApiKeys.METADATA,
            lambda _version: request,
            self._on_reply,
            now_ms,
            min_version=_FIRST_VERSION_BY_ID,
        )
        return NEVER

    def _on_reply(self, reply: Reply) -> None:
        self._in_flight = False
        self._retry_ms = reply.now_ms + self._backoff.backoff_ms(self._attempts)
        self._attempts += 1
        if reply.error is None:
            found = (topic for topic in reply.message.topics if topic.error_code == Errors.NONE)
            names = frozenset(topic.name for topic in found if topic.name)
            if names:
                self._on_names(names)
