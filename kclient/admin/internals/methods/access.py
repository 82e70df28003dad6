"""Methods for access rules, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kclient.admin import internals
from kclient.admin.internals import operations
from kclient.admin.internals.methods.base import AdminMethods

if TYPE_CHECKING:
    from kclient.admin.acl import AclBinding, AclBindingFilter
    from kclient.admin.scram import (
        UserScramCredentialDeletion,
        UserScramCredentialsDescription,
        UserScramCredentialUpsertion,
    )
    from kclient.admin.tokens import DelegationToken


class AccessMethods(AdminMethods):
    """Access rules, credentials and tokens."""

    def create_acls(
        self, acls: Iterable[AclBinding], *, timeout_ms: int | None = None
    ) -> dict[AclBinding, None]:
        """Create access rules; those that are there already stay as they are.

        Raises SecurityDisabledError if the cluster has no authorizer, as do the other two.
        """
        wanted = internals.security_arguments.checked_acls(acls)
        return self._run("Creating ACLs", timeout_ms, operations.acls.create_acls, wanted)

    def describe_acls(
        self, acl_filter: AclBindingFilter | None = None, *, timeout_ms: int | None = None
    ) -> list[AclBinding]:
        """Return the access rules that `acl_filter` finds, all of them without it."""
        wanted = internals.security_arguments.checked_acl_filter(acl_filter)
        return self._run("Describing ACLs", timeout_ms, operations.acls.describe_acls, wanted)

    def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: int | None = None
    ) -> dict[AclBindingFilter | AclBinding, list[AclBinding]]:
        """Delete the access rules that `filters` find; returns them by filter.

        A rule that could not be deleted is a key of AdminError's `.errors`, beside filters that failed as a whole.
        """
        wanted = internals.security_arguments.checked_acl_filters(filters)
        return self._run("Deleting ACLs", timeout_ms, operations.acls.delete_acls, wanted)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, UserScramCredentialsDescription]:
        """Mechanisms and iterations of users' passwords, of all users without `users` (KIP-554)."""
        wanted = None if users is None else internals.security_arguments.checked_users(users)
        what, operation = "Describing SCRAM credentials", operations.scram.describe_user_scram_credentials
        return self._run(what, timeout_ms, operation, wanted)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        *,
        timeout_ms: int | None = None,
    ) -> dict[str, None]:
        """Set and delete users' passwords (KIP-554), which are salted here; returns the users.

        Brokers refuse a request with two changes of one user (DuplicateResourceError), also of two mechanisms.
        """
        wanted = internals.security_arguments.checked_credential_alterations(alterations)
        what, operation = "Altering SCRAM credentials", operations.scram.alter_user_scram_credentials
        return self._run(what, timeout_ms, operation, wanted)

    def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int | None = None,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """Create a token that others can authenticate with (KIP-48), for oneself or for `owner` (KIP-373).

        `owner` and `renewers` are principals as "User:alice". `max_lifetime_ms` is the broker's unless given. The
        connection has to be authenticated, and not by a token.
        """
        checks = internals.security_arguments
        whose, others = checks.checked_owner(owner), checks.checked_principals("renewers", renewers)
        limit_ms = checks.checked_period("max_lifetime_ms", max_lifetime_ms, least=1)
        operation = operations.tokens.create_delegation_token
        return self._run("Creating a delegation token", timeout_ms, operation, whose, others, limit_ms)

    def renew_delegation_token(
        self, hmac: bytes, *, renew_period_ms: int | None = None, timeout_ms: int | None = None
    ) -> int:
        """Extend the time of the token with `hmac`, by the broker's period unless given; returns its end in ms."""
        checks = internals.security_arguments
        secret, period_ms = (
            checks.checked_hmac(hmac),
            checks.checked_period("renew_period_ms", renew_period_ms),
        )
        operation = operations.tokens.renew_delegation_token
        return self._run("Renewing a delegation token", timeout_ms, operation, secret, period_ms)

    def expire_delegation_token(
        self, hmac: bytes, *, expiry_period_ms: int | None = None, timeout_ms: int | None = None
    ) -> int:
        """End the token with `hmac` in `expiry_period_ms` from now, at once without it; returns its end in ms."""
        checks = internals.security_arguments
        secret, period_ms = (
            checks.checked_hmac(hmac),
            checks.checked_period("expiry_period_ms", expiry_period_ms),
        )
        operation = operations.tokens.expire_delegation_token
        return self._run("Ending a delegation token", timeout_ms, operation, secret, period_ms)

    def describe_delegation_token(
        self, owners: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> list[DelegationToken]:
        """Return the tokens that the caller may see, of all owners without `owners`."""
        wanted = None if owners is None else internals.security_arguments.checked_principals("owners", owners)
        operation = operations.tokens.describe_delegation_token
        return self._run("Describing delegation tokens", timeout_ms, operation, wanted)
