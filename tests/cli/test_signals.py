"""Commands that are stopped by a signal while brokers do not answer."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.network.listener import SilentListener
from harness.network.ports import unanswered_port
from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.topics import produce
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse

# Each of them would wait a minute or more.
_AT_ONCE_S = 20
# A process each takes its time, so each command meets one kind of silence.
_TO_SILENCE = [
    "topics --list",
    "groups --describe --group g",
    "produce --topic t",
    "consume --topic t --group g",
    "perf latency --topic t --num-records 10",
    "demo",
]
_TO_NOBODY = [
    "topics --create --topic t",
    "consume --topic t",
    "perf produce --topic t --num-records 10 --record-size 10",
    "perf consume --topic t --num-records 10",
]


@contextlib.contextmanager
def started(server: str, command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The command as a process, with a line on its standard input."""
    with subprocess.Popen(
        [sys.executable, "-m", "kclient", *command.split(), "--bootstrap-server", server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write("one\n")
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def assert_ends_at_once(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Send each a SIGINT; returns what they said."""
    errors: list[str] = []
    began = time.monotonic()
    for process in processes:
        process.send_signal(signal.SIGINT)
    for process in processes:
        _, said = process.communicate(timeout=_AT_ONCE_S)
        assert process.returncode == 130, (process.args, said)
        assert "Traceback" not in said, process.args
        errors.append(said)
    assert time.monotonic() - began < _AT_ONCE_S
    return errors


def connecting_to(port: int) -> set[str]:
    """Addresses from which connections to `port` are being made that get no answer."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        local for _, local, remote, state, *_ in lines if remote.endswith(f":{port:04X}") and state == "02"
    }


def test_ctrl_c_ends_a_command_at_once_where_a_broker_accepts_and_says_nothing() -> None:
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(SilentListener()) for _ in _TO_SILENCE]
        processes = [
            stack.enter_context(started(listener.bootstrap, command))
            for listener, command in zip(listeners, _TO_SILENCE, strict=True)
        ]
        wait_until(lambda: all(listener.accepted for listener in listeners), 60, "the connections")
        assert_ends_at_once(processes)


def test_ctrl_c_ends_a_command_at_once_where_nobody_answers() -> None:
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(unanswered_port()) for _ in _TO_NOBODY]
        # Those that fill the queues: some of them may be answered yet.
        before = [connecting_to(port) for port in ports]
        processes = [
            stack.enter_context(started(f"127.0.0.1:{port}", command))
            for port, command in zip(ports, _TO_NOBODY, strict=True)
        ]
        wait_until(
            lambda: all(connecting_to(port) - known for port, known in zip(ports, before, strict=True)),
            60,
            "the connections",
        )
        assert_ends_at_once(processes)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    """Everything is answered but what a test is about."""

    def coordinators(_header: Any, message: Any) -> FindCoordinatorResponse:
        host, port = scripted.address
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=0, host=host, port=port) for key in message.coordinator_keys
            ]
        )

    with ScriptedBroker(topics={"t": 1}) as scripted:
        scripted.on(ApiKeys.FIND_COORDINATOR, coordinators)
        scripted.on(ApiKeys.INIT_PRODUCER_ID, lambda _header, _message: InitProducerIdResponse(producer_id=1))
        yield scripted


@pytest.mark.parametrize(
    ("command", "api", "last"),
    [
        ("produce --topic t", ApiKeys.PRODUCE, "0 delivered, 1 failed"),
        ("consume --topic t --group g", ApiKeys.JOIN_GROUP, ""),
    ],
)
def test_ctrl_c_ends_a_command_whose_broker_falls_silent_and_it_counts_what_was_not_delivered(
    broker: ScriptedBroker, command: str, api: ApiKeys, last: str
) -> None:
    broker.on(api, lambda _header, _message: Reply.NOTHING)
    with started(broker.bootstrap, command) as process:
        wait_until(lambda: broker.received(api), 60, api.name)
        (said,) = assert_ends_at_once([process])
    assert last in said


def test_sigterm_has_a_member_leave_its_group_at_once(servers: str, topic: str) -> None:
    group = f"g-{topic}"
    produce(servers, topic, 3)
    command = f"consume --topic {topic} --group {group} --from-beginning"
    with KafkaAdminClient(bootstrap_servers=servers) as admin, started(servers, command) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(3)]
        assert admin.describe_groups([group])[group].members
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=_AT_ONCE_S)
        assert process.returncode == 143
        assert not admin.describe_groups([group])[group].members
        committed = admin.list_consumer_group_offsets(group)
    assert sorted(printed) == ["v0\n", "v1\n", "v2\n"]
    # The record that was printed last may be the one in hand when the signal comes: it is not through, then.
    assert sum(one.offset for one in committed.values() if one is not None) in (2, 3)
