"""SaslHandshake (17), versions 0 and 1, where nobody is asked who it is.

On listeners with SASL the exchange is over before any request comes here (`security/sasl_authenticator.py`).
Access: none needed.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.errors import Errors
from kclient.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(call: ApiCall, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse it: the listener has no mechanism."""
    del call, request
    return SaslHandshakeResponse(error_code=int(Errors.ILLEGAL_SASL_STATE))
