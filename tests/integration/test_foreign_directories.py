"""Directories that the embedded broker did not write: nothing in them is changed before somebody says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.broker.requests import create, delete, fetch, produce, topics, values
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.broker.embedded import EmbeddedKafka
from kclient.common.uuid import Uuid
from kclient.errors import Errors, KafkaStorageError
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

METADATA_LOG = "__cluster_metadata-0"
LONG_AGO_MS = 1_500_000_000_000
ADOPT = {"kclient.adopt.topics": True}
EAGER = {"log.retention.check.interval.ms": 1, "log.retention.ms": 1000}


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below `root`, with what is in it."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


def strange_directory(root: Path, *names: str) -> dict[str, bytes | None]:
    """Leave topics of which there is no metadata log, with records that the default retention would delete."""
    with EmbeddedKafka(data_dir=root) as kafka, Wire(kafka.bootstrap_servers) as wire:
        for name in names:
            create(wire, name, 2)
            produce(wire, name, batch(b"old", first_ms=LONG_AGO_MS))
    shutil.rmtree(root / METADATA_LOG)
    return tree(root)


def refused(root: Path, **settings: Any) -> str:
    with pytest.raises(KafkaStorageError) as caught:
        EmbeddedKafka({**EAGER, **settings}, data_dir=root).start()
    return str(caught.value)


def test_a_start_on_topics_that_the_metadata_log_does_not_know_is_refused_and_changes_nothing(
    tmp_path: Path,
) -> None:
    before = strange_directory(tmp_path, "a", "b", "c", "d")
    message = refused(tmp_path)
    assert "\n" not in message
    assert (
        f"{tmp_path} has partitions of topics that the metadata log does not know (a, b, c and 1 more)"
        in message
    )
    assert "kclient.adopt.topics=true" in message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("leftover", ["t-0", "__cluster_metadata-0", "__consumer_offsets-7"])
def test_what_a_crash_of_the_other_broker_left_is_not_repaired(tmp_path: Path, leftover: str) -> None:
    partition = tmp_path / leftover
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(batch(b"v") + b"half a batch")
    (partition / f"{7:020d}.log.deleted").write_bytes(b"x")
    (partition / f"{9:020d}.snapshot").write_bytes(b"x")
    (tmp_path / "gone-0.0123456789abcdef-delete").mkdir()
    (tmp_path / "meta.properties").write_text(
        f"cluster.id=c\nnode.id=1\nversion=1\ndirectory.id={Uuid.random()}\n"
    )
    before = tree(tmp_path)
    assert leftover.rpartition("-")[0] in refused(tmp_path)
    assert tree(tmp_path) == before


def test_a_topic_that_is_put_beside_known_ones_is_not_taken_for_one_of_them(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "ours")
    (tmp_path / "theirs-0").mkdir()
    assert "(theirs)" in refused(tmp_path)
    (tmp_path / "theirs-0").rmdir()
    (tmp_path / "ours-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {Uuid.random()}\n")
    before = tree(tmp_path)
    assert "(ours)" in refused(tmp_path)
    assert "belongs to another topic ours" in refused(tmp_path, **ADOPT)
    assert tree(tmp_path) == before


def test_adopted_topics_keep_every_record_until_their_retention_is_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    strange_directory(tmp_path, "adopted")
    with (
        EmbeddedKafka({**EAGER, **ADOPT}, data_dir=tmp_path) as kafka,
        Wire(kafka.bootstrap_servers) as wire,
    ):
        assert caplog.text.count("Adopted topics found on disk: adopted.") == 1
        assert len(topics(wire)["adopted"].partitions) == 2
        create(wire, "default")
        produce(wire, "default", batch(b"old", first_ms=LONG_AGO_MS))
        wait_until(lambda: fetch(wire, "default").log_start_offset == 1, what="retention")
        produce(wire, "adopted", batch(b"new"))
        resource = DescribeConfigsResource(resource_type=2, resource_name="adopted", configuration_keys=None)
        described = wire.ask(DescribeConfigsRequest(resources=[resource]), 4).results[0].configs
        settings = {entry.name: entry.value for entry in described}
        assert (settings["retention.ms"], settings["retention.bytes"]) == ("-1", "-1")
    with EmbeddedKafka(EAGER, data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "adopted") == [b"old"], "the newer record is in a segment of its own"
        found = fetch(wire, "adopted")
        assert (found.log_start_offset, found.high_watermark) == (0, 2)


def test_the_log_of_kafkas_controllers_is_no_topic_and_stays_as_it_is(tmp_path: Path) -> None:
    strange_directory(tmp_path, "t")
    log = tmp_path / METADATA_LOG
    log.mkdir()
    (log / f"{0:020d}.log").write_bytes(b"not ours")
    before = tree(log)
    for settings in (ADOPT, {}):
        with (
            EmbeddedKafka(settings, data_dir=tmp_path) as kafka,
            Wire(kafka.bootstrap_servers) as wire,
        ):
            assert set(topics(wire)) == {"t"}
            for name in ("__cluster_metadata", "__kclient_metadata"):
                topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                answer = wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0]
                assert answer.error_code == int(Errors.INVALID_TOPIC_EXCEPTION)
        assert tree(log) == before


def test_what_an_interrupted_creation_left_does_not_stand_in_the_way(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t")
        delete(wire, "t")
    (tmp_path / "t-0").mkdir()
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert topics(wire) == {}
    assert not (tmp_path / "t-0").exists()
