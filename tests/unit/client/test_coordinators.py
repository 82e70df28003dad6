"""Lookups of many coordinators at once: the requests, what is remembered, retries, failures, the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from harness.network.find_coordinator import (
    BACKOFF_MS,
    MANY_KEYS,
    ONE_KEY,
    Broker,
    at,
    failed,
    group,
    node,
    transaction,
)
from kclient.client.coordinators import CoordinatorKey, CoordinatorLookup, CoordinatorType
from kclient.client.request_sender import NEVER
from kclient.common.node import Node
from kclient.errors import (
    CoordinatorNotAvailableError,
    DisconnectError,
    Errors,
    GroupAuthorizationError,
    KafkaError,
    NotCoordinatorError,
    TransactionalIdAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext


class Searcher:
    """Wants keys until each is known or given up on, as the admin client's driver does."""

    def __init__(self, broker: Broker, *keys: CoordinatorKey, **options: Any) -> None:
        self.broker = broker
        self.errors: dict[CoordinatorKey, KafkaError] = {}
        self.lookup = CoordinatorLookup(
            broker.sender,
            ExponentialBackoff(BACKOFF_MS, 1000, jitter=0),
            self.errors.__setitem__,
            LogContext(""),
            **options,
        )
        self.wanted = list(keys)

    @property
    def found(self) -> dict[CoordinatorKey, Node]:
        known = {key: self.lookup.known(key) for key in self.wanted}
        return {key: node for key, node in known.items() if node is not None}

    def send(self) -> int:
        """Ask for what is wanted; returns what the lookup did: how long it would wait."""
        wanted = [key for key in self.wanted if key not in self.found and key not in self.errors]
        wait_ms = self.lookup.look_for(wanted, self.broker.time.monotonic_ms())
        self.broker.poll()
        return wait_ms

    def round(self) -> int:
        """Ask, and have it answered."""
        wait_ms = self.send()
        self.broker.answer()
        self.broker.poll()
        return wait_ms

    def rounds_until_settled(self) -> int:
        """Rounds as the lookup wants them until no key is left; returns how long that took."""
        begun_ms = self.broker.time.monotonic_ms()
        for _ in range(100):
            if len(self.found) + len(self.errors) == len(self.wanted):
                return self.broker.time.monotonic_ms() - begun_ms
            wait_ms = self.round()
            self.broker.time.advance(0 if wait_ms == NEVER else wait_ms)
        raise AssertionError("the lookup did not come to an end")


@pytest.fixture(params=[0, 1, ONE_KEY, ONE_KEY + 1, MANY_KEYS])
def broker(request: pytest.FixtureRequest) -> Broker:
    return Broker(request.param)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


class TestRequests:
    @pytest.mark.parametrize("key", [group("k"), transaction("k")])
    def test_one_key_stands_in_the_message_in_old_versions_and_in_a_list_in_new_ones(
        self, broker: Broker, key: CoordinatorKey
    ) -> None:
        searcher = Searcher(broker, key)
        searcher.send()
        if not broker.client.sent:  # version 0 knows nothing but groups
            assert key.type is CoordinatorType.TRANSACTION
            assert isinstance(searcher.errors[key], UnsupportedVersionError)
            return
        (sent,) = broker.client.sent
        assert sent.message.key_type == (1 if key.type is CoordinatorType.TRANSACTION else 0)
        many = sent.version >= 4
        assert (sent.message.key, sent.message.coordinator_keys) == (("", ["k"]) if many else ("k", []))
        broker.entries[key] = at(7)
        broker.answer()
        broker.poll()
        assert searcher.found == {key: node(7)}

    def test_keys_that_are_wanted_together_are_one_request_for_each_type(self) -> None:
        broker = Broker(MANY_KEYS)
        keys = [group("a"), transaction("a"), group("b")]
        broker.entries = {key: at(number) for number, key in enumerate(keys)}
        searcher = Searcher(broker, *keys)
        searcher.round()
        assert broker.asked == [[group("a"), group("b")], [transaction("a")]]
        assert searcher.found == {key: node(number) for number, key in enumerate(keys)}

    def test_a_broker_that_takes_one_key_at_a_time_is_asked_for_the_others_without_backoff(self) -> None:
        broker = Broker(ONE_KEY)
        keys = [group("a"), group("b"), group("c")]
        broker.entries = {key: at(number) for number, key in enumerate(keys)}
        searcher = Searcher(broker, *keys)
        assert searcher.rounds_until_settled() == 0
        assert [[sent.message.key] for sent in broker.client.sent] == [["a"], ["b"], ["c"]]
        assert searcher.found == {key: node(number) for number, key in enumerate(keys)}

    def test_once_that_is_known_they_are_asked_for_beside_each_other_until_a_newer_broker_answers(
        self,
    ) -> None:
        broker = Broker(ONE_KEY)
        keys = [group(name) for name in "abcdef"]
        broker.entries = dict.fromkeys(keys, at(1))
        searcher = Searcher(broker, *keys[:3])
        searcher.round()
        searcher.send()
        assert [sent.message.key for sent in broker.client.requests] == ["b", "c"]
        broker.answer()
        broker.poll()
        broker.speaks(MANY_KEYS)
        searcher.wanted = [keys[3]]
        searcher.round()
        searcher.wanted = keys[4:]
        searcher.round()
        assert broker.asked[-1] == keys[4:]

    def test_a_key_is_asked_for_once_however_many_wait_for_it_and_however_often(self, broker: Broker) -> None:
        searcher = Searcher(broker, group("a"), group("a"))
        searcher.send()
        searcher.send()
        assert broker.asked == [[group("a")]]

    def test_with_a_connection_of_its_own_the_node_id_is_no_brokers(self, broker: Broker) -> None:
        broker.entries[group("a")] = at(7)
        searcher = Searcher(broker, group("a"), own_connection=True)
        searcher.round()
        assert searcher.found == {group("a"): Node(2**31 - 1 - 7, "broker-7", 9092)}


