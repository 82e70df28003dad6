"""ClientConfig: rules over several settings of every client, and the identity in front of its log lines."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kclient.config.client_configs import NO_BOOTSTRAP_SERVERS
from kclient.consumer.config import ConsumerConfig
from kclient.errors import ConfigError
from kclient.producer.config import ProducerConfig

PAIRS = [
    ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
    ("retry.backoff.ms", "retry.backoff.max.ms"),
    ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
]


def waits(first: str, longest: str, /, **given: Any) -> tuple[int, int]:
    """Both waits of a producer with the settings `first` and `longest` of `given`."""
    names = {"first": first, "longest": longest}
    config = ProducerConfig.parse(
        {"bootstrap.servers": "b:1"}, {names[each]: value for each, value in given.items()}
    )
    return getattr(config, first.replace(".", "_")), getattr(config, longest.replace(".", "_"))


@pytest.mark.parametrize(("first", "longest"), PAIRS)
def test_a_first_wait_above_the_longest_makes_all_waits_equal(
    first: str, longest: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert waits(first, longest, first=100_000) == (100_000, 100_000)
    assert caplog.messages == []
    assert waits(first, longest, first=9, longest=8) == (8, 8)
    assert waits(first, longest, longest=1) == (1, 1)
    assert len(caplog.messages) == 2
    assert f"{first} is larger than {longest}: every wait is 1 ms." in caplog.messages[1]


@pytest.mark.parametrize(("first", "longest"), PAIRS)
def test_waits_that_fit_are_left_alone(first: str, longest: str, caplog: pytest.LogCaptureFixture) -> None:
    assert waits(first, longest, first=7, longest=7) == (7, 7)
    assert waits(first, longest, first=0, longest=0) == (0, 0)
    assert caplog.messages == []


@pytest.mark.parametrize("servers", [[], "", "  "])
def test_no_servers_are_as_good_as_none_given(servers: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        ProducerConfig.parse({}, {"bootstrap_servers": servers})
    assert raised.value.name == "bootstrap.servers"
    assert str(raised.value) == NO_BOOTSTRAP_SERVERS


def test_a_client_is_known_by_what_it_has_of_its_identity() -> None:
    given: dict[str, object] = {"client.id": "c"}
    assert ConsumerConfig.introduce(given).prefix == "[Consumer clientId=c] "
    given = {"client.id": "c", "group.id": "g"}
    assert ConsumerConfig.introduce(given).prefix == "[Consumer clientId=c, groupId=g] "
    assert given == {"client.id": "c", "group.id": "g"}


def test_a_made_up_id_is_put_among_the_settings_that_were_given() -> None:
    given: dict[str, object] = {"group.id": "g"}
    prefix = ConsumerConfig.introduce(given).prefix
    assert str(given["client.id"]).startswith("consumer-g-")
    assert prefix == f"[Consumer clientId={given['client.id']}, groupId=g] "


def test_the_finished_settings_say_the_same_as_the_introduction() -> None:
    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "client.id": "c", "group.id": "g"})
    assert config.log_context().prefix == "[Consumer clientId=c, groupId=g] "
