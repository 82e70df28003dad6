"""A producer put together from settings: what of it there is, and what is refused before anything is opened."""

from __future__ import annotations

from typing import Any

import pytest

from harness.leaks import open_descriptors
from harness.mock_client import MockClient
from harness.mock_time import MockTime
from harness.producer.model import ProducerModel
from kclient.errors import BootstrapError, ConfigError, SerializationError
from kclient.producer.config import ProducerConfig
from kclient.producer.internals import lifecycle
from kclient.producer.internals.assembly import ProducerCore, build_producer
from kclient.producer.partitioner import RoundRobinPartitioner


def build(*, client: Any = None, start: bool = True, **settings: Any) -> ProducerCore:
    config = ProducerConfig.parse(None, {"bootstrap_servers": "127.0.0.1:9092", **settings})
    return build_producer(config, time=MockTime(), client=client, start=start)


@pytest.mark.parametrize(
    ("settings", "error", "name"),
    [
        ({"partitioner_class": object()}, ConfigError, "partitioner.class"),
        ({"key_serializer": 3}, ConfigError, "key.serializer"),
        ({"value_serializer": 3}, ConfigError, "value.serializer"),
        ({"interceptor_classes": [object()]}, ConfigError, "interceptor.classes"),
        ({"bootstrap_servers": "127.0.0.1"}, ConfigError, "bootstrap.servers"),
        ({"bootstrap_servers": "no-such-host.invalid:9092"}, BootstrapError, None),
    ],
)
def test_what_is_refused_leaves_neither_descriptor_nor_thread(
    settings: dict[str, Any], error: type[Exception], name: str | None
) -> None:
    descriptors, running = open_descriptors(), set(lifecycle._running)
    with pytest.raises(error) as refused:
        build(**settings)
    assert getattr(refused.value, "name", None) == name
    assert open_descriptors() == descriptors
    assert lifecycle._running == running


def test_the_thread_runs_unless_the_caller_takes_the_rounds_by_himself() -> None:
    idle = build(client=MockClient(MockTime()), start=False).io_thread
    assert not idle.alive
    assert idle not in lifecycle._running
    core = build(client=MockClient(MockTime()))
    assert core.io_thread.alive
    core.io_thread.begin_close()
    assert core.io_thread.join(10_000)


def test_only_an_idempotent_producer_has_somebody_who_counts_sequences() -> None:
    assert ProducerModel(enable_idempotence=True).core.idempotence is not None
    assert ProducerModel(enable_idempotence=False).core.idempotence is None


def test_the_built_in_rule_is_no_partitioner_of_its_own() -> None:
    assert ProducerModel().core.partitioner is None
    assert type(ProducerModel(partitioner_class="round_robin").core.partitioner) is RoundRobinPartitioner


def test_a_key_and_a_value_that_fail_are_told_apart() -> None:
    def fail(data: object) -> bytes:
        raise ValueError("no")

    core = ProducerModel(key_serializer=fail, value_serializer=fail).core
    with pytest.raises(SerializationError, match=r"key\.serializer"):
        core.key_serializer("t", "k", ())
    with pytest.raises(SerializationError, match=r"value\.serializer"):
        core.value_serializer("t", "v", ())


def test_without_a_client_of_the_callers_it_has_one_that_knows_the_servers() -> None:
    core = build(start=False, max_in_flight_requests_per_connection=3)
    try:
        assert [node.host for node in core.metadata.fetch().nodes] == ["127.0.0.1"]
        assert core.client._pipeline.in_flight._max_per_node == 3  # type: ignore[attr-defined]
    finally:
        core.client.close()
