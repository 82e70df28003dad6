"""Share groups on three real brokers, whose leaders move and die, and on one that has switched them off."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.cluster import RealCluster
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.topics import produce
from harness.waiting import wait_until
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient
from kclient.consumer import KafkaShareConsumer
from kclient.errors import UnsupportedVersionError

COUNT = 300
_HEALING_S = 60


@pytest.mark.parametrize(
    "event",
    [
        "leaders move",
        pytest.param(
            "a broker is killed", marks=[pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(300)]
        ),
    ],
)
def test_every_record_is_accepted_in_the_end_whoever_leads(kafka_cluster: RealCluster, event: str) -> None:
    topic, group = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("share", "group"))
    accepted: Counter[tuple[int, int]] = Counter()
    refused: list[BaseException] = []

    def outcome(offsets: Any, error: BaseException | None) -> None:
        for partition, several in offsets.items():
            if error is None:
                accepted.update((partition.partition, offset) for offset in several)
            else:
                refused.append(error)

    with KafkaAdminClient(bootstrap_servers=kafka_cluster.direct_servers) as admin:
        kafka_cluster.create_topic(admin, topic, 3)
        resource = ConfigResource(ConfigResourceType.GROUP, group)
        admin.incremental_alter_configs({resource: [AlterConfigOp("share.auto.offset.reset", "earliest")]})
        produce(kafka_cluster.bootstrap_servers, topic, COUNT)
        with KafkaShareConsumer(
            bootstrap_servers=kafka_cluster.bootstrap_servers,
            group_id=group,
            share_acknowledgement_mode="explicit",
            max_poll_records=20,
            request_timeout_ms=5000,
        ) as consumer:
            consumer.set_acknowledgement_commit_callback(outcome)
            consumer.subscribe([topic])
            records: list[Any] = []
            wait_until(lambda: records.extend(consumer.poll(500)) or records, 60, "records")
            if event == "leaders move":
                kafka_cluster.move_leaders(admin)
            else:
                leader = admin.describe_topics([topic])[topic].partitions[records[0].partition].leader
                assert leader is not None
                broker = kafka_cluster.brokers[leader.id - 1]
                broker.kill()
            for record in records:
                consumer.acknowledge(record)

            def all_are_accepted() -> bool:
                for record in consumer.poll(500):
                    consumer.acknowledge(record)
                return len(accepted) == COUNT

            wait_until(all_are_accepted, 120, "acceptance of every record")
        if event != "leaders move":
            broker.start()
        wait_until(lambda: not kafka_cluster.out_of_sync(admin), _HEALING_S, "every replica in sync")
    assert set(accepted.values()) == {1}
    assert refused, "nothing was on its way to a leader that is none any more"


def test_a_cluster_that_has_switched_share_groups_off_is_named_as_that() -> None:
    skip_if(missing())
    with RealKafka() as kafka:
        kafka.tool(
            "org.apache.kafka.tools.FeatureCommand",
            *("--bootstrap-server", kafka.bootstrap_servers),
            *("downgrade", "--unsafe", "--feature", "share.version=0"),
        )
        with KafkaShareConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="off") as consumer:
            consumer.subscribe(["t"])
            with pytest.raises(
                UnsupportedVersionError, match=r"share\.version at level 1, which is at 0 here"
            ):
                consumer.poll(30_000)
