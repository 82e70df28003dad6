"""Errors of heartbeats that a member of a group cannot go on after, in words that say what to do."""

from __future__ import annotations

from kclient.consumer.internals.coordinator.consumer_heartbeat import ConsumerMemberSettings
from kclient.consumer.subscription_pattern import SubscriptionPattern
from kclient.errors import (
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
    UnsupportedVersionError,
)


def refusal(
    error: KafkaError, settings: ConsumerMemberSettings, pattern: SubscriptionPattern | None
) -> KafkaError:
    """Return the error for the application, of the kind of `error`."""
    group = f"group {settings.group_id!r}"
    code = error.code
    if code == Errors.GROUP_AUTHORIZATION_FAILED:
        return GroupAuthorizationError(f"Not authorized to use {group}")
    if isinstance(error, UnsupportedVersionError):
        why = (
            "The cluster does not support the consumer protocol (KIP-848)"
            if pattern is None
            else "The cluster does not support the consumer protocol (KIP-848), or no SubscriptionPattern"
        )
        return UnsupportedVersionError(
            f"{why}: set group.protocol=classic until its brokers are 4.0 or newer and do. {error}"
        )
    if code == Errors.FENCED_INSTANCE_ID:
        return FencedInstanceIdError(
            f"Another consumer has joined with group.instance.id {settings.group_instance_id!r}"
        )
    return error
