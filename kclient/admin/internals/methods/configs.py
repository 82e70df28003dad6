"""Methods for settings that brokers keep, and for quotas of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kclient.admin import internals
from kclient.admin.internals import operations
from kclient.admin.internals.arguments import check_flag
from kclient.admin.internals.methods.base import AdminMethods

if TYPE_CHECKING:
    from kclient.admin.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter
    from kclient.admin.resource_configs import AlterConfigOp, ConfigEntry, ConfigResource, ConfigResourceType


class ConfigMethods(AdminMethods):
    """Settings and quotas."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Every setting of topics, brokers, groups and the like, by name."""
        wanted = internals.security_arguments.checked_resources(resources)
        check_flag("include_synonyms", include_synonyms)
        check_flag("include_documentation", include_documentation)
        what, operation = "Describing settings", operations.configs.describe_configs
        return self._run(what, timeout_ms, operation, wanted, include_synonyms, include_documentation)

    def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, None]:
        """Change single settings, and leave the others as they are (KIP-339). `validate_only` only checks."""
        wanted = internals.security_arguments.checked_config_changes(configs)
        check_flag("validate_only", validate_only)
        operation = operations.configs.incremental_alter_configs
        return self._run("Altering settings", timeout_ms, operation, wanted, validate_only)

    def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """Return what has settings of its own, of `types` or of any type (KIP-1142)."""
        wanted = internals.security_arguments.checked_resource_types(types)
        operation = operations.configs.list_config_resources
        return self._run("Listing what has settings", timeout_ms, operation, wanted)

    def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter | None = None, *, timeout_ms: int | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Quotas by name of the entities that `quota_filter` finds, of all of them without it (KIP-546)."""
        wanted = internals.security_arguments.checked_quota_filter(quota_filter)
        operation = operations.quotas.describe_client_quotas
        return self._run("Describing client quotas", timeout_ms, operation, wanted)

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ClientQuotaEntity, None]:
        """Set and take away quotas (KIP-546). `validate_only` only checks."""
        wanted = internals.security_arguments.checked_quota_alterations(alterations)
        check_flag("validate_only", validate_only)
        operation = operations.quotas.alter_client_quotas
        return self._run("Altering client quotas", timeout_ms, operation, wanted, validate_only)
