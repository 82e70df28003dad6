from __future__ import annotations

from collections.abc import Sequence

import pytest

from kclient.client.connection_states import WAIT_FOR_EVENT_MS
from kclient.client.metadata import Metadata, MetadataRequestPlan
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.metadata_updater import MetadataUpdater, RebootstrapPolicy
from kclient.common.node import Node
from kclient.errors import (
    AuthenticationError,
    BootstrapError,
    DisconnectError,
    Errors,
    RebootstrapRequiredError,
)
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from kclient.utils.backoff import ExponentialBackoff

NODE = Node(1, "host", 9092)
ANSWER = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="host", port=9092)])


class Channel:
    """The client as the updater sees it, and a list of what was asked of it."""

    def __init__(self) -> None:
        self.node: Node | None = NODE
        self.ready = True
        self.preparing = False
        self.connected_to_any = False
        self.may_connect = True
        self.delay_ms = 0
        self.choice = self
        self.connections = self
        self.connected: list[Node] = []
        self.sent: list[MetadataRequestPlan] = []
        self.disconnects = 0

    def disconnect_all(self) -> None:
        self.disconnects += 1

    def least_loaded_node(self, now_ms: int) -> Node | None:
        return self.node

    def is_ready(self, node: Node, now_ms: int) -> bool:
        return self.ready

    def poll_delay_ms(self, node_id: int, now_ms: int) -> int:
        return self.delay_ms

    def is_any_preparing(self) -> bool:
        return self.preparing

    def is_any_connected(self) -> bool:
        return self.connected_to_any

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        if self.may_connect:
            self.connected.append(node)
        return self.may_connect

    def send_metadata_request(self, node: Node, plan: MetadataRequestPlan, now_ms: int) -> None:
        self.sent.append(plan)


class Home:
    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    def __call__(self) -> Sequence[tuple[str, int]]:
        self.calls += 1
        if self.fails:
            raise BootstrapError("no DNS")
        return [("boot", 1)]


@pytest.fixture
def metadata() -> Metadata:
    made = Metadata(MetadataSchedule(ExponentialBackoff(100, 1000), 5000))
    made.bootstrap([("boot", 1)])
    return made


@pytest.fixture
def home() -> Home:
    return Home()


@pytest.fixture
def channel() -> Channel:
    return Channel()


def make(metadata: Metadata, home: Home, *, enabled: bool = True) -> MetadataUpdater:
    return MetadataUpdater(
        metadata,
        request_timeout_ms=30_000,
        reconnect_backoff_ms=50,
        rebootstrap=RebootstrapPolicy(enabled, 10_000, home),
    )


