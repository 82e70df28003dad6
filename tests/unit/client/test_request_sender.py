"""RequestSender over a real connection."""

from __future__ import annotations

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from harness.network.driven_client import DrivenClient
from harness.network.scripted_broker import ScriptedBroker
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.request_sender import Reply, RequestSender
from kclient.errors import SaslAuthenticationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.utils.backoff import ExponentialBackoff
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


REFUSED = SaslAuthenticationError("wrong password")


def poll_with_two_brokers(*backing_off: int) -> tuple[MockClient, list[Reply]]:
    """Return a client, and the replies to a request to any broker. The first one refuses the client."""
    time = MockTime()
    metadata = Metadata(MetadataSchedule(ExponentialBackoff(100, 1000), 300_000), time=time)
    metadata.bootstrap([("a", 1), ("b", 1)])
    nodes = metadata.fetch().nodes
    client = MockClient(time, metadata)
    client.refuse_authentication(nodes[0], REFUSED)
    for number in backing_off:
        client.backoff(nodes[number], 1000)
    sender, replies = RequestSender(client, 60_000), list[Reply]()
    sender.send(None, ApiKeys.HEARTBEAT, lambda _: BEAT, replies.append, time.monotonic_ms())
    sender.poll(0, time.monotonic_ms())
    return client, replies


def test_a_request_to_any_broker_goes_to_one_that_takes_the_client() -> None:
    client, replies = poll_with_two_brokers(0)
    assert len(client.requests) == 1
    assert not replies


def test_a_request_to_any_broker_fails_when_one_refuses_the_client_and_no_other_is_left() -> None:
    client, replies = poll_with_two_brokers(0, 1)
    assert not client.requests
    assert [reply.error for reply in replies] == [REFUSED]
