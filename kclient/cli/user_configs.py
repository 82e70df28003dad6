"""Settings of users, clients and addresses: quotas and, of users, SCRAM credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kclient.admin import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    KafkaAdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.cli.config_arguments import QUOTA_TYPES, Changes, Entity, Every, Name, refuse_unset
from kclient.cli.config_rows import Row
from kclient.errors import ConfigError, ResourceNotFoundError

_MECHANISMS = {
    each.mechanism_name: each for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
}
_OF_CLIENTS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_OF_ADDRESSES = ("connection_creation_rate",)
_SCRAM = re.compile(
    r"(?:\s*iterations=(?P<iterations>-?[0-9]{1,9})\s*,)?\s*password=(?P<password>.+)", re.DOTALL
)


def describe_users(admin: KafkaAdminClient, entity: Entity) -> Iterable[Row]:
    """Quotas of the entity, or of all that it stands for, and users' SCRAM credentials."""
    components = [_component(QUOTA_TYPES[kind], name) for kind, name in entity.names.items()]
    types = {name: kind for kind, name in QUOTA_TYPES.items()}
    for found, quotas in admin.describe_client_quotas(ClientQuotaFilter.contains_only(components)).items():
        names = {types.get(kind, kind): name for kind, name in found.entries.items()}
        for key, value in sorted(quotas.items()):
            yield Row(names, key, value)
    if list(entity.names) != ["users"] or entity.name is None:
        return
    users = [entity.name] if isinstance(entity.name, str) else None
    try:
        described = admin.describe_user_scram_credentials(users)
    except ResourceNotFoundError:
        return  # the user has none
    for user, credentials in sorted(described.items()):
        for info in credentials.credential_infos:
            yield Row({"users": user}, info.mechanism.mechanism_name, f"iterations={info.iterations}")


def alter_user(admin: KafkaAdminClient, entity: Entity, changes: Changes) -> None:
    """Change quotas and credentials. Everything is checked before anything is sent."""
    names = {QUOTA_TYPES[kind]: name for kind, name in entity.names.items() if not isinstance(name, type)}
    _check_names(entity, changes)
    alterations: list[UserScramCredentialUpsertion | UserScramCredentialDeletion] = []
    user = entity.name
    for key, mechanism in _MECHANISMS.items():
        if not isinstance(user, str):
            continue
        if key in changes.added:
            alterations.append(_upsertion(user, mechanism, changes.added[key]))
        if key in changes.deleted:
            alterations.append(UserScramCredentialDeletion(user, mechanism))
    ops: dict[str, float | None] = {
        key: _number(key, value) for key, value in changes.added.items() if key not in _MECHANISMS
    }
    deleted = [key for key in changes.deleted if key not in _MECHANISMS]
    quota_entity = ClientQuotaEntity(names)
    if deleted:
        components = [_component(kind, name) for kind, name in names.items()]
        found = admin.describe_client_quotas(ClientQuotaFilter.contains_only(components))
        refuse_unset(entity, Changes({}, tuple(deleted)), found.get(quota_entity, {}))
        ops.update(dict.fromkeys(deleted))
    for alteration in alterations:
        # One at a time: a controller refuses two changes of one user in a request, also of two mechanisms.
        admin.alter_user_scram_credentials([alteration])
    if ops:
        admin.alter_client_quotas([ClientQuotaAlteration(quota_entity, ops)])


def _component(kind: str, name: Name) -> ClientQuotaFilterComponent:
    if name is None:
        return ClientQuotaFilterComponent.of_default_entity(kind)
    if isinstance(name, str):
        return ClientQuotaFilterComponent.of_entity(kind, name)
    assert name is Every
    return ClientQuotaFilterComponent.of_entity_type(kind)


def _check_names(entity: Entity, changes: Changes) -> None:
    given = [*changes.added, *changes.deleted]
    quotas = _OF_ADDRESSES if entity.type == "ips" else _OF_CLIENTS
    credentials = [key for key in given if key in _MECHANISMS]
    if credentials and list(entity.names) != ["users"]:
        raise ConfigError(f"{', '.join(credentials)} are settings of users alone")
    if credentials and entity.name is None:
        raise ConfigError(f"{', '.join(credentials)}: there are no credentials for every user")
    known = [*quotas, *_MECHANISMS] if list(entity.names) == ["users"] else [*quotas]
    unknown = [key for key in given if key not in known]
    if unknown:
        # Beside a password that was not put into brackets as it should be, what looks like a name may be part of it.
        shown = "a name" if credentials else ", ".join(unknown)
        raise ConfigError(f"{entity}: {shown} is no setting there; there are {', '.join(known)}")


def _upsertion(user: str, mechanism: ScramMechanism, value: str) -> UserScramCredentialUpsertion:
    found = _SCRAM.fullmatch(value)
    name = mechanism.mechanism_name
    if found is None:
        raise ConfigError(
            f"--add-config {name} should be [iterations=NUMBER,password=TEXT], or without iterations"
        )
    given = found["iterations"]
    info = ScramCredentialInfo(mechanism)
    if given is not None and int(given) != -1:  # which is the default as well
        info = ScramCredentialInfo(mechanism, int(given))
    try:
        return UserScramCredentialUpsertion(user, info, found["password"])
    except ValueError as error:
        raise ConfigError(f"--add-config {name}: {error}") from None


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigError(f"--add-config {key}: the value should be a number, 0 or more")
    return number