def test_one_request_at_a_time_is_sent_when_an_update_is_due(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    assert updater.maybe_update(channel, 0) == 30_000
    assert updater.maybe_update(channel, 0) == 30_000
    assert len(channel.sent) == 1
    updater.handle_response(ANSWER, 10)
    assert metadata.fetch().nodes == (NODE,)
    assert updater.maybe_update(channel, 10) == 5000
    assert updater.maybe_update(channel, 5010) == 30_000


def test_a_connection_being_set_up_is_waited_for_before_another_one_is_begun(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    channel.ready = False
    assert updater.maybe_update(channel, 0) == 50
    assert channel.connected == [NODE]
    channel.preparing = True
    assert updater.maybe_update(channel, 0) == 50
    assert channel.connected == [NODE]
    channel.preparing = channel.may_connect = False
    assert updater.maybe_update(channel, 0) == WAIT_FOR_EVENT_MS
    assert channel.sent == []


def test_a_failed_request_is_repeated_after_the_backoff(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    updater.maybe_update(channel, 0)
    updater.handle_failure(10, None)
    assert 80 <= updater.maybe_update(channel, 10) <= 120
    assert updater.maybe_update(channel, 130) == 30_000
    assert len(channel.sent) == 2


def test_no_known_broker_available_means_to_begin_again(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    channel.node = None
    assert updater.maybe_update(channel, 1000) == 50
    assert metadata.is_bootstrapping
    updater.maybe_update(channel, 1100)
    assert home.calls == 1  # the bootstrap servers are all there is to try
    assert channel.disconnects == 0  # a coordinator may still be there


def test_brokers_that_are_busy_are_kept_and_asked_before_they_get_anything_else(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    assert not updater.awaits_turn
    channel.node, channel.connected_to_any = None, True
    for now in range(1000, 5000, 1000):
        updater.maybe_update(channel, now)
        assert updater.awaits_turn
    assert metadata.fetch().nodes == (NODE,)
    assert home.calls == 0
    channel.node = NODE
    updater.maybe_update(channel, 5000)
    assert len(channel.sent) == 1
    assert not updater.awaits_turn
    updater.handle_failure(5000, None)
    channel.node, channel.connected_to_any = None, False
    updater.maybe_update(channel, 6000)
    assert metadata.is_bootstrapping
    assert not updater.awaits_turn


def test_brokers_that_do_not_answer_for_the_trigger_time_mean_to_begin_again(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    for now in range(1000, 12_000, 1000):
        updater.maybe_update(channel, now)
        updater.handle_failure(now, None)
    assert home.calls == 0
    assert updater.maybe_update(channel, 13_000) == 0
    assert channel.disconnects == 0
    updater.maybe_update(channel, 13_000)
    assert home.calls == 1
    assert channel.disconnects == 1


def test_without_a_broker_to_connect_to_the_wait_lasts_until_there_may_be_one(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    channel.node = None
    channel.delay_ms = 700
    assert updater.maybe_update(channel, 0) == 700
    channel.delay_ms = 3
    assert updater.maybe_update(channel, 0) == 50


def test_a_success_starts_the_trigger_time_anew(metadata: Metadata, home: Home, channel: Channel) -> None:
    updater = make(metadata, home)
    for now in range(0, 60_000, 6000):
        updater.maybe_update(channel, now)
        updater.handle_response(ANSWER, now)
        metadata.request_update()
    assert home.calls == 0


@pytest.mark.parametrize("fails", [True, False])
def test_without_recovery_or_without_addresses_the_known_brokers_are_kept(
    metadata: Metadata, home: Home, channel: Channel, fails: bool
) -> None:
    home.fails = fails
    updater = make(metadata, home, enabled=fails)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    channel.node = None
    updater.maybe_update(channel, 1000)
    assert metadata.fetch().nodes == (NODE,)


def test_an_answer_without_brokers_is_a_failure(metadata: Metadata, home: Home, channel: Channel) -> None:
    updater = make(metadata, home)
    updater.maybe_update(channel, 0)
    updater.handle_response(MetadataResponse(), 0)
    assert metadata.is_bootstrapping
    assert updater.maybe_update(channel, 0) > 0


def test_what_connections_fail_with_is_told_only_while_no_broker_has_answered(
    metadata: Metadata, home: Home
) -> None:
    updater = make(metadata, home)
    error = DisconnectError("refused")
    updater.handle_connection_failure(error)
    assert metadata.last_error is error
    metadata.update(ANSWER, 0)
    updater.handle_connection_failure(error)
    assert metadata.last_error is None
    assert metadata.update_requested
    updater.handle_connection_failure(AuthenticationError("no"))
    with pytest.raises(AuthenticationError):
        metadata.raise_any_error()


def test_a_broker_that_asks_for_it_makes_the_client_close_every_connection_and_begin_again(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    updater.maybe_update(channel, 1000)
    updater.handle_response(MetadataResponse(error_code=Errors.REBOOTSTRAP_REQUIRED), 1010)
    assert updater.maybe_update(channel, 1010) == 0
    assert (channel.disconnects, home.calls) == (1, 1)
    assert metadata.is_bootstrapping
    updater.maybe_update(channel, 1010)
    assert len(channel.sent) == 2


def test_without_recovery_such_an_answer_is_a_failure_with_a_backoff(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home, enabled=False)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    updater.maybe_update(channel, 1000)
    updater.handle_response(MetadataResponse(error_code=Errors.REBOOTSTRAP_REQUIRED), 1010)
    assert updater.maybe_update(channel, 1010) > 0
    assert (channel.disconnects, home.calls, len(channel.sent)) == (0, 0, 1)
    assert isinstance(metadata.last_error, RebootstrapRequiredError)


def test_a_misrouted_connection_makes_the_client_begin_again_while_a_request_is_in_progress(
    metadata: Metadata, home: Home, channel: Channel
) -> None:
    updater = make(metadata, home)
    metadata.update(ANSWER, 0)
    metadata.request_update()
    updater.maybe_update(channel, 1000)
    updater.start_again("a connection was misrouted")
    assert updater.maybe_update(channel, 1000) == 0
    assert (channel.disconnects, home.calls) == (1, 1)


@pytest.mark.parametrize(("enabled", "check"), [(True, True), (True, False), (False, True)])
def test_the_cluster_is_checked_where_the_client_could_begin_again(
    metadata: Metadata, home: Home, enabled: bool, check: bool
) -> None:
    updater = MetadataUpdater(
        metadata,
        request_timeout_ms=30_000,
        reconnect_backoff_ms=50,
        rebootstrap=RebootstrapPolicy(enabled, 10_000, home, check),
    )
    assert updater.checked_cluster_id is None
    metadata.update(MetadataResponse(brokers=ANSWER.brokers, cluster_id="here"), 0)
    assert updater.checked_cluster_id == ("here" if enabled and check else None)
