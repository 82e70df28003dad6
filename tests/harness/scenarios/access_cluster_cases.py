"""Rights on the cluster that quotas, features and kinds of settings ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.scenarios.access_requests import CLUSTER, Scene
from harness.scenarios.access_table import Case, on_cluster
from kclient.admin import AclOperation
from kclient.protocol.messages import alter_client_quotas as altering
from kclient.protocol.messages import alter_configs as legacy
from kclient.protocol.messages import describe_client_quotas as describing
from kclient.protocol.messages import describe_configs as configs
from kclient.protocol.messages import incremental_alter_configs as incremental
from kclient.protocol.messages import update_features as features
from kclient.protocol.schema import Message

OK, TOPIC, GROUP, INVALID_REQUEST, INVALID_UPDATE = 0, 29, 30, 42, 95
_O = AclOperation


def _find_quotas(scene: Scene) -> Message:
    component = describing.ComponentData(entity_type="user", match_type=0, match=scene.none)
    return describing.DescribeClientQuotasRequest(components=[component])


def _alter_quotas(scene: Scene) -> Message:
    """Two entities, the second one twice."""
    op = altering.OpData(key="producer_byte_rate", value=1000.0)
    users = [
        altering.AlterClientQuotasRequestEntityData(entity_type="user", entity_name=name)
        for name in scene.topics
    ]
    client = altering.AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="c")
    entities = [[users[0], client], [users[1]], [users[1]]]
    entries = [altering.AlterClientQuotasRequestEntryData(entity=entity, ops=[op]) for entity in entities]
    return altering.AlterClientQuotasRequest(entries=entries, validate_only=True)


def _quotas_altered(scene: Scene, answer: Any) -> object:
    return sorted(
        (
            entry.error_code,
            [part.entity_name == scene.name for part in entry.entity if part.entity_type == "user"],
        )
        for entry in answer.entries
    )


def _update(scene: Scene) -> Message:
    update = features.FeatureUpdateKey(feature="no.such", max_version_level=1)
    return features.UpdateFeaturesRequest(feature_updates=[update], validate_only=True)


def _updated(scene: Scene, answer: Any) -> object:
    return answer.error_code, [(result.feature, result.error_code) for result in answer.results]


_KINDS = (99, 2, 8, 16, 32)


def _describe_kinds(*kinds: int) -> Callable[[Scene], Message]:
    def request(scene: Scene) -> Message:
        resources = [
            configs.DescribeConfigsResource(resource_type=kind, resource_name=scene.name) for kind in kinds
        ]
        return configs.DescribeConfigsRequest(resources=resources)

    return request


def _alter_kinds(module: Any, request: Any) -> Callable[[Scene], Message]:
    def made(scene: Scene) -> Message:
        config = module.AlterableConfig(name="retention.ms", value="1000")
        resources = [
            module.AlterConfigsResource(resource_type=kind, resource_name=scene.name, configs=[config])
            for kind in _KINDS
        ]
        message = request(resources=resources, validate_only=True)
        assert isinstance(message, Message)
        return message

    return made


def _by_kind(told: Any) -> object:
    return sorted((result.resource_type, result.error_code) for result in told)


_ONE, _OTHER = [True], [False]

CASES: Sequence[Case] = [
    Case(
        "describe-client-quotas",
        1,
        _find_quotas,
        lambda scene, answer: (answer.error_code, answer.entries),
        [(None, (CLUSTER, None)), (on_cluster(_O.DESCRIBE_CONFIGS), (OK, []))],
    ),
    Case(
        "alter-client-quotas",
        1,
        _alter_quotas,
        _quotas_altered,
        [
            (None, [(CLUSTER, _OTHER), (CLUSTER, _OTHER), (CLUSTER, _ONE)]),
            (on_cluster(_O.ALTER_CONFIGS), [(OK, _ONE), (INVALID_REQUEST, _OTHER)]),
        ],
    ),
    *(
        Case(
            f"update-features-{version}",
            version,
            _update,
            _updated,
            [(None, (CLUSTER, [])), (on_cluster(_O.ALTER), (INVALID_UPDATE, []))],
        )
        for version in (1, 2)
    ),
    Case(
        "describe-configs-kinds",
        4,
        _describe_kinds(2, 8, 16, 32),
        lambda scene, answer: _by_kind(answer.results),
        [(None, [(2, TOPIC), (8, CLUSTER), (16, CLUSTER), (32, GROUP)])],
    ),
    Case(
        "describe-configs-no-kind",
        4,
        _describe_kinds(2, 99),
        lambda scene, answer: _by_kind(answer.results),
        [(None, [(2, INVALID_REQUEST), (99, INVALID_REQUEST)])],
    ),
    *(
        Case(
            name,
            version,
            _alter_kinds(module, request),
            lambda scene, answer: _by_kind(answer.responses),
            [(None, [(2, TOPIC), (8, loggers), (16, CLUSTER), (32, GROUP), (99, INVALID_REQUEST)])],
        )
        for name, version, module, request, loggers in (
            ("alter-configs-kinds", 2, legacy, legacy.AlterConfigsRequest, INVALID_REQUEST),
            (
                "incremental-alter-configs-kinds",
                1,
                incremental,
                incremental.IncrementalAlterConfigsRequest,
                CLUSTER,
            ),
        )
    ),
]
"""The part of the table for quotas, features and kinds of settings."""
