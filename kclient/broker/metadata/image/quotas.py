"""ClientQuotasImage: the quotas of users, clients and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from kclient.broker.metadata.image.keyed import KeyedDelta
from kclient.protocol.messages.metadata_records import ClientQuotaRecord, EntityData
from kclient.protocol.schema import Message

QuotaEntity = frozenset[tuple[str, str | None]]
"""The kinds of what a quota is for, with their names; None is the default of a kind."""


@attrs.frozen
class ClientQuotasImage:
    """The quotas of each entity. Immutable."""

    entities: Mapping[QuotaEntity, Mapping[str, float]] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records that make all of this."""
        for entity, quotas in self.entities.items():
            parts = sorted(entity, key=lambda part: part[0])
            for key, value in quotas.items():
                yield ClientQuotaRecord(
                    entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
                    key=key,
                    value=value,
                )


class ClientQuotasDelta(KeyedDelta[QuotaEntity, Mapping[str, float]]):
    """Changes of the quotas. Used by one thread."""

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set a quota, or take it away."""
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        quotas = dict(self.get(entity) or {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        self.changes[entity] = MappingProxyType(quotas) if quotas else None