class TestMemory:
    def test_what_was_found_is_known_until_it_is_marked_unknown(self, broker: Broker) -> None:
        broker.entries = {group("a"): at(1), group("b"): at(1)}
        searcher = Searcher(broker, group("a"), group("b"))
        searcher.rounds_until_settled()
        searcher.lookup.mark_unknown(group("a"), "it moved")
        assert searcher.found == {group("b"): node(1)}
        broker.entries[group("a")] = at(2)
        searcher.round()
        assert searcher.found == {group("a"): node(2), group("b"): node(1)}

    def test_an_answer_that_nobody_waits_for_any_more_is_remembered(self, broker: Broker) -> None:
        broker.entries[group("a")] = at(1)
        searcher = Searcher(broker, group("a"))
        searcher.send()
        searcher.lookup.look_for([], broker.time.monotonic_ms())
        broker.answer()
        broker.poll()
        assert searcher.found == {group("a"): node(1)}


class TestRetries:
    @pytest.mark.parametrize(
        "code",
        [Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR],
    )
    def test_what_passes_is_tried_again_with_backoff(self, broker: Broker, code: Errors) -> None:
        broker.entries[group("a")] = failed(code)
        searcher = Searcher(broker, group("a"))
        searcher.round()
        for number, wait_ms in enumerate([BACKOFF_MS, 2 * BACKOFF_MS, 4 * BACKOFF_MS]):
            assert searcher.round() == wait_ms
            assert searcher.lookup.last_error(group("a")).code == code  # type: ignore[union-attr]
            broker.time.advance(wait_ms - 1)
            assert searcher.round() == 1
            assert len(broker.asked) == number + 1
            broker.time.advance(1)
            searcher.round()
            assert len(broker.asked) == number + 2
        broker.entries[group("a")] = at(1)
        searcher.rounds_until_settled()
        assert searcher.found == {group("a"): node(1)}
        assert searcher.errors == {}
        assert searcher.lookup.last_error(group("a")) is None

    def test_the_backoff_begins_anew_once_the_coordinator_was_found(self, broker: Broker) -> None:
        searcher = Searcher(broker, group("a"))
        for _ in range(2):
            broker.entries[group("a")] = failed(Errors.NOT_COORDINATOR)
            searcher.round()
            assert searcher.round() == BACKOFF_MS
            broker.time.advance(BACKOFF_MS)
            broker.entries[group("a")] = at(1)
            searcher.round()
            searcher.lookup.mark_unknown(group("a"), "it moved")

    @pytest.mark.parametrize("timed_out", [False, True])
    def test_a_connection_that_breaks_is_retried_for_every_key_of_the_request(self, timed_out: bool) -> None:
        broker = Broker(MANY_KEYS)
        keys = [group("a"), group("b")]
        broker.entries = dict.fromkeys(keys, at(1))
        searcher = Searcher(broker, *keys)
        searcher.send()
        broker.client.respond(None, disconnected=True, timed_out=timed_out)
        broker.poll()
        for key in keys:
            assert isinstance(searcher.lookup.last_error(key), DisconnectError)
        assert searcher.rounds_until_settled() == BACKOFF_MS
        assert broker.asked == [keys, keys]
        assert searcher.found == dict.fromkeys(keys, node(1))

    def test_a_broker_out_of_reach_is_waited_for(self, broker: Broker) -> None:
        broker.entries[group("a")] = at(1)
        (there,) = broker.client._metadata.fetch().nodes  # type: ignore[union-attr]
        broker.client.set_unreachable(there, 35_000)
        searcher = Searcher(broker, group("a"))
        searcher.round()
        broker.time.advance(30_000)
        searcher.round()
        assert "request.timeout.ms" in str(searcher.lookup.last_error(group("a")))
        broker.time.advance(5_000)
        searcher.round()
        assert searcher.found == {group("a"): node(1)}

    def test_retries_end_when_nobody_waits_for_the_key(self, broker: Broker) -> None:
        broker.entries = {group("a"): failed(Errors.NOT_COORDINATOR), group("b"): at(1)}
        searcher = Searcher(broker, group("a"))
        for _ in range(3):
            searcher.round()
            broker.time.advance(1000)
        searcher.wanted = [group("b")]
        searcher.round()
        assert broker.asked[-1] == [group("b")]
        assert searcher.lookup.last_error(group("a")) is None
        searcher.wanted = [group("a")]
        searcher.round()
        assert searcher.round() == BACKOFF_MS

    @pytest.mark.parametrize("retries", [0, 2])
    def test_after_so_many_retries_the_last_failure_is_told(self, broker: Broker, retries: int) -> None:
        broker.entries[group("a")] = failed(Errors.NOT_COORDINATOR)
        searcher = Searcher(broker, group("a"), retries=retries)
        searcher.rounds_until_settled()
        assert isinstance(searcher.errors[group("a")], NotCoordinatorError)
        assert len(broker.asked) == retries + 1


