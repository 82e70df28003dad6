"""Sends acknowledgements that do not go with a fetch, and ends sessions: ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.client.metadata import Metadata
from kclient.client.request_sender import NEVER
from kclient.client.requests import ClientResponse
from kclient.common.node import Node
from kclient.consumer.internals.requests import Request
from kclient.consumer.internals.share.acknowledgements import Acknowledgements, merged
from kclient.consumer.internals.share.leader_hints import LeaderHints
from kclient.consumer.internals.share.session import by_partition
from kclient.consumer.internals.share.session_nodes import SessionNodes
from kclient.consumer.internals.share.settled import Settled
from kclient.errors import (
    DisconnectError,
    Errors,
    KafkaError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    ShareSessionNotFoundError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext, Logger

_FIRST_VERSION_WITH_RENEW = 2
SESSION_LOST = frozenset(
    {
        Errors.SHARE_SESSION_NOT_FOUND,
        Errors.INVALID_SHARE_SESSION_EPOCH,
        Errors.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""The codes of a whole answer that say that there is no such session."""
# The locks are gone with the leader, or the topic.
_NOT_AGAIN = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


@attrs.define(eq=False)
class _Waiting:
    acknowledgements: Acknowledgements
    deadline_ms: int
    retry_ms: int = 0
    attempts: int = 0


