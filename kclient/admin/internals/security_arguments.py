"""Checks of arguments about access, credentials, quotas and settings, which most programs never ask about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kclient.admin.acl import AclBinding, AclBindingFilter, check_definite
from kclient.admin.internals.arguments import distinct
from kclient.admin.internals.fields import a, checked_principal
from kclient.admin.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter
from kclient.admin.resource_configs import AlterConfigOp, ConfigResource, ConfigResourceType
from kclient.admin.scram import UserScramCredentialDeletion, UserScramCredentialUpsertion

V = TypeVar("V")

_LONGEST_MS = 2**63 - 1


def checked_acls(acls: Any) -> list[AclBinding]:
    """Rules to create, without repeats."""
    wanted = _all_of("acls", acls, AclBinding)
    for acl in wanted:
        check_definite("acls", acl)
    return wanted


def checked_acl_filter(acl_filter: Any) -> AclBindingFilter:
    """One filter for rules; None is that for all."""
    return AclBindingFilter() if acl_filter is None else _one("acl_filter", acl_filter, AclBindingFilter)


def checked_acl_filters(filters: Any) -> list[AclBindingFilter]:
    """Filters for rules, without repeats."""
    return _all_of("filters", filters, AclBindingFilter)


def checked_users(users: Any) -> list[str]:
    """Names of users, without repeats."""
    wanted = _all_of("users", users, str)
    if "" in wanted:
        raise ValueError("users: a user's name must not be empty")
    return wanted


def checked_credential_alterations(
    alterations: Any,
) -> list[UserScramCredentialUpsertion | UserScramCredentialDeletion]:
    """Changes of credentials; one for each user and mechanism."""
    wanted: list[Any] = distinct("alterations", alterations)
    seen: set[tuple[str, int]] = set()
    for each in wanted:
        if isinstance(each, UserScramCredentialUpsertion):
            key = (each.user, each.credential_info.mechanism)
        elif isinstance(each, UserScramCredentialDeletion):
            key = (each.user, each.mechanism)
        else:
            raise TypeError(
                "alterations: a UserScramCredentialUpsertion or UserScramCredentialDeletion is needed, not "
                f"{a(type(each))}"
            )
        if key in seen:
            raise ValueError(f"alterations: user {each.user} comes twice with the same mechanism")
        seen.add(key)
    return wanted


def checked_owner(owner: Any) -> str | None:
    """The principal that a token is for, or None."""
    return None if owner is None else checked_principal("owner", owner)


def checked_principals(argument: str, principals: Any) -> list[str]:
    """Principals as "User:alice", without repeats."""
    return [checked_principal(f"{argument}: an entry", each) for each in distinct(argument, principals)]


def checked_hmac(hmac: Any) -> bytes:
    """The HMAC of a token; it is never shown."""
    if not isinstance(hmac, bytes):
        raise TypeError(f"hmac must be bytes, not a {type(hmac).__name__}")
    if not hmac:
        raise ValueError("hmac must not be empty")
    return hmac


def checked_period(argument: str, period_ms: Any, *, least: int = 0) -> int:
    """A time in ms, -1 for None, which leaves it to the broker."""
    if period_ms is None:
        return -1
    if not isinstance(period_ms, int) or isinstance(period_ms, bool):
        raise TypeError(f"{argument} must be an int, not {period_ms!r}")
    if not least <= period_ms <= _LONGEST_MS:
        raise ValueError(f"{argument} must be {least} or more, not {period_ms}")
    return period_ms


def checked_quota_filter(quota_filter: Any) -> ClientQuotaFilter:
    """One filter for quotas; None is that for all."""
    return (
        ClientQuotaFilter() if quota_filter is None else _one("quota_filter", quota_filter, ClientQuotaFilter)
    )


def checked_quota_alterations(alterations: Any) -> list[ClientQuotaAlteration]:
    """Changes of quotas; one for each entity."""
    wanted = _all_of("alterations", alterations, ClientQuotaAlteration)
    seen: set[ClientQuotaEntity] = set()
    for each in wanted:
        if each.entity in seen:
            raise ValueError(f"alterations: {each.entity} comes twice")
        seen.add(each.entity)
    return wanted


def checked_resources(resources: Any) -> list[ConfigResource]:
    """Things that have settings, without repeats."""
    wanted = _all_of("resources", resources, ConfigResource)
    for each in wanted:
        _check_resource("resources", each)
    return wanted


def checked_config_changes(configs: Any) -> dict[ConfigResource, list[AlterConfigOp]]:
    """Changes of settings by what they are for."""
    if not isinstance(configs, Mapping):
        raise TypeError(f"configs must map each ConfigResource to AlterConfigOps, not be {a(type(configs))}")
    wanted = {}
    for resource, ops in configs.items():
        _check_resource("configs", _one("configs: a key", resource, ConfigResource))
        wanted[resource] = _all_of(f"configs: changes of {resource}", ops, AlterConfigOp)
    return wanted


def checked_resource_types(types: Any) -> list[ConfigResourceType]:
    """Kinds of things that have settings, without repeats."""
    return _all_of("types", types, ConfigResourceType)


def _check_resource(argument: str, resource: ConfigResource) -> None:
    name = resource.name
    if resource.is_of_one_broker and not (
        name.isascii() and name.isdigit() and len(name) <= 10 and int(name) < 2**31
    ):
        raise ValueError(f"{argument}: the name of a broker is its id, not {name!r}")


def _one(argument: str, given: Any, kind: type[V]) -> V:
    if not isinstance(given, kind):
        # Without the value itself: it may have a secret in it.
        raise TypeError(f"{argument} must be {a(kind)}, not {a(type(given))}")
    return given


def _all_of(argument: str, given: Any, kind: type[V]) -> list[V]:
    return [_one(f"{argument}: an entry", each, kind) for each in distinct(argument, given)]
