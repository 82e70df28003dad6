"""Access rules (ACLs) of the embedded broker: who may do what, through the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.scenarios import access, access_rules
from kclient.admin import KafkaAdminClient
from kclient.broker import EmbeddedKafka


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{access.LISTENER}://127.0.0.1:0",
        "listener.security.protocol.map": f"{access.LISTENER}:SASL_PLAINTEXT",
    }
    with EmbeddedKafka({**access.settings(), **listeners}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(kafka: EmbeddedKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers.split(",")[0]) as made:
        yield made


@pytest.mark.parametrize("case", access.CASES, ids=lambda case: case.name)
def test_requests_are_answered_as_far_as_their_sender_has_the_rights(
    kafka: EmbeddedKafka, admin: KafkaAdminClient, case: access.Case
) -> None:
    access.check(case, admin, *kafka.bootstrap_servers.split(","))


@pytest.mark.parametrize(
    "check",
    [
        access_rules.check_creations,
        access_rules.check_filters,
        access_rules.check_removals,
        access_rules.check_bounds,
    ],
    ids=lambda check: check.__name__,
)
def test_rules_are_added_found_and_removed_as_far_as_they_can_be_ones(
    kafka: EmbeddedKafka, check: Callable[[str], None]
) -> None:
    check(kafka.bootstrap_servers.split(",")[0])
