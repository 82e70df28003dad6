"""Listeners that a broker tells of, and its end by itself."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.broker.process import BrokerProcess
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient._accel import IMPL
from kclient.broker import BrokerConfig, KafkaBroker
from kclient.broker.apis.registry import served_apis
from kclient.broker.log.cleaner.log_cleaner import CleanerConfig, LogCleaner
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.describe_cluster import DescribeClusterRequest
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LOCAL = "PLAINTEXT://127.0.0.1:0"


def created(wire: Wire) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def produced(wire: Wire, value: bytes) -> None:
    data = PartitionProduceData(index=0, records=batch(value))
    wire.send(
        ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
        ),
        9,
    )


@pytest.mark.parametrize(
    "advertised", [[], ["PLAINTEXT://inside.invalid:1", "PLAINTEXT://outside.invalid:2"]]
)
def test_a_client_is_sent_to_the_listener_that_it_came_to(tmp_path: Path, advertised: list[str]) -> None:
    config = {
        "log.dirs": str(tmp_path), "listeners": [LOCAL, LOCAL], "advertised.listeners": advertised,
        "offsets.topic.num.partitions": 1,
    }  # fmt: skip
    broker = KafkaBroker(BrokerConfig.parse(config))
    broker.start()
    try:
        for number, endpoint in enumerate(broker.endpoints):
            where = (endpoint.host, endpoint.port)
            if advertised:
                where = (("inside", "outside")[number] + ".invalid", number + 1)
            with Wire(str(endpoint)) as wire:
                node = wire.ask(MetadataRequest(topics=[]), 9).brokers[0]
                assert (node.host, node.port) == where
                node = wire.ask(DescribeClusterRequest(), 0).brokers[0]
                assert (node.host, node.port) == where
                node = wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4).coordinators[0]
                assert (node.host, node.port) == where
    finally:
        broker.stop()


def test_the_settings_of_the_cleaner_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[CleanerConfig] = []
    real = LogCleaner.__init__

    def note(self: LogCleaner, config: CleanerConfig, *others: Any) -> None:
        seen.append(config)
        real(self, config, *others)

    monkeypatch.setattr(LogCleaner, "__init__", note)
    settings = {
        "log.cleaner.threads": 2, "log.cleaner.dedupe.buffer.size": 1 << 23, "log.cleaner.io.buffer.load.factor": 0.5,
        "log.cleaner.io.max.bytes.per.second": 1e6, "log.cleaner.backoff.ms": 7,
    }  # fmt: skip
    broker = KafkaBroker(BrokerConfig.parse({"log.dirs": str(tmp_path), "listeners": [LOCAL], **settings}))
    broker.start()
    broker.stop()
    assert seen == [
        CleanerConfig(
            threads=2,
            dedupe_buffer_bytes=1 << 23,
            dedupe_buffer_load_factor=0.5,
            io_max_bytes_per_second=1e6,
            backoff_ms=7,
        )
    ]


def test_a_broker_whose_last_directory_fails_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = KafkaBroker(BrokerConfig.parse({"log.dirs": str(tmp_path), "listeners": [LOCAL]}))
    broker.start()
    try:
        with Wire(broker.bootstrap_servers) as wire:
            assert broker.failure is None

            def broken(*_: object) -> int:
                raise OSError(errno.EIO, "Input/output error")

            created(wire)
            monkeypatch.setattr(os, "pwritev", broken)
            produced(wire, b"x")
            assert broker.await_shutdown(10_000)
        assert isinstance(broker.failure, KafkaStorageError)
        assert str(tmp_path) in str(broker.failure)
    finally:
        broker.stop()


def test_one_of_two_directories_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories = [str(tmp_path / "a"), str(tmp_path / "b")]
    broker = KafkaBroker(BrokerConfig.parse({"log.dirs": directories, "listeners": [LOCAL]}))
    broker.start()
    try:
        with Wire(broker.bootstrap_servers) as wire:

            def broken(*_: object) -> int:
                raise OSError(errno.EIO, "Input/output error")

            created(wire)
            with monkeypatch.context() as patch:
                patch.setattr(os, "pwritev", broken)
                produced(wire, b"x")
                assert wire.receive().responses[0].partition_responses[0].error_code == 56
            assert wire.ask(MetadataRequest(topics=[]), 9).brokers
        assert broker.failure is None
    finally:
        broker.stop()


def test_the_broker_listens_before_its_handlers_are_loaded_and_is_started_when_all_are() -> None:
    program = (
        "import sys, tempfile\n"
        "from kclient.broker import BrokerConfig, KafkaBroker\n"
        "def loaded(): print(*(m for m in sys.modules if m.startswith('kclient.broker.apis.')))\n"
        "with tempfile.TemporaryDirectory() as directory:\n"
        "    settings = {'listeners': 'PLAINTEXT://127.0.0.1:0', 'log.dirs': directory}\n"
        "    broker = KafkaBroker(BrokerConfig.parse(settings))\n"
        "    broker.start(loaded)\n"
        "    loaded()\n"
        "    broker.stop()\n"
        "print('rich' in sys.modules, 'crc32c' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listening, started, libraries = done.stdout.splitlines()
    handlers = {f"kclient.broker.apis.{api.key.name.lower()}" for api in served_apis().values()}
    assert "kclient.broker.apis.fetch" not in listening.split()
    assert handlers <= set(started.split())
    assert libraries == f"False {IMPL == 'python'}"


def test_the_program_ends_with_a_message_when_its_disk_fails(tmp_path: Path) -> None:
    limit = 100_000
    with subprocess.Popen(
        [sys.executable, "-m", "kclient", "broker", "--port", "0", "--data-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().removeprefix("listening on ").strip()
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
            with Wire(address, timeout_s=30) as wire:
                created(wire)
                produced(wire, bytes(2 * limit))
                _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "no log directory can be used any more" in err.splitlines()[-1]


def test_the_program_goes_on_after_it_was_suspended(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        process = psutil.Process(broker.pid)
        broker.pause()
        wait_until(lambda: process.status() == psutil.STATUS_STOPPED)
        time.sleep(0.6)  # longer than anything in it may wait for its end in pieces
        broker.resume()
        for _ in range(3):
            with Wire(broker.bootstrap_servers) as wire:
                assert wire.ask(MetadataRequest(topics=[]), 9).brokers
