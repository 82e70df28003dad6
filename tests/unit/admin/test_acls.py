"""Operations on access rules, as a broker sees them."""

from __future__ import annotations

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaAdminClient,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kclient.errors import (
    AdminError,
    ClusterAuthorizationError,
    Errors,
    InvalidRequestError,
    SecurityDisabledError,
    UnknownServerError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import create_acls as create
from kclient.protocol.messages import delete_acls as delete
from kclient.protocol.messages import describe_acls as describe

READ = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "orders"), AccessControlEntry("User:alice", AclOperation.READ)
)
DENY = AclBinding(
    ResourcePattern(ResourceType.GROUP, "g-", PatternType.PREFIXED),
    AccessControlEntry("User:bob", AclOperation.ALL, host="10.0.0.1", permission_type=AclPermissionType.DENY),
)
MATCH = {
    "resource_type": 2,
    "resource_name": "orders",
    "pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def created(*codes: int) -> create.CreateAclsResponse:
    return create.CreateAclsResponse(
        results=[create.AclCreationResult(error_code=code, error_message="because") for code in codes]
    )


def test_rules_are_created_as_they_are_and_each_once(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.CREATE_ACLS, created(0, 0))
    assert client.create_acls([READ, DENY, READ]) == {READ: None, DENY: None}
    (request,) = scripted.received(ApiKeys.CREATE_ACLS)
    assert request.creations == [
        create.AclCreation(
            resource_type=2,
            resource_name="orders",
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        ),
        create.AclCreation(
            resource_type=3,
            resource_name="g-",
            resource_pattern_type=4,
            principal="User:bob",
            host="10.0.0.1",
            operation=2,
            permission_type=2,
        ),
    ]


def test_a_rule_that_is_refused_is_named_beside_those_that_were_created(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.CREATE_ACLS, created(0, Errors.INVALID_REQUEST))
    with pytest.raises(
        AdminError, match=r"Creating ACLs failed for DENY ALL to User:bob from 10\.0\.0\.1"
    ) as raised:
        client.create_acls([READ, DENY])
    assert raised.value.results == {READ: None}
    assert isinstance(raised.value.errors[DENY], InvalidRequestError)
    scripted.answer(ApiKeys.CREATE_ACLS, created(Errors.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(ClusterAuthorizationError, match="because"):
        client.create_acls([READ])


def test_a_rule_that_the_answer_leaves_out_counts_as_failed(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.CREATE_ACLS, created(0))
    with pytest.raises(AdminError) as raised:
        client.create_acls([READ, DENY])
    assert isinstance(raised.value.errors[DENY], UnknownServerError)


def test_rules_are_found_by_all_parts_of_the_filter(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    acl = describe.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3)
    scripted.answer(
        ApiKeys.DESCRIBE_ACLS,
        describe.DescribeAclsResponse(
            error_message=None,
            resources=[
                describe.DescribeAclsResource(
                    resource_type=2, resource_name="orders", pattern_type=3, acls=[acl]
                )
            ],
        ),
        describe.DescribeAclsResponse(error_message=None),
    )
    assert client.describe_acls(DENY.to_filter()) == [READ]
    assert client.describe_acls() == []
    one, every = scripted.received(ApiKeys.DESCRIBE_ACLS)
    assert (one.resource_type_filter, one.resource_name_filter, one.pattern_type_filter) == (3, "g-", 4)
    assert (one.principal_filter, one.host_filter, one.operation, one.permission_type) == (
        "User:bob",
        "10.0.0.1",
        2,
        2,
    )
    assert (every.resource_type_filter, every.resource_name_filter, every.pattern_type_filter) == (1, None, 1)
    assert (every.principal_filter, every.host_filter, every.operation, every.permission_type) == (
        None,
        None,
        1,
        1,
    )


def test_codes_of_a_newer_broker_keep_their_numbers(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    acl = describe.AclDescription(principal="User:a", host="*", operation=99, permission_type=-5)
    resource = describe.DescribeAclsResource(resource_type=77, resource_name="x", pattern_type=9, acls=[acl])
    scripted.answer(
        ApiKeys.DESCRIBE_ACLS, describe.DescribeAclsResponse(error_message=None, resources=[resource])
    )
    (found,) = client.describe_acls(AclBindingFilter())
    assert (found.pattern.resource_type, found.pattern.pattern_type) == (77, 9)
    assert (found.entry.operation, found.entry.permission_type) == (99, -5)
    assert str(found) == "UNKNOWN_-5 UNKNOWN_99 to User:a from * on UNKNOWN_77 x (UNKNOWN_9)"


def test_a_cluster_without_an_authorizer_says_so(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    answer = describe.DescribeAclsResponse(error_code=Errors.SECURITY_DISABLED, error_message=None)
    scripted.answer(ApiKeys.DESCRIBE_ACLS, answer)
    with pytest.raises(SecurityDisabledError, match="no authorizer"):
        client.describe_acls(AclBindingFilter())


def deleted(*results: delete.DeleteAclsFilterResult) -> delete.DeleteAclsResponse:
    return delete.DeleteAclsResponse(filter_results=list(results))


def test_what_each_filter_has_deleted_is_returned(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    match = delete.DeleteAclsMatchingAcl(error_message=None, **MATCH)
    nothing = delete.DeleteAclsFilterResult(error_message=None)
    scripted.answer(
        ApiKeys.DELETE_ACLS,
        deleted(delete.DeleteAclsFilterResult(error_message=None, matching_acls=[match]), nothing),
    )
    filters = [
        READ.to_filter(),
        AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC), AccessControlEntryFilter(host="h")),
    ]
    assert client.delete_acls(filters) == {filters[0]: [READ], filters[1]: []}
    first, second = scripted.received(ApiKeys.DELETE_ACLS)[0].filters
    assert (first.resource_name_filter, first.principal_filter, first.operation) == (
        "orders",
        "User:alice",
        3,
    )
    assert (second.resource_name_filter, second.principal_filter, second.host_filter) == (None, None, "h")


def test_a_rule_that_could_not_be_deleted_hides_none_that_was(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    good = delete.DeleteAclsMatchingAcl(error_message=None, **MATCH)
    bad = delete.DeleteAclsMatchingAcl(
        error_message="because", error_code=Errors.INVALID_REQUEST, **{**MATCH, "principal": "User:eve"}
    )
    result = delete.DeleteAclsFilterResult(error_message=None, matching_acls=[good, bad])
    scripted.answer(ApiKeys.DELETE_ACLS, deleted(result))
    wanted = AclBindingFilter(READ.pattern.to_filter())
    with pytest.raises(AdminError) as raised:
        client.delete_acls([wanted])
    assert raised.value.results == {wanted: [READ]}
    eve = AclBinding(READ.pattern, AccessControlEntry("User:eve", AclOperation.READ))
    assert list(raised.value.errors) == [eve]


def test_a_filter_that_is_refused_or_left_out_is_an_error(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    refused = delete.DeleteAclsFilterResult(error_code=Errors.SECURITY_DISABLED, error_message=None)
    scripted.answer(ApiKeys.DELETE_ACLS, deleted(refused), deleted())
    with pytest.raises(SecurityDisabledError, match="Deleting ACLs failed for ALLOW READ"):
        client.delete_acls([READ.to_filter()])
    with pytest.raises(UnknownServerError, match="says nothing"):
        client.delete_acls([READ.to_filter()])
