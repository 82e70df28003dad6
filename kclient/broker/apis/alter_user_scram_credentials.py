"""AlterUserScramCredentials (51), version 0: passwords of users for SCRAM, set and taken away (KIP-554).

Of a user one credential can be changed in a request, as Kafka has it. Access: ALTER on the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from kclient.broker.apis.call import ApiCall
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.security.scram import MECHANISM_NUMBERS, MOST_ITERATIONS, ScramCredential
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import (
    DuplicateResourceError,
    Errors,
    KafkaError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
)
from kclient.errors import UnsupportedSaslMechanismError as UnknownMechanismError
from kclient.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kclient.protocol.messages.metadata_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.schema import Message
from kclient.security.scram import FEWEST_ITERATIONS

_MECHANISMS = {number: name for name, number in MECHANISM_NUMBERS.items()}
_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_user_scram_credentials(
    call: ApiCall, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change the credentials of each user that can be changed as asked."""
    changes: dict[str, list[_Change]] = {}
    wanted: list[_Change] = [*request.deletions, *request.upsertions]
    for change in wanted:
        changes.setdefault(change.name, []).append(change)
    errors: dict[str, KafkaError] = {}

    def plan(image: MetadataImage) -> list[Message]:
        records: list[Message] = []
        for user, each in changes.items():
            try:
                records.append(_record(image, user, each))
            except KafkaError as error:
                errors[user] = error
        return records

    try:
        call.require(AclOperation.ALTER, ResourceType.CLUSTER)
        call.broker.controller.change(plan)
    except KafkaError as error:
        errors |= {user: error for user in changes if user not in errors}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=Errors.code_for(errors[user]) if user in errors else 0,
                error_message=str(errors[user]) if user in errors else None,
            )
            for user in changes
        ]
    )


def _record(image: MetadataImage, user: str, wanted: Sequence[_Change]) -> Message:
    """Return the record that makes the change of one user. Raises KafkaError if it cannot be made."""
    if not user:
        raise UnacceptableCredentialError("Username must not be empty")
    if len(wanted) > 1:
        raise DuplicateResourceError("A user credential cannot be altered twice in the same request")
    change = wanted[0]
    mechanism = _MECHANISMS.get(change.mechanism)
    if mechanism is None:
        raise UnknownMechanismError(f"Unknown SCRAM mechanism {change.mechanism}")
    if isinstance(change, ScramCredentialDeletion):
        if (change.mechanism, change.name) not in image.scram.credentials:
            raise ResourceNotFoundError(
                f"There is no credential of {mechanism} of the user {change.name} to be deleted"
            )
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if not FEWEST_ITERATIONS <= change.iterations <= MOST_ITERATIONS:
        raise UnacceptableCredentialError(
            f"{change.iterations} iterations are not in the range of {FEWEST_ITERATIONS} to {MOST_ITERATIONS}"
        )
    if not change.salt or not change.salted_password:
        raise UnacceptableCredentialError("Salt and salted password must not be empty")
    made = ScramCredential.of_salted_password(
        mechanism, change.salted_password, salt=change.salt, iterations=change.iterations
    )
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=made.salt,
        stored_key=made.stored_key,
        server_key=made.server_key,
        iterations=made.iterations,
    )
