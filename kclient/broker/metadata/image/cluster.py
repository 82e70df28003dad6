"""ClusterImage: the brokers and controllers that have registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from kclient.broker.metadata.image.keyed import KeyedDelta
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from kclient.protocol.schema import Message


@attrs.frozen
class BrokerEndpointImage:
    """An address at which a broker listens. Immutable."""

    name: str
    host: str
    port: int
    security_protocol: int


@attrs.frozen(kw_only=True)
class BrokerImage:
    """A broker as it registered last. Immutable. `features` has the lowest and the highest level that it supports."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[BrokerEndpointImage, ...]
    features: Mapping[str, tuple[int, int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[Uuid, ...]

    @classmethod
    def of(cls, record: RegisterBrokerRecord) -> BrokerImage:
        """The broker that a record describes."""
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(
                BrokerEndpointImage(each.name, each.host, each.port, each.security_protocol)
                for each in record.end_points
            ),
            features={
                each.name: (each.min_supported_version, each.max_supported_version)
                for each in record.features
            },
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
        )

    def changed(self, record: BrokerRegistrationChangeRecord) -> BrokerImage:
        """The broker after a change."""
        return attrs.evolve(
            self,
            fenced=record.fenced > 0 if record.fenced else self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            directories=tuple(record.log_dirs) or self.directories,
        )

    def record(self) -> RegisterBrokerRecord:
        """The record that describes the broker."""
        return RegisterBrokerRecord(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
        )


@attrs.frozen
class ClusterImage:
    """Brokers and controllers by their ids. Immutable. A controller is known by its registration alone."""

    brokers: Mapping[int, BrokerImage] = MappingProxyType({})
    controllers: Mapping[int, RegisterControllerRecord] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records that make all of this."""
        yield from self.controllers.values()
        for broker in self.brokers.values():
            yield broker.record()


class ClusterDelta:
    """Changes of brokers and controllers. Used by one thread."""

    def __init__(self, image: ClusterImage) -> None:
        self.brokers: KeyedDelta[int, BrokerImage] = KeyedDelta(image.brokers)
        self.controllers: KeyedDelta[int, RegisterControllerRecord] = KeyedDelta(image.controllers)

    def replay_change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Change a registration."""
        self.brokers.changes[record.broker_id] = self._known(record.broker_id).changed(record)

    def replay_fencing(self, broker_id: int, *, fenced: bool) -> None:
        """Fence or unfence a broker."""
        self.brokers.changes[broker_id] = attrs.evolve(self._known(broker_id), fenced=fenced)

    def apply(self) -> ClusterImage:
        """The cluster after the change."""
        return ClusterImage(self.brokers.apply(), self.controllers.apply())

    def _known(self, broker_id: int) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise KafkaStorageError(f"There is a record of broker {broker_id}, which never registered")
        return broker
