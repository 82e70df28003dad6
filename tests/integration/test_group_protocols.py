"""Groups by a protocol that the broker does not have."""

from __future__ import annotations

import pytest

from harness.topics import new_topic
from kclient.consumer import KafkaConsumer
from kclient.errors import UnsupportedVersionError


def test_the_embedded_broker_has_no_consumer_protocol_and_the_error_says_what_to_set(servers: str) -> None:
    topic = new_topic(servers, 1)
    with KafkaConsumer(bootstrap_servers=servers, group_id="g-848", group_protocol="consumer") as consumer:
        consumer.subscribe([topic])
        for _ in range(2):  # and no less clearly the next time
            with pytest.raises(UnsupportedVersionError, match=r"KIP-848.*set group\.protocol=classic"):
                consumer.poll(30_000)
