"""DeleteAcls (31), versions 1 to 3: remove the access rules that filters find.

Behaviour: each filter is told what it has found; all rules go at once. Access: ALTER on the cluster.
"""

from __future__ import annotations

import logging

from kclient.broker.apis.acl_filters import check_filter, check_told, codes_of, matching
from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.controller import MAX_RECORDS_PER_REQUEST
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.security import AccessControlEntry
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.uuid import Uuid
from kclient.errors import Errors, InvalidRequestError, KafkaError, SecurityDisabledError
from kclient.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kclient.protocol.messages.metadata_records import RemoveAccessControlEntryRecord
from kclient.protocol.schema import Message

log = logging.getLogger(__name__)


def delete_acls(call: ApiCall, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Remove what each filter finds."""
    for wanted in request.filters:
        check_told(*codes_of(wanted))
    results: list[DeleteAclsFilterResult] = []
    removed: dict[Uuid, None] = {}

    def plan(image: MetadataImage) -> list[Message]:
        for wanted in request.filters:
            result = DeleteAclsFilterResult(error_message=None, matching_acls=[])
            results.append(result)
            with error_in(result):
                check_filter(wanted)
                for acl_id, acl in matching(image.acls, wanted):
                    removed[acl_id] = None
                    result.matching_acls.append(_match(acl))
            if len(removed) > MAX_RECORDS_PER_REQUEST:
                raise InvalidRequestError(
                    f"One request can remove at most {MAX_RECORDS_PER_REQUEST} access rules"
                )
        return [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]

    try:
        call.require(AclOperation.ALTER, ResourceType.CLUSTER)
        if call.broker.authorizer is None:
            raise SecurityDisabledError
        call.broker.controller.change(plan)
        log.info("%s has removed %d access rules", call.principal, len(removed))
    except KafkaError as error:
        results = [
            DeleteAclsFilterResult(
                error_code=Errors.code_for(error), error_message=str(error), matching_acls=[]
            )
            for _ in request.filters
        ]
    return DeleteAclsResponse(filter_results=results)


def _match(acl: AccessControlEntry) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
