"""DescribeAcls (29), versions 1 to 3: the access rules that a filter finds.

Behaviour: without an authorizer there are none to tell; a code that is not known finds none.
Access: DESCRIBE on the cluster.
"""

from __future__ import annotations

from kclient.broker.apis.acl_filters import check_told, codes_of, matching
from kclient.broker.apis.call import ApiCall, error_in
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import SecurityDisabledError
from kclient.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def describe_acls(call: ApiCall, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Find the rules, by their patterns."""
    check_told(*codes_of(request))
    response = DescribeAclsResponse()
    with error_in(response):
        call.require(AclOperation.DESCRIBE, ResourceType.CLUSTER)
        if call.broker.authorizer is None:
            raise SecurityDisabledError
        resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
        for _, acl in matching(call.broker.controller.cache.image.acls, request):
            pattern = (acl.resource_type, acl.resource_name, acl.pattern_type)
            if pattern not in resources:
                resources[pattern] = DescribeAclsResource(
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    acls=[],
                )
            resources[pattern].acls.append(
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
            )
        response.resources = list(resources.values())
    return response
