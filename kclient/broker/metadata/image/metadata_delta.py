"""MetadataDelta: what some records of the metadata log change."""

from __future__ import annotations

from kclient.broker.metadata.image.cluster import BrokerImage, ClusterDelta
from kclient.broker.metadata.image.configurations import ConfigurationsDelta
from kclient.broker.metadata.image.features import FeaturesDelta, FeaturesImage, ProducerIdsImage
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.quotas import ClientQuotasDelta, ClientQuotasImage
from kclient.broker.metadata.image.security import AclsDelta, AclsImage, ScramDelta, ScramImage
from kclient.broker.metadata.image.topics import TopicsDelta
from kclient.errors import KafkaStorageError
from kclient.protocol.messages import metadata_records as r
from kclient.protocol.schema import Message


class MetadataDelta:
    """Changes of an image. Used by one thread. A part that does not change has None here."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        """The metadata before the change."""
        self.features: FeaturesDelta | None = None
        self.cluster: ClusterDelta | None = None
        self.topics: TopicsDelta | None = None
        self.configs: ConfigurationsDelta | None = None
        self.client_quotas: ClientQuotasDelta | None = None
        self.producer_ids: ProducerIdsImage | None = None
        self.acls: AclsDelta | None = None
        self.scram: ScramDelta | None = None

    def replay(self, record: Message) -> None:
        """Take in a record. Raises KafkaStorageError for one that has no place here, or contradicts the others."""
        match record:
            case r.PartitionChangeRecord():
                self.topics_delta().topic(record.topic_id).replay_partition_change(record)
            case r.PartitionRecord():
                self.topics_delta().topic(record.topic_id).replay_partition(record)
            case r.TopicRecord():
                self.topics_delta().replay_topic(record)
            case r.RemoveTopicRecord():
                self.configs_delta().replay_removal(self.topics_delta().replay_removal(record))
            case r.ConfigRecord():
                self.configs_delta().replay(record)
            case r.ProducerIdsRecord():
                self.producer_ids = ProducerIdsImage(record.next_producer_id)
            case r.FeatureLevelRecord():
                self.features_delta().replay(record)
            case r.ClientQuotaRecord():
                self.client_quotas_delta().replay(record)
            case r.AccessControlEntryRecord():
                self.acls_delta().replay(record)
            case r.RemoveAccessControlEntryRecord():
                self.acls_delta().replay_removal(record)
            case r.UserScramCredentialRecord():
                self.scram_delta().replay(record)
            case r.RemoveUserScramCredentialRecord():
                self.scram_delta().replay_removal(record)
            case r.ClearElrRecord():
                self.topics_delta().replay_clear_elr(record)
            case r.NoOpRecord():
                pass
            case _:
                self._replay_registration(record)

    def apply(self) -> MetadataImage:
        """The metadata after the change."""
        before = self.image
        return MetadataImage(
            features=before.features if self.features is None else FeaturesImage(self.features.apply()),
            cluster=before.cluster if self.cluster is None else self.cluster.apply(),
            topics=before.topics if self.topics is None else self.topics.apply(),
            configs=before.configs if self.configs is None else self.configs.apply(),
            client_quotas=(
                before.client_quotas
                if self.client_quotas is None
                else ClientQuotasImage(self.client_quotas.apply())
            ),
            producer_ids=before.producer_ids if self.producer_ids is None else self.producer_ids,
            acls=before.acls if self.acls is None else AclsImage(self.acls.apply()),
            scram=before.scram if self.scram is None else ScramImage(self.scram.apply()),
        )

    def features_delta(self) -> FeaturesDelta:
        """The features, to be changed."""
        if self.features is None:
            self.features = FeaturesDelta(self.image.features.levels)
        return self.features

    def cluster_delta(self) -> ClusterDelta:
        """The cluster, to be changed."""
        if self.cluster is None:
            self.cluster = ClusterDelta(self.image.cluster)
        return self.cluster

    def topics_delta(self) -> TopicsDelta:
        """The topics, to be changed."""
        if self.topics is None:
            self.topics = TopicsDelta(self.image.topics)
        return self.topics

    def configs_delta(self) -> ConfigurationsDelta:
        """The settings, to be changed."""
        if self.configs is None:
            self.configs = ConfigurationsDelta(self.image.configs)
        return self.configs

    def client_quotas_delta(self) -> ClientQuotasDelta:
        """The quotas, to be changed."""
        if self.client_quotas is None:
            self.client_quotas = ClientQuotasDelta(self.image.client_quotas.entities)
        return self.client_quotas

    def acls_delta(self) -> AclsDelta:
        """The access rules, to be changed."""
        if self.acls is None:
            self.acls = AclsDelta(self.image.acls.acls)
        return self.acls

    def scram_delta(self) -> ScramDelta:
        """The SCRAM credentials, to be changed."""
        if self.scram is None:
            self.scram = ScramDelta(self.image.scram.credentials)
        return self.scram

    def _replay_registration(self, record: Message) -> None:
        cluster = self.cluster_delta()
        match record:
            case r.RegisterBrokerRecord():
                broker = BrokerImage.of(record)
                cluster.brokers.changes[broker.id] = broker
                if self.topics is not None or self.image.topics.deleted:
                    self.topics_delta().replay_registration(broker.directories)
            case r.BrokerRegistrationChangeRecord():
                cluster.replay_change(record)
            case r.FenceBrokerRecord():
                cluster.replay_fencing(record.id, fenced=True)
            case r.UnfenceBrokerRecord():
                cluster.replay_fencing(record.id, fenced=False)
            case r.UnregisterBrokerRecord():
                cluster.brokers.changes[record.broker_id] = None
            case r.RegisterControllerRecord():
                cluster.controllers.changes[record.controller_id] = record
            case _:
                raise KafkaStorageError(f"A {type(record).__name__} has no meaning to this broker")
