"""EntityQuotas: one kind of quota, as it is set for users and client ids, and who shares it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import attrs

from kclient.broker.metadata.image.quotas import QuotaEntity
from kclient.broker.quota.quota_keys import CLIENT_ID, IP, USER

NONE = ""
"""In place of a user or a client id that makes no difference. Names are never empty."""

Level: TypeAlias = tuple[str | None, str | None]
"""User and client id that a quota is set for: names, None for the default, NONE where it makes no difference."""

Owner: TypeAlias = tuple[str, str]
"""User and client id that share one quota: all connections of both, or of one where the other is NONE."""


@attrs.frozen
class EntityQuotas:
    """The limits by level. Immutable."""

    limits: Mapping[Level, float] = MappingProxyType({})

    @classmethod
    def of(cls, key: str, entities: Mapping[QuotaEntity, Mapping[str, float]]) -> EntityQuotas:
        """Return the quotas called `key` of all entities that are users or clients."""
        limits: dict[Level, float] = {}
        for entity, quotas in entities.items():
            value = quotas.get(key)
            parts = dict(entity)
            # Kafka lets a value be set that is no number; such a one limits nobody.
            if value is not None and IP not in parts and math.isfinite(value) and value > 0:
                limits[parts.get(USER, NONE), parts.get(CLIENT_ID, NONE)] = value
        return cls(limits)

    def find(self, user: str, client_id: str) -> tuple[Owner, float] | None:
        """Return the one that has the quota of a client, and its limit: of the first level that is set. None without.

        As with Kafka, a client with an empty id belongs to no client id, not even to the default.
        """
        limits = self.limits
        for level, owner in (
            ((user, client_id), (user, client_id)),
            ((user, None), (user, client_id)),
            ((user, NONE), (user, NONE)),
            ((None, client_id), (user, client_id)),
            ((None, None), (user, client_id)),
            ((None, NONE), (user, NONE)),
            ((NONE, client_id), (NONE, client_id)),
            ((NONE, None), (NONE, client_id)),
        ):
            if not client_id and level[1] != NONE:
                continue
            limit = limits.get(level)
            if limit is not None and owner != (NONE, NONE):
                return owner, limit
        return None
