"""Negotiations: what every broker said it supports, and how far the asking is."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.client.api_versions import ApiVersionsNegotiation, FinalizedFeatures, NodeApiVersions
from kclient.errors import DisconnectError, KafkaError, SchemaError, UnsupportedVersionError
from kclient.errors.codes import Errors
from kclient.protocol.messages.api_versions import ApiVersionsResponse


@attrs.define(eq=False, repr=False)
class Negotiations:
    """The versions of a client's nodes, by node id. Belongs to the thread of its NetworkClient.

    `describe` names a node in errors.
    """

    _describe: Callable[[int], str]
    _begun: dict[int, ApiVersionsNegotiation] = attrs.field(factory=dict, init=False)
    versions: dict[int, NodeApiVersions] = attrs.field(factory=dict, init=False)
    """The versions agreed on, for connections that are ready."""
    features: FinalizedFeatures = attrs.field(factory=FinalizedFeatures, init=False)
    """The features of the cluster, by the latest that any node said of them."""
    due: dict[int, ApiVersionsNegotiation] = attrs.field(factory=dict, init=False)
    """The nodes to be asked."""

    def begin(self, node_id: int) -> None:
        """There is a connection, over which nothing was said yet."""
        self.due[node_id] = self._begun.setdefault(node_id, ApiVersionsNegotiation())

    def answered(self, node_id: int, response: ApiVersionsResponse) -> KafkaError | None:
        """Take the answer; returns why there is nothing in common. Without an error and `due` the node is ready."""
        negotiation = self._begun[node_id]
        if response.error_code == Errors.UNSUPPORTED_VERSION and negotiation.unsupported(response):
            self.due[node_id] = negotiation
            return None
        error = Errors.for_code(response.error_code)
        if error is None:
            negotiation.restart()
            self.versions[node_id] = NodeApiVersions.from_response(response)
            self.features = self.features.updated(response)
            return None
        # The next connection asks in the newest version again: the oldest one has no room for what is refused here.
        del self._begun[node_id]
        return self._nothing_in_common(node_id) if isinstance(error, UnsupportedVersionError) else error

    def interrupted(self, node_id: int, error: KafkaError | None) -> KafkaError | None:
        """The connection ended before the versions were known, and the next one asks in the oldest way.

        Returns what to tell instead of `error`, which is None if the end was wished for.
        """
        negotiation = self._begun.get(node_id)
        if negotiation is None or error is None:
            return error
        if not negotiation.exhausted:
            negotiation.failed()
            if isinstance(error, SchemaError):
                # Whoever waits for the broker need not hear of it yet: the oldest way may be understood.
                return DisconnectError(str(error), connection=error.connection).because_of(error)
            return error
        negotiation.restart()
        return self._nothing_in_common(node_id) if isinstance(error, SchemaError) else error

    def end(self, node_id: int) -> None:
        """The connection is gone; the broker behind the next one may be another."""
        self.versions.pop(node_id, None)
        self.due.pop(node_id, None)

    def forget(self, node_id: int) -> None:
        """The node is gone."""
        self.end(node_id)
        self._begun.pop(node_id, None)

    def _nothing_in_common(self, node_id: int) -> UnsupportedVersionError:
        return UnsupportedVersionError(
            f"{self._describe(node_id)} understands no version of ApiVersions that this client knows; is it a "
            "Kafka broker of release 0.10 or later?"
        )
