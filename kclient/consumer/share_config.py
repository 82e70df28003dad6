"""Settings of the share consumer."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from kclient.config.config_def import HIGH, MEDIUM
from kclient.config.declare import integer, string, vary
from kclient.config.validators import at_least
from kclient.consumer.config import ConsumerConfig, fit_fetches
from kclient.errors import ConfigError


def _not_here(value: Any) -> Any:
    """Declare that a setting of the consumer is none of the share consumer, where it is always `value`."""
    return attrs.field(default=value, init=False)


@attrs.frozen(kw_only=True)
class ShareConsumerConfig(ConsumerConfig):
    """The typed settings of a share consumer: those of a consumer without what the broker decides for a share group.

    Immutable; any thread may read it. Made by `parse`, which checks them.
    """

    client: ClassVar[str] = "share consumer"

    # Those that Java's ShareConsumerConfig refuses.
    auto_offset_reset: str = _not_here("latest")
    enable_auto_commit: bool = _not_here(False)
    group_instance_id: str | None = _not_here(None)
    group_protocol: str = _not_here("share")
    group_remote_assignor: str | None = _not_here(None)
    heartbeat_interval_ms: int = _not_here(5000)
    interceptor_classes: list[object] = attrs.field(factory=list, init=False)
    isolation_level: str = _not_here("read_uncommitted")
    partition_assignment_strategy: list[object] = attrs.field(factory=list, init=False)
    session_timeout_ms: int = _not_here(45_000)

    group_id: str | None = string(
        None, HIGH, "The share group that the consumer is a member of; it has to have one."
    )
    max_poll_records: int = integer(
        500,
        MEDIUM,
        "How many records one poll() returns at most, and a broker is asked for: see share.acquire.mode.",
        at_least(1),
    )
    share_acknowledgement_mode: str = vary(
        ConsumerConfig,
        "share.acknowledgement.mode",
        doc="Whether poll() and commits accept what was returned (implicit), or acknowledge() has to (explicit).",
    )

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        """The share consumer's cross-key rules."""
        super(ConsumerConfig, cls).adjust(values, given)  # not those of a consumer's group
        if not values["group.id"]:
            raise ConfigError("A share consumer needs a group.id.", name="group.id")
        fit_fetches(values, given)
