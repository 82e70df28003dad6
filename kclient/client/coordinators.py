"""Coordinators: which broker serves a group or a transactional id, looked up and remembered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from typing import Any, Final

import attrs

from kclient.client.connection_ids import for_coordinator
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.node import Node
from kclient.errors import (
    Errors,
    GroupAuthorizationError,
    KafkaError,
    TransactionalIdAuthorizationError,
    UnknownServerError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext, RepeatedWarning

_FIRST_VERSION_WITH_MANY_KEYS: Final = 4
_CREATION_ATTEMPTS: Final = 4
"""Times that a coordinator may be missing: the first key of a cluster has the coordinators' topic made."""


class CoordinatorType(IntEnum):
    """Kinds of keys that have coordinators, by their numbers in FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


@attrs.frozen
class CoordinatorKey:
    """Something that has a coordinator: a group or a transactional id."""

    type: CoordinatorType
    id: str

    def __str__(self) -> str:
        return f"{'group' if self.type is CoordinatorType.GROUP else 'transactional id'} {self.id!r}"


def find_request(keys: Sequence[CoordinatorKey]) -> Callable[[int], FindCoordinatorRequest]:
    """Return a builder of the request for the coordinators of `keys`, which are of one type.

    Before version 4 (KIP-699) a request has one key, and is for the first of them alone.
    """

    def build(version: int) -> FindCoordinatorRequest:
        key_type = int(keys[0].type)
        if version >= _FIRST_VERSION_WITH_MANY_KEYS:
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key.id for key in keys])
        return FindCoordinatorRequest(key=keys[0].id, key_type=key_type)

    return build


def found_in(
    message: Any, version: int, keys: Sequence[CoordinatorKey]
) -> dict[CoordinatorKey, Node | KafkaError]:
    """Return every key that the answer to `find_request(keys)` is about, with its coordinator or its error."""
    if version < _FIRST_VERSION_WITH_MANY_KEYS:
        return {keys[0]: _outcome(keys[0], message)}
    entries = {entry.key: entry for entry in message.coordinators}
    return {
        key: _outcome(key, entries[key.id])
        if key.id in entries
        else UnknownServerError(f"The broker was asked for the coordinator of {key} and says nothing of it")
        for key in keys
    }


def _outcome(key: CoordinatorKey, entry: Any) -> Node | KafkaError:
    if entry.error_code == Errors.GROUP_AUTHORIZATION_FAILED:
        return GroupAuthorizationError(f"Not authorized to use {key}")
    if entry.error_code == Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return TransactionalIdAuthorizationError(f"Not authorized to use {key}")
    error = Errors.for_code(entry.error_code, entry.error_message)
    return Node(entry.node_id, entry.host, entry.port) if error is None else error


@attrs.define
class _Search:
    attempts: int = 0
    retry_ms: int = 0
    in_flight: bool = False
    error: KafkaError | None = None


class CoordinatorLookup:
    """Finds the coordinators of any keys and remembers them until they are marked unknown. For the I/O thread.

    Who wants coordinators that are not known calls `look_for` in every round. A key is asked for once at a time, no
    matter how many wait for it, together with the others of its type that are due. What passes is tried again with
    backoff; anything else, and what did not pass in `retries` retries, is told to `on_failed`.

    With `own_connection` a coordinator gets a node id from the top of the range, and so a connection of its own:
    brokers answer a connection's requests in order, so a heartbeat behind a waiting fetch would come too late.
    """

    def __init__(
        self,
        sender: RequestSender,
        backoff: ExponentialBackoff,
        on_failed: Callable[[CoordinatorKey, KafkaError], None],
        log_context: LogContext,
        *,
        retries: int | None = None,
        own_connection: bool = False,
    ) -> None:
        self._sender = sender
        self._backoff = backoff
        self._on_failed = on_failed
        self._log = log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)
        self._retries = retries
        self._own_connection = own_connection
        self._coordinators: dict[CoordinatorKey, Node] = {}
        self._searches: dict[CoordinatorKey, _Search] = {}
        self._many_keys = True

    def known(self, key: CoordinatorKey) -> Node | None:
        """The coordinator as far as known."""
        return self._coordinators.get(key)

    def last_error(self, key: CoordinatorKey) -> KafkaError | None:
        """The last failure to find the coordinator, while it is looked for."""
        search = self._searches.get(key)
        return None if search is None else search.error

    def mark_unknown(self, key: CoordinatorKey, cause: str) -> None:
        """The coordinator is another one, or cannot be reached: it has to be looked for again."""
        coordinator = self._coordinators.pop(key, None)
        if coordinator is not None:
            self._log.info("%s is not usable any more as coordinator of %s: %s", coordinator, key, cause)

    def look_for(self, keys: Collection[CoordinatorKey], now_ms: int) -> int:
        """Ask for the coordinators of `keys`, all of those that are wanted and not known.

        Returns after how many ms to call again at the latest. Retries of other keys end here: nobody waits for them.
        """
        for key in [key for key, search in self._searches.items() if not search.in_flight]:
            if key not in keys:
                self._end(key)
        wait_ms = NEVER
        due: dict[CoordinatorType, list[CoordinatorKey]] = {}
        for key in keys:
            search = self._searches.setdefault(key, _Search())
            if search.in_flight:
                continue
            if now_ms < search.retry_ms:
                wait_ms = min(wait_ms, search.retry_ms - now_ms)
                continue
            search.in_flight = True
            due.setdefault(key.type, []).append(key)
        for together in due.values():
            for asked in [together] if self._many_keys else [[key] for key in together]:
                self._ask(asked, now_ms)
        return wait_ms

    def _ask(self, keys: list[CoordinatorKey], now_ms: int) -> None:
        def on_reply(reply: Reply) -> None:
            self._take(keys, reply)

        self._sender.send(None, ApiKeys.FIND_COORDINATOR, find_request(keys), on_reply, now_ms)

    def _take(self, keys: list[CoordinatorKey], reply: Reply) -> None:
        outcomes: dict[CoordinatorKey, Node | KafkaError]
        if reply.error is not None:
            outcomes = dict.fromkeys(keys, reply.error)
        else:
            self._many_keys = reply.version >= _FIRST_VERSION_WITH_MANY_KEYS
            outcomes = found_in(reply.message, reply.version, keys)
        for key in keys:
            # A key without outcome was left out for a broker that takes one at a time, and is due again.
            self._searches[key].in_flight = False
        for key, outcome in outcomes.items():
            if isinstance(outcome, Node):
                self._found(key, outcome)
            else:
                self._failed(key, outcome, reply.now_ms)

    def _found(self, key: CoordinatorKey, node: Node) -> None:
        self._end(key)
        self._log.info("Found the coordinator of %s: %s", key, node)
        if self._own_connection:
            node = for_coordinator(node)
        self._coordinators[key] = node

    def _failed(self, key: CoordinatorKey, error: KafkaError, now_ms: int) -> None:
        search = self._searches[key]
        search.error = error
        search.retry_ms = now_ms + self._backoff.backoff_ms(search.attempts)
        search.attempts += 1
        if not error.retriable or (self._retries is not None and search.attempts > self._retries):
            self._on_failed(key, error)
        elif error.code == Errors.COORDINATOR_NOT_AVAILABLE and search.attempts <= _CREATION_ATTEMPTS:
            self._log.debug("The coordinator of %s is not there yet: %s", key, error)
        else:
            cause = f"The coordinator of {key} could not be found, trying again: {error}"
            self._warning.warn(str(key), cause, now_ms)

    def _end(self, key: CoordinatorKey) -> None:
        del self._searches[key]
        self._warning.clear(str(key))


class CoordinatorFinder:
    """The coordinator of one key, with a turn in the loop of the I/O thread to look for it. For that thread.

    `on_fatal` gets what keeps the coordinator from being found; then nobody looks for it until it is asked for again.
    """

    def __init__(
        self,
        key: CoordinatorKey,
        sender: RequestSender,
        backoff: ExponentialBackoff,
        on_fatal: Callable[[KafkaError], None],
        log_context: LogContext,
        *,
        own_connection: bool = False,
    ) -> None:
        self._key = key
        self._on_fatal = on_fatal
        self._lookup = CoordinatorLookup(
            sender, backoff, self._give_up, log_context, own_connection=own_connection
        )
        self._wanted = False

    @property
    def coordinator(self) -> Node | None:
        """The coordinator as far as known. Asking for it while it is not makes `poll` look for it."""
        coordinator = self._lookup.known(self._key)
        if coordinator is None:
            self._wanted = True
        return coordinator

    @property
    def known(self) -> bool:
        """True if the coordinator is known; asking does not start a search."""
        return self._lookup.known(self._key) is not None

    def mark_unknown(self, cause: str) -> None:
        """The coordinator is another one, or cannot be reached: look again."""
        self._lookup.mark_unknown(self._key, cause)
        self._wanted = True

    def poll(self, now_ms: int) -> int:
        """Ask for the coordinator if it is wanted and not known."""
        if not self._wanted or self.known:
            return NEVER
        return self._lookup.look_for((self._key,), now_ms)

    def _give_up(self, _key: CoordinatorKey, error: KafkaError) -> None:
        self._wanted = False
        self._on_fatal(error)
