"""FeaturesImage and ProducerIdsImage: the levels of features, and where the next block of producer ids begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from kclient.broker.metadata.image.keyed import KeyedDelta
from kclient.protocol.messages.metadata_records import FeatureLevelRecord, ProducerIdsRecord
from kclient.protocol.schema import Message

METADATA_VERSION_FEATURE = "metadata.version"
MAX_PRODUCER_ID = (1 << 63) - 1


@attrs.frozen
class FeaturesImage:
    """The levels of features that are in force, by their names. Immutable."""

    levels: Mapping[str, int] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records that make all of this. `metadata.version` comes first, as in every log and snapshot."""
        for name in sorted(self.levels, key=lambda name: (name != METADATA_VERSION_FEATURE, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.levels[name])


class FeaturesDelta(KeyedDelta[str, int]):
    """Changes of the features. Used by one thread."""

    def replay(self, record: FeatureLevelRecord) -> None:
        """Set the level of a feature, or take the feature away."""
        self.changes[record.name] = record.feature_level or None


@attrs.frozen
class ProducerIdsImage:
    """The first producer id that is in no block yet. Immutable."""

    next_producer_id: int = 0

    def records(self) -> Iterator[Message]:
        """The records that make all of this."""
        if self.next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, next_producer_id=self.next_producer_id)
