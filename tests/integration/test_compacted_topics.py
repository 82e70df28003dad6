"""Topics with cleanup.policy=compact while there is no cleaner: they keep everything, and the log says so."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from harness.broker.requests import create, fetch, produce
from harness.broker.wire import Wire
from harness.waiting import wait_until
from kclient.broker.embedded import EmbeddedKafka
from kclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kclient.record import MemoryRecordsBuilder

LONG_AGO_MS = 1_500_000_000_000


def alter(wire: Wire, topic: str, name: str, value: str) -> None:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
    answer = wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The topics of each warning since the last call."""
    found = [
        record.getMessage().rpartition(" kept in ")[2]
        for record in caplog.records
        if record.levelno == logging.WARNING and "cleanup.policy=compact" in record.getMessage()
    ]
    caplog.clear()
    return found


def test_a_topic_that_is_to_be_compacted_is_warned_of_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "a", cleanup_policy="compact")
        assert warnings(caplog) == ["a"]
        create(wire, "b")
        create(wire, "both", cleanup_policy="compact,delete")
        wire.ask(FindCoordinatorRequest(key="g"), 2)  # makes __consumer_offsets
        config = CreatableTopicConfig(name="cleanup.policy", value="compact")
        topic = CreatableTopic(name="c", num_partitions=1, replication_factor=1, configs=[config])
        wire.ask(CreateTopicsRequest(topics=[topic], validate_only=True), 7)
        assert warnings(caplog) == []
        alter(wire, "b", "cleanup.policy", "compact")
        assert warnings(caplog) == ["b"]
        alter(wire, "b", "retention.ms", "5")
        assert warnings(caplog) == []
    with EmbeddedKafka(data_dir=tmp_path):
        assert warnings(caplog) == ["a, b"]


def test_retention_deletes_from_a_compacted_topic_only_if_its_policy_says_delete_too() -> None:
    builder = MemoryRecordsBuilder()
    builder.append(LONG_AGO_MS, b"k", b"v")
    records = builder.close()
    settings = {"log.retention.check.interval.ms": 1, "log.retention.ms": 1, "log.retention.bytes": 0}
    with EmbeddedKafka(settings) as kafka, Wire(kafka.bootstrap_servers) as wire:
        # In order of their names, in which retention comes to them.
        create(wire, "compact", cleanup_policy="compact")
        create(wire, "compact-delete", cleanup_policy="compact,delete")
        for topic in ("compact", "compact-delete"):
            produce(wire, topic, records)
        wait_until(lambda: fetch(wire, "compact-delete").log_start_offset == 1, what="retention")
        found = fetch(wire, "compact")
        assert (found.log_start_offset, found.high_watermark, len(found.records)) == (0, 1, len(records))