@attrs.define(kw_only=True, eq=False, repr=False)
class Acknowledger:
    """Acknowledgements by the broker that they are for, until each has its outcome. Belongs to the I/O thread."""

    _group_id: str
    _member_id: str
    _client: KafkaClient
    _metadata: Metadata
    _nodes: SessionNodes
    _settled: Settled
    _backoff: ExponentialBackoff
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _waiting: dict[int, list[_Waiting]] = attrs.field(factory=dict, init=False)
    _in_flight: dict[int, list[_Waiting]] = attrs.field(factory=dict, init=False)
    _ending: set[int] = attrs.field(factory=set, init=False)
    _ended: Request[None] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    # What is asked for.

    def add(self, acknowledgements: Iterable[Acknowledgements], deadline_ms: int) -> None:
        """Tell the brokers, again and again until the deadline where that makes sense."""
        for each in acknowledgements:
            if not self.fail_if_moved(each):
                self._waiting.setdefault(each.node_id, []).append(_Waiting(each, deadline_ms))

    def fail_if_moved(self, acknowledgements: Acknowledgements) -> bool:
        """Settle what is for a broker that is known not to lead the partition any more: the locks went with that."""
        leader = self._metadata.leader_and_epoch(acknowledgements.partition.topic_partition).leader
        if leader is None or leader.id == acknowledgements.node_id:
            return False
        error = NotLeaderOrFollowerError(
            f"{acknowledgements.partition}: broker {acknowledgements.node_id}, which had locked the records, is not "
            "the leader any more; they will be delivered again"
        )
        self._settled.settle(acknowledgements, error)
        return True

    def end_sessions(self, request: Request[None]) -> None:
        """End all sessions, each with the last of what there is to tell; `request` is done when that is over."""
        self._ended = request
        self._ending = {node_id for node_id in self._nodes.sessions if self._nodes.is_open(node_id)}
        self._check_ended()

    def _check_ended(self) -> None:
        if self._ended is not None and not self._ending and not self._waiting and not self._in_flight:
            self._ended.complete(None)

    # Sending.

    def poll(self, now_ms: int) -> int:
        """Send what each broker can take."""
        wait_ms = NEVER
        if not self._waiting and not self._ending:
            return wait_ms
        for node_id in [*self._waiting, *(self._ending - self._waiting.keys())]:
            if node_id not in self._nodes.busy:
                wait_ms = min(wait_ms, self._try_send(node_id, now_ms))
        self._check_ended()
        return wait_ms

    def _try_send(self, node_id: int, now_ms: int) -> int:
        waiting = self._expire(node_id, now_ms)
        final = node_id in self._ending
        due = [each for each in waiting if final or each.retry_ms <= now_ms]
        if not due and not final:
            return min((each.retry_ms - now_ms for each in waiting), default=NEVER)
        node = self._metadata.fetch().node_by_id(node_id)
        if not self._nodes.is_open(node_id):
            self._give_up(
                node_id, ShareSessionNotFoundError(f"There is no session with broker {node_id} any more")
            )
            return NEVER
        wait_ms = None if node is None else self._nodes.wait_ms(node, now_ms)
        if node is None or wait_ms is None:
            # What the session held is released, as soon as the broker notices.
            self._nodes.session(node_id).start_over()
            cause = self._client.connection_failure(node_id)
            why = "" if cause is None else f": {cause}"
            self._give_up(
                node_id, DisconnectError(f"Broker {node_id} cannot be reached{why}").because_of(cause)
            )
            return NEVER
        if wait_ms:
            return wait_ms
        self._send(node, due, now_ms, final=final)
        return NEVER

    def _expire(self, node_id: int, now_ms: int) -> list[_Waiting]:
        waiting = self._waiting.get(node_id, [])
        late = [each for each in waiting if each.attempts and now_ms >= each.deadline_ms]
        for each in late:
            waiting.remove(each)
            self._settled.settle(
                each.acknowledgements,
                KafkaTimeoutError(f"{each.acknowledgements.partition}: the broker did not take it in time"),
            )
        if not waiting:
            self._waiting.pop(node_id, None)
        return waiting

    def _give_up(self, node_id: int, error: KafkaError) -> None:
        self._ending.discard(node_id)
        for each in self._waiting.pop(node_id, ()):
            self._settled.settle(each.acknowledgements, error)

    def _send(self, node: Node, due: list[_Waiting], now_ms: int, *, final: bool) -> None:
        session = self._nodes.session(node.id)
        runs, later = merged(each.acknowledgements for each in due)
        sent = [each for each in due if each.acknowledgements not in later]
        left = [each for each in self._waiting.get(node.id, ()) if each not in sent]
        if final and left:
            final = False  # the next one is the last
        if left:
            self._waiting[node.id] = left
        else:
            self._waiting.pop(node.id, None)
        renews = any(each.acknowledgements.renews for each in sent)

        def build(version: int) -> ShareAcknowledgeRequest:
            request = ShareAcknowledgeRequest(group_id=self._group_id, member_id=self._member_id)
            if version >= _FIRST_VERSION_WITH_RENEW:
                request.is_renew_ack = renews
            session.fill_acknowledge(request, runs, final=final)
            return request

        self._nodes.busy.add(node.id)
        self._in_flight[node.id] = sent
        self._client.send(
            self._client.new_request(
                node.id,
                build,
                api_key=ApiKeys.SHARE_ACKNOWLEDGE,
                on_complete=partial(self._on_complete, node.id, final),
                min_version=_FIRST_VERSION_WITH_RENEW if renews else None,
            ),
            now_ms,
        )

    def close(self, now_ms: int) -> None:
        """End the sessions that there still are, without waiting for answers."""
        for node_id, session in self._nodes.sessions.items():
            node = self._metadata.fetch().node_by_id(node_id)
            if not session.is_open or node_id in self._nodes.busy or node is None:
                continue
            if self._client.is_ready(node, now_ms):
                waiting = self._waiting.get(node_id, [])
                self._send(node, list(waiting), now_ms, final=True)

    def end(self, error: KafkaError) -> None:
        """Nothing more is sent, and no answer comes."""
        for all_waiting in (self._in_flight, self._waiting):
            for waiting in list(all_waiting.values()):
                for each in waiting:
                    self._settled.settle(each.acknowledgements, error)
            all_waiting.clear()
        self._ending.clear()
        self._check_ended()

    # Answers.

    def _on_complete(self, node_id: int, final: bool, response: ClientResponse) -> None:
        self._nodes.busy.discard(node_id)
        sent = self._in_flight.pop(node_id, [])
        session = self._nodes.session(node_id)
        failure = response.failure()
        if final:
            self._ending.discard(node_id)
        if failure is not None:
            if response.disconnected:
                session.start_over()
            if isinstance(failure, UnsupportedVersionError):
                failure = UnsupportedVersionError(f"RENEW needs brokers of Kafka 4.2 or newer: {failure}")
            self._fail(sent, failure)
        else:
            message: ShareAcknowledgeResponse = response.message
            error = Errors.for_code(message.error_code, message.error_message)
            if error is None:
                self._nodes.succeeded(node_id)
                session.answered()
                self._take_answer(sent, message, response.received_ms)
            elif message.error_code in SESSION_LOST:
                self._log.info("Broker %d does not have the share session any more: %s", node_id, error)
                session.start_over()
                self._fail(sent, error)
            else:
                session.answered()
                self._refused(sent, error, response.received_ms)
        if final:
            session.start_over()
        self._check_ended()

    def _take_answer(self, sent: list[_Waiting], message: ShareAcknowledgeResponse, now_ms: int) -> None:
        answers = by_partition(
            ((topic.topic_id, topic.partitions) for topic in message.responses),
            (each.acknowledgements.partition for each in sent),
        )
        hints = LeaderHints(self._metadata, message.node_endpoints)
        for each in sent:
            acknowledgements = each.acknowledgements
            answer = answers.get(acknowledgements.partition)
            if answer is None:
                error: KafkaError | None = UnknownServerError(
                    f"{acknowledgements.partition}: the broker was told what became of records and did not answer that"
                )
            else:
                error = Errors.for_code(answer.error_code, answer.error_message)
                hints.add(acknowledgements.partition, answer.error_code, answer.current_leader)
            if (
                error is not None
                and answer is not None
                and error.retriable
                and answer.error_code not in _NOT_AGAIN
            ):
                self._refused([each], error, now_ms)
                continue
            if message.acquisition_lock_timeout_ms:
                acknowledgements.lock_timeout_ms = message.acquisition_lock_timeout_ms
            self._settled.settle(acknowledgements, error)
        hints.tell()

    def _refused(self, sent: list[_Waiting], error: KafkaError, now_ms: int) -> None:
        """Try again later what may succeed then."""
        if not error.retriable:
            self._fail(sent, error)
            return
        for each in sent:
            each.retry_ms = now_ms + self._backoff.backoff_ms(each.attempts)
            each.attempts += 1
            self._waiting.setdefault(each.acknowledgements.node_id, []).append(each)

    def _fail(self, sent: list[_Waiting], error: KafkaError) -> None:
        for each in sent:
            self._settled.settle(each.acknowledgements, error)
