"""Rows of the table of rights: a request, and what is answered after each further right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from harness.scenarios.access_requests import Scene
from kclient.admin import AclOperation, ResourcePattern, ResourceType
from kclient.protocol.schema import Message

Right = tuple[AclOperation, ResourceType, str]
"""An operation on a resource: `{t}` stands for the topic or the group, `{n}` for the topic that is not there."""


@attrs.frozen
class Case:
    """One request, what is looked at of its answers, and the answers after each further right."""

    name: str
    version: int
    request: Callable[[Scene], Message]
    seen: Callable[[Scene, Any], object]
    steps: Sequence[tuple[Right | None, object]]


def on_topic(operation: AclOperation, name: str = "{t}") -> Right:
    return operation, ResourceType.TOPIC, name


def on_group(operation: AclOperation) -> Right:
    return operation, ResourceType.GROUP, "{t}"


def on_cluster(operation: AclOperation) -> Right:
    return operation, ResourceType.CLUSTER, ResourcePattern.CLUSTER_NAME
