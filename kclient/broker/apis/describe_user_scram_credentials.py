"""DescribeUserScramCredentials (50), version 0: the mechanisms in which users have a password (KIP-554).

Access: DESCRIBE on the cluster.
"""

from __future__ import annotations

from collections import Counter

from kclient.broker.apis.call import ApiCall
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import ClusterAuthorizationError, Errors
from kclient.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def describe_user_scram_credentials(
    call: ApiCall, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the users that are named, or all."""
    if not call.authorized(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeUserScramCredentialsResponse(
            error_code=int(Errors.CLUSTER_AUTHORIZATION_FAILED),
            error_message=ClusterAuthorizationError.default_message,
        )
    found: dict[str, list[CredentialInfo]] = {}
    for (mechanism, user), credential in sorted(call.broker.controller.cache.image.scram.credentials.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        found.setdefault(user, []).append(info)
    # No users at all are all of them, as Java's clients ask.
    asked = [user.name for user in request.users] if request.users else list(found)
    times = Counter(asked)
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_result(user, times[user], found.get(user)) for user in times]
    )


def _result(
    user: str, times: int, credentials: list[CredentialInfo] | None
) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user, error_message=None)
    if times > 1:
        result.error_code = int(Errors.DUPLICATE_RESOURCE)
        result.error_message = (
            f"Cannot describe SCRAM credentials for the same user twice in one request: {user}"
        )
    elif credentials is None:
        result.error_code = int(Errors.RESOURCE_NOT_FOUND)
        result.error_message = f"There are no SCRAM credentials of the user {user}"
    else:
        result.credential_infos = credentials
    return result
