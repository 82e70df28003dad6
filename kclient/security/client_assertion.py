"""ClientAssertion: a JWT that a client makes, or finds in a file, to prove who it is (RFC 7523, KIP-1139, KIP-1258)."""

from __future__ import annotations

import importlib
import json
import time
import uuid
from pathlib import Path
from typing import Any

import attrs

from kclient.config.oauth_configs import OauthConfig
from kclient.errors import ConfigError

_PREFIX = "sasl.oauthbearer.assertion."


@attrs.frozen(repr=False)
class ClientAssertion:
    """Makes an assertion for each request. Immutable; files are read each time, as they may be replaced."""

    _config: OauthConfig

    @classmethod
    def from_config(cls, config: OauthConfig) -> ClientAssertion | None:
        """Return what the settings say, None if they say nothing. Raises ConfigError if it cannot be made."""
        if config.sasl_oauthbearer_assertion_file is None:
            if config.sasl_oauthbearer_assertion_private_key_file is None:
                return None
            _jwt()
        made = cls(config)
        made.text()
        return made

    def text(self) -> str:
        """Return an assertion that is valid now. Raises ConfigError that names the setting that is wrong."""
        config = self._config
        if config.sasl_oauthbearer_assertion_file is not None:
            return _read(config.sasl_oauthbearer_assertion_file, f"{_PREFIX}file").strip()
        template = self._template()
        now_s = int(time.time())
        claims: dict[str, Any] = {
            **template.get("payload", {}),
            "iat": now_s,
            "exp": now_s + config.sasl_oauthbearer_assertion_claim_exp_seconds,
            "nbf": now_s - config.sasl_oauthbearer_assertion_claim_nbf_seconds,
        }
        chosen = {
            "aud": config.sasl_oauthbearer_assertion_claim_aud,
            "iss": config.sasl_oauthbearer_assertion_claim_iss,
            "sub": config.sasl_oauthbearer_assertion_claim_sub,
        }
        claims |= {name: value for name, value in chosen.items() if value is not None}
        if config.sasl_oauthbearer_assertion_claim_jti_include:
            claims["jti"] = str(uuid.uuid4())
        algorithm = config.sasl_oauthbearer_assertion_algorithm.upper()
        key = self._key()
        try:
            made = _jwt().encode(claims, key, algorithm=algorithm, headers=template.get("header"))
        except (TypeError, ValueError) as error:
            raise _error("algorithm", f"the key does not fit {algorithm}: {error}") from None
        return str(made)

    def _template(self) -> dict[str, Any]:
        location = self._config.sasl_oauthbearer_assertion_template_file
        if location is None:
            return {}
        try:
            found = json.loads(_read(location, f"{_PREFIX}template.file"))
        except (ValueError, RecursionError):
            raise _error("template.file", f"{location} is not JSON") from None
        if not isinstance(found, dict) or not all(
            isinstance(found.get(part, {}), dict) for part in ("header", "payload")
        ):
            raise _error("template.file", f'{location} is not {{"header": {{...}}, "payload": {{...}}}}')
        return found

    def _key(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        location = self._config.sasl_oauthbearer_assertion_private_key_file
        assert location is not None
        passphrase = self._config.sasl_oauthbearer_assertion_private_key_passphrase
        data = _read(location, f"{_PREFIX}private.key.file").encode()
        try:
            return load_pem_private_key(data, None if passphrase is None else passphrase.value.encode())
        except (TypeError, ValueError):
            raise _error(
                "private.key.file",
                f"{location} holds no private key in PEM, or {_PREFIX}private.key.passphrase does not fit it",
            ) from None


def _jwt() -> Any:
    try:
        return importlib.import_module("jwt")
    except ImportError:
        raise _error("private.key.file", "signing needs PyJWT: pip install 'kclient-kafka[oauth]'") from None


def _read(location: str, setting: str) -> str:
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting}: {location} cannot be read: {error}", name=setting) from None


def _error(name: str, text: str) -> ConfigError:
    return ConfigError(f"{_PREFIX}{name}: {text}.", name=f"{_PREFIX}{name}")
