"""ProducerMetadata: the topics that a producer sends to."""

from __future__ import annotations

from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.producer.config import ProducerConfig
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.utils.time import Time

# Whether a topic is in use is known to this.
_NOTED_MS = 1000


class ProducerMetadata(Metadata):
    """Asks for the topics that were sent to within metadata.max.idle.ms, and at once for new ones. Thread-safe."""

    def __init__(self, config: ProducerConfig, time: Time) -> None:
        super().__init__(
            MetadataSchedule.from_config(config),
            allow_auto_topic_creation=True,
            time=time,
            log_context=config.log_context(),
        )
        self._max_idle_ms = config.metadata_max_idle_ms
        self._used_until_ms: dict[str, int] = {}
        self._new_topics: set[str] = set()

    def add_topic(self, topic: str, now_ms: int) -> None:
        """`topic` is used now; if it is new, ask for it."""
        used_until_ms = self._used_until_ms.get(topic)
        if used_until_ms is not None and now_ms + self._max_idle_ms - used_until_ms < _NOTED_MS:
            return  # said a moment ago, and every batch says it twice
        with self._lock:
            if topic not in self._used_until_ms:
                self._new_topics.add(topic)
                self.request_update_for_new_topics()
            self._used_until_ms[topic] = now_ms + self._max_idle_ms

    def request_update_for_topic(self, topic: str) -> int:
        """Ask for an update that tells of `topic`; returns the version that it will exceed."""
        with self._lock:
            if topic in self._new_topics:
                return self.request_update_for_new_topics()
            return self.request_update()

    def topics_to_request(self) -> list[str]:
        return sorted(self._used_until_ms)

    def new_topics_to_request(self) -> list[str]:
        return sorted(self._new_topics)

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        del is_internal
        used_until_ms = self._used_until_ms.get(topic)
        if used_until_ms is None:
            return False
        if topic in self._new_topics or now_ms < used_until_ms:
            return True
        self._log.debug("Topic %s was not used for %d ms and is forgotten", topic, self._max_idle_ms)
        del self._used_until_ms[topic]
        return False

    def update(
        self,
        response: MetadataResponse,
        now_ms: int,
        *,
        partial: bool = False,
        request_version: int | None = None,
    ) -> None:
        super().update(response, now_ms, partial=partial, request_version=request_version)
        with self._lock:
            self._new_topics.difference_update(
                topic.name for topic in response.topics if topic.name is not None
            )
