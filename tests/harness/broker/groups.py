"""A group coordinator with a clock set by hand and a store in memory."""

from __future__ import annotations

from collections.abc import Iterable

from harness.mock_time import MockTime
from kclient.broker.config import BrokerConfig
from kclient.broker.group.coordinator import GroupCoordinator
from kclient.broker.group.group import Group
from kclient.broker.group.member import JoinRequest
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.protocol.messages.join_group import JoinGroupResponse
from kclient.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kclient.utils.log_context import LogContext

SESSION_MS = 10_000
REBALANCE_MS = 30_000
RETENTION_MS = 60_000
RANGE = [("range", b"topics")]


class MemoryStore:
    """Batches that a coordinator writes, as a list; `fail_with` refuses the next ones."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[tuple[bytes, bytes | None]]]] = []
        self.fail_with: KafkaError | None = None

    def create_topic(self) -> None:
        """It is there."""

    def partition_for(self, group_id: str) -> TopicPartition:
        return TopicPartition("__consumer_offsets", 0)

    def check_known(self, group_id: str) -> None:
        """All groups are known."""

    def write(self, group_id: str, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        if self.fail_with is not None:
            raise self.fail_with
        self.batches.append((group_id, list(entries)))

    def load(self) -> dict[str, Group]:
        return {}


class Answer:
    """An answer that comes later."""

    def __init__(self) -> None:
        self.results: list[JoinGroupResponse | SyncGroupResponse] = []

    def __call__(self, result: JoinGroupResponse | SyncGroupResponse) -> None:
        self.results.append(result)

    @property
    def waiting(self) -> bool:
        return not self.results

    @property
    def result(self) -> JoinGroupResponse:
        assert len(self.results) == 1, f"answered {len(self.results)} times"
        return self.results[0]  # type: ignore[return-value]

    @property
    def error(self) -> int:
        return self.result.error_code


class GroupHarness:
    """The coordinator and shorthands for what members do."""

    def __init__(self, initial_delay_ms: int = 0, max_size: int = 100) -> None:
        self.time = MockTime()
        self.store = MemoryStore()
        config = BrokerConfig.parse(
            {
                "log.dirs": "/nowhere",
                "group.min.session.timeout.ms": 1000,
                "group.max.session.timeout.ms": 60_000,
                "group.initial.rebalance.delay.ms": initial_delay_ms,
                "group.max.size": max_size,
                "offset.metadata.max.bytes": 10,
                "offsets.retention.minutes": RETENTION_MS // 60_000,
            }
        )
        self.coordinator = GroupCoordinator(
            self.store,  # type: ignore[arg-type]
            config,
            self.time,
            LogContext(),
            reaper_enabled=False,
        )

    def join(
        self, member_id: str = "", *, group: str = "g", protocols: object = None, instance: str | None = None,
        known_id: bool = False, skip: bool = False, session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS, protocol_type: str = "consumer",
    ) -> Answer:  # fmt: skip
        """JoinGroup; with a delay of 0 an empty group's first generation is there at once."""
        answer = Answer()
        request = JoinRequest(
            group, member_id, instance, "client", "/127.0.0.1", rebalance_ms, session_ms, protocol_type,
            RANGE if protocols is None else protocols, "", known_id, skip,
        )  # fmt: skip
        self.coordinator.join(request, answer)
        self.run_due()
        return answer

    def sync(
        self,
        joined: JoinGroupResponse,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        **changes: object,
    ) -> Answer:
        """SyncGroup of the member that got `joined`."""
        answer = Answer()
        given = [
            SyncGroupRequestAssignment(member_id=member_id, assignment=part)
            for member_id, part in (assignments or {}).items()
        ]
        fields = {
            "group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id,
            "group_instance_id": instance_id, "assignments": given, **changes,
        }  # fmt: skip
        self.coordinator.sync(SyncGroupRequest(**fields), answer)
        return answer

    def heartbeat(self, joined: JoinGroupResponse, **changes: object) -> None:
        fields = {
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "instance_id": None,
            **changes,
        }
        self.coordinator.heartbeat("g", **fields)

    def stable(self, count: int) -> list[JoinGroupResponse]:
        """A stable group of `count` members; the first result is the leader's."""
        first = self.join()
        answers = [first]
        for _ in range(count - 1):
            # Whoever is in must join again for each newcomer.
            joining = self.join()
            ids = [answer.results[-1].member_id for answer in answers]
            answers = [self.join(member_id) for member_id in ids] + [joining]
        results = [answer.result for answer in answers]
        leader = next(result for result in results if result.leader == result.member_id)
        results.sort(key=lambda result: result is not leader)
        plan = {result.member_id: b"part of " + result.member_id.encode() for result in results}
        syncs = [self.sync(result) for result in results[1:]]
        syncs.append(self.sync(results[0], plan))
        assert [answer.error for answer in syncs] == [0] * count
        return results

    def pass_time(self, duration_ms: int) -> None:
        self.time.advance(duration_ms)
        self.run_due()

    def run_due(self) -> None:
        while self.coordinator.rebalancer.timer.advance_clock(0):
            pass

    @property
    def group(self) -> Group:
        found = self.coordinator.group("g")
        assert found is not None
        return found

    @property
    def state(self) -> str:
        return self.group.state.value
