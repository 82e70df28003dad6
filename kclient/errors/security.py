"""Errors about who the client is and what it may do."""

from __future__ import annotations

from kclient.errors.base import ApiError, InvalidConfigurationError

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "ClusterAuthorizationError",
    "DelegationTokenAuthorizationError",
    "DelegationTokenDisabledError",
    "DelegationTokenExpiredError",
    "DelegationTokenNotFoundError",
    "DelegationTokenOwnerMismatchError",
    "GroupAuthorizationError",
    "IllegalSaslStateError",
    "InvalidPrincipalTypeError",
    "PrincipalDeserializationError",
    "ProxyAuthenticationError",
    "SaslAuthenticationError",
    "SecurityDisabledError",
    "SslAuthenticationError",
    "TopicAuthorizationError",
    "TransactionalIdAuthorizationError",
    "UnacceptableCredentialError",
    "UnsupportedByAuthenticationError",
    "UnsupportedSaslMechanismError",
]


class AuthorizationError(InvalidConfigurationError):
    default_message = "The principal is not allowed to do this; an ACL has to allow it."


class AuthenticationError(InvalidConfigurationError):
    """The broker did not accept who the client says it is. The client does not retry this by itself."""

    default_message = "The broker did not accept the client's credentials."


class TopicAuthorizationError(AuthorizationError, code=29):
    """`topics` names the topics, where that is known."""

    topics: frozenset[str] = frozenset()
    default_message = "The principal is not allowed to use the topic; an ACL has to allow it."


class GroupAuthorizationError(AuthorizationError, code=30):
    """`group_id` names the group, where that is known."""

    group_id: str | None = None
    default_message = "The principal is not allowed to use the group; an ACL has to allow it."


class ClusterAuthorizationError(AuthorizationError, code=31):
    default_message = "The principal is not allowed to do this on the cluster; an ACL has to allow it."


class UnsupportedSaslMechanismError(AuthenticationError, code=33):
    default_message = "The broker does not offer this SASL mechanism; set sasl.mechanism to one that it does."


class IllegalSaslStateError(AuthenticationError, code=34):
    default_message = (
        "The request does not fit the state of authentication; check security.protocol on both sides."
    )


class TransactionalIdAuthorizationError(AuthorizationError, code=53):
    default_message = "The principal is not allowed to use the transactional id; an ACL has to allow it."


class SecurityDisabledError(ApiError, code=54):
    default_message = "The cluster has no authorizer, so there are no ACLs to work on."


class SaslAuthenticationError(AuthenticationError, code=58):
    default_message = "The broker refused the SASL credentials; check sasl.mechanism, user and password."


class ProxyAuthenticationError(AuthenticationError):
    default_message = "The proxy did not accept user and password of kclient.proxy.url."


class SslAuthenticationError(AuthenticationError):
    default_message = "The TLS handshake failed; check the certificates on both sides and the host name."


class DelegationTokenDisabledError(ApiError, code=61):
    default_message = "The brokers do not have delegation tokens enabled."


class DelegationTokenNotFoundError(ApiError, code=62):
    default_message = "The broker knows no such delegation token."


class DelegationTokenOwnerMismatchError(ApiError, code=63):
    default_message = "Only the owner or a renewer of the delegation token may do this."


class UnsupportedByAuthenticationError(ApiError, code=64):
    default_message = (
        "Delegation tokens cannot be requested over this connection; use TLS or SASL without a token."
    )


class DelegationTokenAuthorizationError(AuthorizationError, code=65):
    default_message = "The principal is not allowed to work with the delegation token."


class DelegationTokenExpiredError(ApiError, code=66):
    default_message = "The delegation token has expired; get a new one."


class InvalidPrincipalTypeError(ApiError, code=67):
    default_message = "The broker does not know this type of principal; use User:name."


class UnacceptableCredentialError(ApiError, code=93):
    default_message = "The credential is not acceptable; check user name, salt and number of iterations."


class PrincipalDeserializationError(ApiError, code=97):
    default_message = "The principal forwarded with the request cannot be read; check the principal builder."
