"""The facade: the time its calls may take, what it says of them, and its end. Its driver only notes what it is told."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient._accel import forks
from kclient.admin import (
    AclBindingFilter,
    ClientQuotaFilter,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    kafka_admin_client,
)
from kclient.admin.internals.driver import Call
from kclient.common.topic_partition import TopicPartition
from kclient.errors import BootstrapError, ForkedClientError, GroupAuthorizationError, KafkaTimeoutError
from kclient.utils.fork import ForkGuard
from kclient.utils.futures import CompletableFuture
from kclient.utils.time import SYSTEM_TIME

DEFAULT_MS = 70_000
T0 = TopicPartition("a", 0)
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "a")


class NotedDriver:
    """Fails every call with `error`; requests are in `calls`, everything else in `told`."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.calls: list[Call] = []
        self.abandoned: list[object] = []
        self.error: Exception = KafkaTimeoutError("never sent")

    def start(self) -> None:
        self.told.append("start")

    def submit(self, call: Call) -> CompletableFuture[Any]:
        self.calls.append(call)
        call.future.fail(self.error)
        return call.future

    def abandon(self, owner: object) -> None:
        self.abandoned.append(owner)

    def close(self, timeout_ms: int) -> None:
        self.told.append(("close", timeout_ms))

    def close_soon(self) -> None:
        self.told.append("close soon")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> NotedDriver:
    made = NotedDriver()
    monkeypatch.setattr(kafka_admin_client, "build_driver", lambda *_: made)
    return made


def make() -> KafkaAdminClient:
    return KafkaAdminClient(
        {"bootstrap.servers": "mock:9092", "client.id": "noted"},
        default_api_timeout_ms=DEFAULT_MS,
        request_timeout_ms=1000,
    )


