"""Words of access rules (ACLs), by their numbers in the protocol: kinds of resources and patterns, operations, effects.

A code that is not known here keeps its number, as `UNKNOWN_42`.
"""

from __future__ import annotations

from kclient.utils.code_enum import CodeEnum

WILDCARD = "*"
"""As a LITERAL name, every resource of the type; as a host, every host; as the name of a user, every user."""
CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(CodeEnum):
    """The kind of thing that a rule is about. A code that is not known here keeps its number, as `UNKNOWN_42`."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(CodeEnum):
    """The way from a pattern's name to the names of resources (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters: every pattern of exactly that name."""
    MATCH = 2
    """Only in filters: every pattern that applies to the resource of that name."""
    LITERAL = 3
    PREFIXED = 4


class AclOperation(CodeEnum):
    """The operation that a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(CodeEnum):
    """The effect of a rule; a DENY wins over every ALLOW."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    DENY = 2
    ALLOW = 3
