"""RequestSender over a real connection."""

from __future__ import annotations

from harness.network.driven_client import DrivenClient
from harness.network.scripted_broker import ScriptedBroker
from kclient.client.request_sender import Reply, RequestSender
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.utils.time import SYSTEM_TIME

BEAT = HeartbeatRequest(group_id="g", member_id="m")


def test_a_request_waits_for_the_one_before_it_to_be_written_and_not_answered() -> None:
    replies: list[Reply] = []
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:  # which does not answer
        sender = RequestSender(driven.client, 60_000)
        begun_ms = SYSTEM_TIME.monotonic_ms()
        for _ in range(2):
            sender.send(driven.node(), ApiKeys.HEARTBEAT, lambda _: BEAT, replies.append, begun_ms)
        sender.poll(20_000, SYSTEM_TIME.monotonic_ms())
        assert SYSTEM_TIME.monotonic_ms() - begun_ms < 5_000
        sender.poll(0, SYSTEM_TIME.monotonic_ms())
        driven.poll_until(lambda: len(broker.received(ApiKeys.HEARTBEAT)) == 2)
        assert not replies
