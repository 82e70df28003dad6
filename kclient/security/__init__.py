"""Keys, certificates and what is agreed on before the first frame: TLS and SASL.

Public are `OAuthBearerToken`, which a function of one's own may return, and `MskIamTokens`.
"""

from kclient.security.msk_iam import MskIamTokens
from kclient.security.oauth_bearer import OAuthBearerToken

__all__ = ["MskIamTokens", "OAuthBearerToken"]
