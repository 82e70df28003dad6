"""SaslAuthenticate (36), versions 0 to 2, where it has no place: without a handshake before it.

On listeners with SASL the exchange is over before any request comes here (`security/sasl_authenticator.py`).
Access: none needed.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.errors import Errors
from kclient.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def sasl_authenticate(call: ApiCall, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse it."""
    del call, request
    return SaslAuthenticateResponse(
        error_code=int(Errors.ILLEGAL_SASL_STATE),
        error_message="SaslAuthenticate came without a SaslHandshake before it",
    )
