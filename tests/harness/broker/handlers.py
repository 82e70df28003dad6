"""API handlers over the parts of a broker that they reach, in a directory: no sockets, and a clock set by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from harness.broker.topics import NODE, Topics
from harness.mock_time import MockTime
from kclient.broker.apis.call import ApiCall
from kclient.broker.broker_context import BrokerContext
from kclient.broker.group.coordinator import GroupCoordinator
from kclient.broker.group.group_store import GroupStore
from kclient.broker.group.member import JoinRequest
from kclient.broker.metadata.controller_events import ControllerEvents
from kclient.broker.network.listener import Endpoint
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.quota.quota_managers import QuotaManagers
from kclient.broker.replica.fetch_sessions import FetchSessionCache
from kclient.broker.replica.partition import Partition
from kclient.broker.security.authorizer import configured_authorizer
from kclient.broker.security.principal import ANONYMOUS
from kclient.broker.transaction.producer_ids import ProducerIds
from kclient.common.topic_partition import TopicPartition
from kclient.network.transport import Buffer
from kclient.protocol.codec import append
from kclient.protocol.header import parse_request, parse_response, request_buffers
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kclient.protocol.messages.join_group import JoinGroupResponse
from kclient.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kclient.protocol.schema import Message
from kclient.utils.log_context import LogContext

CORRELATION_ID = 77
CLIENT_ID = "client"
CLIENT_HOST = "10.0.0.9"


class Exchange:
    """One request and the answers to it."""

    def __init__(self, request: Message, version: int) -> None:
        self._request = request
        self._version = version
        self.responses: list[Response] = []

    @property
    def waiting(self) -> bool:
        """True while there is no answer."""
        return not self.responses

    @property
    def action(self) -> ResponseAction:
        """The next step of the processor, who is told it once."""
        assert len(self.responses) == 1, f"answered {len(self.responses)} times"
        return self.responses[0].action

    @property
    def message(self) -> Any:
        """The answer as a client reads it."""
        assert self.action is ResponseAction.SEND
        # Answers of tests are small enough to be read at once: there are no regions of files among the buffers.
        frame = b"".join(cast("Sequence[Buffer]", self.responses[0].buffers))
        api = self._request.API_KEY
        assert api is not None
        correlation_id, message = parse_response(api, self._version, frame[4:])
        assert correlation_id == CORRELATION_ID
        return message


class Handlers:
    """Calls handlers with requests that went over the wire, as far as the codec is concerned."""

    def __init__(self, root: Path, stack: ExitStack, **settings: Any) -> None:
        self.time = MockTime()
        usual = {"offsets_topic_num_partitions": 1, "group_initial_rebalance_delay_ms": 0}
        self.topics = Topics(root, stack, **{**usual, **settings})
        config, controller, replicas = self.topics.config, self.topics.controller, self.topics.replicas
        context = LogContext()
        self.groups = GroupCoordinator(
            GroupStore(controller, replicas, self.time, context),
            config,
            self.time,
            context,
            reaper_enabled=False,
        )
        stack.callback(self.groups.shutdown)
        self.broker = BrokerContext(
            config=config,
            time=self.time,
            node_id=NODE,
            cluster_id="cluster",
            advertised=(Endpoint("inside", 9092), Endpoint("outside", 19092)),
            controller=controller,
            controller_events=ControllerEvents(NODE),
            replicas=replicas,
            fetch_sessions=FetchSessionCache(10, 120_000, self.time),
            groups=self.groups,
            producer_ids=ProducerIds(controller.allocate_producer_ids),
            authorizer=configured_authorizer(config, self.topics.cache),
            quotas=QuotaManagers(config, controller.cache, self.time, context),
        )
        controller.add_listener(self.broker.quotas.on_metadata_update)

    def call(self, request: Message, version: int, *, listener: int = 0) -> tuple[ApiCall, Exchange]:
        """The call of a request, and its answers."""
        exchange = Exchange(request, version)
        frame = memoryview(b"".join(request_buffers(request, version, CORRELATION_ID, CLIENT_ID))[4:])
        api = request.API_KEY
        assert api is not None
        came = Request("0-0", CLIENT_HOST, listener, ANONYMOUS, frame, exchange.responses.append)
        return ApiCall(self.broker, came, api, version, CORRELATION_ID, CLIENT_ID, request), exchange

    def send(
        self, handler: Callable[..., Any], request: Message, version: int, *, listener: int = 0
    ) -> Exchange:
        """Let `handler` do what the dispatcher lets it do."""
        call, exchange = self.call(request, version, listener=listener)
        _, message = parse_request(call.request.frame)
        response = handler(call, message)
        if response is not None:
            call.respond(response)
        return exchange

    def ask(self, handler: Callable[..., Any], request: Message, version: int, *, listener: int = 0) -> Any:
        """The answer to a request that does not wait."""
        return self.send(handler, request, version, listener=listener).message

    def member(
        self,
        group_id: str = "g",
        topics: Sequence[str] = ("t",),
        *,
        protocol_type: str = "consumer",
        instance_id: str | None = None,
    ) -> JoinGroupResponse:
        """Make a group stable with one member, which reads `topics`; the generation as it is told."""
        self.groups.coordinator_partition(group_id)
        subscription = bytearray(2)
        append(ConsumerProtocolSubscription(topics=list(topics)), 0, subscription)
        joins: list[JoinGroupResponse] = []
        join = JoinRequest(
            group_id, "", instance_id, CLIENT_ID, f"/{CLIENT_HOST}", 30_000, 10_000, protocol_type,
            [("range", bytes(subscription))],
        )  # fmt: skip
        self.groups.join(join, joins.append)
        self.run_due()
        (joined,) = joins
        assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"its part")
        sync = SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance_id,
            assignments=[assigned],
        )
        syncs: list[SyncGroupResponse] = []
        self.groups.sync(sync, syncs.append)
        assert [synced.error_code for synced in (joined, *syncs)] == [0, 0]
        return joined

    def lose_groups(self) -> None:
        """Be a broker that has found, at its start, the directory with all groups missing."""
        tp = self.groups.coordinator_partition("g")
        self.topics.replicas.delete_partition(tp)
        self.topics.replicas.set_offline(tp, "its directory is missing")
        self.groups.load()

    def led(self, topic: str = "t", number: int = 0) -> Partition:
        """A partition that the broker leads."""
        return self.topics.replicas.partition(TopicPartition(topic, number))

    def run_due(self, after_ms: int = 0) -> None:
        """Move the clock and let groups do what is due by then."""
        self.time.advance(after_ms)
        while self.groups.rebalancer.timer.advance_clock(0):
            pass
