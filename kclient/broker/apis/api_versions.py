"""ApiVersions (18), versions 0 to 4: what this broker serves.

Always answered, in version 0 with error 35 and the same list if the request's version is not known (KIP-511).
Access: none needed.
"""

from __future__ import annotations

import re

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import served_apis
from kclient.errors import Errors
from kclient.network.transport import Buffer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import RequestHeader, response_buffers
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def api_versions(call: ApiCall, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Name every API with its versions."""
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=int(Errors.INVALID_REQUEST))
    return ApiVersionsResponse(api_keys=_served())


def answer_versions(header: RequestHeader) -> list[Buffer]:
    """Return the frame that answers ApiVersions of a client that has not said who it is yet."""
    version = header.api_version
    served = served_apis()[int(ApiKeys.API_VERSIONS)].serves(version)
    answer = ApiVersionsResponse(api_keys=_served()) if served else unsupported_version_response()
    return response_buffers(answer, ApiKeys.API_VERSIONS, version if served else 0, header.correlation_id)


def unsupported_version_response() -> ApiVersionsResponse:
    """The answer, in version 0, to a request in a version that is not served."""
    return ApiVersionsResponse(error_code=int(Errors.UNSUPPORTED_VERSION), api_keys=_served())


def _served() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=int(api.key), min_version=api.advertised_min_version, max_version=api.max_version)
        for _, api in sorted(served_apis().items())
    ]
