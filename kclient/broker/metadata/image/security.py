"""AclsImage and ScramImage: who may do what, and by which password a user is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from kclient.broker.metadata.image.keyed import KeyedDelta
from kclient.broker.security.scram import ScramCredential
from kclient.common.uuid import Uuid
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.schema import Message


@attrs.frozen
class AccessControlEntry:
    """An access rule, its enumerations by their numbers in the protocol. Immutable."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def record(self, acl_id: Uuid) -> AccessControlEntryRecord:
        """The record that makes the rule."""
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )


@attrs.frozen
class AclsImage:
    """The access rules by their ids. Immutable."""

    acls: Mapping[Uuid, AccessControlEntry] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records that make all of this."""
        for acl_id, acl in self.acls.items():
            yield acl.record(acl_id)


class AclsDelta(KeyedDelta[Uuid, AccessControlEntry]):
    """Changes of the access rules. Used by one thread."""

    def replay(self, record: AccessControlEntryRecord) -> None:
        """Add a rule."""
        self.changes[record.id] = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def replay_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """Take a rule away."""
        self.changes[record.id] = None


ScramUser = tuple[int, str]
"""The number of a mechanism, and the name of a user."""


@attrs.frozen
class ScramImage:
    """The SCRAM credentials. Immutable."""

    credentials: Mapping[ScramUser, ScramCredential] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records that make all of this."""
        for (mechanism, name), credential in self.credentials.items():
            yield UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )


class ScramDelta(KeyedDelta[ScramUser, ScramCredential]):
    """Changes of the SCRAM credentials. Used by one thread."""

    def replay(self, record: UserScramCredentialRecord) -> None:
        """Give a user a password."""
        self.changes[record.mechanism, record.name] = ScramCredential(
            record.salt, record.stored_key, record.server_key, record.iterations
        )

    def replay_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """Take the password of a user away."""
        self.changes[record.mechanism, record.name] = None
