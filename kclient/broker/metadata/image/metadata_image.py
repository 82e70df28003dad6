"""MetadataImage: everything that the metadata log says."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kclient.broker.metadata.image.cluster import ClusterImage
from kclient.broker.metadata.image.configurations import ConfigurationsImage
from kclient.broker.metadata.image.features import FeaturesImage, ProducerIdsImage
from kclient.broker.metadata.image.quotas import ClientQuotasImage
from kclient.broker.metadata.image.security import AclsImage, ScramImage
from kclient.broker.metadata.image.topics import TopicsImage
from kclient.protocol.schema import Message


@attrs.frozen(kw_only=True)
class MetadataImage:
    """The metadata as it is at one offset of the log. Immutable; to be read without a lock."""

    features: FeaturesImage = attrs.field(factory=FeaturesImage)
    cluster: ClusterImage = attrs.field(factory=ClusterImage)
    topics: TopicsImage = attrs.field(factory=TopicsImage)
    configs: ConfigurationsImage = attrs.field(factory=ConfigurationsImage)
    client_quotas: ClientQuotasImage = attrs.field(factory=ClientQuotasImage)
    producer_ids: ProducerIdsImage = attrs.field(factory=ProducerIdsImage)
    acls: AclsImage = attrs.field(factory=AclsImage)
    scram: ScramImage = attrs.field(factory=ScramImage)

    def records(self) -> Iterator[Message]:
        """The records of a snapshot.

        Brokers come before topics: a registration says which files of topics that were deleted before it are gone,
        and nothing of those that were deleted after it.
        """
        for part in (
            self.features,
            self.cluster,
            self.topics,
            self.configs,
            self.client_quotas,
            self.producer_ids,
            self.acls,
            self.scram,
        ):
            yield from part.records()
