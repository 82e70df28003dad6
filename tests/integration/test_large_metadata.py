"""Metadata of 10,000 topics with 10 partitions each: what they take, and whether a group member lives with them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from harness.broker.proxied import proxied_broker
from harness.network.proxy import FaultProxy
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.consumer import KafkaConsumer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

MOST_MB = 150
TOPICS, PARTITIONS = 10_000, 10
_UPDATES = """
import sys
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response_body, response_buffers
from kclient.protocol.messages.metadata import *
from kclient.utils.backoff import ExponentialBackoff

def topics():
    for t in range({topics}):
        replicas = [[(t + p + k) % 9 for k in range(3)] for p in range({partitions})]
        yield MetadataResponseTopic(
            name=f"a-topic-with-a-name-{{t:05d}}",
            topic_id=Uuid(t.to_bytes(16, "big")),
            partitions=[
                MetadataResponsePartition(
                    partition_index=p, leader_id=r[0], leader_epoch=t % 50, replica_nodes=r, isr_nodes=r
                )
                for p, r in enumerate(replicas)
            ],
        )

if sys.argv[1] == "write":
    brokers = [MetadataResponseBroker(node_id=i, host=f"broker-{{i}}", port=9092) for i in range(9)]
    answer = MetadataResponse(brokers=brokers, cluster_id="c", topics=list(topics()))
    with open(sys.argv[2], "wb") as file:
        file.write(b"".join(response_buffers(answer, ApiKeys.METADATA, 13, 1))[4:])
else:
    with open(sys.argv[2], "rb") as file:
        frame = file.read()
    metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
    for now_ms in range(4):
        metadata.update(parse_response_body(ApiKeys.METADATA, 13, memoryview(frame)), now_ms)
        assert len(metadata.fetch().topics) == {topics}
        assert metadata.fetch().partition_count("a-topic-with-a-name-00007") == {partitions}
    # Not ru_maxrss, which begins with what the parent had.
    with open("/proc/self/status") as file:
        print(next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM:")))
"""


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="the most memory of a process is read from /proc")
def test_they_take_less_than_150_mb(tmp_path_factory: pytest.TempPathFactory) -> None:
    program = _UPDATES.format(topics=TOPICS, partitions=PARTITIONS)
    file = str(tmp_path_factory.mktemp("metadata") / "answer")
    for what in ("write", "read"):
        done = subprocess.run(
            [sys.executable, "-c", program, what, file],
            check=True,
            capture_output=True,
            text=True,
            timeout=100,
        )

    assert int(done.stdout) < MOST_MB


@pytest.mark.heavy
def test_a_member_that_gets_them_again_and_again_stays_in_its_group() -> None:
    with proxied_broker() as (proxy, _):
        topic = new_topic(proxy.bootstrap, 1)
        answer = _large_answer(proxy, topic)
        rule = proxy.answer(
            ApiKeys.METADATA, lambda request: answer if _all_topics(request) else None, times=-1
        )
        with KafkaConsumer(
            bootstrap_servers=proxy.bootstrap,
            group_id="g",
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            metadata_max_age_ms=500,
        ) as consumer:
            consumer.subscribe(re.compile(re.escape(topic)))
            wait_until(lambda: (consumer.poll(50), consumer.assignment())[1], 60, "the assignment")
            joined = consumer.group_metadata()
            hits = rule.hits

            def updated() -> bool:
                consumer.poll(50)
                return rule.hits >= hits + 4

            wait_until(updated, 90, "four more updates")

            assert consumer.group_metadata() == joined


def _all_topics(request: MetadataRequest) -> bool:
    return request.topics is None


def _large_answer(proxy: FaultProxy, topic: str) -> MetadataResponse:
    with KafkaAdminClient(bootstrap_servers=proxy.bootstrap) as admin:
        cluster = admin.describe_cluster()
        described = admin.describe_topics([topic])[topic]
    (node,) = cluster.nodes
    own = MetadataResponseTopic(name=topic, topic_id=described.topic_id, partitions=_partitions(1, node.id))
    others = [
        MetadataResponseTopic(name=f"another-topic-{number:05d}", partitions=_partitions(PARTITIONS, node.id))
        for number in range(TOPICS)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)],
        cluster_id=cluster.cluster_id,
        controller_id=node.id,
        topics=[own, *others],
    )


def _partitions(count: int, node_id: int) -> list[MetadataResponsePartition]:
    return [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=node_id,
            leader_epoch=0,
            replica_nodes=[node_id],
            isr_nodes=[node_id],
        )
        for index in range(count)
    ]
