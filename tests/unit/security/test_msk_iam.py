"""Tokens for Amazon MSK, against one that AWS's own signer made."""

from __future__ import annotations

import base64
import datetime as dt
import sys
from pathlib import Path

import pytest

from kclient.errors import ConfigError
from kclient.security.msk_iam import MskIamTokens

# Of aws-msk-iam-sasl-signer-python 1.0.2, but for the agent at its end.
SIGNED = (
    "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Feu-west-1%2Fkafka-cluster%2Faws4_request"
    "&X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Security-Token=a%2Ftoken%2B1%3D%3D"
    "&X-Amz-Signature=d7026365d2a16872812b48d604dd4102a7c3057ffaef9c3374c81e9335eab8ec&User-Agent="
)
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing of this machine's; returns the file of profiles."""
    auth = pytest.importorskip("botocore.auth", reason="the extra msk")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setattr(auth, "get_current_datetime", lambda *_: dt.datetime(2026, 1, 2, 3, 4, 5))  # noqa: DTZ001 (as botocore's)
    return tmp_path / "config"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a/token+1==")


@pytest.mark.usefixtures("credentials")
def test_a_token_is_signed_as_aws_own_signer_does() -> None:
    token = MskIamTokens("eu-west-1")()
    url = base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode()
    assert url.startswith(SIGNED + "kclient%2F")
    assert token.expires_ms == 1_767_323_945_000  # a quarter of an hour later
    assert token.principal == "AKIDEXAMPLE"


@pytest.mark.usefixtures("credentials")
def test_the_region_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="region"):
        MskIamTokens()()
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert MskIamTokens()() == MskIamTokens("eu-west-1")()


def test_credentials_and_region_may_come_from_a_profile(environment: Path) -> None:
    environment.write_text(
        "[profile streams]\nregion = eu-west-1\naws_access_key_id = AKIDEXAMPLE\n"
        f"aws_secret_access_key = {SECRET}\naws_session_token = a/token+1==\n"
    )
    token = MskIamTokens(profile="streams")()
    assert base64.urlsafe_b64decode(token.value + "===").decode().startswith(SIGNED)


def test_no_credentials_are_told() -> None:
    with pytest.raises(ConfigError, match="no AWS credentials"):
        MskIamTokens("eu-west-1")()
    with pytest.raises(ConfigError, match=r"no AWS credentials.*streams"):
        MskIamTokens("eu-west-1", profile="streams")()


def test_without_botocore_the_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(ConfigError, match=r"kclient-kafka\[msk\]"):
        MskIamTokens("eu-west-1")()
