"""Names of cipher suites: from IANA's, which Java uses, to OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SUITE = re.compile(r"TLS_(\w+)_WITH_(\w+)_(SHA\d*|CCM|CCM_8|POLY1305)")
_SIZE = re.compile(r"(AES|CAMELLIA|ARIA)-(\d+)")


def openssl_ciphers(suites: Iterable[str]) -> str:
    """Return `suites`, named by IANA or by OpenSSL, as the list that OpenSSL takes.

    Those of TLS 1.3 (TLS_AES_...) are left to OpenSSL, which has no others: they are always on. Raises ValueError if
    nothing is left, as OpenSSL would then take what it likes.
    """
    names = [openssl_name(suite) for suite in suites if not _is_of_tls_1_3(suite)]
    if not names:
        raise ValueError(
            "the suites of TLS 1.3 cannot be chosen here, they are always on; name one of TLS 1.2 as well, or none"
        )
    return ":".join(names)


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2; what is not named as IANA does stays as it is."""
    match = _SUITE.fullmatch(suite)
    if match is None:
        return suite
    exchange, cipher, mac = (part.replace("_", "-") for part in match.groups())
    if exchange == "RSA":
        exchange = ""
    cipher = _SIZE.sub(r"\1\2", cipher).removesuffix("-CBC")
    name = f"{cipher}-{mac}"
    if "CHACHA20" in name:
        name = name.removesuffix("-SHA256")
    return f"{exchange}-{name}" if exchange else name


def _is_of_tls_1_3(suite: str) -> bool:
    return suite.startswith("TLS_") and "_WITH_" not in suite
