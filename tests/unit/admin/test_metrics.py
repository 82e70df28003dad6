from __future__ import annotations

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import KafkaAdminClient


def test_requests_of_an_admin_client_are_in_its_metrics_and_in_those_of_the_node() -> None:
    with (
        ScriptedBroker() as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap, client_id="me", metrics_num_samples=3) as admin,
    ):
        admin.describe_cluster(timeout_ms=10_000)
        values = admin.metrics()
    assert values["request-total"] >= 3
    assert values["connection-count"] >= 1
    assert {name.group for name in values} == {"admin-client-metrics", "admin-client-node-metrics"}
    nodes = {dict(name.tags).get("node-id") for name in values if name.group == "admin-client-node-metrics"}
    assert "node--1" in nodes
    assert {dict(name.tags)["client-id"] for name in values} == {"me"}


def test_what_is_pushed_to_brokers_are_these_metrics() -> None:
    with ScriptedBroker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        pushed = {each.name for each in admin._pushed.measurements()}
        assert pushed == set(admin.metrics())
        assert pushed