class TestFailures:
    @pytest.mark.parametrize(
        ("key", "code", "error"),
        [
            (group("k"), Errors.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
            (
                transaction("k"),
                Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                TransactionalIdAuthorizationError,
            ),
        ],
    )
    @pytest.mark.parametrize("version", [1, ONE_KEY, MANY_KEYS])
    def test_who_may_not_use_the_key_is_told_its_name(
        self, version: int, key: CoordinatorKey, code: Errors, error: type[KafkaError]
    ) -> None:
        broker = Broker(version)
        broker.entries[key] = failed(code, "no")
        searcher = Searcher(broker, key)
        searcher.rounds_until_settled()
        assert type(searcher.errors[key]) is error
        kind = "group" if error is GroupAuthorizationError else "transactional id"
        assert str(searcher.errors[key]) == f"Not authorized to use {kind} 'k'"
        assert len(broker.asked) == 1

    def test_an_unknown_code_keeps_its_number_and_ends_the_search(self, broker: Broker) -> None:
        broker.entries[group("a")] = failed(32000, "odd")
        searcher = Searcher(broker, group("a"))
        searcher.rounds_until_settled()
        error = searcher.errors[group("a")]
        assert isinstance(error, UnknownServerError)
        assert error.code == 32000
        assert len(broker.asked) == 1

    def test_each_key_has_its_own_outcome(self, broker: Broker) -> None:
        refused, slow, fine = group("a"), group("b"), group("c")
        broker.entries = {
            refused: failed(Errors.GROUP_AUTHORIZATION_FAILED),
            slow: failed(Errors.COORDINATOR_NOT_AVAILABLE),
            fine: at(3),
        }
        searcher = Searcher(broker, refused, slow, fine)
        for _ in range(3):
            searcher.round()
        assert searcher.found == {fine: node(3)}
        assert {key: type(error) for key, error in searcher.errors.items()} == {
            refused: GroupAuthorizationError
        }
        assert isinstance(searcher.lookup.last_error(slow), CoordinatorNotAvailableError)
        broker.entries[slow] = at(2)
        broker.time.advance(BACKOFF_MS)
        searcher.round()
        assert broker.asked[-1] == [slow]
        assert searcher.found == {slow: node(2), fine: node(3)}

    def test_a_key_that_the_answer_says_nothing_of_fails_and_the_others_do_not(self) -> None:
        broker = Broker(MANY_KEYS)
        searcher = Searcher(broker, group("a"), group("b"))
        searcher.send()
        other = Coordinator(key="other", node_id=9, host="broker-9", port=9092)
        mine = Coordinator(key="b", node_id=1, host="broker-1", port=9092)
        broker.client.respond(FindCoordinatorResponse(coordinators=[other, mine]))
        broker.poll()
        assert searcher.found == {group("b"): node(1)}
        assert "group 'a'" in str(searcher.errors[group("a")])
        assert not searcher.errors[group("a")].retriable


class TestLog:
    def test_a_coordinator_may_be_missing_at_first_without_a_word(
        self, broker: Broker, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker.entries[group("a")] = failed(Errors.COORDINATOR_NOT_AVAILABLE)
        searcher = Searcher(broker, group("a"))
        for _ in range(8):
            broker.time.advance(searcher.round() % NEVER)
        assert len(broker.asked) == 4
        assert warnings(caplog) == []
        searcher.round()
        assert len(broker.asked) == 5
        assert len(warnings(caplog)) == 1
        assert "The coordinator of group 'a' could not be found, trying again" in warnings(caplog)[0]

    def test_anything_else_that_passes_is_warned_of_once_for_each_key(
        self, broker: Broker, caplog: pytest.LogCaptureFixture
    ) -> None:
        keys = [group("a"), group("b")]
        broker.entries = dict.fromkeys(keys, failed(Errors.NOT_COORDINATOR))
        searcher = Searcher(broker, *keys)
        for _ in range(6):
            searcher.round()
            broker.time.advance(1000)
        assert len(warnings(caplog)) == 2
        broker.entries = dict.fromkeys(keys, at(1))
        searcher.rounds_until_settled()
        searcher.lookup.mark_unknown(keys[0], "it moved")
        broker.entries = dict.fromkeys(keys, failed(Errors.NOT_COORDINATOR))
        searcher.round()
        assert len(warnings(caplog)) == 3  # it had been found, so this is news
