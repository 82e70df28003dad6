"""The embedded broker's life: start, stop, restart, crash, fork, names, exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.broker.requests import create, find_coordinator, produce, topics, values
from harness.broker.wire import Wire, batch
from harness.leaks import nothing_left_behind
from harness.waiting import wait_until
from kclient.broker import embedded
from kclient.broker.embedded import EmbeddedKafka, resolve
from kclient.broker.metadata.metadata_files import build_batch
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.errors import ConfigError, ForkedClientError, IllegalStateError, KafkaStorageError
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.protocol.messages.metadata_records import NoOpRecord, RemoveTopicRecord
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.utils.time import SYSTEM_TIME

METADATA_LOG = "__cluster_metadata-0"
OFFSETS = {"offsets_topic_num_partitions": 2}


def join_static(wire: Wire) -> Any:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, group_instance_id="i",
        protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )  # fmt: skip
    return wire.ask(request, 9)


def test_nothing_is_left_when_the_block_ends() -> None:
    with EmbeddedKafka():
        pass  # whatever the first one imports and keeps
    with nothing_left_behind(), EmbeddedKafka() as kafka, Wire(kafka.bootstrap_servers) as wire:
        directory = kafka.data_dir
        assert directory is not None
        create(wire, "t", 3)
        produce(wire, "t", batch(b"v"))
        assert directory.is_dir()
        wire.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, session_epoch=-1), 12)
    assert not directory.exists()


def test_a_restart_keeps_port_cluster_topics_records_and_producer_ids() -> None:
    with EmbeddedKafka(**OFFSETS) as kafka:
        servers = kafka.bootstrap_servers
        with Wire(servers) as wire:
            topic_id = create(wire, "kept", 3)
            create(wire, "gone")
            wire.ask(DeleteTopicsRequest(topic_names=["gone"]), 5)
            records = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
            produce(wire, "kept", records)
            first_id = wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
            cluster_id = wire.ask(MetadataRequest(topics=[]), 12).cluster_id
        kafka.restart()
        assert kafka.bootstrap_servers == servers
        with Wire(servers) as wire:
            found = topics(wire)
            assert set(found) == {"kept"}
            assert (found["kept"].topic_id, len(found["kept"].partitions)) == (topic_id, 3)
            assert found["kept"].partitions[0].leader_epoch == 1, (
                "a new leadership over records of the old one"
            )
            assert produce(wire, "kept", records) == 0, "a batch sent again is not known any more"
            assert values(wire, "kept") == [b"a"]
            assert wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id > first_id
            assert wire.ask(MetadataRequest(topics=[]), 12).cluster_id == cluster_id


def test_a_group_goes_on_over_a_restart_with_members_assignment_and_offsets() -> None:
    with EmbeddedKafka(**OFFSETS) as kafka:
        with Wire(kafka.bootstrap_servers) as wire:
            create(wire, "t")
            find_coordinator(wire, "g")
            joined = join_static(wire)
            sync = SyncGroupRequest(
                group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, group_instance_id="i",
                protocol_type="consumer", protocol_name="range",
                assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")],
            )  # fmt: skip
            assert wire.ask(sync, 5).assignment == b"mine"
            offset = OffsetCommitRequestPartition(
                partition_index=0, committed_offset=7, committed_metadata="note"
            )
            commit = OffsetCommitRequest(
                group_id="g", generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id,
                group_instance_id="i", topics=[OffsetCommitRequestTopic(name="t", partitions=[offset])],
            )  # fmt: skip
            assert wire.ask(commit, 8).topics[0].partitions[0].error_code == 0
        kafka.restart()
        with Wire(kafka.bootstrap_servers) as wire:
            heartbeat = HeartbeatRequest(
                group_id="g",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                group_instance_id="i",
            )
            assert wire.ask(heartbeat, 4).error_code == 0, "the member is not known any more"
            sync.assignments = []
            assert wire.ask(sync, 5).assignment == b"mine"
            wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
            found = wire.ask(OffsetFetchRequest(group_id="g", topics=wanted), 7).topics[0].partitions[0]
            assert (found.committed_offset, found.metadata) == (7, "note")
            # Static: it comes back under a new id without a rebalance.
            assert join_static(wire).generation_id == joined.generation_id


def test_what_was_acknowledged_survives_a_kill_of_the_process(tmp_path: Path) -> None:
    script = (
        "import sys, threading\n"
        "from kclient.broker.embedded import EmbeddedKafka\n"
        f"kafka = EmbeddedKafka(data_dir={str(tmp_path)!r}, offsets_topic_num_partitions=2).start()\n"
        "print(kafka.bootstrap_servers, flush=True)\n"
        "threading.Event().wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            with Wire(process.stdout.readline().strip()) as wire:
                create(wire, "t", 2)
                create(wire, "deleted")
                wire.ask(DeleteTopicsRequest(topic_names=["deleted"]), 5)
                create(wire, "deleted", 3)
                for number in range(50):
                    produce(wire, "t", batch(b"%d" % number))
                find_coordinator(wire, "g")
                commit = OffsetCommitRequest(
                    group_id="g",
                    topics=[
                        OffsetCommitRequestTopic(
                            name="t",
                            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=9)],
                        )
                    ],
                )
                assert wire.ask(commit, 8).topics[0].partitions[0].error_code == 0
        finally:
            process.send_signal(signal.SIGKILL)
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "t") == [b"%d" % number for number in range(50)]
        assert {name: len(t.partitions) for name, t in topics(wire).items() if name[0] != "_"} == {
            "t": 2,
            "deleted": 3,
        }
        wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        found = wire.ask(OffsetFetchRequest(group_id="g", topics=wanted), 7).topics[0].partitions[0]
        assert found.committed_offset == 9
    assert tmp_path.is_dir(), "a directory that was given is not ours to remove"


def test_a_topic_whose_deletion_a_crash_interrupted_does_not_come_back(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "doomed", 2)
        create(wire, "kept")
    # The metadata log knows of the deletion, the directories do not yet.
    store = MetadataStore(tmp_path / METADATA_LOG, SYSTEM_TIME, snapshot_bytes=1 << 40)
    store.start()
    store.commit([RemoveTopicRecord(topic_id=store.image.topics.by_name["doomed"].id)])
    store.close()
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert set(topics(wire)) == {"kept"}
        assert not (tmp_path / "doomed-0").exists()
        create(wire, "doomed")
        assert values(wire, "doomed") == []


def test_a_second_broker_on_a_directory_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as kafka:
        with pytest.raises(IllegalStateError, match="in use by another broker"):
            EmbeddedKafka(data_dir=tmp_path).start()
        with Wire(kafka.bootstrap_servers) as wire:
            create(wire, "t")


def test_a_start_that_fails_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    with EmbeddedKafka() as kafka:
        port = kafka.bootstrap_servers.rpartition(":")[2]
        with nothing_left_behind():
            second = EmbeddedKafka({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}, data_dir=tmp_path)
            with pytest.raises(ConfigError, match="cannot be bound"):
                second.start()
            damaged = tmp_path / METADATA_LOG / f"{0:020d}.log"
            damaged.parent.mkdir()
            damaged.write_bytes(b"kclient.metadata" + build_batch([NoOpRecord()], 1, 0, 0))
            third = EmbeddedKafka(data_dir=tmp_path)
            with pytest.raises(KafkaStorageError, match="damaged at position 0"):
                third.start()
        damaged.unlink()
        third.start()
        third.close()


def test_settings_that_are_wrong_are_named() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        EmbeddedKafka(num_partitions=0).start()
    with pytest.raises(ConfigError, match="given twice"):
        EmbeddedKafka({"num.partitions": 1}, num_partitions=1)
    with pytest.raises(ConfigError, match=r"log\.dirs"):
        EmbeddedKafka({"log.dirs": "/x"}, data_dir="/y")


def test_a_broker_that_does_not_run_has_no_address() -> None:
    kafka = EmbeddedKafka()
    with pytest.raises(IllegalStateError, match="not running"):
        _ = kafka.bootstrap_servers
    kafka.stop()
    kafka.close()


@pytest.fixture
def names() -> Iterator[None]:
    """Closes brokers that were started by name."""
    yield
    for kafka in list(embedded._registry.brokers.values()):
        kafka.close()
    embedded._registry.brokers.clear()


def test_a_name_stands_for_one_broker(names: None, tmp_path: Path) -> None:
    first = resolve("embedded://demo")
    assert resolve("embedded://demo") == first
    assert resolve("embedded://other") != first
    kept = resolve(f"embedded://{tmp_path}")
    assert resolve(f"embedded://{tmp_path}/") == kept
    assert (tmp_path / "meta.properties").exists()
    with Wire(first[0]) as wire:
        create(wire, "t")


@pytest.mark.parametrize(
    "url", ["embedded://", "embedded:///", "embedded://a b", "embedded://a/b", "kafka://x"]
)
def test_what_names_no_broker_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="embedded://NAME"):
        resolve(url)


def test_many_threads_that_ask_for_a_name_get_one_broker(names: None) -> None:
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(resolve("embedded://shared"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(servers) for servers in found}) == 1
    assert len(found) == 8


def test_a_forked_child_has_no_broker_and_leaves_its_parents_alone(names: None) -> None:
    resolve("embedded://parent")
    with EmbeddedKafka() as kafka:
        directory = kafka.data_dir
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(ForkedClientError):
                    _ = kafka.bootstrap_servers
                kafka.stop()
                kafka.close()
                code = 0 if not embedded._registry.brokers else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert directory is not None
        assert directory.is_dir()
        with Wire(kafka.bootstrap_servers) as wire:
            create(wire, "t")


def test_a_forked_child_does_not_keep_the_port_taken() -> None:
    kafka = EmbeddedKafka().start()
    servers = kafka.bootstrap_servers
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)  # until the parent has seen what it wants to see
        os._exit(0)
    try:
        kafka.stop()
        with pytest.raises(ConnectionRefusedError):
            Wire(servers)
        kafka.start()
        with Wire(servers) as wire:
            create(wire, "t")
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)
        kafka.close()


def test_at_exit_a_producer_that_was_not_closed_still_reaches_its_embedded_broker(tmp_path: Path) -> None:
    script = (
        "from kclient.producer import KafkaProducer\n"
        f"producer = KafkaProducer({{'bootstrap.servers': 'embedded://{tmp_path}', 'linger.ms': 60000,\n"
        "                           'delivery.timeout.ms': 120000})\n"
        "producer.send('t', b'last words')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "undelivered" not in ended.stderr
    assert (tmp_path / ".kafka_cleanshutdown").exists(), "the broker was not stopped in order"
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "t") == [b"last words"]


def test_temporary_directories_are_removed_at_exit() -> None:
    script = "from kclient.broker.embedded import EmbeddedKafka\nprint(EmbeddedKafka().start().data_dir)\n"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    directory = Path(ended.stdout.strip())
    assert directory.name.startswith("kclient-broker-")
    wait_until(lambda: not directory.exists())


def test_auto_creation_can_be_forbidden() -> None:
    with EmbeddedKafka(auto_create_topics_enable=False) as kafka, Wire(kafka.bootstrap_servers) as wire:
        found = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="wish")]), 12).topics[0]
        assert found.error_code == 3


def test_topics_with_preallocated_files_are_read_and_kept(tmp_path: Path) -> None:
    settings = {"log.segment.bytes": "1048576"}
    with EmbeddedKafka(settings, data_dir=tmp_path) as kafka:
        with Wire(kafka.bootstrap_servers) as wire:
            create(wire, "t", preallocate="true")
            produce(wire, "t", batch(b"a" * 70_000))  # so large that it is sent from the file
            assert values(wire, "t") == [b"a" * 70_000]
            (segment,) = tmp_path.glob("t-0/*.log")
            assert segment.stat().st_size == 1048576
        kafka.restart()
        with Wire(kafka.bootstrap_servers) as wire:
            produce(wire, "t", batch(b"b"))
            assert values(wire, "t") == [b"a" * 70_000, b"b"]
    assert segment.stat().st_size < 80_000
