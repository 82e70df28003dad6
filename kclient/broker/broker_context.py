"""BrokerContext: the parts of a running broker, as the API handlers reach them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.group.coordinator import GroupCoordinator
from kclient.broker.metadata.controller import Controller
from kclient.broker.metadata.controller_events import ControllerEvents
from kclient.broker.network.listener import Endpoint
from kclient.broker.quota.quota_managers import QuotaManagers
from kclient.broker.replica.fetch_sessions import FetchSessionCache
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.broker.security.authorizer import StandardAuthorizer
from kclient.broker.transaction.producer_ids import ProducerIds
from kclient.utils.time import Time


@attrs.frozen
class BrokerContext:
    """Everything a handler may use. Immutable; each part is thread-safe."""

    config: BrokerConfig
    time: Time
    node_id: int
    cluster_id: str
    advertised: Sequence[Endpoint]
    """Addresses that clients are told for this broker, by listener."""
    controller: Controller
    controller_events: ControllerEvents
    """The thread that handles requests which change the metadata."""
    replicas: ReplicaManager
    fetch_sessions: FetchSessionCache
    groups: GroupCoordinator
    producer_ids: ProducerIds
    authorizer: StandardAuthorizer | None
    """Decides who may do what; None if everybody may do everything."""
    quotas: QuotaManagers
