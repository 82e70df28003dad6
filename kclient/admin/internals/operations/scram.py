"""SCRAM credentials of users: reading and changing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from operator import attrgetter

from kclient.admin.internals.context import OperationContext, retry_on_codes, said_of_each, settle_each
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.steps import Operation, accepted_answer_of, answer_of
from kclient.admin.scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kclient.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
    UserName,
)

_SALT_BYTES = 32
_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


def describe_user_scram_credentials(
    context: OperationContext, users: Sequence[str] | None
) -> Operation[dict[str, UserScramCredentialsDescription]]:
    """DescribeUserScramCredentials at any broker."""
    request = DescribeUserScramCredentialsRequest(
        users=None if users is None else [UserName(name=user) for user in users]
    )
    answer = yield from accepted_answer_of(context.call(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, request))
    said = {
        one.user: Errors.for_code(one.error_code, one.error_message) or _description(one)
        for one in answer.results
    }
    asked = list(said) if users is None else users
    return settle_each(asked, said_of_each(asked, said), "Describing SCRAM credentials")


def _description(one: DescribeUserScramCredentialsResult) -> UserScramCredentialsDescription:
    infos = [
        ScramCredentialInfo(ScramMechanism(each.mechanism), each.iterations) for each in one.credential_infos
    ]
    # Brokers say them in any order.
    return UserScramCredentialsDescription(one.user, tuple(sorted(infos, key=lambda info: info.mechanism)))


def alter_user_scram_credentials(
    context: OperationContext,
    alterations: Sequence[UserScramCredentialUpsertion | UserScramCredentialDeletion],
) -> Operation[dict[str, None]]:
    """AlterUserScramCredentials at the controller."""
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
            for each in alterations
            if isinstance(each, UserScramCredentialDeletion)
        ],
        upsertions=[_salted(each) for each in alterations if isinstance(each, UserScramCredentialUpsertion)],
    )
    answer = yield from answer_of(
        context.call(
            ApiKeys.ALTER_USER_SCRAM_CREDENTIALS,
            request,
            Target(Role.CONTROLLER),
            retry_on_codes(attrgetter("results"), Errors.NOT_CONTROLLER),
        )
    )
    said = {one.user: Errors.for_code(one.error_code, one.error_message) for one in answer.results}
    users = list(dict.fromkeys(each.user for each in alterations))
    return settle_each(users, said_of_each(users, said), "Altering SCRAM credentials")


def _salted(upsertion: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    info = upsertion.credential_info
    salt = secrets.token_bytes(_SALT_BYTES) if upsertion.salt is None else upsertion.salt
    return ScramCredentialUpsertion(
        name=upsertion.user,
        mechanism=info.mechanism,
        iterations=info.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(
            _HASHES[info.mechanism], upsertion.password.encode(), salt, info.iterations
        ),
    )
