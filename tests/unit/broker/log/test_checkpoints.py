"""The small text files of a log directory."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from harness.broker.logs import TP
from harness.broker.power import RecordingDisk
from kclient.broker.log.checkpoints import (
    CleanShutdownMarker,
    EpochCheckpoint,
    MalformedCheckpointError,
    MetaProperties,
    OffsetCheckpoint,
    read_topic_id,
)
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.files import (
    delete_dir_name,
    make_dirs,
    offset_name,
    parse_offset_name,
    parse_partition_dir,
    partition_dir_name,
)
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid


def test_offsets_are_kept_in_kafkas_format(tmp_path: Path) -> None:
    checkpoint = OffsetCheckpoint(tmp_path / "c")
    assert checkpoint.read() == {}
    offsets = {TopicPartition("b", 10): 7, TopicPartition("b", 9): 2**40, TopicPartition("a", 0): 0}
    checkpoint.write(offsets)
    assert (tmp_path / "c").read_text() == f"0\n3\na 0 0\nb 9 {2**40}\nb 10 7\n"
    assert checkpoint.read() == offsets
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_new_and_empty_checkpoint_of_kafka_holds_no_offsets(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    assert OffsetCheckpoint(tmp_path / "c").read() == {}


def test_a_write_that_fails_leaves_the_old_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = OffsetCheckpoint(tmp_path / "c")
    checkpoint.write({TP: 1})
    with monkeypatch.context() as broken:

        def fail(_: int) -> None:
            raise OSError("disk")

        broken.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk"):
            checkpoint.write({TP: 2})
    assert checkpoint.read() == {TP: 1}


@pytest.mark.parametrize(
    "text", ["\n", "0", "0\nx\n", "1\n0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na b c\n"]
)
def test_a_malformed_checkpoint_is_recognised(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    with pytest.raises(MalformedCheckpointError):
        OffsetCheckpoint(path).read()


@pytest.mark.parametrize("text", ["", "0\n1\n5\n", "0\n2\n1 5\n1 6\n", "0\n2\n1 5\n2 5\n", "0\n1\na 1\n"])
def test_epochs_out_of_order_are_recognised(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    with pytest.raises(MalformedCheckpointError):
        EpochCheckpoint(path).read()
    assert LeaderEpochCache(TP, EpochCheckpoint(path)).damaged


def test_the_clean_shutdown_marker_is_taken_once(tmp_path: Path) -> None:
    marker = CleanShutdownMarker(tmp_path / "m")
    assert not marker.take()
    marker.write()
    assert (marker.take(), marker.take()) == (True, False)


def test_no_power_failure_brings_a_taken_marker_or_takes_a_new_directory(tmp_path: Path) -> None:
    disk = RecordingDisk(tmp_path)
    with disk.recording():
        make_dirs(tmp_path / "above" / "d")
        marker = CleanShutdownMarker(tmp_path / "above" / "d" / ".kafka_cleanshutdown")
        marker.write()
        assert marker.take()
    for seed in range(30):
        left = tmp_path / f"left-{seed}"
        disk.after_crash(len(disk), left, random.Random(seed))
        assert list((left / "above" / "d").iterdir()) == []


def test_meta_properties_are_read_as_java_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    assert MetaProperties.read(path) is None
    directory = Uuid.random()
    path.write_text(
        f"#\n#Mon Jan 01 00:00:00 UTC 2024\ncluster.id=abc=\ndirectory.id={directory}\nnode.id=1\nversion=1\n"
    )
    found = MetaProperties.read(path)
    assert found == MetaProperties("abc=", 1, directory)
    found.write(path)
    assert MetaProperties.read(path) == found
    for text in ("", "version=2\ncluster.id=a\nnode.id=1\n", "version=1\ncluster.id=a\nnode.id=x\n"):
        path.write_text(text)
        with pytest.raises(MalformedCheckpointError):
            MetaProperties.read(path)


def test_meta_properties_of_a_broker_with_zookeeper_name_it_in_their_own_way(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Mon Jan 01 00:00:00 UTC 2018\nversion=0\nbroker.id=3\ncluster.id=abc\n")
    assert MetaProperties.read(path) == MetaProperties("abc", 3, None)
    for text in ("version=0\nnode.id=3\ncluster.id=abc\n", "version=0\nbroker.id=3\n"):
        path.write_text(text)
        with pytest.raises(MalformedCheckpointError):
            MetaProperties.read(path)


def test_partition_metadata_without_a_topic_id_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    assert read_topic_id(tmp_path) is None
    for text in ("", "version: 0\n", "version: 0\ntopic_id: short\n"):
        path.write_text(text)
        with pytest.raises(MalformedCheckpointError):
            read_topic_id(tmp_path)


def test_names_of_files_and_directories() -> None:
    assert offset_name(42, ".log") == "00000000000000000042.log"
    assert parse_offset_name("00000000000000000042.log.swap") == (42, ".log.swap")
    for name in ("42.log", "leader-epoch-checkpoint", "0000000000000000004x.log", "00000000000000000042"):
        assert parse_offset_name(name) is None
    tp = TopicPartition("my-topic.x", 12)
    assert parse_partition_dir(partition_dir_name(tp)) == tp
    for name in ("topic", "topic-", "-1", "to pic-1", "topic-1x", "../x-1"):
        assert parse_partition_dir(name) is None
    assert delete_dir_name(tp).startswith("my-topic.x-12.")
    assert len(delete_dir_name(TopicPartition("x" * 249, 99999))) == 255
    assert delete_dir_name(tp) != delete_dir_name(tp)


def cache(tmp_path: Path) -> LeaderEpochCache:
    return LeaderEpochCache(TP, EpochCheckpoint(tmp_path / "leader-epoch-checkpoint"))


def test_epochs_are_kept_with_their_start_offsets(tmp_path: Path) -> None:
    epochs = cache(tmp_path)
    assert epochs.latest_epoch is None
    for epoch, start in ((0, 0), (0, 5), (2, 10), (2, 12), (5, 20)):
        epochs.assign(epoch, start)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n2 10\n5 20\n"
    again = cache(tmp_path)
    assert again.entries == [(0, 0), (2, 10), (5, 20)]
    assert [again.epoch_for_offset(offset) for offset in (0, 9, 10, 19, 20, 99)] == [0, 0, 2, 2, 5, 5]
    assert [again.end_offset_for(epoch, 30) for epoch in (-1, 0, 1, 2, 3, 5, 6)] == [
        (-1, -1), (0, 10), (0, 10), (2, 20), (2, 20), (5, 30), (-1, -1),
    ]  # fmt: skip


def test_epochs_follow_the_ends_of_the_log(tmp_path: Path) -> None:
    epochs = cache(tmp_path)
    for epoch, start in ((0, 0), (2, 10), (5, 20)):
        epochs.assign(epoch, start)
    epochs.truncate_from_end(21)
    assert len(epochs.entries) == 3
    epochs.truncate_from_end(20)
    assert epochs.entries == [(0, 0), (2, 10)]
    epochs.truncate_from_start(4)
    assert epochs.entries == [(0, 4), (2, 10)]
    epochs.truncate_from_start(10)
    assert cache(tmp_path).entries == [(2, 10)]
    assert epochs.end_offset_for(1, 50) == (1, 10)
    assert epochs.epoch_for_offset(9) is None


def test_an_entry_that_contradicts_the_log_is_replaced(tmp_path: Path) -> None:
    epochs = cache(tmp_path)
    epochs.assign(3, 10)
    epochs.assign(4, 10)  # epoch 3 wrote nothing
    assert epochs.entries == [(4, 10)]
    epochs.assign(2, 15)
    assert epochs.entries == [(2, 15)]
    epochs.assign(-1, 20)
    assert epochs.entries == [(2, 15)]
    epochs.rebuild([(0, 0), (0, 3), (-1, 5), (1, 7)])
    assert cache(tmp_path).entries == [(0, 0), (1, 7)]
