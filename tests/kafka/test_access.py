"""Rights on a real broker with the StandardAuthorizer: the same table that the embedded broker answers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.real_kafka.broker import RealKafka, missing
from harness.requirements import skip_if
from harness.scenarios import access, access_rules
from harness.scenarios.access_clients import check_clients
from harness.scenarios.access_sessions import check_sessions
from kclient.admin import KafkaAdminClient


@pytest.fixture(scope="module")
def broker() -> Iterator[RealKafka]:
    skip_if(missing())
    with RealKafka(listeners={access.LISTENER: "SASL_PLAINTEXT"}, settings=access.settings()) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: RealKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as made:
        yield made


@pytest.mark.parametrize("case", access.CASES, ids=lambda case: case.name)
def test_requests_are_answered_as_far_as_their_sender_has_the_rights(
    broker: RealKafka, admin: KafkaAdminClient, case: access.Case
) -> None:
    access.check(case, admin, broker.bootstrap_servers, f"127.0.0.1:{broker.ports[access.LISTENER]}")


@pytest.mark.parametrize("check", access_rules.CHECKS, ids=lambda check: check.__name__)
def test_rules_are_added_found_and_removed_as_far_as_they_can_be_ones(
    broker: RealKafka, check: Callable[[str], None]
) -> None:
    check(broker.bootstrap_servers)


@pytest.mark.parametrize("version", [12, 13, 18])
def test_a_session_reads_what_may_be_read_now(
    broker: RealKafka, admin: KafkaAdminClient, version: int
) -> None:
    check_sessions(admin, broker.bootstrap_servers, f"127.0.0.1:{broker.ports[access.LISTENER]}", version)


def test_clients_go_on_as_far_as_they_have_the_rights(broker: RealKafka, admin: KafkaAdminClient) -> None:
    check_clients(admin, f"127.0.0.1:{broker.ports[access.LISTENER]}")
