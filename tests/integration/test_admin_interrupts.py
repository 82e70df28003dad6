"""Ctrl-C while an admin call waits: the call ends at once, and so does closing."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from harness.interrupts import interrupted_after
from harness.network.listener import SilentListener
from harness.network.ports import unanswered_port
from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.admin.internals.operations import groups, topics
from kclient.errors import ClientClosedError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse

# Imported before anything is interrupted: they are files, and Python warns of one that is left open.
_ = groups, topics

# A call that is waited for takes the whole of default.api.timeout.ms.
_AT_ONCE_S = 20


def coordinators(broker: ScriptedBroker) -> Any:
    host, port = broker.address
    return lambda _header, message: FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=0, host=host, port=port) for key in message.coordinator_keys
        ]
    )


def interrupt_and_close(admin: KafkaAdminClient, times: int) -> None:
    """Interrupt calls at random moments, then close as somebody would who has caught that."""
    started = time.monotonic()
    for number in range(times):
        with pytest.raises(KeyboardInterrupt):
            interrupted_after(number * 0.001, admin.describe_groups, ["g", "h"])
    admin.close()
    assert time.monotonic() - started < _AT_ONCE_S
    assert not admin._driver._thread.is_alive()


def test_a_call_to_a_broker_that_says_nothing_ends_at_once() -> None:
    with SilentListener() as listener:
        interrupt_and_close(KafkaAdminClient(bootstrap_servers=listener.bootstrap), 20)


def test_a_call_to_an_address_where_nobody_answers_ends_at_once() -> None:
    with unanswered_port() as port:
        interrupt_and_close(KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}"), 20)


@pytest.mark.parametrize("api", [ApiKeys.FIND_COORDINATOR, ApiKeys.DESCRIBE_GROUPS])
def test_calls_that_a_broker_has_and_does_not_answer_are_forgotten(api: ApiKeys) -> None:
    with ScriptedBroker() as broker:
        broker.on(ApiKeys.FIND_COORDINATOR, coordinators(broker))
        broker.on(api, lambda header, message: Reply.NOTHING)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        interrupt_and_close(admin, 50)


def test_an_interrupted_call_leaves_a_client_that_works_and_the_calls_of_other_threads_alone() -> None:
    with ScriptedBroker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        broker.on(ApiKeys.LIST_GROUPS, lambda header, message: Reply.NOTHING)
        held = threading.Event()
        found: list[object] = []

        def answer_late(header: object, message: object) -> object:
            held.wait(20)
            return broker.metadata()

        other = threading.Thread(target=lambda: found.append(admin.describe_cluster()))
        broker.once(ApiKeys.METADATA, answer_late)
        other.start()
        for number in range(10):
            with pytest.raises(KeyboardInterrupt):
                interrupted_after(number * 0.002, admin.list_groups)
        held.set()
        other.join(20)
        assert len(found) == 1
        assert admin.list_topics() == {}


def test_a_with_block_that_is_left_by_an_interrupt_does_not_wait_for_other_threads() -> None:
    with SilentListener() as listener:
        admin = KafkaAdminClient(bootstrap_servers=listener.bootstrap)
        caller = call_in_the_background(admin, listener)
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt), admin:
            raise KeyboardInterrupt
        caller.join(_AT_ONCE_S)
        assert time.monotonic() - started < _AT_ONCE_S


def test_closing_again_waits_no_longer_than_it_is_told_then() -> None:
    with SilentListener() as listener:
        admin = KafkaAdminClient(bootstrap_servers=listener.bootstrap)
        caller = call_in_the_background(admin, listener)
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupted_after(0.01, admin.close)
        admin.close(0)
        caller.join(_AT_ONCE_S)
        assert time.monotonic() - started < _AT_ONCE_S


def call_in_the_background(admin: KafkaAdminClient, listener: SilentListener) -> threading.Thread:
    def call() -> None:
        with pytest.raises(ClientClosedError):
            admin.describe_cluster()

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    wait_until(lambda: listener.accepted, what="the connection")
    return caller
