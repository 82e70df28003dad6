"""An image is what records make of it, and its own records make the same image again."""

from __future__ import annotations

import attrs
import pytest

from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.schema import Message

TOPIC, ACL, DIRECTORY = Uuid.random(), Uuid.random(), Uuid.random()
USER = EntityData(entity_type="user", entity_name="u")
CLIENT = EntityData(entity_type="client-id", entity_name=None)

EVERYTHING: list[Message] = [
    FeatureLevelRecord(name="a.feature", feature_level=3),
    FeatureLevelRecord(name="metadata.version", feature_level=25),
    RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=Uuid.random(),
        broker_epoch=7,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)],
        features=[BrokerFeature(name="metadata.version", min_supported_version=1, max_supported_version=25)],
        rack="r",
        fenced=False,
        log_dirs=[DIRECTORY],
    ),
    RegisterControllerRecord(controller_id=3),
    TopicRecord(name="t", topic_id=TOPIC),
    PartitionRecord(
        partition_id=0,
        topic_id=TOPIC,
        replicas=[1, 2],
        isr=[2],
        removing_replicas=[1],
        adding_replicas=[3],
        leader=2,
        leader_recovery_state=1,
        leader_epoch=4,
        partition_epoch=5,
        directories=[DIRECTORY, Uuid.random()],
    ),
    ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5"),
    ConfigRecord(resource_type=4, resource_name="1", name="x", value=""),
    ClientQuotaRecord(entity=[USER, CLIENT], key="producer_byte_rate", value=1.5),
    ClientQuotaRecord(entity=[CLIENT], key="consumer_byte_rate", value=2.0),
    AccessControlEntryRecord(id=ACL, resource_type=2, resource_name="t", principal="User:u", host="*"),
    UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=9),
    ProducerIdsRecord(broker_id=1, next_producer_id=5000),
    NoOpRecord(),
    ClearElrRecord(topic_name="t"),
]  # fmt: skip


def replayed(image: MetadataImage, *records: Message) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply()


@pytest.fixture
def full() -> MetadataImage:
    return replayed(MetadataImage(), *EVERYTHING)


def test_nothing_is_nothing() -> None:
    assert list(MetadataImage().records()) == []
    assert replayed(MetadataImage()) == MetadataImage()


def test_the_records_of_an_image_make_the_same_image_and_begin_with_the_level_they_need(
    full: MetadataImage,
) -> None:
    records = list(full.records())
    assert replayed(MetadataImage(), *records) == full
    assert records[0] == FeatureLevelRecord(name="metadata.version", feature_level=25)
    assert len(records) == len(EVERYTHING) - 2, "all but the two that do nothing"


def test_it_does_not_matter_in_how_many_deltas_records_come(full: MetadataImage) -> None:
    image = MetadataImage()
    for record in EVERYTHING:
        image = replayed(image, record)
    assert image == full


def test_what_a_delta_does_not_touch_is_the_same_object(full: MetadataImage) -> None:
    after = replayed(full, ConfigRecord(resource_type=2, resource_name="t", name="segment.ms", value="7"))
    for field in attrs.fields(MetadataImage):
        same = getattr(after, field.name) is getattr(full, field.name)
        assert same == (field.name != "configs"), field.name


def test_settings_are_set_and_taken_away_one_by_one(full: MetadataImage) -> None:
    of_t = ConfigRecord(resource_type=2, resource_name="t", name="segment.ms", value="7")
    image = replayed(full, of_t)
    assert image.configs.of(ResourceType.TOPIC, "t") == {"retention.ms": "5", "segment.ms": "7"}
    gone = [
        ConfigRecord(resource_type=2, resource_name="t", name=name, value=None)
        for name in ("segment.ms", "retention.ms")
    ]
    assert replayed(image, gone[0]).configs.of(ResourceType.TOPIC, "t") == {"retention.ms": "5"}
    image = replayed(image, *gone)
    assert image.configs.of(ResourceType.TOPIC, "t") == {}
    assert set(image.configs.resources) == {(4, "1")}


def test_quotas_are_set_and_taken_away_one_by_one(full: MetadataImage) -> None:
    entity = frozenset({("user", "u"), ("client-id", None)})
    other = ClientQuotaRecord(entity=[CLIENT, USER], key="request_percentage", value=50.0)
    image = replayed(full, other)
    assert image.client_quotas.entities[entity] == {"producer_byte_rate": 1.5, "request_percentage": 50.0}
    gone = ClientQuotaRecord(entity=[USER, CLIENT], key="producer_byte_rate", remove=True)
    image = replayed(image, gone)
    assert image.client_quotas.entities[entity] == {"request_percentage": 50.0}
    other.remove = True
    assert entity not in replayed(image, other).client_quotas.entities


def test_rules_passwords_and_features_are_taken_away(full: MetadataImage) -> None:
    image = replayed(
        full,
        RemoveAccessControlEntryRecord(id=ACL),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        FeatureLevelRecord(name="a.feature", feature_level=0),
    )
    assert (image.acls.acls, image.scram.credentials) == ({}, {})
    assert image.features.levels == {"metadata.version": 25}


def test_a_password_is_in_no_repr(full: MetadataImage) -> None:
    (credential,) = full.scram.credentials.values()
    assert repr(credential) == "ScramCredential(iterations=9)"


def test_a_registration_is_changed_fenced_and_forgotten(full: MetadataImage) -> None:
    def broker(*records: Message) -> object:
        found = replayed(full, *records).cluster.brokers.get(1)
        return found and (found.fenced, found.in_controlled_shutdown, found.directories)

    other = Uuid.random()
    assert broker() == (False, False, (DIRECTORY,))
    assert broker(FenceBrokerRecord(id=1)) == (True, False, (DIRECTORY,))
    assert broker(FenceBrokerRecord(id=1), UnfenceBrokerRecord(id=1)) == (False, False, (DIRECTORY,))
    change = BrokerRegistrationChangeRecord(broker_id=1, fenced=1, in_controlled_shutdown=1, log_dirs=[other])
    assert broker(change) == (True, True, (other,))
    assert broker(change, BrokerRegistrationChangeRecord(broker_id=1, fenced=-1)) == (False, True, (other,))
    assert broker(UnregisterBrokerRecord(broker_id=1)) is None


@pytest.mark.parametrize(
    "record", [FenceBrokerRecord(id=9), BrokerRegistrationChangeRecord(broker_id=9)], ids=type
)
def test_a_change_of_a_broker_that_never_registered_is_an_error(full: MetadataImage, record: Message) -> None:
    with pytest.raises(KafkaStorageError, match="broker 9, which never registered"):
        replayed(full, record)


@pytest.mark.parametrize(
    "record",
    [BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()],
    ids=type,
)
def test_a_record_that_no_image_has_a_place_for_is_named(record: Message) -> None:
    with pytest.raises(KafkaStorageError, match=f"A {type(record).__name__} has no meaning"):
        replayed(MetadataImage(), record)
