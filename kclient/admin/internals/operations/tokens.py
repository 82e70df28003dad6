"""Delegation tokens: creating, renewing, ending and finding them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.steps import Operation, accepted_answer_of
from kclient.admin.tokens import DelegationToken, TokenInformation
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kclient.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kclient.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kclient.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

# An older broker would take whoever asks for the owner.
_FIRST_WITH_OWNER = 3


def create_delegation_token(
    context: OperationContext, owner: str | None, renewers: Sequence[str], max_lifetime_ms: int
) -> Operation[DelegationToken]:
    """CreateDelegationToken at any broker, which forwards it to the controller."""
    owner_type, owner_name = ("", "") if owner is None else _split(owner)
    made = [_split(renewer) for renewer in renewers]
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in made],
        max_lifetime_ms=max_lifetime_ms,
    )
    min_version = None if owner is None else _FIRST_WITH_OWNER
    answer = yield from accepted_answer_of(
        context.call(ApiKeys.CREATE_DELEGATION_TOKEN, request, min_version=min_version)
    )
    return DelegationToken(
        _information(
            answer,
            tuple(renewers),
            (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms),
        ),
        answer.hmac,
    )


def renew_delegation_token(context: OperationContext, hmac: bytes, renew_period_ms: int) -> Operation[int]:
    """RenewDelegationToken at any broker."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)
    answer = yield from accepted_answer_of(context.call(ApiKeys.RENEW_DELEGATION_TOKEN, request))
    ends_ms: int = answer.expiry_timestamp_ms
    return ends_ms


def expire_delegation_token(context: OperationContext, hmac: bytes, expiry_period_ms: int) -> Operation[int]:
    """ExpireDelegationToken at any broker."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_period_ms)
    answer = yield from accepted_answer_of(context.call(ApiKeys.EXPIRE_DELEGATION_TOKEN, request))
    ends_ms: int = answer.expiry_timestamp_ms
    return ends_ms


def describe_delegation_token(
    context: OperationContext, owners: Sequence[str] | None
) -> Operation[list[DelegationToken]]:
    """DescribeDelegationToken at any broker."""
    asked = None
    if owners is not None:
        asked = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_split, owners)
        ]
    request = DescribeDelegationTokenRequest(owners=asked)
    answer = yield from accepted_answer_of(context.call(ApiKeys.DESCRIBE_DELEGATION_TOKEN, request))
    return [
        DelegationToken(
            _information(
                token,
                tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
                (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp),
            ),
            token.hmac,
        )
        for token in answer.tokens
    ]


def _split(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _information(token: Any, renewers: tuple[str, ...], times: tuple[int, int, int]) -> TokenInformation:
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    # Before Kafka 3.3 whoever asks for a token is its owner, and the answer says nothing of it.
    return TokenInformation(token.token_id, owner, owner if requester == ":" else requester, renewers, *times)
