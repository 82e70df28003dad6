"""The metadata of a broker over its starts: in a directory of its own, in snapshots, and when it is lost or damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.broker.requests import create, delete, produce, topics, values
from harness.broker.wire import Wire, batch
from kclient.broker.embedded import EmbeddedKafka
from kclient.errors import InconsistentClusterIdError, KafkaStorageError
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.metadata import MetadataRequest

METADATA_LOG = "__cluster_metadata-0"
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": 1}


class Apart:
    """A broker whose metadata has a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.data, self.metadata = root / "data", root / "metadata"

    def broker(self) -> EmbeddedKafka:
        return EmbeddedKafka({"log.dirs": str(self.data), "metadata.log.dir": str(self.metadata)})

    def fill(self) -> None:
        with self.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
            create(wire, "t", 2)
            produce(wire, "t", batch(b"v"))


@pytest.fixture
def apart(tmp_path: Path) -> Apart:
    return Apart(tmp_path)


def test_the_metadata_may_have_a_directory_of_its_own(apart: Apart, tmp_path: Path) -> None:
    apart.fill()
    assert (apart.metadata / METADATA_LOG).is_dir()
    assert not (apart.data / METADATA_LOG).exists()
    with apart.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "t") == [b"v"]
        cluster_id = wire.ask(MetadataRequest(topics=[]), 12).cluster_id
    assert f"cluster.id={cluster_id}" in (apart.metadata / "meta.properties").read_text()
    old, apart.data = apart.data, tmp_path / "new"
    with apart.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert wire.ask(MetadataRequest(topics=[]), 12).cluster_id == cluster_id, (
            "a new disk joins the cluster"
        )
        assert [each.leader_id for each in topics(wire)["t"].partitions] == [-1, -1]
    apart.data = old
    with apart.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "t") == [b"v"]


def test_without_the_directory_of_the_metadata_nothing_is_begun_anew(apart: Apart) -> None:
    apart.fill()
    away = apart.metadata.rename(apart.metadata.with_name("away"))
    with pytest.raises(KafkaStorageError, match=f"Is the disk of {apart.metadata} missing"):
        apart.broker().start()
    assert not apart.metadata.exists()
    away.rename(apart.metadata)
    with apart.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "t") == [b"v"]


def test_the_metadata_of_another_cluster_is_refused(apart: Apart, tmp_path: Path) -> None:
    apart.fill()
    with EmbeddedKafka(data_dir=tmp_path / "other"):
        pass
    apart.data = tmp_path / "other"
    shutil.rmtree(apart.data / METADATA_LOG)
    with pytest.raises(InconsistentClusterIdError, match=f"{apart.data} belongs to cluster"):
        apart.broker().start()


def test_everything_is_there_again_when_each_change_is_a_snapshot(tmp_path: Path) -> None:
    for round_number in range(3):
        with EmbeddedKafka(OFTEN, data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
            found = topics(wire)
            assert set(found) == {f"t{number}" for number in range(round_number)}
            assert {topic.partitions[0].leader_epoch for topic in found.values()} <= set(range(3))
            create(wire, f"t{round_number}", 2)
            create(wire, "gone")
            delete(wire, "gone")
            settings = [AlterableConfig(name="retention.ms", config_operation=0, value=str(round_number))]
            resource = AlterConfigsResource(resource_type=2, resource_name="t0", configs=settings)
            assert (
                wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
            )
            produced_id = wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
            assert produced_id == 1000 * round_number
        assert [path.suffix for path in (tmp_path / METADATA_LOG).iterdir()] == [".checkpoint"]


def test_a_start_after_the_metadata_was_damaged_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        for name in ("a", "b", "c"):
            create(wire, name)
    path = tmp_path / METADATA_LOG / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[content.index(b"\x02\x00\x02a") + 3] ^= 1  # the name of the first topic
    path.write_bytes(content)
    before = {found: found.read_bytes() for found in tmp_path.rglob("*") if found.is_file()}
    with pytest.raises(KafkaStorageError, match=f"{path} is damaged at position") as refused:
        EmbeddedKafka(data_dir=tmp_path).start()
    assert "\n" not in str(refused.value)
    assert {found: found.read_bytes() for found in tmp_path.rglob("*") if found.is_file()} == before


@pytest.mark.heavy
def test_no_id_epoch_or_topic_is_given_out_twice_over_kills(tmp_path: Path) -> None:
    ids: set[int] = set()
    epochs: list[int] = []
    with BrokerProcess(tmp_path) as broker:
        for round_number in range(4):
            with Wire(broker.bootstrap_servers) as wire:
                create(wire, f"t{round_number}")
                produced_id = wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
                assert produced_id not in ids
                ids.add(produced_id)
                found = topics(wire)
                assert set(found) == {f"t{number}" for number in range(round_number + 1)}
                epochs.append(found["t0"].partitions[0].leader_epoch)
            broker.kill()
            broker.start()
    assert epochs == [0, 1, 2, 3]
