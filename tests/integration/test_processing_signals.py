"""Signals that end kclient.processing.run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from harness.programs import start_script
from harness.topics import DEADLINE_S, new_topic, produce
from kclient import ConsumerRecord, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kclient.processing import run

Record = ConsumerRecord[Any, Any]


def reader(servers: str, source: str) -> KafkaConsumer[Any, Any]:
    return KafkaConsumer(
        bootstrap_servers=servers,
        group_id=f"g-{source}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


def committed(servers: str, source: str) -> dict[TopicPartition, int]:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        offsets = admin.list_consumer_group_offsets(f"g-{source}")
    return {tp: offset.offset for tp, offset in offsets.items()}


@pytest.fixture
def former_handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_batch_be_finished_and_committed(
    servers: str, former_handlers: None, number: signal.Signals
) -> None:
    source = new_topic(servers, 1)
    produce(servers, source, 20)

    def handle(record: Record) -> None:
        if record.offset == 3:
            os.kill(os.getpid(), number)

    with KafkaProducer(bootstrap_servers=servers) as producer, reader(servers, source) as consumer:
        done = run(consumer, producer, handle, topics=[source])
    assert done.records == 20
    assert committed(servers, source) == {TopicPartition(source, 0): 20}


@pytest.mark.heavy
def test_a_second_signal_ends_the_run_at_once(servers: str) -> None:
    source = new_topic(servers, 1)
    produce(servers, source, 5)
    program = """
        import logging, sys, threading
        from kclient import KafkaConsumer, KafkaProducer
        from kclient.processing import run

        logging.basicConfig(stream=sys.stdout)
        logging.getLogger("kclient.processing").setLevel(logging.INFO)

        def handle(record):
            print("begun", flush=True)
            threading.Event().wait(60)

        servers, source = sys.argv[1:]
        with (
            KafkaProducer(bootstrap_servers=servers) as producer,
            KafkaConsumer(
                bootstrap_servers=servers, group_id="g-" + source, auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer,
        ):
            try:
                run(consumer, producer, handle, topics=[source])
            except KeyboardInterrupt:
                print("interrupted", flush=True)
    """
    with start_script(program, servers, source) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        # Two that come at once count as one.
        assert "A signal has come" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert "interrupted" in out, err
    assert committed(servers, source) == {}