@pytest.fixture
def admin(driver: NotedDriver) -> Iterator[KafkaAdminClient]:
    with make() as made:
        yield made


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make this process look like a child of the one that it was."""

    def fork() -> None:
        monkeypatch.setattr(forks, "generation", forks.generation + 1)
        monkeypatch.setattr(ForkGuard, "_getpid", staticmethod(lambda: -1))

    return fork


CALLS: dict[str, Callable[[KafkaAdminClient, int | None], object]] = {
    "Creating topics a, b": lambda admin, ms: admin.create_topics(["a", NewTopic("b")], timeout_ms=ms),
    "Deleting topics a, b": lambda admin, ms: admin.delete_topics(["a", "b", "a"], timeout_ms=ms),
    "Listing topics": lambda admin, ms: admin.list_topics(timeout_ms=ms),
    "Describing topics a, b": lambda admin, ms: admin.describe_topics(iter(["a", "b"]), timeout_ms=ms),
    "Describing the cluster": lambda admin, ms: admin.describe_cluster(timeout_ms=ms),
    "Listing offsets": lambda admin, ms: admin.list_offsets({T0: -1}, timeout_ms=ms),
    "Listing groups": lambda admin, ms: admin.list_groups(timeout_ms=ms),
    "Describing groups g": lambda admin, ms: admin.describe_groups({"g": 1}, timeout_ms=ms),
    "Deleting groups g": lambda admin, ms: admin.delete_groups(["g"], timeout_ms=ms),
    "Describing consumer groups g": lambda admin, ms: admin.describe_consumer_groups(["g"], timeout_ms=ms),
    "Describing classic groups g": lambda admin, ms: admin.describe_classic_groups(["g"], timeout_ms=ms),
    "Describing share groups g": lambda admin, ms: admin.describe_share_groups(["g"], timeout_ms=ms),
    "Removing members from group g": lambda admin, ms: admin.remove_members_from_consumer_group(
        "g", ["i"], timeout_ms=ms
    ),
    "Listing the offsets of group g": lambda admin, ms: admin.list_consumer_group_offsets("g", timeout_ms=ms),
    "Listing the offsets of groups g": lambda admin, ms: admin.list_consumer_group_offsets(
        {"g": None}, timeout_ms=ms
    ),
    "Altering the offsets of group g": lambda admin, ms: admin.alter_consumer_group_offsets(
        "g", {T0: 5}, timeout_ms=ms
    ),
    "Deleting offsets of group g": lambda admin, ms: admin.delete_consumer_group_offsets(
        "g", [T0], timeout_ms=ms
    ),
    "Listing the offsets of share groups g": lambda admin, ms: admin.list_share_group_offsets(
        {"g": None}, timeout_ms=ms
    ),
    "Altering the offsets of share group g": lambda admin, ms: admin.alter_share_group_offsets(
        "g", {T0: 5}, timeout_ms=ms
    ),
    "Deleting offsets of share group g": lambda admin, ms: admin.delete_share_group_offsets(
        "g", ["t"], timeout_ms=ms
    ),
    "Describing settings": lambda admin, ms: admin.describe_configs([TOPIC], timeout_ms=ms),
    "Altering settings": lambda admin, ms: admin.incremental_alter_configs({TOPIC: []}, timeout_ms=ms),
    "Listing what has settings": lambda admin, ms: admin.list_config_resources(timeout_ms=ms),
    "Creating ACLs": lambda admin, ms: admin.create_acls([], timeout_ms=ms),
    "Describing ACLs": lambda admin, ms: admin.describe_acls(AclBindingFilter(), timeout_ms=ms),
    "Deleting ACLs": lambda admin, ms: admin.delete_acls([AclBindingFilter()], timeout_ms=ms),
    "Describing SCRAM credentials": lambda admin, ms: admin.describe_user_scram_credentials(timeout_ms=ms),
    "Altering SCRAM credentials": lambda admin, ms: admin.alter_user_scram_credentials([], timeout_ms=ms),
    "Creating a delegation token": lambda admin, ms: admin.create_delegation_token(timeout_ms=ms),
    "Renewing a delegation token": lambda admin, ms: admin.renew_delegation_token(b"h", timeout_ms=ms),
    "Ending a delegation token": lambda admin, ms: admin.expire_delegation_token(b"h", timeout_ms=ms),
    "Describing delegation tokens": lambda admin, ms: admin.describe_delegation_token(timeout_ms=ms),
    "Describing client quotas": lambda admin, ms: admin.describe_client_quotas(
        ClientQuotaFilter.all(), timeout_ms=ms
    ),
    "Altering client quotas": lambda admin, ms: admin.alter_client_quotas([], timeout_ms=ms),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_call_whose_time_is_over_says_what_was_asked_and_is_forgotten(
    admin: KafkaAdminClient, driver: NotedDriver, what: str
) -> None:
    with pytest.raises(KafkaTimeoutError, match=f"^{what} did not finish within 0 ms"):
        CALLS[what](admin, 0)
    assert driver.calls
    assert {call.owner for call in driver.calls} == set(driver.abandoned)


@pytest.mark.parametrize(("timeout_ms", "expected_ms"), [(None, DEFAULT_MS), (0, 0), (5000, 5000)])
def test_a_call_may_take_default_api_timeout_ms_unless_it_is_told_otherwise(
    admin: KafkaAdminClient, driver: NotedDriver, timeout_ms: int | None, expected_ms: int
) -> None:
    driver.error = GroupAuthorizationError("not yours")
    before_ms = SYSTEM_TIME.monotonic_ms()
    with pytest.raises(GroupAuthorizationError):
        admin.list_consumer_group_offsets("g", timeout_ms=timeout_ms)
    [call] = driver.calls
    assert before_ms + expected_ms <= call.deadline_ms <= SYSTEM_TIME.monotonic_ms() + expected_ms


@pytest.mark.parametrize("what", CALLS)
def test_a_call_that_cannot_be_right_asks_nobody(
    admin: KafkaAdminClient, driver: NotedDriver, what: str
) -> None:
    with pytest.raises(ValueError, match="timeout_ms"):
        CALLS[what](admin, -1)
    assert not driver.calls


def test_no_partitions_are_not_all_partitions(admin: KafkaAdminClient, driver: NotedDriver) -> None:
    for partitions in (None, []):
        with pytest.raises(KafkaTimeoutError):
            admin.list_consumer_group_offsets("g", partitions, timeout_ms=0)
    every, none = (call.build(8).groups[0].topics for call in driver.calls if call.build is not None)
    assert every is None
    assert none == []


def test_who_asks_for_topics_alone_imports_nothing_of_access_and_quotas() -> None:
    program = (
        "import sys; from kclient.admin import KafkaAdminClient\n"
        "with KafkaAdminClient(bootstrap_servers='localhost:1') as admin: pass\n"
        "print(*(m for m in sys.modules if m.startswith('kclient.admin')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "kclient.admin.kafka_admin_client" in done.stdout.split()
    unwanted = ("acl", "scram", "tokens", "quotas", "resource_configs", "internals.security_arguments")
    assert not {f"kclient.admin.{name}" for name in unwanted} & set(done.stdout.split())


class TestTheEnd:
    def test_it_waits_as_long_as_a_call_may_take_unless_it_is_told_otherwise(
        self, driver: NotedDriver
    ) -> None:
        make().close()
        make().close(timeout_ms=7)
        assert driver.told == ["start", ("close", DEFAULT_MS), "start", ("close", 7)]

    def test_a_time_that_cannot_be_leaves_it_open(self, driver: NotedDriver) -> None:
        admin = make()
        with pytest.raises(ValueError, match="timeout_ms"):
            admin.close(-1)
        assert driver.told == ["start"]
        admin.close()

    @pytest.mark.parametrize(
        ("error", "expected_ms"),
        [(RuntimeError, DEFAULT_MS), (SystemExit, DEFAULT_MS), (KeyboardInterrupt, 0)],
    )
    def test_a_block_that_an_interrupt_ends_waits_for_nobody(
        self, driver: NotedDriver, error: type[BaseException], expected_ms: int
    ) -> None:
        with pytest.raises(error), make():
            raise error
        assert driver.told == ["start", ("close", expected_ms)]

    def test_one_that_is_forgotten_warns_and_ends_its_thread_without_waiting(
        self, driver: NotedDriver
    ) -> None:
        admin = make()
        with pytest.warns(ResourceWarning, match="KafkaAdminClient noted was not closed"):
            del admin
        assert driver.told == ["start", "close soon"]

    def test_one_that_was_closed_or_never_begun_is_collected_silently(
        self, driver: NotedDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise BootstrapError("no")

        admin = make()
        admin.close()
        told = list(driver.told)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            del admin
            monkeypatch.setattr(kafka_admin_client, "build_driver", refuse)
            with pytest.raises(BootstrapError) as refused:
                make()
            refused.value.__traceback__ = None  # whose frames hold on to it
            del refused
        assert not warned
        assert driver.told == told


class TestAForkedChild:
    def test_is_refused_before_anything_is_asked(
        self, admin: KafkaAdminClient, driver: NotedDriver, forked: Callable[[], None]
    ) -> None:
        forked()
        with pytest.raises(ForkedClientError, match="KafkaAdminClient noted"):
            admin.list_topics()
        assert not driver.calls

    def test_closes_and_forgets_it_without_touching_what_is_the_parents(
        self, driver: NotedDriver, forked: Callable[[], None]
    ) -> None:
        closed, forgotten = make(), make()
        forked()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            closed.close()
            del closed, forgotten
        assert not warned
        assert driver.told == ["start", "start"]
