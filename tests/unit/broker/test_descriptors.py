"""A broker in a process that may open few files."""

from __future__ import annotations

import resource
from pathlib import Path

from harness.programs import run_script
from kclient.broker.descriptors import descriptor_shares
from kclient.broker.network.connection_quotas import ConnectionLimits, ConnectionQuotas

PARTITIONS = 80
LIMIT = 64

ALL_AT_ONCE = """
import resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), hard))
from kclient.broker.embedded import EmbeddedKafka
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.record.memory_records import iter_batches
from harness.broker.wire import Wire, batch

partitions = range(int(sys.argv[3]))

def produced(wire, value):
    data = [PartitionProduceData(index=index, records=batch(value)) for index in partitions]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    answers = wire.ask(request, 9).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [0] * len(partitions), answers

def fetched(wire, offset):
    wanted = [FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000) for index in partitions]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=wanted)])
    found = set()
    for data in wire.ask(request, 12).responses[0].partitions:
        assert data.error_code == 0, data
        found.update(record.value for one in iter_batches(data.records) for record in one.records())
    return found

settings = dict(data_dir=sys.argv[1], offsets_topic_num_partitions=1, log_segment_bytes=200, log_index_interval_bytes=0)
with EmbeddedKafka(**settings) as broker, Wire(broker.bootstrap_servers, timeout_s=50) as wire:
    topic = CreatableTopic(name="t", num_partitions=len(partitions), replication_factor=1)
    assert wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    for value in (b"a" * 100, b"b" * 100, b"c" * 100):
        produced(wire, value)  # each in a segment of its own
    for offset in (0, 1, 2):
        assert fetched(wire, offset) >= {bytes([97 + offset]) * 100}
with EmbeddedKafka(**settings) as broker, Wire(broker.bootstrap_servers, timeout_s=50) as wire:
    assert fetched(wire, 1) >= {b"b" * 100}
    produced(wire, b"d" * 100)
    assert fetched(wire, 3) == {b"d" * 100}
print("served")
"""


def test_more_partitions_than_descriptors_are_served_also_after_a_restart(tmp_path: Path) -> None:
    out, err = run_script(ALL_AT_ONCE, str(tmp_path / "data"), str(LIMIT), str(PARTITIONS))
    assert out == "served\n"
    assert "offline" not in err


def test_connections_leave_descriptors_to_logs_and_to_the_rest() -> None:
    limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)
    shares = descriptor_shares()
    assert 0 < shares.log_files < shares.connections
    assert shares.log_files + shares.connections <= limit * 3 / 4


def test_a_connection_beyond_the_share_is_refused_and_says_why() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(), descriptors=2)

    def come(address: str) -> str | None:
        assert quotas.take_place(0, lambda: False)
        return quotas.admit(address)

    assert [come("a") for _ in range(2)] == [None, None]
    refused = come("b")
    assert refused is not None
    assert "ulimit -n" in refused
    quotas.give_back(0)
    quotas.release("a", 0)
    assert come("b") is None
