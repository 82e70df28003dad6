from __future__ import annotations

import json
from typing import Any

import pytest

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.broker_connection import BrokerConnection
from kclient.client.health import ClientHealth, connection_reasons
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.health import ConsumerHealth
from kclient.errors import BootstrapError, SaslAuthenticationError


def connection(state: str, failure: str | None = None) -> BrokerConnection:
    return BrokerConnection(broker_id=1, host="host", port=9092, state=state, since_ms=7, failure=failure)


@pytest.fixture
def client() -> MockClient:
    return MockClient(MockTime(), [Node(1, "host", 9092)])


def test_a_client_that_nothing_is_wrong_with_is_healthy() -> None:
    assert ClientHealth(client_id="c").healthy
    assert not ClientHealth(client_id="c", reasons=("so",)).healthy


def test_everything_goes_into_json() -> None:
    health = ConsumerHealth(
        client_id="c",
        reasons=("so",),
        connections=(connection("ready"),),
        group_id="g",
        member_state="stable",
        last_heartbeat_ms=1,
        last_poll_ms=2,
        max_poll_interval_ms=10,
        assignment_age_ms=3,
        lag={TopicPartition("t", 3): 4, TopicPartition("t", 5): None},
    )

    read: dict[str, Any] = json.loads(json.dumps(health.to_dict()))

    assert read["healthy"] is False
    assert read["reasons"] == ["so"]
    assert read["connections"][0]["state"] == "ready"
    assert read["lag"] == {"t-3": 4, "t-5": None}
    assert {"client_id", "metadata_age_ms", "last_error", "group_id"} < read.keys()


def test_one_broker_that_answers_is_enough(client: MockClient) -> None:
    client.failure = BootstrapError("refused")
    client.described = [connection("disconnected", "refused"), connection("ready")]
    assert connection_reasons(client, client.described) == []
    client.described = [connection("disconnected", "refused"), connection("disconnected")]
    assert connection_reasons(client, client.described) == []  # the other one was closed for being idle


def test_where_no_broker_answers_the_last_failure_says_why(client: MockClient) -> None:
    client.described = [connection("disconnected", "refused")]
    assert connection_reasons(client, client.described) == []  # closed for being idle
    client.failure = BootstrapError("refused")
    assert connection_reasons(client, client.described) == ["No broker can be reached: refused"]


def test_a_broker_that_refuses_the_client_is_a_reason_whatever_others_do(client: MockClient) -> None:
    client.described = [connection("ready")]
    client.connections.node(1).authentication_error = SaslAuthenticationError("wrong password")
    assert connection_reasons(client, client.described) == [
        "A broker refuses who the client is: wrong password"
    ]
