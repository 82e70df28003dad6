"""Tokens of OAUTHBEARER for Amazon MSK, signed with the credentials that the AWS SDK finds."""

from __future__ import annotations

import base64
import datetime as dt
import importlib
import urllib.parse
from typing import Any

import attrs

from kclient._version import __version__
from kclient.errors import ConfigError
from kclient.security.oauth_bearer import OAuthBearerToken

_SERVICE = "kafka-cluster"
_LIFETIME_S = 900  # the longest that MSK takes
_DATE = "%Y%m%dT%H%M%SZ"


@attrs.frozen
class MskIamTokens:
    """A function for `sasl.login.callback.handler.class`: each call signs a token of 15 minutes. Any thread.

    Needs the extra `msk`. The credentials are those of botocore's chain: environment, profiles (with their roles),
    containers, machines. A call asks for them again, so they may be temporary.

    Raises ConfigError, when it is called, if there is no region, no such profile or no credentials.
    """

    region: str | None = None
    """Region of the cluster, by default that of the environment or the profile."""
    profile: str | None = attrs.field(default=None, kw_only=True)
    """Name of a profile in ~/.aws, by default that of AWS_PROFILE, or none."""

    def __call__(self) -> OAuthBearerToken:
        """Return a new token."""
        session = _module("botocore.session").Session(profile=self.profile)
        try:
            region = self.region or session.get_config_variable("region")
            credentials = session.get_credentials()
        except _module("botocore.exceptions").BotoCoreError as error:
            raise ConfigError(f"There are no AWS credentials for a token of MSK: {error}") from error
        if not region:
            raise ConfigError(
                "A token of MSK needs the cluster's region: MskIamTokens(region), or AWS_REGION."
            )
        if credentials is None:
            raise ConfigError(
                "There are no AWS credentials for a token of MSK in environment, profiles or machine."
            )
        frozen = credentials.get_frozen_credentials()
        return _signed(frozen, region)


def _signed(credentials: Any, region: str) -> OAuthBearerToken:
    request = _module("botocore.awsrequest").AWSRequest(
        method="GET",
        url=f"https://kafka.{region}.amazonaws.com/",
        params={"Action": "kafka-cluster:Connect"},
    )
    _module("botocore.auth").SigV4QueryAuth(credentials, _SERVICE, region, expires=_LIFETIME_S).add_auth(
        request
    )
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.url).query))
    signed_at = dt.datetime.strptime(query["X-Amz-Date"], _DATE).replace(tzinfo=dt.UTC)
    # Brokers log the agent; it is no part of what is signed.
    url = f"{request.url}&{urllib.parse.urlencode({'User-Agent': f'kclient/{__version__}'})}"
    return OAuthBearerToken(
        base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode(),
        expires_ms=int(signed_at.timestamp() + _LIFETIME_S) * 1000,
        principal=credentials.access_key,
    )


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError("MskIamTokens needs botocore: pip install 'kclient-kafka[msk]'") from None
