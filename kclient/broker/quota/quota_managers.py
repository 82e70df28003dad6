"""QuotaManagers: all quotas of a broker, as the metadata has them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from kclient.broker.metadata.cache import MetadataCache
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.quota import quota_keys as keys
from kclient.broker.quota.client_quota_manager import ClientQuotaManager
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.broker.quota.entity_quotas import EntityQuotas
from kclient.broker.quota.mutation_quota_manager import MutationQuotaManager
from kclient.broker.quota.windows import QuotaWindows
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig


class QuotaManagers:
    """The quotas of a broker, a manager for each kind. Thread-safe.

    `usage()` of each says how much of which quota is used.
    """

    def __init__(
        self, config: BrokerConfig, metadata: MetadataCache, time: Time, log_context: LogContext
    ) -> None:
        windows = QuotaWindows(config.quota_window_num, config.quota_window_size_seconds * 1000)
        mutations = QuotaWindows(
            config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000
        )
        self.enabled = False
        """True if clients have any quota of bytes, time or mutations."""
        self.produce = ClientQuotaManager(windows, time)
        self.fetch = ClientQuotaManager(windows, time)
        self.request = ClientQuotaManager(windows, time, most_ms=windows.window_ms)
        self.mutation = MutationQuotaManager(mutations, time)
        self.connections = ConnectionRates.of(config, time, log_context)
        self._metadata = metadata
        self._lock = threading.Lock()

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Use what the metadata says, if it says anything new of quotas."""
        del image  # a change may be told of after a later one
        if delta.client_quotas is not None:
            self.update()

    def update(self) -> None:
        """Use what the metadata says now."""
        with self._lock:
            entities = self._metadata.image.client_quotas.entities
            self.produce.update(EntityQuotas.of(keys.PRODUCER_BYTE_RATE, entities))
            self.fetch.update(EntityQuotas.of(keys.CONSUMER_BYTE_RATE, entities))
            self.request.update(EntityQuotas.of(keys.REQUEST_PERCENTAGE, entities))
            self.mutation.update(EntityQuotas.of(keys.CONTROLLER_MUTATION_RATE, entities))
            kinds = (self.produce, self.fetch, self.request, self.mutation)
            self.enabled = any(kind.enabled for kind in kinds)
            self.connections.update(entities)
