"""Arguments that cannot be right, for what the admin client does about access, settings, transactions and the like."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from kclient.admin import (
    AbortTransactionSpec,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidGroupIdError, KafkaError

_WRONG = (TypeError, ValueError)
_READ = AccessControlEntry("User:a", AclOperation.READ)
_ACL = AclBinding(ResourcePattern(ResourceType.TOPIC, "t"), _READ)
_DELETION = UserScramCredentialDeletion("u", ScramMechanism.SCRAM_SHA_256)
_QUOTA = ClientQuotaAlteration(ClientQuotaEntity({"user": "u"}), {"x": 1})
_TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
_BROKER = ConfigResource(ConfigResourceType.BROKER, "one")
_TP = TopicPartition("t", 0)
_SPEC = AbortTransactionSpec(_TP, 1, 0)
_FLAGS: list[Any] = [None, 0, 1, "false", []]
_LISTS: list[Any] = [None, 5, "x", b"x", [5], [None], [[]], [{}], ["x"], [b"x"]]
_PRINCIPALS: list[Any] = ["alice", "User:", ":alice", "", b"User:a", 5, ["User:a"]]
_PERIODS: list[Any] = [-1, 2**63, 1.5, math.nan, "1", True, []]
_HMACS: list[Any] = [None, b"", "text", 5, bytearray(b"x"), []]
_IDS: list[Any] = [None, 5, "x", b"x", [5], [None], [b"x"], [""], [[]]]
_TIMEOUTS: list[Any] = [-1, 1.5, math.nan, "100", True, []]

Invoke = Callable[[KafkaAdminClient, Any], object]

AdminCase = tuple[str, Invoke, str, tuple[type[Exception], ...], list[Any]]


def _describing(name: str) -> list[AdminCase]:
    def groups(admin: KafkaAdminClient, wrong: Any) -> object:
        return getattr(admin, name)(wrong)

    def operations(admin: KafkaAdminClient, wrong: Any) -> object:
        return getattr(admin, name)(["g"], include_authorized_operations=wrong)

    return [
        (name, groups, "group_ids", (*_WRONG, InvalidGroupIdError), ["g", [""], [5], None]),
        (name, operations, "include_authorized_operations", _WRONG, _FLAGS),
    ]


def _altering(kind: str, admin: KafkaAdminClient, wrong: Any) -> object:
    return getattr(admin, f"alter_{kind}_group_offsets")("g", wrong)


ADMIN_CASES: list[AdminCase] = [
    (
        "create_topics",
        lambda a, x: a.create_topics(["t"], retry_on_quota_violation=x),
        "retry_on_quota_violation",
        (TypeError,),
        _FLAGS,
    ),
    (
        "delete_topics",
        lambda a, x: a.delete_topics(["t"], retry_on_quota_violation=x),
        "retry_on_quota_violation",
        (TypeError,),
        _FLAGS,
    ),
    (
        "create_acls",
        lambda a, x: a.create_acls(x),
        "acls",
        _WRONG,
        [*_LISTS, _ACL, [AclBinding(ResourcePattern(ResourceType.ANY, "t"), _READ)], [_ACL.to_filter()]],
    ),
    ("describe_acls", lambda a, x: a.describe_acls(x), "acl_filter", _WRONG, [*_LISTS[1:], _ACL]),
    ("delete_acls", lambda a, x: a.delete_acls(x), "filters", _WRONG, [*_LISTS, AclBindingFilter(), [_ACL]]),
    (
        "describe_user_scram_credentials",
        lambda a, x: a.describe_user_scram_credentials(x),
        "users",
        _WRONG,
        [5, "u", b"u", [5], [None], [""], [[]]],
    ),
    (
        "alter_user_scram_credentials",
        lambda a, x: a.alter_user_scram_credentials(x),
        "alterations",
        _WRONG,
        [*_LISTS, _DELETION],
    ),
    (
        "create_delegation_token",
        lambda a, x: a.create_delegation_token(owner=x),
        "owner",
        _WRONG,
        _PRINCIPALS,
    ),
    (
        "create_delegation_token",
        lambda a, x: a.create_delegation_token(renewers=x),
        "renewers",
        _WRONG,
        [5, None, "User:a", b"User:a", *([each] for each in _PRINCIPALS)],
    ),
    (
        "create_delegation_token",
        lambda a, x: a.create_delegation_token(max_lifetime_ms=x),
        "max_lifetime_ms",
        _WRONG,
        [0, *_PERIODS],
    ),
    ("renew_delegation_token", lambda a, x: a.renew_delegation_token(x), "hmac", _WRONG, _HMACS),
    (
        "renew_delegation_token",
        lambda a, x: a.renew_delegation_token(b"h", renew_period_ms=x),
        "renew_period_ms",
        _WRONG,
        _PERIODS,
    ),
    ("expire_delegation_token", lambda a, x: a.expire_delegation_token(x), "hmac", _WRONG, _HMACS),
    (
        "expire_delegation_token",
        lambda a, x: a.expire_delegation_token(b"h", expiry_period_ms=x),
        "expiry_period_ms",
        _WRONG,
        _PERIODS,
    ),
    (
        "describe_delegation_token",
        lambda a, x: a.describe_delegation_token(x),
        "owners",
        _WRONG,
        [5, "User:a", *([each] for each in _PRINCIPALS)],
    ),
    (
        "describe_client_quotas",
        lambda a, x: a.describe_client_quotas(x),
        "quota_filter",
        _WRONG,
        [5, "user", {"user": "a"}, ClientQuotaFilter],
    ),
    (
        "alter_client_quotas",
        lambda a, x: a.alter_client_quotas(x),
        "alterations",
        _WRONG,
        [*_LISTS, _QUOTA],
    ),
    (
        "alter_client_quotas",
        lambda a, x: a.alter_client_quotas([_QUOTA], validate_only=x),
        "validate_only",
        _WRONG,
        _FLAGS,
    ),
    (
        "describe_configs",
        lambda a, x: a.describe_configs(x),
        "resources",
        _WRONG,
        [*_LISTS, _TOPIC, [_BROKER]],
    ),
    (
        "list_consumer_group_offsets",
        lambda a, x: a.list_consumer_group_offsets("g", require_stable=x),
        "require_stable",
        _WRONG,
        _FLAGS,
    ),
    *(
        case
        for name in (
            "describe_groups",
            "describe_consumer_groups",
            "describe_classic_groups",
            "describe_share_groups",
        )
        for case in _describing(name)
    ),
    ("list_groups", lambda a, x: a.list_groups(protocol_types=x), "protocol_types", _WRONG, [5, "x", [5]]),
    (
        "list_consumer_group_offsets",
        lambda a, x: a.list_consumer_group_offsets({"g": x}),
        "partitions",
        _WRONG,
        [5, "x", _TP, [5], ["x"], [TopicPartition("t", -1)]],
    ),
    (
        "list_share_group_offsets",
        lambda a, x: a.list_share_group_offsets(x),
        "group_id",
        (*_WRONG, InvalidGroupIdError),
        [None, "g", ["g"], {5: None}, {"": None}],
    ),
    *(
        (
            f"alter_{kind}_group_offsets",
            partial(_altering, kind),
            "offsets",
            _WRONG,
            [None, [_TP], {"t": 1}, {_TP: -1}, {_TP: "1"}, {_TP: 1.5}, {_TP: True}, {_TP: None}],
        )
        for kind in ("consumer", "share")
    ),
    (
        "delete_consumer_group_offsets",
        lambda a, x: a.delete_consumer_group_offsets("g", x),
        "partitions",
        _WRONG,
        [None, _TP, ["t"], [None]],
    ),
    (
        "delete_share_group_offsets",
        lambda a, x: a.delete_share_group_offsets("g", x),
        "topics",
        (*_WRONG, KafkaError),
        [None, "t", [None], [""], [5]],
    ),
    (
        "remove_members_from_consumer_group",
        lambda a, x: a.remove_members_from_consumer_group("g", x),
        "group_instance_ids",
        _WRONG,
        ["i", 5, [], [""], [5], [None]],
    ),
    (
        "remove_members_from_consumer_group",
        lambda a, x: a.remove_members_from_consumer_group("g", ["i"], reason=x),
        "reason",
        _WRONG,
        [5, b"x", ["x"]],
    ),
    (
        "describe_configs",
        lambda a, x: a.describe_configs([_TOPIC], include_synonyms=x),
        "include_synonyms",
        _WRONG,
        _FLAGS,
    ),
    (
        "describe_configs",
        lambda a, x: a.describe_configs([_TOPIC], include_documentation=x),
        "include_documentation",
        _WRONG,
        _FLAGS,
    ),
    (
        "incremental_alter_configs",
        lambda a, x: a.incremental_alter_configs(x),
        "configs",
        _WRONG,
        [
            None,
            5,
            "t",
            [_TOPIC],
            {"t": []},
            {_TOPIC: 5},
            {_TOPIC: "x=1"},
            {_TOPIC: ["x=1"]},
            {_BROKER: [AlterConfigOp("x", "1")]},
        ],
    ),
    (
        "incremental_alter_configs",
        lambda a, x: a.incremental_alter_configs({_TOPIC: [AlterConfigOp("x", "1")]}, validate_only=x),
        "validate_only",
        _WRONG,
        _FLAGS,
    ),
    (
        "list_config_resources",
        lambda a, x: a.list_config_resources(x),
        "types",
        _WRONG,
        [5, None, "topics", [2], ["TOPIC"], [None]],
    ),
    (
        "list_transactions",
        lambda a, x: a.list_transactions(states=x),
        "states",
        _WRONG,
        [None, 5, "Ongoing", b"Ongoing", [5], [None], ["ongoing"], [""], [[]]],
    ),
    (
        "list_transactions",
        lambda a, x: a.list_transactions(producer_ids=x),
        "producer_ids",
        _WRONG,
        [None, 5, "5", [-1], [2**63], ["5"], [1.5], [True], [None]],
    ),
    (
        "list_transactions",
        lambda a, x: a.list_transactions(duration_ms=x),
        "duration_ms",
        _WRONG,
        _PERIODS,
    ),
    (
        "list_transactions",
        lambda a, x: a.list_transactions(transactional_id_pattern=x),
        "transactional_id_pattern",
        _WRONG,
        [5, b"x", ["x"], re.compile("x")],
    ),
    (
        "describe_transactions",
        lambda a, x: a.describe_transactions(x),
        "transactional_ids",
        _WRONG,
        _IDS,
    ),
    (
        "describe_producers",
        lambda a, x: a.describe_producers(x),
        "partitions",
        _WRONG,
        [None, 5, "t", _TP, ["t"], [("t", 0)], [TopicPartition("t", -1)]],
    ),
    (
        "describe_producers",
        lambda a, x: a.describe_producers([_TP], x),
        "broker_id",
        _WRONG,
        [-1, 2**31, "1", 1.5, True, []],
    ),
    (
        "abort_transaction",
        lambda a, x: a.abort_transaction(x),
        "spec",
        _WRONG,
        [None, 5, _TP, [_SPEC], AbortTransactionSpec],
    ),
    ("fence_producers", lambda a, x: a.fence_producers(x), "transactional_ids", _WRONG, _IDS),
    (
        "force_terminate_transaction",
        lambda a, x: a.force_terminate_transaction(x),
        "transactional_id",
        _WRONG,
        [None, 5, b"x", "", ["x"]],
    ),
    *(
        (name, call, "timeout_ms", _WRONG, _TIMEOUTS)
        for name, call in (
            ("create_acls", lambda a, x: a.create_acls([_ACL], timeout_ms=x)),
            ("describe_acls", lambda a, x: a.describe_acls(AclBindingFilter(), timeout_ms=x)),
            ("delete_acls", lambda a, x: a.delete_acls([AclBindingFilter()], timeout_ms=x)),
            ("describe_user_scram_credentials", lambda a, x: a.describe_user_scram_credentials(timeout_ms=x)),
            (
                "alter_user_scram_credentials",
                lambda a, x: a.alter_user_scram_credentials([_DELETION], timeout_ms=x),
            ),
            ("create_delegation_token", lambda a, x: a.create_delegation_token(timeout_ms=x)),
            ("renew_delegation_token", lambda a, x: a.renew_delegation_token(b"h", timeout_ms=x)),
            ("expire_delegation_token", lambda a, x: a.expire_delegation_token(b"h", timeout_ms=x)),
            ("describe_delegation_token", lambda a, x: a.describe_delegation_token(timeout_ms=x)),
            (
                "describe_client_quotas",
                lambda a, x: a.describe_client_quotas(ClientQuotaFilter.all(), timeout_ms=x),
            ),
            ("alter_client_quotas", lambda a, x: a.alter_client_quotas([_QUOTA], timeout_ms=x)),
            ("describe_configs", lambda a, x: a.describe_configs([_TOPIC], timeout_ms=x)),
            (
                "incremental_alter_configs",
                lambda a, x: a.incremental_alter_configs({_TOPIC: [AlterConfigOp("x", "1")]}, timeout_ms=x),
            ),
            ("list_config_resources", lambda a, x: a.list_config_resources(timeout_ms=x)),
            ("list_transactions", lambda a, x: a.list_transactions(timeout_ms=x)),
            ("describe_transactions", lambda a, x: a.describe_transactions(["x"], timeout_ms=x)),
            ("describe_producers", lambda a, x: a.describe_producers([_TP], timeout_ms=x)),
            ("abort_transaction", lambda a, x: a.abort_transaction(_SPEC, timeout_ms=x)),
            ("fence_producers", lambda a, x: a.fence_producers(["x"], timeout_ms=x)),
            (
                "force_terminate_transaction",
                lambda a, x: a.force_terminate_transaction("x", timeout_ms=x),
            ),
        )
    ),
]
"""Of each: the method, a call of it, the argument, the errors for it, its bad values."""
