"""The admin client."""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.admin.acl import (
        AccessControlEntry,
        AccessControlEntryFilter,
        AclBinding,
        AclBindingFilter,
        ResourcePattern,
        ResourcePatternFilter,
    )
    from kclient.admin.groups import (
        GroupDescription,
        GroupListing,
        MemberDescription,
        SharePartitionOffsetInfo,
    )
    from kclient.admin.kafka_admin_client import (
        KafkaAdminClient,
    )
    from kclient.admin.quotas import (
        ClientQuotaAlteration,
        ClientQuotaEntity,
        ClientQuotaFilter,
        ClientQuotaFilterComponent,
        QuotaMatchType,
    )
    from kclient.admin.resource_configs import (
        AlterConfigOp,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
    )
    from kclient.admin.scram import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialsDescription,
        UserScramCredentialUpsertion,
    )
    from kclient.admin.settings import (
        AdminSettings,
    )
    from kclient.admin.tokens import (
        DelegationToken,
        TokenInformation,
    )
    from kclient.admin.transactions import (
        AbortTransactionSpec,
        FencedProducer,
        PartitionProducerState,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from kclient.admin.types import (
        ClusterDescription,
        CreatedTopic,
        ListedOffset,
        NewTopic,
        OffsetSpec,
        TopicDescription,
        TopicListing,
    )
    from kclient.common.acl import (
        AclOperation,
        AclPermissionType,
        PatternType,
        ResourceType,
    )
else:
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.admin.acl": (
                "AccessControlEntry",
                "AccessControlEntryFilter",
                "AclBinding",
                "AclBindingFilter",
                "ResourcePattern",
                "ResourcePatternFilter",
            ),
            "kclient.admin.resource_configs": (
                "AlterConfigOp",
                "AlterConfigOpType",
                "ConfigEntry",
                "ConfigResource",
                "ConfigResourceType",
                "ConfigSource",
                "ConfigSynonym",
                "ConfigType",
            ),
            "kclient.admin.groups": (
                "GroupDescription",
                "GroupListing",
                "MemberDescription",
                "SharePartitionOffsetInfo",
            ),
            "kclient.admin.kafka_admin_client": ("KafkaAdminClient",),
            "kclient.admin.quotas": (
                "ClientQuotaAlteration",
                "ClientQuotaEntity",
                "ClientQuotaFilter",
                "ClientQuotaFilterComponent",
                "QuotaMatchType",
            ),
            "kclient.admin.scram": (
                "ScramCredentialInfo",
                "ScramMechanism",
                "UserScramCredentialDeletion",
                "UserScramCredentialUpsertion",
                "UserScramCredentialsDescription",
            ),
            "kclient.admin.settings": ("AdminSettings",),
            "kclient.admin.tokens": (
                "DelegationToken",
                "TokenInformation",
            ),
            "kclient.admin.transactions": (
                "AbortTransactionSpec",
                "FencedProducer",
                "PartitionProducerState",
                "ProducerState",
                "TransactionDescription",
                "TransactionListing",
                "TransactionState",
            ),
            "kclient.admin.types": (
                "ClusterDescription",
                "CreatedTopic",
                "ListedOffset",
                "NewTopic",
                "OffsetSpec",
                "TopicDescription",
                "TopicListing",
            ),
            "kclient.common.acl": (
                "AclOperation",
                "AclPermissionType",
                "PatternType",
                "ResourceType",
            ),
        },
    )

__all__ = [
    "AbortTransactionSpec",
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AdminSettings",
    "AlterConfigOp",
    "AlterConfigOpType",
    "ClientQuotaAlteration",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "CreatedTopic",
    "DelegationToken",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "KafkaAdminClient",
    "ListedOffset",
    "MemberDescription",
    "NewTopic",
    "OffsetSpec",
    "PartitionProducerState",
    "PatternType",
    "ProducerState",
    "QuotaMatchType",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "SharePartitionOffsetInfo",
    "TokenInformation",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramCredentialsDescription",
]
