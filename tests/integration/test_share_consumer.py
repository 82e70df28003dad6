"""A share consumer against brokers that have no share groups, or none at all, and in its process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import warnings

import pytest

from harness.network.ports import closed_port
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka
from kclient.consumer import KafkaShareConsumer
from kclient.errors import UnsupportedVersionError, WakeupError


def test_a_cluster_without_share_groups_is_named_as_that() -> None:
    with (
        EmbeddedKafka() as kafka,
        KafkaShareConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g") as consumer,
    ):
        consumer.subscribe(["t"])
        with pytest.raises(UnsupportedVersionError, match=r"share\.version"):
            consumer.poll(30_000)


def test_without_a_broker_poll_and_close_take_no_longer_than_they_may() -> None:
    began = time.monotonic()
    with KafkaShareConsumer(bootstrap_servers=f"127.0.0.1:{closed_port()}", group_id="g") as consumer:
        consumer.subscribe(["t"])
        assert not consumer.poll(200)
        assert consumer.commit_sync() == {}
        consumer.unsubscribe()
        consumer.close(200)
    assert time.monotonic() - began < 20


def test_a_wakeup_from_another_thread_ends_a_poll() -> None:
    with KafkaShareConsumer(bootstrap_servers=f"127.0.0.1:{closed_port()}", group_id="g") as consumer:
        consumer.subscribe(["t"])
        threading.Timer(0.1, consumer.wakeup).start()
        with pytest.raises(WakeupError):
            consumer.poll(60_000)


def test_a_consumer_that_is_forgotten_warns_and_its_thread_ends() -> None:
    def threads() -> list[str]:
        return [each.name for each in threading.enumerate() if "forgotten" in each.name]

    consumer = KafkaShareConsumer(
        bootstrap_servers=f"127.0.0.1:{closed_port()}", group_id="g", client_id="forgotten"
    )
    assert threads()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del consumer
        gc.collect()
    assert any(issubclass(each.category, ResourceWarning) for each in caught)
    wait_until(lambda: not threads(), what="the end of its thread")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_cannot_use_it_and_the_parent_still_can() -> None:
    program = """
import os
from kclient import KafkaShareConsumer
from kclient.errors import ForkedClientError
consumer = KafkaShareConsumer(bootstrap_servers="127.0.0.1:1", group_id="g")
consumer.subscribe(["t"])
child = os.fork()
if not child:
    try:
        consumer.poll(0)
    except ForkedClientError:
        consumer.close()
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert consumer.subscription() == {"t"}
consumer.close(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
