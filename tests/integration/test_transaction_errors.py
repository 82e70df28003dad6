"""Errors at every step of a transaction, from the mock cluster of librdkafka: brokers as they were before Kafka 4."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from harness.network.librdkafka_mock import LibrdkafkaMock, missing_mock
from harness.requirements import skip_if
from harness.scenarios.transaction_errors import Case, Step, Transactions, cases, every
from kclient.errors import ErrorCode
from kclient.protocol.api_keys import ApiKeys

_E = ErrorCode
pytestmark = [pytest.mark.peers, pytest.mark.xdist_group("librdkafka-mock")]
TOPIC = "t"


def fits(case: Case) -> bool:
    """Leave out what the mock does in another way than Kafka."""
    if case.step.api is ApiKeys.FIND_COORDINATOR:
        return False  # refused with a host that is null, which the protocol does not allow
    # A new epoch ends no transaction that is open.
    return case.step is not Step.ABORT or case.code not in {
        _E.UNKNOWN_PRODUCER_ID,
        _E.INVALID_PRODUCER_ID_MAPPING,
    }


@attrs.define
class _Refusals:
    mock: LibrdkafkaMock
    steps: list[Step] = attrs.field(factory=list)

    def refuse(self, step: Step, code: int) -> None:
        if not self.steps:
            self.mock.asked()
        self.steps.append(step)
        self.mock.refuse(step.api, code)

    def refused(self) -> int:
        for step in self.steps:
            self.mock.clear(step.api)
        asked = self.mock.asked().count(self.steps[-1].api) if self.steps else 0
        self.steps.clear()
        return min(1, asked)


@pytest.fixture(scope="module")
def transactions() -> Iterator[Transactions]:
    skip_if(missing_mock())
    with LibrdkafkaMock() as mock:
        mock.create_topic(TOPIC, 2)
        end = 0

        def committed(last: bytes) -> list[bytes]:
            nonlocal end
            values, end = mock.committed(TOPIC, end)
            return values

        running = Transactions(mock.bootstrap_servers, TOPIC, _Refusals(mock), committed)
        yield running
        running.close()


@every(*filter(fits, cases("TV1")))
def test_an_error_has_its_class_and_the_next_transaction_is_clean(
    transactions: Transactions, case: Case
) -> None:
    transactions.run(case)
