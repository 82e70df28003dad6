"""Error codes at the steps of a transaction against what the Java producer makes of them.

The vectors are of kafka-clients 4.4.0 with brokers of Kafka 4.3.1 (TV2) and 3.9.1 (TV1), through a proxy that answered
one request of a step in the broker's place: for each code there is, and for 999, what was left to do afterwards. Steps
that are the same for both versions are there once. Where kclient does otherwise is listed here with its reason.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from harness.golden import golden_table
from harness.producer.transactions import Call, TransactionModel, next_transaction_is_clean, send_offsets
from harness.scenarios.transaction_errors import NOBODYS_CODE, STEPS, Step, Then
from kclient.errors import ErrorCode, KafkaError, TransactionAbortableError
from kclient.producer.internals.transactions.state import TransactionState

pytestmark = pytest.mark.golden

JAVA: dict[str, dict[str, dict[str, list[int]]]] = golden_table("transaction_errors")
_E = ErrorCode


@attrs.frozen
class Difference:
    """The steps and codes after which less is lost than in Java, and why."""

    steps: set[Step]
    codes: set[int]
    then: Then
    why: str
    versions: set[str] = attrs.field(factory=lambda: {"TV1", "TV2"})


_NEW_EPOCH = (
    "the coordinator has forgotten the producer: a new epoch puts that right, or says that it is fenced"
)
DIFFERENCES = [
    Difference(
        {Step.FIND_TRANSACTION_COORDINATOR, Step.INIT_PRODUCER_ID},
        {
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        },
        Then.INIT_AGAIN,
        "rules come and go; in Java it depends on the step and the code",
    ),
    Difference(
        {Step.FIND_TRANSACTION_COORDINATOR, Step.INIT_PRODUCER_ID},
        {_E.TRANSACTION_ABORTABLE},
        Then.INIT_AGAIN,
        "there is nothing to abort; Java can abort, and begin nothing after that",
    ),
    Difference(
        {Step.ADD_PARTITIONS_TO_TXN},
        {_E.OPERATION_NOT_ATTEMPTED},
        Then.GOES_ON,
        "it says that another partition was refused, and here none was",
    ),
    Difference(
        {Step.ADD_PARTITIONS_TO_TXN, Step.ADD_OFFSETS_TO_TXN, Step.TXN_OFFSET_COMMIT, Step.COMMIT},
        {_E.INVALID_PRODUCER_ID_MAPPING},
        Then.ABORT,
        _NEW_EPOCH,
    ),
    Difference({Step.TXN_OFFSET_COMMIT}, {_E.UNKNOWN_PRODUCER_ID}, Then.ABORT, _NEW_EPOCH),
    Difference(
        {Step.ABORT}, {_E.UNKNOWN_PRODUCER_ID, _E.INVALID_PRODUCER_ID_MAPPING}, Then.GOES_ON, _NEW_EPOCH
    ),
    Difference(
        {Step.ADD_OFFSETS_TO_TXN, Step.TXN_OFFSET_COMMIT},
        {_E.INVALID_GROUP_ID},
        Then.ABORT,
        "another group may be right",
    ),
    Difference(
        {Step.TXN_OFFSET_COMMIT},
        {
            _E.OFFSET_METADATA_TOO_LARGE,
            _E.REBALANCE_IN_PROGRESS,
            _E.INVALID_COMMIT_OFFSET_SIZE,
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.FENCED_MEMBER_EPOCH,
        },
        Then.ABORT,
        "it is wrong with these offsets or this member, and not with the producer",
    ),
    Difference(
        {Step.COMMIT, Step.FIND_COORDINATOR_AGAIN},
        {_E.INVALID_TXN_STATE},
        Then.ABORT,
        "the broker has aborted it (transaction.timeout.ms), and the epoch says that it was this one",
        {"TV2"},
    ),
    Difference(
        {Step.NEW_EPOCH},
        {
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        },
        Then.ABORT,
        "rules come and go; in Java TRANSACTIONAL_ID_AUTHORIZATION_FAILED alone",
    ),
    Difference(
        {Step.ABORT},
        {_E.TRANSACTION_ABORTABLE},
        Then.ABORT,
        "the abort can be asked for once more; Java ends in a state from which nothing leads on",
    ),
]


def consequence(version: str, step: Step, code: int) -> Then:
    """Return what is left to do after one refusal, and do it, up to the end of the next transaction."""
    m = TransactionModel(by_broker=version == "TV2")
    initializes = step in {Step.FIND_TRANSACTION_COORDINATOR, Step.INIT_PRODUCER_ID}
    if not initializes:
        m.open()
    error = _error_of(lambda: _refuse(m, step, code))
    if m.transactions.state is TransactionState.FATAL_ERROR:
        return Then.CLOSE
    if error is not None:
        if initializes:
            m.ended(Call(m.transactions.initialize()))
        else:
            assert isinstance(error, TransactionAbortableError)
            m.abort()
    next_transaction_is_clean(m)
    if error is None:
        return Then.GOES_ON
    return Then.INIT_AGAIN if initializes else Then.ABORT


def _refuse(m: TransactionModel, step: Step, code: int) -> None:
    """Go through a transaction up to the step that is refused with `code`."""
    match step:
        case Step.FIND_TRANSACTION_COORDINATOR | Step.INIT_PRODUCER_ID:
            m.coordinator.script(step.api, code)
            m.ended(Call(m.transactions.initialize()))
            return
        case Step.PRODUCE:
            m.broker.fail("t", code)
        case Step.NEW_EPOCH:
            m.broker.fail("t", _E.INVALID_RECORD)
            m.coordinator.script(step.api, code)
        case Step.FIND_COORDINATOR_AGAIN:
            m.coordinator.script(Step.COMMIT.api, _E.NOT_COORDINATOR)
        case _:
            m.coordinator.script(step.api, code)
    m.send(b"a")
    m.rounds(3)
    if step is not Step.NEW_EPOCH:
        send_offsets(m)
    if step is Step.FIND_COORDINATOR_AGAIN:
        m.coordinator.script(step.api, code)
    if step in {Step.ABORT, Step.NEW_EPOCH}:
        m.abort()
    else:
        m.commit()


def _error_of(action: Callable[[], object]) -> KafkaError | None:
    try:
        action()
    except KafkaError as error:
        return error
    return None


_ROWS = [(version, step) for version, steps in STEPS.items() for step in steps]


@pytest.mark.parametrize(
    ("version", "step"), _ROWS, ids=[f"{version}-{step.name}" for version, step in _ROWS]
)
def test_every_code_has_the_consequence_that_java_gives_it(version: str, step: Step) -> None:
    by_consequence = JAVA[version].get(step.name) or JAVA["TV2"][step.name]
    expected = {code: Then[then] for then, codes in by_consequence.items() for code in codes}
    assert expected.keys() == {*_E} - {_E.NONE} | {NOBODYS_CODE}
    for difference in DIFFERENCES:
        if step in difference.steps and version in difference.versions:
            expected |= dict.fromkeys(difference.codes, difference.then)
    found = {code: consequence(version, step, code) for code in expected}
    assert {code: (then, expected[code]) for code, then in found.items() if then is not expected[code]} == {}
